/**
 * Store account tokens of a person: filed by the app, so that a store's purchase finds its person. The audit gets fingerprints alone. A
 * token is taken in the body, where no proxy or log on the way keeps it; the older routes that name one in their path stay.
 */
import { Type } from "typebox";
import { fields } from "../ground/schema.ts";
import { fileToken, findPersonByToken, removeToken, tokenView } from "../people/person-key.ts";
import type { HttpDeps } from "./deps.ts";
import { type EnvironmentCall, environmentRoute } from "./route.ts";

const token = Type.Object({ token: tokenView });
const body = fields({ token: Type.String({ description: "the token as the store gives it back" }) });
const IN_PATH = "a path stands in the logs of whatever it passes, so send the token in the body";

interface TokenCall extends EnvironmentCall {
  deps: HttpDeps;
  nowMs: number;
}

async function file({ deps, environment, origin, audit, nowMs }: TokenCall, personId: string, given: string) {
  const filing = { environmentId: environment.id, personId, token: given, nowMs };
  const filed = await deps.store.write(origin, async (tx) => {
    const earlier = await findPersonByToken(tx, filing.environmentId, given);
    const filed = await fileToken(tx, filing);
    if (earlier === null) {
      await audit(tx, {
        action: "person.token_filed",
        target: `person:${personId}`,
        after: { token: deps.sealer.fingerprint(given) },
      });
    }
    return filed;
  });
  return { token: filed };
}

async function remove(
  { deps, environment, origin, audit }: TokenCall,
  personId: string,
  given: string,
): Promise<undefined> {
  await deps.store.write(origin, async (tx) => {
    await removeToken(tx, { environmentId: environment.id, personId, token: given });
    await audit(tx, {
      action: "person.token_removed",
      target: `person:${personId}`,
      before: { token: deps.sealer.fingerprint(given) },
    });
  });
  return undefined;
}

export const tokenRoutes = [
  environmentRoute({
    method: "PUT",
    path: "/persons/:id/tokens",
    summary: "Files a store account token for a person; filing it again changes nothing.",
    body,
    answer: token,
    handle: (call) => file(call, call.params.id, call.body.token),
  }),
  environmentRoute({
    method: "POST",
    path: "/persons/:id/tokens/remove",
    summary: "Takes a person's store account token back.",
    body,
    answer: null,
    handle: (call) => remove(call, call.params.id, call.body.token),
  }),
  environmentRoute({
    method: "PUT",
    path: "/persons/:id/tokens/:token",
    summary: `As PUT /persons/{id}/tokens, which is better: ${IN_PATH}.`,
    answer: token,
    handle: (call) => file(call, call.params.id, call.params.token),
  }),
  environmentRoute({
    method: "DELETE",
    path: "/persons/:id/tokens/:token",
    summary: `As POST /persons/{id}/tokens/remove, which is better: ${IN_PATH}.`,
    answer: null,
    handle: (call) => remove(call, call.params.id, call.params.token),
  }),
];
