/** What a person holds: checking an entitlement, granting by hand, ending a grant; credits, added or spent by hand under an idempotency key. */
import { type Static, Type } from "typebox";
import { readPageRequest } from "../ground/page.ts";
import { fields, orNull, pageOf, pageQuery, readTime, textOrNull } from "../ground/schema.ts";
import {
  accessView,
  checkAccess,
  grantByHand,
  grantView,
  type HeldAccess,
  listGrants,
  listHolders,
  revokeGrant,
  viewGrant,
} from "../people/access-grant.ts";
import { addCreditsByHand, creditView, listCredits, viewCredit } from "../people/credit.ts";
import { resolveEntitlementKey } from "../people/entitlement.ts";
import { type PersonStatus, requirePerson } from "../people/person.ts";
import { readPage } from "../store/walk.ts";
import { environmentRoute } from "./route.ts";

/** A suspended person may use nothing, whatever they hold; it is theirs again when they are active. */
function viewAccessOf(status: PersonStatus, held: HeldAccess): Static<typeof accessView> {
  if (status !== "suspended") return { suspended: false, ...held };
  return { suspended: true, granted: false, until: null, grants: held.grants };
}

export const grantRoutes = [
  environmentRoute({
    method: "GET",
    path: "/persons/:id/access",
    summary:
      "Tells everything a person may use now, with the grants behind it; a suspended person may use nothing.",
    answer: accessView,
    handle({ deps, environment, params, nowMs }) {
      const holding = { environmentId: environment.id, personId: params.id, entitlement: null, nowMs };
      return deps.store.read(async (tx) => {
        const { status } = await requirePerson(tx, holding.environmentId, params.id);
        return viewAccessOf(status, await checkAccess(tx, holding));
      });
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/persons/:id/access/:entitlement",
    summary: "Tells whether a person may use one entitlement now, until when, and why.",
    answer: accessView,
    handle({ deps, environment, params, nowMs }) {
      const environmentId = environment.id;
      return deps.store.read(async (tx) => {
        const { status } = await requirePerson(tx, environmentId, params.id);
        const entitlement = await resolveEntitlementKey(tx, environmentId, params.entitlement);
        const held = await checkAccess(tx, { environmentId, personId: params.id, entitlement, nowMs });
        return viewAccessOf(status, held);
      });
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/persons/:id/grants",
    summary: "Lists every grant a person ever had, ended ones too, newest first.",
    query: fields(pageQuery),
    answer: pageOf(grantView),
    handle({ deps, environment, params, query, nowMs }) {
      const page = readPageRequest(query);
      const at = { environmentId: environment.id, personId: params.id, nowMs };
      return deps.store.read(async (tx) => {
        await requirePerson(tx, at.environmentId, params.id);
        return await listGrants(tx, at, page);
      });
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/grants",
    summary:
      "Lists the live grants of an entitlement with who holds it, from what and until when, newest first.",
    query: fields({
      ...pageQuery,
      entitlement: Type.Optional(Type.String({ description: "a product or plan name, or access:<slug>" })),
    }),
    answer: pageOf(grantView),
    async handle({ deps, environment, query, nowMs }) {
      const { entitlement: name, ...paging } = query;
      const environmentId = environment.id;
      return await readPage(deps.store, readPageRequest(paging), async (tx, part) => {
        const entitlement =
          name === undefined ? undefined : await resolveEntitlementKey(tx, environmentId, name);
        return await listHolders(tx, { environmentId, entitlement, nowMs }, part);
      });
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/persons/:id/grants",
    summary: "Grants an entitlement by hand.",
    body: fields({
      entitlement: Type.String({ description: "a product or plan name, or access:<slug>" }),
      expiresAt: Type.Optional(orNull(Type.String({ description: "a time such as 2026-01-31T12:00:00Z" }))),
      reason: Type.Optional(orNull(Type.String())),
    }),
    answer: Type.Object({ grant: grantView }),
    status: 201,
    async handle({ deps, environment, by, origin, audit, params, body, nowMs }) {
      const wanted = {
        environmentId: environment.id,
        personId: params.id,
        entitlement: body.entitlement,
        reason: body.reason ?? null,
        expiresAtMs: readTime("expiresAt", body.expiresAt ?? undefined) ?? null,
        by,
        nowMs,
      };
      const row = await deps.store.write(origin, async (tx) => {
        const granted = await grantByHand(tx, wanted);
        const { reason: _, ...after } = viewGrant(granted, nowMs);
        await audit(tx, { action: "grant.created", target: `grant:${granted.id}`, after });
        return granted;
      });
      return { grant: viewGrant(row, nowMs) };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/grants/:id",
    summary: "Ends one grant, whatever its source; one that ended before stays as it is.",
    answer: null,
    async handle({ deps, environment, by, origin, audit, params, nowMs }) {
      const at = { environmentId: environment.id, grantId: params.id, by, nowMs };
      await deps.store.write(origin, async (tx) => {
        const { before, after } = await revokeGrant(tx, at);
        if (before === after) return;
        const { reason: _, ...shown } = viewGrant(before, nowMs);
        const ended = { live: false, revokedBy: by };
        await audit(tx, {
          action: "grant.revoked",
          target: `grant:${params.id}`,
          before: shown,
          after: ended,
        });
      });
      return undefined;
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/persons/:id/credits",
    summary: "Tells a person's balance, with the ledger newest first.",
    query: fields(pageQuery),
    answer: Type.Object({ balance: Type.Integer(), items: Type.Array(creditView), next: textOrNull }),
    handle({ deps, environment, params, query }) {
      const page = readPageRequest(query);
      const at = { environmentId: environment.id, personId: params.id };
      return deps.store.read(async (tx) => {
        await requirePerson(tx, at.environmentId, params.id);
        return await listCredits(tx, at, page);
      });
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/persons/:id/credits",
    summary: "Adds credits, or spends with a negative amount; the same key applies once.",
    body: fields({
      amount: Type.Integer({ description: "an integer other than 0; a negative one spends" }),
      reason: Type.String(),
      key: Type.String({ description: "your own key for this change, so that a repeat applies once" }),
    }),
    answer: Type.Object({ credit: creditView, balance: Type.Integer(), applied: Type.Boolean() }),
    status: 201,
    async handle({ deps, environment, origin, audit, params, body, nowMs }) {
      const change = { environmentId: environment.id, personId: params.id, nowMs, ...body };
      const made = await deps.store.write(origin, async (tx) => {
        const result = await addCreditsByHand(tx, change);
        if (result.applied) {
          const { id, amount, balance } = result.line;
          await audit(tx, {
            action: "credits.changed",
            target: `person:${params.id}`,
            before: { balance: balance - amount },
            after: { balance, amount, credit: id },
          });
        }
        return result;
      });
      return { credit: viewCredit(made.line), balance: made.line.balance, applied: made.applied };
    },
  }),
];
