/**
 * People: list, invite, show with plan and tokens, change, and erase. It also has the store account tokens that the app files for people, so that
 * a purchase in a store finds its person, and the customer ids of providers. The audit gets only fingerprints of both. The token is in the body, where no proxy or log stores it.
 * The older routes with the token in their path remain.
 */
import { type Static, Type } from "typebox";
import { toIsoOrNull } from "../../base/clock.ts";
import type { Json } from "../../base/json.ts";
import { MAX_EMAIL_CHARS } from "../../base/limit.ts";
import { readPageRequest } from "../../base/page.ts";
import { Refusal, rejectField } from "../../base/refusal.ts";
import {
  exactText,
  fields,
  oneOf,
  orNull,
  pageOf,
  pageQuery,
  textOrNull,
  timeOrNull,
} from "../../base/schema.ts";
import { timelineItem } from "../../insight/timeline/item.ts";
import { readTimeline } from "../../insight/timeline/timeline.ts";
import { findMailStop } from "../../platform/mail/mail-stop.ts";
import { findSpaceFault } from "../../rules/relay/customer-space.ts";
import { accessView, checkAccess, findAccess, viewAccess } from "../../shop/people/access-grant.ts";
import { findBalance } from "../../shop/people/credit.ts";
import { addressChange, changeAddressManually } from "../../shop/people/former-address.ts";
import {
  changePersonManually,
  findNamesake,
  findPersonByEmail,
  type PersonRow,
  personStatus,
  personView,
  readSentAddress,
  requirePerson,
  viewPerson,
} from "../../shop/people/person.ts";
import {
  customerView,
  linkCustomerManually,
  listCustomers,
  unlinkCustomerManually,
} from "../../shop/people/person-customer.ts";
import { type EraseCursor, erasePerson, eraseRows } from "../../shop/people/person-erase.ts";
import {
  fileTokenManually,
  listTokens,
  removeTokenManually,
  tokenView,
} from "../../shop/people/person-identifier.ts";
import { invitePerson } from "../../shop/people/person-invite.ts";
import { addHoldings, findPersons, listPersons, personItem } from "../../shop/people/person-list.ts";
import { endPersonSessions } from "../../shop/portal/person-session.ts";
import { mergePeopleManually, personMerge } from "../../shop/selling/person-merge.ts";
import { currentPlan } from "../../shop/selling/plan-sale.ts";
import { listPurchases } from "../../shop/selling/purchase.ts";
import { listSimilarBuyers, similarBuyer } from "../../shop/selling/similar-buyer.ts";
import { subscriptionView, viewSubscription } from "../../shop/selling/subscription.ts";
import { dryRunWithin } from "../../store/dry-run.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Writer } from "../../store/port.ts";
import type { HttpDeps } from "../http/deps.ts";
import { type EnvironmentCall, environmentRoute, listRoute } from "../http/route.ts";

/** Steps of an erasure within the request, for some thousand rows of the person. The sweep erases the rest later. */
const STEPS_IN_A_REQUEST = 25;

/** A person with their current holdings. */
const personNow = Type.Object({
  person: personView,
  access: accessView,
  credits: Type.Integer(),
  plan: textOrNull,
  /** The active subscription; null on the default plan. */
  subscription: orNull(subscriptionView),
  tokens: Type.Array(tokenView),
  /** The ids by which providers know the person, newest first. */
  customers: Type.Array(customerView),
  /** The time when the person stopped event mail; null if they receive it. */
  mailStoppedAt: timeOrNull,
  /** The id of another person with this address in the other spelling of its domain. An erasure of this person does not affect them. */
  namesake: textOrNull,
});
export type PersonNow = Static<typeof personNow>;

const token = Type.Object({ token: tokenView });
const body = fields({ token: Type.String({ description: "the token as the app store sends it" }) });
const customerBody = fields({
  space: Type.String({
    maxLength: 63,
    description: "the name of the receiver relay whose provider gave the id",
  }),
  id: Type.String({ description: "the customer's id as the provider shows it" }),
});
const IN_PATH = "proxies write paths to their logs, so send the token in the body";

type TokenCall = Pick<EnvironmentCall, "change"> & { deps: HttpDeps };

/** Returns the token of a request with the function that makes its fingerprint for the audit. */
function given({ deps }: TokenCall, personId: string, token: string) {
  return { personId, token, fingerprint: (text: string) => deps.sealer.fingerprint(text) };
}

/** Returns the customer of a request with the function that makes the fingerprint of its id. */
function givenCustomer({ deps }: TokenCall, personId: string, customer: Static<typeof customerBody>) {
  return { personId, ...customer, fingerprint: (text: string) => deps.sealer.fingerprint(text) };
}

/** Throws `invalid_input` for a space that no relay of the environment has. */
async function requireKnownSpace(tx: Reader, environmentId: number, space: string): Promise<void> {
  const fault = await findSpaceFault(tx, environmentId, space);
  if (fault !== null) throw new Refusal("invalid_input", `\`space\`: ${fault}`);
}

async function file(tx: Writer, call: TokenCall, personId: string, token: string) {
  const { token: filed } = await fileTokenManually(tx, call.change, given(call, personId, token));
  return { token: filed };
}

function remove(tx: Writer, call: TokenCall, personId: string, token: string): Promise<void> {
  return removeTokenManually(tx, call.change, given(call, personId, token));
}

/** Reports whether the person has a purchase or live access. Such a person probably did not pay under another address. */
async function hasHoldings({ store }: HttpDeps, person: PersonRow, nowMs: number): Promise<boolean> {
  const { environmentId, id: personId } = person;
  return await store.read(async (tx) => {
    const access = await findAccess(tx, { environmentId, personId, entitlement: null, nowMs });
    if (access.granted) return true;
    const { items } = await listPurchases(tx, environmentId, { limit: 1, after: null }, { person: personId });
    return items.length > 0;
  });
}

/** Returns the refusal for `find` or `email` with other filters, which would be ignored. */
function rejectOtherFilters(field: "find" | "email"): Refusal {
  const message = `\`${field}\` cannot be combined with q, email, find, status or access: leave those out, or leave ${field} out.`;
  return rejectField(field, message);
}

export const personRoutes = [
  listRoute({
    path: "/persons",
    needs: "read",
    summary:
      "Lists people with what they have now, newest first. Use q for a part of an address. Use find for an address or its start, an id, a token or a customer ID.",
    filter: {
      q: Type.Optional(
        Type.String({
          maxLength: MAX_EMAIL_CHARS,
          description: "a part of an address, or the start of an id",
        }),
      ),
      email: exactText(MAX_EMAIL_CHARS, "a whole email address, without another filter"),
      find: exactText(
        MAX_EMAIL_CHARS,
        "an address or its start, an id, a store account token or a customer id, without another filter",
      ),
      status: Type.Optional(personStatus),
      access: Type.Optional(oneOf(["true", "false"])),
    },
    item: personItem,
    async list(tx, { environmentId, nowMs }, page, { email, find, access, ...rest }) {
      const others = Object.values({ ...rest, access }).some((other) => other !== undefined);
      if (find !== undefined && (others || email !== undefined)) throw rejectOtherFilters("find");
      if (email !== undefined && others) throw rejectOtherFilters("email");
      if (find !== undefined) {
        const text = find.includes("@") ? readSentAddress(find) : find;
        return await addHoldings(tx, await findPersons(tx, environmentId, page, text), nowMs);
      }
      if (email !== undefined) {
        const found = await findPersonByEmail(tx, environmentId, readSentAddress(email));
        const items = found === null ? [] : [viewPerson(found)];
        return await addHoldings(tx, { items, next: null }, nowMs);
      }
      const filter = {
        ...rest,
        q: rest.q === undefined ? undefined : readSentAddress(rest.q),
        access: access === undefined ? undefined : { granted: access === "true", nowMs },
      };
      return await addHoldings(tx, await listPersons(tx, environmentId, page, filter), nowMs);
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/persons",
    needs: "act_on_people",
    summary: "Adds a person by address. A person who exists already is returned unchanged.",
    body: fields({ email: Type.String({ description: "an email address" }) }),
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
    needs: "read",
    summary:
      "Shows one person with what they have now: access with its grants, credits, plan, store account tokens, customer IDs, and whether they take mail.",
    answer: personNow,
    // Each part can take long, so the handler yields the event loop between them.
    async handle({ deps, environmentId, params, nowMs }) {
      const personId = params.id;
      const held = await deps.store.read(async (tx) => {
        const row = await requirePerson(tx, environmentId, personId);
        const access = await checkAccess(tx, { environmentId, personId, entitlement: null, nowMs });
        const namesake = (await findNamesake(tx, row))?.id ?? null;
        return { person: viewPerson(row), access: viewAccess(row.status, access), namesake };
      });
      await yieldToEventLoop();
      const more = await deps.store.read(async (tx) => {
        const { plan, subscription } = await currentPlan(tx, environmentId, personId);
        return {
          credits: await findBalance(tx, environmentId, personId),
          plan,
          subscription: subscription === null ? null : viewSubscription(subscription),
          tokens: await listTokens(tx, environmentId, personId),
          customers: await listCustomers(tx, environmentId, personId),
          mailStoppedAt: toIsoOrNull(await findMailStop(tx, { environmentId, personId })),
        };
      });
      await yieldToEventLoop();
      return { ...held, ...more };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/persons/:id/similar",
    needs: "read",
    summary:
      "Lists people with a similar address or name who bought something, the most similar first. The list is empty for a person with a purchase or live access.",
    answer: Type.Object({ similar: Type.Array(similarBuyer) }),
    async handle({ deps, environmentId, params, nowMs }) {
      const person = await deps.store.read((tx) => requirePerson(tx, environmentId, params.id));
      if (await hasHoldings(deps, person, nowMs)) return { similar: [] };
      return { similar: await listSimilarBuyers(deps.store, person) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/persons/:id/story",
    needs: "read",
    summary:
      "Returns the timeline of a person, newest first: events with their failures, access, credits, purchases, plans, mails, records and changes.",
    query: fields(pageQuery),
    answer: pageOf(timelineItem),
    async handle({ deps, environmentId, params, query, nowMs }) {
      const page = readPageRequest(query);
      return await readTimeline(deps.store, { environmentId, personId: params.id, nowMs }, page);
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/persons/:id/merge",
    needs: "act_on_people",
    summary:
      "Moves everything of a person to another one, who gets purchases, access, credits, tokens, customer IDs and records; plan shows it and changes nothing.",
    body: fields({
      into: Type.String({ description: "the other person's id, address or token" }),
      plan: Type.Optional(Type.Boolean({ description: "true: shows the merge and changes nothing" })),
    }),
    answer: Type.Object({ plan: personMerge, merged: Type.Boolean() }),
    handle: ({ deps, change, params, body }) =>
      deps.store.write(
        "move",
        async (tx) => {
          const merge = () => mergePeopleManually(tx, change, params.id, body.into);
          if (body.plan === true) return { plan: (await dryRunWithin(tx, merge)).plan, merged: false };
          const done = await merge();
          if (done.merged) await endPersonSessions(tx, done.plan.from);
          return done;
        },
        change.environmentId,
      ),
  }),
  environmentRoute({
    method: "POST",
    path: "/persons/:id/change-address",
    needs: "act_on_people",
    summary:
      "Changes a person's address; an event that names the former one still finds them. plan shows it and changes nothing.",
    body: fields({
      email: Type.String({ description: "the new email address" }),
      plan: Type.Optional(Type.Boolean({ description: "true: shows the change and changes nothing" })),
    }),
    answer: Type.Object({ plan: addressChange, person: personView, changed: Type.Boolean() }),
    async write(tx, { change, params, body }) {
      const run = () => changeAddressManually(tx, change, params.id, body.email);
      if (body.plan !== true) {
        const { person, ...done } = await run();
        return { ...done, person: viewPerson(person) };
      }
      const { plan } = await dryRunWithin(tx, run);
      const person = viewPerson(await requirePerson(tx, change.environmentId, params.id));
      return { plan, person, changed: false };
    },
  }),
  environmentRoute({
    method: "PATCH",
    path: "/persons/:id",
    needs: "act_on_people",
    summary: "Suspends or activates a person, or changes attributes. null removes an attribute.",
    body: fields({
      status: Type.Optional(oneOf(["active", "suspended"])),
      attributes: Type.Optional(Type.Record(Type.String(), Type.Unsafe<Json>({}))),
    }),
    answer: Type.Object({ person: personView }),
    write: async (tx, { change, params, body }) => ({
      person: viewPerson(await changePersonManually(tx, change, params.id, body)),
    }),
  }),
  environmentRoute({
    method: "DELETE",
    path: "/persons/:id",
    needs: "erase",
    summary:
      "Erases a person at once, and their records, payloads, requests and mails within minutes. The ledger and receipts keep only the id. No relay runs.",
    answer: null,
    async handle({ deps, environment, by, audit, params, nowMs }) {
      const erasure = { environmentId: environment.id, personId: params.id, by, nowMs };
      await deps.store.write(
        "erasure",
        async (tx) => {
          const { status, namesake } = await erasePerson(tx, erasure, deps.sealer);
          await audit(tx, {
            action: "person.erased",
            target: `person:${params.id}`,
            before: { status },
            after: { status: "erased", ...(namesake === null ? {} : { addressStaysWith: namesake }) },
          });
        },
        environment.id,
      );
      let cursor: EraseCursor | null = { recordSeq: 0 };
      for (let step = 0; cursor !== null && step < STEPS_IN_A_REQUEST; step++) {
        const from: EraseCursor = cursor;
        cursor =
          (await deps.store.write("erasure", (tx) => eraseRows(tx, erasure, from), environment.id))?.cursor ??
          null;
      }
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/persons/:id/tokens",
    needs: "act_on_people",
    summary: "Adds a store account token to a person. Adding it again changes nothing.",
    body,
    answer: token,
    write: (tx, call) => file(tx, call, call.params.id, call.body.token),
  }),
  environmentRoute({
    method: "POST",
    path: "/persons/:id/tokens/remove",
    needs: "act_on_people",
    summary: "Removes a store account token from a person.",
    body,
    answer: null,
    write: (tx, call) => remove(tx, call, call.params.id, call.body.token),
  }),
  environmentRoute({
    method: "PUT",
    path: "/persons/:id/tokens/:token",
    needs: "act_on_people",
    summary: `Does the same as PUT /persons/{id}/tokens, which is better: ${IN_PATH}.`,
    answer: token,
    write: (tx, call) => file(tx, call, call.params.id, call.params.token),
  }),
  environmentRoute({
    method: "DELETE",
    path: "/persons/:id/tokens/:token",
    needs: "act_on_people",
    summary: `Does the same as POST /persons/{id}/tokens/remove, which is better: ${IN_PATH}.`,
    answer: null,
    write: (tx, call) => remove(tx, call, call.params.id, call.params.token),
  }),
  environmentRoute({
    method: "PUT",
    path: "/persons/:id/customers",
    needs: "act_on_people",
    summary:
      "Links a provider's customer ID to a person, whose events can then name only this ID. An ID of another person moves. Linking it again changes nothing.",
    body: customerBody,
    answer: Type.Object({ customer: customerView, linked: Type.Boolean(), movedFrom: textOrNull }),
    async write(tx, call) {
      await requirePerson(tx, call.environmentId, call.params.id);
      await requireKnownSpace(tx, call.environmentId, call.body.space);
      return await linkCustomerManually(tx, call.change, givenCustomer(call, call.params.id, call.body));
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/persons/:id/customers/remove",
    needs: "act_on_people",
    summary: "Removes a provider's customer ID from a person.",
    body: customerBody,
    answer: null,
    write: (tx, call) =>
      unlinkCustomerManually(tx, call.change, givenCustomer(call, call.params.id, call.body)),
  }),
];
