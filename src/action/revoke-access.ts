/**
 * revoke_access: ends every live grant of an entitlement the event's person holds, whatever its source. It takes no credits back and
 * ends no subscription. Source: the specification's "Actions".
 */
import type { Static } from "typebox";
import { failFinally } from "../ground/outcome.ts";
import { revokeAccess as endGrants } from "../people/access-grant.ts";
import { findEntitlement, sayEntitlementUnknown } from "../people/entitlement.ts";
import { type DatabaseAction, findActingPerson } from "./contract.ts";
import { actionShape, entitlementShape } from "./shape.ts";

const shape = actionShape(
  "revoke_access",
  "Revoke access",
  "Ends every live grant of an entitlement that the person the event is about holds.",
  {
    entitlement: entitlementShape,
  },
);

export type RevokeAccess = Static<typeof shape>;

export const revokeAccess: DatabaseAction<RevokeAccess> = {
  type: "revoke_access",
  title: "Revoke access",
  effect: "takes",
  shape,
  sends: false,
  needsPerson: () => true,
  check: () => [],
  references: (action) => [{ kind: "entitlement", name: action.entitlement, field: "entitlement" }],
  target: (action) => action.entitlement,
  examples: [
    { type: "revoke_access", entitlement: "access:members" },
    { type: "revoke_access", entitlement: "pro" },
  ],
  async apply(tx, action, run) {
    const { person, failure } = await findActingPerson(tx, run);
    if (failure !== null) return failure;
    const { environmentId, nowMs } = run;
    const entitlement = await findEntitlement(tx, environmentId, action.entitlement);
    if (entitlement === null) {
      return failFinally("entitlement_unknown", sayEntitlementUnknown(action.entitlement));
    }
    const ended = await endGrants(tx, {
      environmentId,
      personId: person.id,
      entitlement: entitlement.key,
      by: `relay:${run.relay.name}`,
      nowMs,
    });
    return {
      outcome: "done",
      ...(ended.length === 0 ? { message: "The person held no live grant of it, so nothing changed." } : {}),
      before: { entitlement: entitlement.key, granted: ended.length > 0, grants: ended.map((row) => row.id) },
      after: { entitlement: entitlement.key, granted: false, revoked: ended.length },
    };
  },
};
