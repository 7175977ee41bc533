/** Fails the due events of a relay that was deleted while they waited, directly or with its app. */

import { findEnvironmentById } from "../../platform/account/environment.ts";
import type { Writer } from "../../store/port.ts";
import { countAttempt, listDueEvents } from "../event/event.ts";
import { type AttemptResult, recordResults, renumberAttempt } from "../event/run.ts";
import { makeResult } from "./attempt-result.ts";
import { makeRunReport, type RunReport } from "./run-report.ts";

const EXISTS = `SELECT 1 FROM relay JOIN environment ON environment.id = relay.environment_id
  WHERE relay.id = ?1 AND environment.deleted_at IS NULL`;

/** Fails up to `limit` events of the relay. Returns null if the relay exists in the database, so that memory is out of date. */
export async function failOrphanedEvents(
  tx: Writer,
  relayId: string,
  limit: number,
  nowMs: number,
): Promise<RunReport[] | null> {
  if ((await tx.get(EXISTS, relayId)) !== null) return null;
  const results: AttemptResult[] = [];
  for (const due of await listDueEvents(tx, relayId, limit)) {
    const event = await renumberAttempt(tx, countAttempt(due));
    const end = { outcome: "not_run", reason: "relay_deleted" } as const;
    results.push(makeResult({ event, relay: null, startedAtMs: nowMs }, end, nowMs));
  }
  await recordResults(tx, results);
  const [first] = results;
  const environment = first === undefined ? null : await findEnvironmentById(tx, first.event.environmentId);
  const place = { appId: environment?.appId ?? "", environmentName: environment?.name ?? "" };
  return results.map((result) => makeRunReport(result, place));
}
