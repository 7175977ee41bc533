/**
 * Lists the runs of a schedule that holds of its environment skipped, and starts the ones that a person chooses. A hold records no tick by itself.
 * Each started run has its own scheduled time and the deduplication key of its tick, so no tick runs twice.
 */
import { type Static, Type } from "typebox";
import { parseIso, toIso } from "../../base/clock.ts";
import { EVENT_RETENTION_MS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, time } from "../../base/schema.ts";
import { showText } from "../../base/shape.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import { type RELAY, relayTarget, requireRelay } from "../../rules/relay/relay.ts";
import { periodOf } from "../../rules/trigger/schedule.ts";
import type { Reader, Writer } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import { findDuplicate } from "../event/insert.ts";
import { findTickContext, keyOfTick, recordTick } from "./schedule.ts";

/** The most skipped runs that are listed and can be started, the newest ones. */
const MAX_SKIPPED_RUNS = 100;
/** The most changes of a hold, and the most versions of a definition, that are read. */
const MAX_CHANGES = 200;

export const skippedRunsView = Type.Object({
  relay: Type.String(),
  /** True if the environment is on hold now: a started run waits for the release. */
  held: Type.Boolean(),
  /** The scheduled times of the skipped runs without an event, oldest first: of the newest 100 that belong to the current trigger. */
  runs: Type.Array(Type.Object({ at: time })),
});
export type SkippedRunsView = Static<typeof skippedRunsView>;

export const startRunsInput = fields({
  at: Type.Array(Type.String({ maxLength: 40 }), {
    minItems: 1,
    maxItems: MAX_SKIPPED_RUNS,
    description: "the scheduled times of the skipped runs to start",
  }),
});

export const startedRunsView = Type.Object({
  held: Type.Boolean(),
  /** `started`: false if the run had an event already. */
  runs: Type.Array(Type.Object({ at: time, eventId: Type.String(), started: Type.Boolean() })),
});
export type StartedRunsView = Static<typeof startedRunsView>;

type Relay = Pick<RowOf<typeof RELAY>, "id" | "name" | "environmentId" | "definition" | "createdAt">;

/** Needs a writer, because only a writer finds deduplication keys. Throws `not_found`. */
export async function listSkippedRuns(
  tx: Writer,
  environmentId: number,
  name: string,
  nowMs: number,
): Promise<SkippedRunsView> {
  const relay = await requireRelay(tx, environmentId, name);
  const { skipped, held } = await findSkipped(tx, relay, nowMs);
  const keys = skipped.map((atMs) => keyOfTick(relay, atMs));
  await tx.keys.prefetch?.(keys.map(({ hash }) => hash));
  const runs: SkippedRunsView["runs"] = [];
  for (const [nth, key] of keys.entries())
    if ((await findDuplicate(tx, key)) === null) runs.push({ at: toIso(skipped[nth] ?? 0) });
  return { relay: relay.name, held, runs };
}

/** Stores an event for each chosen run. Throws `not_found`, and `invalid_input` for a time that is no skipped run. */
export async function startSkippedRuns(
  tx: Writer,
  name: string,
  { at }: Static<typeof startRunsInput>,
  change: Change,
): Promise<StartedRunsView> {
  const { environmentId, nowMs } = change;
  const relay = await requireRelay(tx, environmentId, name);
  const { skipped, held } = await findSkipped(tx, relay, nowMs);
  const wanted = new Set(at.map((text, nth) => requireSkipped(text, nth, name, skipped)));
  const context = await findTickContext(tx, relay);
  const runs: StartedRunsView["runs"] = [];
  for (const atMs of skipped) {
    if (!wanted.has(atMs)) continue;
    const { id, duplicate } = await recordTick(tx, { ...relay, ...context }, atMs, false, nowMs);
    runs.push({ at: toIso(atMs), eventId: id, started: !duplicate });
  }
  const started = runs.filter((run) => run.started).map((run) => run.at);
  if (started.length > 0)
    await writeAudit(tx, {
      ...change,
      action: "relay.skipped_runs_started",
      target: relayTarget(name),
      after: { runs: started },
    });
  return { held, runs };
}

function requireSkipped(text: string, nth: number, name: string, skipped: readonly number[]): number {
  const atMs = parseIso(text);
  if (atMs !== null && skipped.includes(atMs)) return atMs;
  throw new Refusal(
    "invalid_input",
    `at.${nth} is ${showText(text)}, which is not one of the last ${MAX_SKIPPED_RUNS} skipped runs of the relay's current trigger: relay relays skipped ${name} lists them.`,
  );
}

/** Finds the scheduled times within holds, oldest first, with an event or without. */
async function findSkipped(
  tx: Reader,
  relay: Relay,
  nowMs: number,
): Promise<{ skipped: number[]; held: boolean }> {
  const { environmentId, definition } = relay;
  // An older tick could have had an event that is deleted by now.
  const oldestMs = nowMs - EVENT_RETENTION_MS;
  const holds = await listHolds(tx, environmentId, oldestMs, nowMs);
  const held = holds.at(-1)?.isOpen ?? false;
  if (definition.trigger.kind !== "schedule" || holds.length === 0) return { skipped: [], held };
  const sinceMs = Math.max(oldestMs, relay.createdAt, await findTriggerChange(tx, relay));
  const period = periodOf(definition.trigger);
  const skipped: number[] = [];
  for (const { fromMs, untilMs } of holds.toReversed()) {
    const newestMs = period.startAt(untilMs);
    // All periods of a schedule have the same length, because they are in UTC.
    const lengthMs = period.nextAfter(untilMs) - newestMs;
    const afterMs = Math.max(fromMs, sinceMs);
    for (let at = newestMs; at > afterMs && skipped.length < MAX_SKIPPED_RUNS; at -= lengthMs)
      skipped.push(at);
  }
  return { skipped: skipped.reverse(), held };
}

interface HoldSpan {
  fromMs: number;
  untilMs: number;
  isOpen: boolean;
}

/** Lists the holds of the environment since `oldestMs`, oldest first, as the audit log has them. */
async function listHolds(
  tx: Reader,
  environmentId: number,
  oldestMs: number,
  nowMs: number,
): Promise<HoldSpan[]> {
  const rows = await tx.all<{ at: number; held: number }>(HOLD_CHANGES, { environmentId, oldestMs });
  const now = await tx.get<{ heldAt: number | null }>(
    "SELECT held_at AS heldAt FROM environment WHERE id = ?1",
    environmentId,
  );
  const holds: HoldSpan[] = [];
  let fromMs: number | null = null;
  for (const { at, held } of rows.toReversed()) {
    if (held === 1) fromMs ??= at;
    // The first row can be the release of a hold that began before it.
    else if (fromMs !== null || holds.length === 0) {
      holds.push({ fromMs: fromMs ?? oldestMs, untilMs: at, isOpen: false });
      fromMs = null;
    }
  }
  if (now?.heldAt != null) holds.push({ fromMs: now.heldAt, untilMs: nowMs, isOpen: true });
  return holds;
}

const HOLD_CHANGES = `SELECT at, CASE WHEN instr(after, '"held":true') > 0 THEN 1 ELSE 0 END AS held FROM audit INDEXED BY audit_by_target
  WHERE environment_id = $environmentId AND target = 'settings' AND event_id IS NULL AND at >= $oldestMs AND action = 'settings.changed'
    AND (instr(after, '"held":true') > 0 OR instr(before, '"held":true') > 0) ORDER BY seq DESC LIMIT ${MAX_CHANGES}`;

/** Finds when the relay got its current trigger by a save; 0 if no save of the audit log changed it. */
async function findTriggerChange(tx: Reader, { environmentId, name }: Relay): Promise<number> {
  const row = await tx.get<{ at: number | null }>(TRIGGER_CHANGE, {
    environmentId,
    target: relayTarget(name),
  });
  return row?.at ?? 0;
}

const TRIGGER_CHANGE = `SELECT max(at) AS at FROM (SELECT at, before, after FROM audit INDEXED BY audit_by_target
    WHERE environment_id = $environmentId AND target = $target AND event_id IS NULL AND action = 'relay.updated' ORDER BY seq DESC LIMIT ${MAX_CHANGES}) AS saved
  WHERE before ->> '$.definition.trigger' <> after ->> '$.definition.trigger'`;
