/**
 * Ticks: one event a period. The newest period that is due is queued, late or not; older ones were missed and are stored dead, to be
 * replayed if wanted, with one alert. All of it and the cursor are one transaction, so that a crash leaves a period ticked or not, never
 * twice. Source: the specification's "schedule"; decisions, "missed ticks".
 */
import { alertOn, findEnvironmentById } from "../account/environment.ts";
import { keyOfOccurrence } from "../event/dedupe.ts";
import { insertEvent } from "../event/event-insert.ts";
import { makeWholePayload } from "../event/payload.ts";
import { toIso } from "../ground/clock.ts";
import { parseJson } from "../ground/json.ts";
import type { Definition } from "../relay/definition.ts";
import { relayTarget } from "../relay/relay-row.ts";
import type { Writer } from "../store/port.ts";
import { readPeriod } from "../trigger/schedule.ts";
import { raiseAlert } from "../watch/alert.ts";
import { countFromNow, countsLater, findCursor, listDue, settleUntil } from "./cursor.ts";

export interface Ticked {
  /** Events queued: 0 or 1. */
  queued: number;
  /** Events stored dead. */
  missed: number;
}

interface ScheduleRelay {
  id: string;
  name: string;
  environmentId: number;
  definition: string;
}

const NOTHING: Ticked = { queued: 0, missed: 0 };

/** Records the relay's periods that are due, by what the database says now: it may be edited, paused, held or gone since it was chosen. */
export async function tickRelay(tx: Writer, relayId: string, nowMs: number): Promise<Ticked> {
  const cursor = await findCursor(tx, relayId);
  const relay = await tx.get<ScheduleRelay>(
    "SELECT id, name, environment_id AS environmentId, definition FROM relay WHERE id = ?1",
    relayId,
  );
  if (cursor === null || relay === null) return NOTHING;
  const { trigger } = parseJson(relay.definition) as unknown as Definition;
  if (trigger.kind !== "schedule") return NOTHING;
  if (countsLater(cursor, nowMs)) {
    await countFromNow(tx, relayId, nowMs);
    return NOTHING;
  }
  const period = readPeriod(trigger);
  const due = listDue(cursor, period, nowMs);
  if (due.length === 0) return NOTHING;
  const ticked = cursor.held ? NOTHING : await recordTicks(tx, relay, due, nowMs);
  await settleUntil(tx, cursor, period, nowMs);
  return ticked;
}

async function recordTicks(
  tx: Writer,
  relay: ScheduleRelay,
  due: readonly number[],
  nowMs: number,
): Promise<Ticked> {
  let queued = 0;
  const missed: number[] = [];
  for (const [index, periodStartMs] of due.entries()) {
    const late = index < due.length - 1;
    const { duplicate } = await recordTick(tx, relay, periodStartMs, late, nowMs);
    if (duplicate) continue;
    if (late) missed.push(periodStartMs);
    else queued += 1;
  }
  if (missed.length > 0) await alertMissed(tx, relay, missed, nowMs);
  return { queued, missed: missed.length };
}

function recordTick(
  tx: Writer,
  relay: ScheduleRelay,
  periodStartMs: number,
  missed: boolean,
  nowMs: number,
): Promise<{ duplicate: boolean }> {
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

/** The missed are dead events, so it is `relay_failed` that tells of them, one for all, unless the owner switched it off. */
async function alertMissed(
  tx: Writer,
  relay: ScheduleRelay,
  missed: readonly number[],
  nowMs: number,
): Promise<void> {
  const environment = await findEnvironmentById(tx, relay.environmentId);
  if (environment === null || !alertOn(environment, "relay_failed")) return;
  const [first = nowMs] = missed;
  const last = missed.at(-1) ?? first;
  const which =
    missed.length === 1
      ? `1 tick of ${relay.name} was missed, of ${toIso(first)}: it is stored as dead and can be replayed`
      : `${missed.length} ticks of ${relay.name} were missed, from ${toIso(first)} to ${toIso(last)}: they are stored as dead and can be replayed`;
  await raiseAlert(tx, {
    environmentId: relay.environmentId,
    code: "relay_failed",
    target: relayTarget(relay.name),
    message: `${which}; the newest one runs late.`,
    count: missed.length,
    nowMs,
  });
}
