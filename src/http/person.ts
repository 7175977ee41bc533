/**
 * People: the list, inviting, one with their plan and tokens, changing, erasing; and the store account tokens that the app files for them, so
 * that a store's purchase finds its person. The audit gets a token's fingerprint alone. A token is taken in the body, where no proxy or log on
 * the way keeps it; the older routes that name one in their path stay.
 */
import { Type } from "typebox";
import type { Json } from "../ground/json.ts";
import { fields, oneOf, textOrNull } from "../ground/schema.ts";
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
import type { Writer } from "../store/port.ts";
import type { HttpDeps } from "./deps.ts";
import { type EnvironmentCall, environmentRoute, listRoute } from "./route.ts";

/** What a person has of their own goes before the answer, up to some thousand rows; the sweep goes on with more. */
const STEPS_IN_A_REQUEST = 25;

const token = Type.Object({ token: tokenView });
const body = fields({ token: Type.String({ description: "the token as the store gives it back" }) });
const IN_PATH = "a path stands in the logs of whatever it passes, so send the token in the body";

type TokenCall = Pick<EnvironmentCall, "environmentId" | "audit"> & { deps: HttpDeps; nowMs: number };

async function file(
  tx: Writer,
  { deps, environmentId, audit, nowMs }: TokenCall,
  personId: string,
  token: string,
) {
  const earlier = await findPersonByToken(tx, environmentId, token);
  const filed = await fileToken(tx, { environmentId, personId, token, nowMs });
  if (earlier === null) {
    const after = { token: deps.sealer.fingerprint(token) };
    await audit(tx, { action: "person.token_filed", target: `person:${personId}`, after });
  }
  return { token: filed };
}

async function remove(
  tx: Writer,
  { deps, environmentId, audit }: TokenCall,
  personId: string,
  token: string,
): Promise<void> {
  await removeToken(tx, { environmentId, personId, token });
  const before = { token: deps.sealer.fingerprint(token) };
  await audit(tx, { action: "person.token_removed", target: `person:${personId}`, before });
}

export const personRoutes = [
  listRoute({
    path: "/persons",
    summary: "Lists people, newest first; q finds by a part of the address.",
    filter: {
      q: Type.Optional(Type.String()),
      email: Type.Optional(Type.String({ description: "a whole e-mail address" })),
      status: Type.Optional(personStatus),
    },
    item: personView,
    async list(tx, { environmentId }, page, { email, ...filter }) {
      if (email === undefined) return await listPersons(tx, environmentId, page, filter);
      const found = await findPersonByEmail(tx, environmentId, email);
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
    async write(tx, { deps, environmentId, by, body, nowMs }) {
      const { invitesPerDay } = deps.config.limits;
      const invite = { environmentId, createdBy: by, nowMs, invitesPerDay, ...body };
      const { person, created } = await invitePerson(tx, invite);
      return { person: viewPerson(person), created };
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
    async read(tx, { environmentId, params }) {
      const row = await requirePerson(tx, environmentId, params.id);
      const { plan } = await currentPlan(tx, environmentId, params.id);
      return { person: viewPerson(row), plan, tokens: await listTokens(tx, environmentId, params.id) };
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
    async write(tx, { environmentId, audit, params, body, nowMs }) {
      const { before, after } = await updatePerson(tx, { environmentId, personId: params.id, nowMs }, body);
      if (before !== after) {
        const names = Object.keys(body.attributes ?? {});
        await audit(tx, {
          action: "person.changed",
          target: `person:${params.id}`,
          before: { status: before.status },
          after: { status: after.status, ...(names.length === 0 ? {} : { attributesChanged: names }) },
        });
      }
      return { person: viewPerson(after) };
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
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/persons/:id/tokens",
    summary: "Files a store account token for a person; filing it again changes nothing.",
    body,
    answer: token,
    write: (tx, call) => file(tx, call, call.params.id, call.body.token),
  }),
  environmentRoute({
    method: "POST",
    path: "/persons/:id/tokens/remove",
    summary: "Takes a person's store account token back.",
    body,
    answer: null,
    write: (tx, call) => remove(tx, call, call.params.id, call.body.token),
  }),
  environmentRoute({
    method: "PUT",
    path: "/persons/:id/tokens/:token",
    summary: `As PUT /persons/{id}/tokens, which is better: ${IN_PATH}.`,
    answer: token,
    write: (tx, call) => file(tx, call, call.params.id, call.params.token),
  }),
  environmentRoute({
    method: "DELETE",
    path: "/persons/:id/tokens/:token",
    summary: `As POST /persons/{id}/tokens/remove, which is better: ${IN_PATH}.`,
    answer: null,
    write: (tx, call) => remove(tx, call, call.params.id, call.params.token),
  }),
];
