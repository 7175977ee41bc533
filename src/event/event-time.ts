/**
 * Where a moment lies among the events. Ids carry their time (UUIDv7), so the id's index finds it however many there are. Rows stand in that
 * order but for small steps of the clock, which these bounds allow for; whoever lists compares the exact times as well.
 */
import { idFloor } from "../ground/id.ts";
import type { Reader } from "../store/port.ts";

const CLOCK_STEP_MS = 2_000;

/** No event since `sinceMs` has a lower seq. */
export async function firstSeqSince(tx: Reader, sinceMs: number): Promise<number> {
  const first = await tx.get<{ id: string }>(
    "SELECT id FROM event WHERE id >= ?1 ORDER BY id LIMIT 1",
    idFloor("evt", sinceMs),
  );
  if (first === null) return Number.MAX_SAFE_INTEGER;
  const row = await tx.get<{ seq: number | null }>(
    "SELECT min(seq) AS seq FROM event WHERE id >= ?1 AND id < ?2",
    first.id,
    idFloor("evt", timeOf(first.id) + CLOCK_STEP_MS),
  );
  return row?.seq ?? Number.MAX_SAFE_INTEGER;
}

/** Every event before `untilMs` has a lower seq. */
export async function endSeqUntil(tx: Reader, untilMs: number): Promise<number> {
  const last = await tx.get<{ id: string }>(
    "SELECT id FROM event WHERE id < ?1 ORDER BY id DESC LIMIT 1",
    idFloor("evt", untilMs),
  );
  if (last === null) return 0;
  const row = await tx.get<{ seq: number | null }>(
    "SELECT max(seq) AS seq FROM event WHERE id <= ?1 AND id >= ?2",
    last.id,
    idFloor("evt", timeOf(last.id) - CLOCK_STEP_MS),
  );
  return (row?.seq ?? 0) + 1;
}

const TIME_DIGITS = 12;

function timeOf(id: string): number {
  return Number.parseInt(id.slice("evt_".length, "evt_".length + TIME_DIGITS), 16);
}
