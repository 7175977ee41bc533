/**
 * Looks up the names in a filter of events, so that an unknown relay, person or code is an error and not an empty list. The name of a deleted relay
 * is known, because its events stay.
 */

import { findMeaning } from "../../base/code/code.ts";
import { RESULTS } from "../../base/code/result-code.ts";
import { Refusal } from "../../base/refusal.ts";
import { showText } from "../../base/shape.ts";
import { findNearestName } from "../../base/text.ts";
import { listRelayRows } from "../../rules/relay/relay.ts";
import { readPersonFilter } from "../../shop/people/person.ts";
import type { Store } from "../../store/port.ts";
import { ANY_REASON, findNameKey } from "./list.ts";

interface Named {
  relay?: string | undefined;
  reason?: string | undefined;
  person?: string | undefined;
}

/** Returns the filter with the person's id instead of an address, token or id. Refuses with `invalid_input`. */
export async function resolveNames<Filter extends Named>(
  store: Store,
  environmentId: number,
  filter: Filter,
): Promise<Filter> {
  const { relay, reason } = filter;
  if (reason !== undefined) checkReason(reason);
  if (relay !== undefined) await checkRelayName(store, environmentId, relay);
  const person = await readPersonFilter(store, environmentId, filter.person);
  return person === undefined ? filter : { ...filter, person };
}

function checkReason(reason: string): void {
  if (reason === ANY_REASON || findMeaning(reason) !== null) return;
  const near = findNearestName(reason, Object.keys(RESULTS));
  const way = near === null ? "/docs/errors lists the codes." : `did you mean ${near}?`;
  throw new Refusal("invalid_input", `reason is not valid: no event fails with ${showText(reason)}: ${way}`);
}

async function checkRelayName(store: Store, environmentId: number, name: string): Promise<void> {
  const known = await store.read(async (tx) => {
    if ((await findNameKey(tx, environmentId, name)) !== null) return null;
    return (await listRelayRows(tx, environmentId)).map((relay) => relay.name);
  });
  if (known === null) return;
  const near = findNearestName(name, known);
  const way = near === null ? "relay relays list shows which are." : `did you mean ${near}?`;
  throw new Refusal("invalid_input", `relay is not valid: no relay ${showText(name)} is here or was: ${way}`);
}
