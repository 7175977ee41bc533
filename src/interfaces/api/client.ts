/**
 * The client library, for pages of any origin, and its operations for a person: sign-in and sign-out, their own data, their records, and payment
 * links. Their writes count as writes of the app, so they fire data_change.
 */
import { Type } from "typebox";
import library from "../../../client/g.js" with { type: "text" };
import { toIso } from "../../base/clock.ts";
import type { Json } from "../../base/json.ts";
import { readPageRequest } from "../../base/page.ts";
import { fields, json, orNull, pageOf, pageQuery, show, time, timeOrNull } from "../../base/schema.ts";
import { checkAccess, grantSource } from "../../shop/people/access-grant.ts";
import { findBalance } from "../../shop/people/credit.ts";
import { resolveEntitlementKey } from "../../shop/people/entitlement.ts";
import { requirePerson } from "../../shop/people/person.ts";
import {
  createPersonRecord,
  deletePersonRecord,
  listPersonRecords,
  type PersonAt,
  readPersonRecord,
  updatePersonRecord,
} from "../../shop/portal/person-record.ts";
import { endPersonSession, endPersonSessions } from "../../shop/portal/person-session.ts";
import type { SigninContext } from "../../shop/portal/person-signin.ts";
import { plans } from "../../shop/selling/plan.ts";
import { currentPlan } from "../../shop/selling/plan-sale.ts";
import { products } from "../../shop/selling/product.ts";
import { DATA_HEADERS } from "../http/answer.ts";
import { type ClientCall, clientRoute, type PersonCall, personRoute } from "../http/client-route.ts";
import { openRoute } from "../http/route.ts";

const ETAG = `"${Bun.hash(library).toString(36)}"`;

const HEADERS = {
  ...DATA_HEADERS,
  "access-control-allow-origin": "*",
  "cross-origin-resource-policy": "cross-origin",
  "content-type": "text/javascript; charset=utf-8",
  "cache-control": "public, no-cache",
  etag: ETAG,
};

/** A person as clients see them. Attributes stay private, because an app's notes about people may not be for them to read. */
const clientPerson = Type.Object({ id: Type.String(), email: Type.String(), createdAt: time });

const email = Type.String({ description: "an email address" });

function contextOf({ key, environmentId, source }: ClientCall & { source: string }): SigninContext {
  return { appId: key.appId, environmentId, by: `key:${key.id}`, source };
}

const answer = Type.Object({ url: Type.String() });

const record = Type.Object({
  id: Type.String(),
  collection: Type.String(),
  data: json,
  owner: orNull(Type.String()),
  recipient: orNull(Type.String()),
  createdAt: time,
  updatedAt: time,
});

const data = Type.Unknown({ description: "an object with the collection's fields" });

interface AtCollection extends Pick<ClientCall & PersonCall, "environmentId" | "personId"> {
  params: { name: string };
}

function at({ environmentId, personId, params }: AtCollection): PersonAt {
  return { environmentId, personId, collection: params.name };
}

export const clientRoutes = [
  openRoute({
    method: "GET",
    path: "/client/g.js",
    summary: "Serves the client library, an ES module.",
    answer: Type.String(),
    handle({ request }) {
      const known = request.headers.get("if-none-match")?.includes(ETAG) ?? false;
      return known
        ? new Response(null, { status: 304, headers: HEADERS })
        : new Response(library, { headers: HEADERS });
    },
  }),
  personRoute({
    method: "GET",
    path: "/me",
    summary: "Returns the signed-in person and their plan.",
    answer: Type.Object({ person: clientPerson, plan: orNull(Type.String()) }),
    async read(tx, { environmentId, personId }) {
      const row = await requirePerson(tx, environmentId, personId);
      const { plan } = await currentPlan(tx, environmentId, personId);
      return { person: show(clientPerson, row), plan };
    },
  }),
  personRoute({
    method: "GET",
    path: "/access/:entitlement",
    summary: "Returns whether the signed-in person has access to one entitlement now, and until when.",
    answer: Type.Object({
      granted: Type.Boolean(),
      until: timeOrNull,
      grants: Type.Array(
        Type.Object({
          source: grantSource,
          grantedAt: time,
          expiresAt: timeOrNull,
        }),
      ),
    }),
    async read(tx, { environmentId, personId, params, nowMs }) {
      const entitlement = await resolveEntitlementKey(tx, environmentId, params.entitlement);
      const holding = { environmentId, personId, entitlement, nowMs };
      const { granted, until, grants } = await checkAccess(tx, holding);
      // The grantor and the reason of a grant are only for the app's owner.
      const shown = grants.map(({ source, grantedAt, expiresAt }) => ({ source, grantedAt, expiresAt }));
      return { granted, until, grants: shown };
    },
  }),
  personRoute({
    method: "GET",
    path: "/credits",
    summary: "Returns the credit balance of the signed-in person.",
    answer: Type.Object({ balance: Type.Integer() }),
    read: async (tx, { environmentId, personId }) => ({
      balance: await findBalance(tx, environmentId, personId),
    }),
  }),
  clientRoute({
    method: "POST",
    path: "/auth/code",
    summary:
      "Mails a sign-in code to an address. The response is the same whether or not a person has this address.",
    body: fields({ email }),
    answer: Type.Object({ expiresAt: time }),
    status: 202,
    async handle(call) {
      const { expiresAt } = await call.deps.personSignin.requestCode(contextOf(call), call.body.email);
      return { expiresAt: toIso(expiresAt) };
    },
  }),
  clientRoute({
    method: "POST",
    path: "/auth/session",
    summary:
      "Signs a person in with the mailed code. Relay creates a new person first if none has the address.",
    body: fields({ email, code: Type.String({ maxLength: 20, description: "the six digits of the code" }) }),
    answer: Type.Object({ token: Type.String(), expiresAt: time, person: clientPerson }),
    status: 201,
    async handle(call) {
      const { person, token, expiresAt } = await call.deps.personSignin.signIn(contextOf(call), call.body);
      return { token, expiresAt: toIso(expiresAt), person: show(clientPerson, person) };
    },
  }),
  personRoute({
    method: "DELETE",
    path: "/auth/session",
    summary: "Signs out.",
    answer: null,
    write: (tx, { session }) => endPersonSession(tx, session.id),
  }),
  personRoute({
    method: "DELETE",
    path: "/auth/sessions",
    summary: "Signs out everywhere.",
    answer: null,
    write: (tx, { personId }) => endPersonSessions(tx, personId),
  }),
  personRoute({
    method: "POST",
    path: "/payments/buy",
    summary:
      "Returns a product's payment link. If a relay sells it, the answer is 409 product_not_sellable, with the url of soldThrough if it has one.",
    body: fields({ product: Type.String({ description: "a product's name" }) }),
    answer,
    read: async (tx, { environmentId, body }) => ({
      url: await products.requirePaymentLink(tx, environmentId, body.product),
    }),
  }),
  personRoute({
    method: "POST",
    path: "/subscriptions/checkout",
    summary:
      "Returns a plan's payment link. If a relay sells it, the answer is 409 plan_not_sellable, with the url of soldThrough if it has one.",
    body: fields({ plan: Type.String({ description: "a plan's name" }) }),
    answer,
    read: async (tx, { environmentId, body }) => ({
      url: await plans.requirePaymentLink(tx, environmentId, body.plan),
    }),
  }),
  personRoute({
    method: "GET",
    path: "/collections/:name/records",
    summary: "Lists the records of a collection that the signed-in person may read, newest first.",
    query: fields(pageQuery),
    answer: pageOf(record),
    read: (tx, call) => listPersonRecords(tx, at(call), readPageRequest(call.query)),
  }),
  personRoute({
    method: "POST",
    path: "/collections/:name/records",
    summary:
      "Creates a record that the signed-in person owns. In a direct collection, the record goes to another person.",
    body: fields({ data, to: Type.Optional(orNull(Type.String({ description: "a person's id" }))) }),
    answer: Type.Object({ record }),
    status: 201,
    async handle(call) {
      const { deps, body, source, nowMs } = call;
      const given = { data: body.data as Json, to: body.to ?? null };
      const place = at(call);
      await deps.clientWrites.count(source, place, "created");
      const made = await deps.clientWrites.store(place, (tx) => createPersonRecord(tx, place, given, nowMs));
      return { record: made };
    },
  }),
  personRoute({
    method: "GET",
    path: "/collections/:name/records/:id",
    summary: "Shows one record that the signed-in person may read.",
    answer: Type.Object({ record }),
    read: async (tx, call) => ({ record: await readPersonRecord(tx, at(call), call.params.id) }),
  }),
  personRoute({
    method: "PUT",
    path: "/collections/:name/records/:id",
    summary: "Replaces the data of a record that the signed-in person owns.",
    body: fields({ data }),
    answer: Type.Object({ record }),
    async handle(call) {
      const { deps, params, body, source, nowMs } = call;
      const place = at(call);
      await deps.clientWrites.count(source, place, "updated");
      const changed = await deps.clientWrites.store(place, (tx) =>
        updatePersonRecord(tx, place, params.id, body.data as Json, nowMs),
      );
      return { record: changed };
    },
  }),
  personRoute({
    method: "DELETE",
    path: "/collections/:name/records/:id",
    summary: "Deletes a record that the signed-in person owns.",
    answer: null,
    async handle(call) {
      const { deps, params, source } = call;
      const place = at(call);
      await deps.clientWrites.count(source, place, "deleted");
      await deps.store.write("app", (tx) => deletePersonRecord(tx, place, params.id), place.environmentId);
    },
  }),
];
