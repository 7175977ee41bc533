/**
 * Finds the alerts of sales without a person (`sale_nobody`) whose failed events are all gone. A relay can have many failed events of other causes,
 * so an index is walked in steps before the alerts are resolved.
 */

import { listOpenAlerts, type OpenAlert } from "../../platform/audit/alert.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { FencedStore } from "../../store/port.ts";
import { findNameKey } from "../event/list.ts";

const STEP = 5_000;
const MAX_WALKED = 250_000;

/** Identifies an alert at its last time. A later sale without a person changes that time in its own transaction. */
export function momentOf({ environmentId, target, lastAt }: OpenAlert): string {
  return `${environmentId} ${target} ${lastAt}`;
}

/** Finds the alerts whose relay has no failed event without a person. Finds none where there are too many failed events. `most` bounds the alerts. */
export async function findClearedSales(store: FencedStore, most: number): Promise<ReadonlySet<string>> {
  const clear = new Set<string>();
  const alerts = await store.read((tx) => listOpenAlerts(tx, ["sale_nobody"], most));
  for (const [id, own] of Map.groupBy(alerts, ({ environmentId }) => environmentId)) {
    const left = await dropUncleared(store, id, own);
    for (const alert of left) clear.add(momentOf(alert));
  }
  return clear;
}

/** Counts the failed events by relays that found no person, and all others together. */
const NOBODY = `SELECT CASE WHEN reason = 'person_not_found' THEN name_key END AS "nameKey", count(*) AS looked, min(seq) AS last FROM (
    SELECT seq, name_key, reason FROM event INDEXED BY event_unhappy
    WHERE environment_id = $id AND state IN ('failed', 'dead') AND state = 'failed' AND seq < $before ORDER BY seq DESC LIMIT ${STEP}) AS newest
  GROUP BY 1`;

/** Walks the failed events once for all alerts of an environment, and drops those of relays that found no person. */
async function dropUncleared(
  store: FencedStore,
  id: number,
  alerts: readonly OpenAlert[],
): Promise<Iterable<OpenAlert>> {
  const left = new Map<number | null, OpenAlert>();
  for (const alert of alerts) {
    const name = alert.target.slice(alert.target.indexOf(":") + 1);
    left.set(await store.read((tx) => findNameKey(tx, id, name)), alert);
  }
  let before = Number.MAX_SAFE_INTEGER;
  for (let walked = 0; walked < MAX_WALKED && left.size > 0; walked += STEP) {
    const values = { id, before };
    const found = await store.read((tx) =>
      tx.all<{ nameKey: number | null; looked: number; last: number }>(NOBODY, values),
    );
    for (const { nameKey } of found) if (nameKey !== null) left.delete(nameKey);
    if (found.reduce((sum, { looked }) => sum + looked, 0) < STEP) return left.values();
    before = Math.min(...found.map(({ last }) => last));
    await yieldToEventLoop();
  }
  return [];
}
