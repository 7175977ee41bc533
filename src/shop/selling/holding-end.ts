/** Ends what a person has under a name: a plan with its own grants, and the live grants of an entitlement. */
import type { Change } from "../../platform/audit/audit.ts";
import type { Writer } from "../../store/port.ts";
import { endGrantManually, listLiveGrants } from "../people/access-grant.ts";
import { resolveEntitlementKey } from "../people/entitlement.ts";
import { requirePerson } from "../people/person.ts";
import { endSubscriptionManually, findActiveSubscription, type Subscription } from "./subscription.ts";

/** The most grants that end in one transaction, because each writes an audit row. */
const MAX_ENDED_GRANTS = 50;

interface EndedHolding {
  /** The ended subscription; null if the name is not the person's plan. */
  subscription: Subscription | null;
  /** The ids of the ended grants. */
  grants: string[];
  /** True if more grants are live. */
  more: boolean;
}

/** Ends the holding for an owner, a key or a command; audited. Throws `not_found` for an unknown person. */
export async function endHoldingManually(
  tx: Writer,
  change: Change,
  personId: string,
  name: string,
): Promise<EndedHolding> {
  const { environmentId, nowMs } = change;
  await requirePerson(tx, environmentId, personId);
  const active = await findActiveSubscription(tx, environmentId, personId);
  const subscription = active?.plan === name ? await endSubscriptionManually(tx, change, active.id) : null;
  const entitlement = await resolveEntitlementKey(tx, environmentId, name);
  const holding = { environmentId, personId, entitlement, nowMs };
  const live = await listLiveGrants(tx, holding, MAX_ENDED_GRANTS + 1);
  const grants = live.slice(0, MAX_ENDED_GRANTS).map(({ id }) => id);
  for (const id of grants) await endGrantManually(tx, change, id);
  return { subscription, grants, more: live.length > MAX_ENDED_GRANTS };
}
