/**
 * Gives and takes access. grant_access gives the event's person an entitlement in the name of the relay; it sells nothing and never
 * shortens a grant. revoke_access ends every grant of one that the person got earlier, from any source; it takes back no credits and ends
 * no subscription. Both follow the order of arrival (people/access-order.ts). Source: the specification's "Actions".
 */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { failFinally } from "../../base/outcome.ts";
import { checkTemplateText } from "../../platform/template/template.ts";
import {
  revokeAccess as endGrants,
  findAccess,
  grantAccess as writeGrant,
} from "../../shop/people/access-grant.ts";
import { formatEndedByLaterEvent } from "../../shop/people/access-order.ts";
import { findEntitlement, formatEntitlementUnknown } from "../../shop/people/entitlement.ts";
import type { Reader } from "../../store/port.ts";
import { type ActionRun, type DatabaseAction, findActingPerson } from "./contract.ts";
import {
  checkExpiry,
  defineActionShape,
  entitlementShape,
  expiresAtShape,
  parseExpiry,
  reasonShape,
  renderReason,
} from "./shape.ts";

const granting = defineActionShape(
  "grant_access",
  "Grant access",
  "Grants the event's person an entitlement, for a limited time or permanently.",
  {
    entitlement: entitlementShape,
    expiresAt: Type.Optional(expiresAtShape),
    reason: Type.Optional(reasonShape),
  },
);

export type GrantAccess = Static<typeof granting.shape>;

export const grantAccess: DatabaseAction<GrantAccess> = {
  ...granting,
  effect: "gives",
  sends: false,
  needsPerson: () => true,
  check: (action) => [
    ...checkExpiry("expiresAt", action.expiresAt),
    ...(action.reason === undefined ? [] : checkTemplateText("reason", action.reason)),
  ],
  references: (action) => [{ kind: "entitlement", name: action.entitlement, field: "entitlement" }],
  target: (action) => action.entitlement,
  examples: [
    { type: "grant_access", entitlement: "access:members" },
    { type: "grant_access", entitlement: "pro", expiresAt: "30d", reason: "Order {{mapped.order_id}}" },
    { type: "grant_access", entitlement: "course", expiresAt: "2030-01-31" },
  ],

  bind: (action) => async (tx, run) => {
    const { holding, failure } = await findHolding(tx, action, run);
    if (failure !== null) return failure;
    const { nowMs, relay, event } = run;
    const expiresAtMs = action.expiresAt === undefined ? null : parseExpiry(action.expiresAt, nowMs);
    if (expiresAtMs !== null && expiresAtMs <= nowMs) {
      return failFinally(
        "data_invalid",
        `\`expiresAt\` ${action.expiresAt} is past, so the grant would end before it began: give a later date, or a duration such as "30d".`,
      );
    }
    const before = await findAccess(tx, holding);
    const reason = renderReason(action.reason, run);
    const grant = await writeGrant(tx, {
      ...holding,
      source: "relay",
      sourceRef: relay.name,
      relayName: relay.name,
      eventId: event.id,
      arrival: event.arrival,
      reason: reason === "" ? null : reason,
      expiresAtMs,
    });
    const after = await findAccess(tx, holding);
    const { entitlement } = holding;
    return {
      outcome: "done",
      ...(grant.endedByEvent === null
        ? {}
        : { message: formatEndedByLaterEvent(entitlement, grant.endedByEvent, holding.personId) }),
      before: { entitlement, granted: before.granted, until: before.until },
      after: {
        entitlement,
        granted: after.granted,
        until: after.until,
        grant: grant.id,
        ...(grant.endedByEvent === null ? {} : { endedByEvent: grant.endedByEvent }),
        ...(expiresAtMs === null ? {} : { expiresAt: toIso(expiresAtMs) }),
      },
    };
  },
};

const revoking = defineActionShape(
  "revoke_access",
  "Revoke access",
  "Ends every active grant of an entitlement that the person received before the event arrived.",
  {
    entitlement: entitlementShape,
  },
);

export type RevokeAccess = Static<typeof revoking.shape>;

export const revokeAccess: DatabaseAction<RevokeAccess> = {
  ...revoking,
  effect: "takes",
  sends: false,
  needsPerson: () => true,
  check: () => [],
  references: (action) => [{ kind: "entitlement", name: action.entitlement, field: "entitlement" }],
  target: (action) => action.entitlement,
  examples: [
    { type: "revoke_access", entitlement: "access:members" },
    { type: "revoke_access", entitlement: "pro" },
  ],
  bind: (action) => async (tx, run) => {
    const { holding, failure } = await findHolding(tx, action, run);
    if (failure !== null) return failure;
    const { ended, kept } = await endGrants(tx, {
      ...holding,
      by: `relay:${run.relay.name}`,
      event: run.event,
    });
    const { entitlement } = holding;
    const message = formatRevoked(ended.length, kept.length);
    return {
      outcome: "done",
      ...(message === null ? {} : { message }),
      before: { entitlement, granted: ended.length + kept.length > 0, grants: ended.map((row) => row.id) },
      after: {
        entitlement,
        granted: kept.length > 0,
        revoked: ended.length,
        ...(kept.length === 0 ? {} : { kept: kept.map((row) => row.id) }),
      },
    };
  },
};

/** Formats what a revocation ended and left. null: it ended every grant. */
function formatRevoked(ended: number, remaining: number): string | null {
  if (remaining > 0) {
    const did = ended === 0 ? "No grant ended" : `${ended} ended`;
    return `${did}, and the person keeps ${remaining === 1 ? "1 grant" : `${remaining} grants`} that came after this event arrived: access follows the order of arrival.`;
  }
  return ended === 0 ? "The person had no active grant of it, so nothing changed." : null;
}

/** Finds the person and the entitlement, or the failure. */
async function findHolding(tx: Reader, action: { entitlement: string }, run: ActionRun) {
  const { person, failure } = await findActingPerson(tx, run);
  if (failure !== null) return { failure };
  const { environmentId, nowMs } = run;
  const found = await findEntitlement(tx, environmentId, action.entitlement);
  if (found === null)
    return { failure: failFinally("entitlement_unknown", formatEntitlementUnknown(action.entitlement)) };
  return { holding: { environmentId, personId: person.id, entitlement: found.key, nowMs }, failure: null };
}
