/**
 * People: the list, inviting, one with their plan and tokens, changing, erasing; and the store account tokens that the app files for them, so
 * that a store's purchase finds its person. The audit gets a token's fingerprint alone. A token is taken in the body, where no proxy or log on
 * the way keeps it; the older routes that name one in their path stay.
 */
import { Type } from "typebox";
import type { Json } from "../ground/json.ts";
import { readPageRequest } from "../ground/page.ts";
import { fields, oneOf, pageOf, pageQuery, textOrNull } from "../ground/schema.ts";
import {
  findPersonByEmail,
  listPersons,
  personStatus,
  personView,
  requirePerson,
  updatePerson,
  viewPerson,
} from "../people/person.ts";
import { type EraseCursor, erasePerson, eraseRows } from "../people/person-erase.ts";
import { invitePerson } from "../people/person-invite.ts";
import { fileToken, findPersonByToken, listTokens, removeToken, tokenView } from "../people/person-key.ts";
import { currentPlan } from "../selling/plan-sale.ts";
import { readPage } from "../store/walk.ts";
import type { HttpDeps } from "./deps.ts";
import { type EnvironmentCall, environmentRoute } from "./route.ts";

/** What a person has of their own goes before the answer, up to some thousand rows; the sweep goes on with more. */
const STEPS_IN_A_REQUEST = 25;

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

export const personRoutes = [
  environmentRoute({
    method: "GET",
    path: "/persons",
    summary: "Lists people, newest first; q finds by a part of the address.",
    query: fields({
      ...pageQuery,
      q: Type.Optional(Type.String()),
      email: Type.Optional(Type.String({ description: "a whole e-mail address" })),
      status: Type.Optional(personStatus),
    }),
    answer: pageOf(personView),
    async handle({ deps, environment, query }) {
      const { limit, cursor, email, ...filter } = query;
      const page = readPageRequest({ limit, cursor });
      const environmentId = environment.id;
      if (email === undefined) {
        return await readPage(deps.store, page, (tx, part) => listPersons(tx, environmentId, part, filter));
      }
      const found = await deps.store.read((tx) => findPersonByEmail(tx, environmentId, email));
      return { items: found === null ? [] : [viewPerson(found)], next: null };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/persons",
    summary: "Invites a person by address; someone who exists already is answered as they are.",
    body: fields({ email: Type.String({ description: "an e-mail address" }) }),
    answer: Type.Object({ person: personView, created: Type.Boolean() }),
    status: 201,
    async handle({ deps, environment, by, origin, body, nowMs }) {
      const { invitesPerDay } = deps.config.limits;
      const invite = {
        environmentId: environment.id,
        createdBy: by,
        nowMs,
        invitesPerDay,
        ...body,
      };
      const made = await deps.store.write(origin, (tx) => invitePerson(tx, invite));
      return { person: viewPerson(made.person), created: made.created };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/persons/:id",
    summary: "Shows one person with the plan they are on and their store account tokens.",
    answer: Type.Object({
      person: personView,
      plan: textOrNull,
      tokens: Type.Array(tokenView),
    }),
    async handle({ deps, environment, params }) {
      const environmentId = environment.id;
      return await deps.store.read(async (tx) => {
        const row = await requirePerson(tx, environmentId, params.id);
        const { plan } = await currentPlan(tx, environmentId, params.id);
        return { person: viewPerson(row), plan, tokens: await listTokens(tx, environmentId, params.id) };
      });
    },
  }),
  environmentRoute({
    method: "PATCH",
    path: "/persons/:id",
    summary: "Suspends or activates a person, or changes attributes; an attribute given as null is removed.",
    body: fields({
      status: Type.Optional(oneOf(["active", "suspended"])),
      attributes: Type.Optional(Type.Record(Type.String(), Type.Unsafe<Json>({}))),
    }),
    answer: Type.Object({ person: personView }),
    async handle({ deps, environment, origin, audit, params, body, nowMs }) {
      const at = { environmentId: environment.id, personId: params.id, nowMs };
      const row = await deps.store.write(origin, async (tx) => {
        const { before, after } = await updatePerson(tx, at, body);
        if (before === after) return after;
        const names = Object.keys(body.attributes ?? {});
        await audit(tx, {
          action: "person.changed",
          target: `person:${params.id}`,
          before: { status: before.status },
          after: { status: after.status, ...(names.length === 0 ? {} : { attributesChanged: names }) },
        });
        return after;
      });
      return { person: viewPerson(row) };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/persons/:id",
    summary:
      "Erases a person at once; their records, payloads, calls and mails go in the minutes after. Ledger and receipts keep only the id, and no relay hears of it.",
    answer: null,
    async handle({ deps, environment, by, audit, params, nowMs }) {
      const erasure = { environmentId: environment.id, personId: params.id, by, nowMs };
      await deps.store.write("erasure", async (tx) => {
        const status = await erasePerson(tx, erasure, deps.sealer);
        await audit(tx, {
          action: "person.erased",
          target: `person:${params.id}`,
          before: { status },
          after: { status: "erased" },
        });
      });
      let cursor: EraseCursor | null = { recordSeq: 0 };
      for (let step = 0; cursor !== null && step < STEPS_IN_A_REQUEST; step++) {
        const from: EraseCursor = cursor;
        cursor = (await deps.store.write("erasure", (tx) => eraseRows(tx, erasure, from)))?.cursor ?? null;
      }
      return undefined;
    },
  }),
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
