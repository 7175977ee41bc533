/** The holdings of a person: entitlements to check, grants to add and end manually, and credits to add or spend manually under an idempotency key. */
import { Type } from "typebox";
import { MAX_EMAIL_CHARS } from "../../base/limit.ts";
import { readPageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { exactText, fields, orNull, pageQuery, readTime, textOrNull } from "../../base/schema.ts";
import {
  accessView,
  checkAccess,
  endGrantManually,
  grantManually,
  grantView,
  listGrants,
  listHolders,
  viewAccess,
  viewGrant,
} from "../../shop/people/access-grant.ts";
import { addCreditsManually, creditView, listCredits, viewCredit } from "../../shop/people/credit.ts";
import {
  findEntitlement,
  formatEntitlementUnknown,
  resolveEntitlementKey,
} from "../../shop/people/entitlement.ts";
import { findPersonByEmail, readSentAddress, requirePerson } from "../../shop/people/person.ts";
import { endHoldingManually } from "../../shop/selling/holding-end.ts";
import { subscriptionView, viewSubscription } from "../../shop/selling/subscription.ts";
import { environmentRoute, listRoute } from "../http/route.ts";

export const grantRoutes = [
  environmentRoute({
    method: "GET",
    path: "/persons/:id/access",
    needs: "read",
    summary:
      "Lists everything that a person has access to now, with its grants. A suspended person has access to nothing.",
    answer: accessView,
    async read(tx, { environmentId, params, nowMs }) {
      const { status } = await requirePerson(tx, environmentId, params.id);
      const holding = { environmentId, personId: params.id, entitlement: null, nowMs };
      return viewAccess(status, await checkAccess(tx, holding));
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/persons/:id/access/:entitlement",
    needs: "read",
    summary: "Returns whether a person has access to one entitlement now, until when, and why.",
    answer: accessView,
    async read(tx, { environmentId, params, nowMs }) {
      const { status } = await requirePerson(tx, environmentId, params.id);
      const entitlement = await resolveEntitlementKey(tx, environmentId, params.entitlement);
      const holding = { environmentId, personId: params.id, entitlement, nowMs };
      return viewAccess(status, await checkAccess(tx, holding));
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/persons/:id/access/:entitlement",
    needs: "act_on_people",
    summary:
      "Ends a person's plan of this name with its grants, and up to 50 live grants of the entitlement, in one transaction.",
    answer: Type.Object({
      /** Null if the name is not the person's plan. */
      subscription: orNull(subscriptionView),
      /** The ids of the ended grants. */
      grants: Type.Array(Type.String()),
      /** True if more grants are live: send the request again. */
      more: Type.Boolean(),
    }),
    async write(tx, { change, params }) {
      const ended = await endHoldingManually(tx, change, params.id, params.entitlement);
      const { subscription } = ended;
      return { ...ended, subscription: subscription === null ? null : viewSubscription(subscription) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/persons/access/:entitlement",
    needs: "read",
    summary:
      "Returns whether the person with an email address has access to one entitlement now, until when, and why. person is null if no person has the address.",
    query: fields({
      email: Type.String({
        minLength: 1,
        maxLength: MAX_EMAIL_CHARS,
        description: "a whole email address",
      }),
    }),
    answer: Type.Object({ person: textOrNull, ...accessView.properties }),
    async read(tx, { environmentId, params, query, nowMs }) {
      const found = await findPersonByEmail(tx, environmentId, readSentAddress(query.email));
      if (found === null) return { person: null, granted: false, suspended: false, until: null, grants: [] };
      const entitlement = await resolveEntitlementKey(tx, environmentId, params.entitlement);
      const holding = { environmentId, personId: found.id, entitlement, nowMs };
      return { person: found.id, ...viewAccess(found.status, await checkAccess(tx, holding)) };
    },
  }),
  listRoute({
    path: "/persons/:id/grants",
    needs: "read",
    summary: "Lists every grant of a person, newest first, including ended grants.",
    item: grantView,
    async list(tx, { environmentId, params, nowMs }, page) {
      await requirePerson(tx, environmentId, params.id);
      return await listGrants(tx, { environmentId, personId: params.id, nowMs }, page);
    },
  }),
  listRoute({
    path: "/grants",
    needs: "read",
    summary:
      "Lists the active grants of an entitlement, newest first, with the person, the source and the expiry.",
    filter: {
      entitlement: exactText(80, "a product or plan name, or access:<slug>"),
    },
    item: grantView,
    async list(tx, { environmentId, nowMs }, page, { entitlement: name }) {
      if (name === undefined)
        return await listHolders(tx, { environmentId, entitlement: undefined, nowMs }, page);
      const known = await findEntitlement(tx, environmentId, name);
      const held = await listHolders(tx, { environmentId, entitlement: known?.key ?? name, nowMs }, page);
      // A person can still have an entitlement that the catalog no longer lists.
      if (known === null && held.items.length === 0 && held.next === null && page.after === null)
        throw new Refusal("invalid_input", formatEntitlementUnknown(name));
      return held;
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/persons/:id/grants",
    needs: "act_on_people",
    summary: "Grants an entitlement manually.",
    body: fields({
      entitlement: Type.String({ description: "a product or plan name, or access:<slug>" }),
      expiresAt: Type.Optional(orNull(Type.String({ description: "a time such as 2026-01-31T12:00:00Z" }))),
      reason: Type.Optional(orNull(Type.String())),
    }),
    answer: Type.Object({ grant: grantView }),
    status: 201,
    async write(tx, { change, params, body }) {
      const granted = await grantManually(tx, {
        ...change,
        personId: params.id,
        entitlement: body.entitlement,
        reason: body.reason ?? null,
        expiresAtMs: readTime("expiresAt", body.expiresAt ?? undefined) ?? null,
      });
      return { grant: viewGrant(granted, change.nowMs) };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/grants/:id",
    needs: "act_on_people",
    summary: "Ends one grant from any source. A grant that has already ended does not change.",
    answer: null,
    async write(tx, { change, params }) {
      await endGrantManually(tx, change, params.id);
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/persons/:id/credits",
    needs: "read",
    summary: "Returns a person's credit balance and the ledger, newest first.",
    query: fields(pageQuery),
    answer: Type.Object({ balance: Type.Integer(), items: Type.Array(creditView), next: textOrNull }),
    async read(tx, { environmentId, params, query }) {
      const page = readPageRequest(query);
      await requirePerson(tx, environmentId, params.id);
      return await listCredits(tx, { environmentId, personId: params.id }, page);
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/persons/:id/credits",
    needs: "act_on_people",
    summary: "Adds credits, or spends them with a negative amount. A change with the same key applies once.",
    body: fields({
      amount: Type.Integer({ description: "an integer other than 0; a negative one spends" }),
      reason: Type.String(),
      key: Type.String({
        description: "your own key for this change; a repeat with the same key applies once",
      }),
    }),
    answer: Type.Object({ credit: creditView, balance: Type.Integer(), applied: Type.Boolean() }),
    status: 201,
    async write(tx, { change, params, body }) {
      const { line, applied } = await addCreditsManually(tx, { ...change, personId: params.id, ...body });
      return { credit: viewCredit(line), balance: line.balance, applied };
    },
  }),
];
