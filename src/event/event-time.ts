/**
 * Where a moment lies among the events. Ids carry their time (UUIDv7), so the id's index finds it however many there are. Rows stand in that
 * order but for small steps of the clock, which these bounds allow for; whoever lists compares the exact times as well.
 */
import type { Reader } from "../store/port.ts";

const CLOCK_STEP_MS = 2_000;

/** No event since `sinceMs` has a lower seq. */
export async function firstSeqSince(tx: Reader, sinceMs: number): Promise<number> {
  const first = await tx.get<{ id: string }>(
    "SELECT id FROM event WHERE id >= ?1 ORDER BY id LIMIT 1",
    idAt(sinceMs),
  );
  if (first === null) return Number.MAX_SAFE_INTEGER;
  const row = await tx.get<{ seq: number | null }>(
    "SELECT min(seq) AS seq FROM event WHERE id >= ?1 AND id < ?2",
    first.id,
    idAt(timeOf(first.id) + CLOCK_STEP_MS),
  );
  return row?.seq ?? Number.MAX_SAFE_INTEGER;
}

/** Every event before `untilMs` has a lower seq. */
export async function endSeqUntil(tx: Reader, untilMs: number): Promise<number> {
  const last = await tx.get<{ id: string }>(
    "SELECT id FROM event WHERE id < ?1 ORDER BY id DESC LIMIT 1",
    idAt(untilMs),
  );
  if (last === null) return 0;
  const row = await tx.get<{ seq: number | null }>(
    "SELECT max(seq) AS seq FROM event WHERE id <= ?1 AND id >= ?2",
    last.id,
    idAt(timeOf(last.id) - CLOCK_STEP_MS),
  );
  return (row?.seq ?? 0) + 1;
}

const TIME_DIGITS = 12;

/** The lowest id of a moment. */
function idAt(ms: number): string {
  return `evt_${Math.max(0, ms).toString(16).padStart(TIME_DIGITS, "0")}`;
}

function timeOf(id: string): number {
  return Number.parseInt(id.slice("evt_".length, "evt_".length + TIME_DIGITS), 16);
}
