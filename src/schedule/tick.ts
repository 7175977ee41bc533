/**
 * Ticks: one event a period. The newest period that is due is queued, late or not; older ones were missed and are stored dead, to be
 * replayed if wanted, with one alert. A schedule's whole memory is one mark, `relay.active_since`: every period that began until then is
 * settled (ticked, missed, or not the schedule's at all); the events' own keys see to it that a clock set back ticks no period twice. The
 * events and the mark are one transaction, so that a crash leaves a period ticked or not, never twice.
 * Source: the specification's "schedule"; decisions, "missed ticks".
 */
import { type CronExpression, CronExpressionParser } from "cron-parser";
import { alertMissed } from "../event/alert.ts";
import { insertEvent, keyOfOccurrence } from "../event/insert.ts";
import { makeWholePayload } from "../event/payload.ts";
import { toIso } from "../ground/clock.ts";
import { EVENT_RETENTION_MS } from "../ground/limit.ts";
import { RELAY } from "../relay/relay.ts";
import type { Reader, Writer } from "../store/port.ts";
import type { RowOf } from "../store/table.ts";
import { cronOf, type ScheduleTrigger } from "../trigger/schedule.ts";

interface Ticked {
  /** Events queued: 0 or 1. */
  queued: number;
  /** Events stored dead. */
  missed: number;
}

const SCHEDULED = RELAY.pick("id", "name", "environmentId", "definition", "activeSince");
type ScheduledRelay = RowOf<typeof SCHEDULED>;

const NOTHING: Ticked = { queued: 0, missed: 0 };

/** The mark of every relay that ticks when it is due, by relay id: milliseconds since the epoch. */
export async function listMarks(tx: Reader): Promise<Map<string, number>> {
  const rows = await tx.all<{ id: string; mark: number }>(
    "SELECT id, active_since AS mark FROM relay WHERE state = 'active'",
  );
  return new Map(rows.map(({ id, mark }) => [id, mark]));
}

/**
 * Records the relay's periods that are due, by what the database says now: it may be edited, paused, held or gone since it was chosen.
 * A mark that lies ahead is of a clock that was set back since: the schedule counts from then, `setAgoMs` milliseconds ago at most.
 */
export async function tickRelay(
  tx: Writer,
  relayId: string,
  nowMs: number,
  setAgoMs: number,
): Promise<Ticked> {
  const stored = await tx.get<{ heldAt: number | null }>(
    `SELECT ${SCHEDULED.columnsOf("relay")}, environment.held_at AS heldAt
     FROM relay JOIN environment ON environment.id = relay.environment_id WHERE relay.id = ?1 AND relay.state = 'active'`,
    relayId,
  );
  if (stored === null) return NOTHING;
  const relay = SCHEDULED.read(stored);
  const { trigger } = relay.definition;
  if (trigger.kind !== "schedule") return NOTHING;
  const mark = relay.activeSince;
  const sinceMs = mark <= nowMs ? mark : nowMs - setAgoMs;
  const due = new Period(trigger).list(Math.max(sinceMs, nowMs - EVENT_RETENTION_MS), nowMs);
  if (due.length === 0 && mark <= nowMs) return NOTHING;
  const ticked = relay.heldAt === null ? await recordTicks(tx, relay, due, nowMs) : NOTHING;
  await tx.run("UPDATE relay SET active_since = ?2 WHERE id = ?1", relayId, due.at(-1) ?? nowMs);
  return ticked;
}

async function recordTicks(
  tx: Writer,
  relay: ScheduledRelay,
  due: readonly number[],
  nowMs: number,
): Promise<Ticked> {
  let queued = 0;
  const missed: number[] = [];
  for (const [index, periodStartMs] of due.entries()) {
    const late = index < due.length - 1;
    const { id, duplicate } = await recordTick(tx, relay, periodStartMs, late, nowMs);
    if (duplicate && (late || !(await revive(tx, relay.id, id)))) continue;
    if (late) missed.push(periodStartMs);
    else queued += 1;
  }
  const { environmentId, name: relayName } = relay;
  if (missed.length > 0) await alertMissed(tx, { environmentId, relayName, missed, nowMs });
  return { queued, missed: missed.length };
}

function recordTick(
  tx: Writer,
  relay: ScheduledRelay,
  periodStartMs: number,
  missed: boolean,
  nowMs: number,
): Promise<{ id: string; duplicate: boolean }> {
  const periodStart = toIso(periodStartMs);
  return insertEvent(tx, {
    environmentId: relay.environmentId,
    relayId: relay.id,
    relayName: relay.name,
    trigger: "schedule",
    payload: makeWholePayload({ tick: { periodStart } }),
    unsigned: false,
    dedupe: keyOfOccurrence(relay.environmentId, relay.id, `tick ${periodStart}`),
    nowMs,
    ...(missed ? { dead: "missed" } : {}),
  });
}

/** A period that counts as missed since the clock was ahead of it, and begins now after all; whether it is due by that. */
async function revive(tx: Writer, relayId: string, eventId: string): Promise<boolean> {
  const revived = await tx.run(
    `UPDATE event SET state = 'queued', reason = NULL, finished_at = NULL
     WHERE id = ?1 AND state = 'dead' AND reason = 'missed' AND runs = 0`,
    eventId,
  );
  if (revived === 1) tx.touch("event", relayId);
  return revived === 1;
}

/** When a schedule's periods begin, by its cron expression in UTC. */
export class Period {
  readonly #cron: CronExpression;
  /** The period looked at last: the scheduler asks for the present one again and again. Milliseconds since the epoch. */
  #start = Number.POSITIVE_INFINITY;
  #next = Number.NEGATIVE_INFINITY;

  constructor(trigger: ScheduleTrigger) {
    this.#cron = CronExpressionParser.parse(cronOf(trigger), { tz: "UTC" });
  }

  /** The beginning of the period that `ms` lies in. */
  startAt(ms: number): number {
    this.#find(ms);
    return this.#start;
  }

  /** The first beginning after `ms`. */
  nextAfter(ms: number): number {
    this.#find(ms);
    return this.#next;
  }

  /** Every beginning after `afterMs` and not after `untilMs`, in order. */
  list(afterMs: number, untilMs: number): number[] {
    if (this.startAt(untilMs) <= afterMs) return [];
    const starts: number[] = [];
    this.#cron.reset(new Date(afterMs));
    for (let start = this.#cron.next().getTime(); start <= untilMs; start = this.#cron.next().getTime())
      starts.push(start);
    return starts;
  }

  #find(ms: number): void {
    if (this.#start <= ms && ms < this.#next) return;
    this.#cron.reset(new Date(ms));
    this.#next = this.#cron.next().getTime();
    this.#start = this.#cron.prev().getTime();
  }
}
