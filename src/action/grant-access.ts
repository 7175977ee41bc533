/**
 * grant_access: the event's person is given an entitlement, with the source `relay`, attributed to the relay by name. It never
 * sells anything and never shortens what the person already holds. Source: the specification's "Actions".
 */
import { type Static, Type } from "typebox";
import { toIso } from "../ground/clock.ts";
import { failFinally } from "../ground/outcome.ts";
import { checkAccess, grantAccess as writeGrant } from "../people/access-grant.ts";
import { findEntitlement, sayEntitlementUnknown } from "../people/entitlement.ts";
import { type DatabaseAction, findActingPerson } from "./contract.ts";
import {
  actionShape,
  checkExpiry,
  checkTemplateText,
  entitlementShape,
  expiresAtShape,
  parseExpiry,
  reasonShape,
  renderReason,
} from "./shape.ts";

const shape = actionShape(
  "grant_access",
  "Grant access",
  "Gives the person the event is about an entitlement, for a while or for good.",
  {
    entitlement: entitlementShape,
    expiresAt: Type.Optional(expiresAtShape),
    reason: Type.Optional(reasonShape),
  },
);

export type GrantAccess = Static<typeof shape>;

export const grantAccess: DatabaseAction<GrantAccess> = {
  type: "grant_access",
  title: "Grant access",
  effect: "gives",
  shape,
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

  async apply(tx, action, run) {
    const { person, failure } = await findActingPerson(tx, run);
    if (failure !== null) return failure;
    const { environmentId, nowMs, relay, event } = run;
    const personId = person.id;
    const entitlement = await findEntitlement(tx, environmentId, action.entitlement);
    if (entitlement === null)
      return failFinally("entitlement_unknown", sayEntitlementUnknown(action.entitlement));
    const expiresAtMs = action.expiresAt === undefined ? null : parseExpiry(action.expiresAt, nowMs);
    if (expiresAtMs !== null && expiresAtMs <= nowMs) {
      return failFinally(
        "data_invalid",
        `\`expiresAt\` ${action.expiresAt} is past, so the grant would end before it began: give a later date, or a duration such as "30d".`,
      );
    }
    const holding = { environmentId, personId, entitlement: entitlement.key, nowMs };
    const before = await checkAccess(tx, holding);
    const reason = renderReason(action.reason, run);
    const grant = await writeGrant(tx, {
      environmentId,
      personId,
      entitlement: entitlement.key,
      source: "relay",
      sourceRef: relay.name,
      relayName: relay.name,
      eventId: event.id,
      reason: reason === "" ? null : reason,
      expiresAtMs,
      nowMs,
    });
    const after = await checkAccess(tx, holding);
    return {
      outcome: "done",
      before: { entitlement: entitlement.key, granted: before.granted, until: before.until },
      after: {
        entitlement: entitlement.key,
        granted: after.granted,
        until: after.until,
        grant: grant.id,
        ...(expiresAtMs === null ? {} : { expiresAt: toIso(expiresAtMs) }),
      },
    };
  },
};
