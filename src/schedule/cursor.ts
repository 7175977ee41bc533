/**
 * What a schedule knows of itself: since when it counts, whether ticks are recorded, and which moments are settled. It decides which
 * periods are due, and never makes an event of one.
 */
import { EVENT_RETENTION_MS } from "../ground/limit.ts";
import type { Reader, Writer } from "../store/port.ts";
import { type Period, periodStartAt } from "./period.ts";
import { listUnsettled, readSpans, type Span, settle, writeSpans } from "./settled.ts";

interface CursorRow {
  relayId: string;
  state: "active" | "paused";
  activeSince: number;
  heldAt: number | null;
  settled: string | null;
  countedFrom: number | null;
}

export interface Cursor {
  relayId: string;
  /** Pausing sets this; `activeSince` moves on when the relay resumes, so that nothing of a pause is looked at afterwards. */
  paused: boolean;
  /** Ticks of an environment on hold are not recorded, nor later. */
  held: boolean;
  /** A period that began at this moment or before is not the schedule's: creation, resume, or the last change of the trigger. */
  activeSinceMs: number;
  /** What stands for `activeSinceMs` while the clock, set back, stands before it; null until that happens. */
  countedFromMs: number | null;
  settled: readonly Span[];
}

const SELECT = `SELECT relay.id AS relayId, relay.state, relay.active_since AS activeSince, environment.held_at AS heldAt,
    schedule_cursor.settled, schedule_cursor.counted_from AS countedFrom
  FROM relay JOIN environment ON environment.id = relay.environment_id LEFT JOIN schedule_cursor ON schedule_cursor.relay_id = relay.id`;

/** The cursor of every relay, whatever its trigger, by relay id. */
export async function listCursors(tx: Reader): Promise<Map<string, Cursor>> {
  const rows = await tx.all<CursorRow>(SELECT);
  return new Map(rows.map((row) => [row.relayId, toCursor(row)]));
}

/** The relay's cursor; null when it is gone. */
export async function findCursor(tx: Reader, relayId: string): Promise<Cursor | null> {
  const row = await tx.get<CursorRow>(`${SELECT} WHERE relay.id = ?1`, relayId);
  return row === null ? null : toCursor(row);
}

/** Beginnings of the periods that are due and not settled, oldest first, at most 30 days back. */
export function listDue(cursor: Cursor, period: Period, nowMs: number): number[] {
  if (cursor.paused) return [];
  return listUnsettled(cursor.settled, period, firstMoment(cursor, nowMs), nowMs);
}

/** Settles every period that has begun. */
export async function settleUntil(tx: Writer, cursor: Cursor, period: Period, nowMs: number): Promise<void> {
  const spans = settle(cursor.settled, firstMoment(cursor, nowMs), periodStartAt(period, nowMs));
  await tx.run(
    `INSERT INTO schedule_cursor (relay_id, settled) VALUES (?1, ?2)
     ON CONFLICT (relay_id) DO UPDATE SET settled = excluded.settled`,
    cursor.relayId,
    writeSpans(spans),
  );
}

/** Whether the clock was set back to before all that the schedule counts from, so that it would wait until that day comes again. */
export function countsLater(cursor: Cursor, nowMs: number): boolean {
  return !cursor.paused && sinceWhen(cursor, nowMs) > nowMs;
}

/** Lets the schedule count from now for as long as the clock stands before `activeSinceMs`. */
export async function countFromNow(tx: Writer, relayId: string, nowMs: number): Promise<void> {
  await tx.run(
    `INSERT INTO schedule_cursor (relay_id, counted_from) VALUES (?1, ?2)
     ON CONFLICT (relay_id) DO UPDATE SET counted_from = excluded.counted_from`,
    relayId,
    nowMs,
  );
}

function sinceWhen({ activeSinceMs, countedFromMs }: Cursor, nowMs: number): number {
  return activeSinceMs <= nowMs || countedFromMs === null ? activeSinceMs : countedFromMs;
}

function firstMoment(cursor: Cursor, nowMs: number): number {
  return Math.max(sinceWhen(cursor, nowMs), nowMs - EVENT_RETENTION_MS) + 1;
}

function toCursor(row: CursorRow): Cursor {
  return {
    relayId: row.relayId,
    paused: row.state === "paused",
    held: row.heldAt !== null,
    activeSinceMs: row.activeSince,
    countedFromMs: row.countedFrom,
    settled: readSpans(row.settled),
  };
}
