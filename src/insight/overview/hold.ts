/** Describes the hold of an environment: who set it, how many events wait, and which scheduled runs it skipped so far. */
import { toIso } from "../../base/clock.ts";
import { formatCount, joinWords } from "../../base/text.ts";
import { countUnfinished } from "../../engine/event/count.ts";
import { ACTOR_NAME } from "../../platform/audit/audit.ts";
import { describeActor } from "../../rules/relay/recent-change.ts";
import { RELAY } from "../../rules/relay/relay.ts";
import { periodOf } from "../../rules/trigger/schedule.ts";
import type { Reader, Store } from "../../store/port.ts";

/** The most schedules that are read. */
const MAX_SCHEDULES = 100;
/** The most schedules that the sentence names. */
const MAX_NAMED = 3;

interface Hold {
  environmentId: number;
  heldAt: number;
  nowMs: number;
}

/** The runs of one schedule that a hold skipped. */
interface Skipped {
  relay: string;
  count: number;
  firstMs: number;
  lastMs: number;
}

export async function describeHold(store: Store, hold: Hold): Promise<string> {
  const waiting = await countUnfinished(store, hold.environmentId);
  const { by, skipped } = await store.read(async (tx) => ({
    by: await findHolder(tx, hold),
    skipped: await listSkipped(tx, hold),
  }));
  const since = toIso(hold.heldAt);
  const begin =
    by === null
      ? `The environment has been on hold since ${since}.`
      : `${by} put the environment on hold at ${since}.`;
  const events =
    waiting === 1 ? "1 event waits." : `${waiting === 0 ? "No" : formatCount(waiting)} events wait.`;
  return [begin, events, ...describeSkipped(skipped)].join(" ");
}

/** Finds who set the hold; null if the audit log does not contain it. */
async function findHolder(tx: Reader, { environmentId, heldAt }: Hold): Promise<string | null> {
  const row = await tx.get<{ actor: string; actorName: string | null }>(HOLDER, { environmentId, heldAt });
  return row === null ? null : describeActor(row.actor, row.actorName);
}

const HOLDER = `SELECT actor, ${ACTOR_NAME} AS actorName FROM audit INDEXED BY audit_by_target
  WHERE environment_id = $environmentId AND target = 'settings' AND event_id IS NULL AND at = $heldAt
    AND action = 'settings.changed' AND instr(after, '"held":true') > 0 ORDER BY seq DESC LIMIT 1`;

const SCHEDULE = RELAY.pick("name", "definition", "createdAt");

/** Lists the schedules that skipped runs. A paused schedule would not have run. */
async function listSkipped(tx: Reader, { environmentId, heldAt, nowMs }: Hold): Promise<Skipped[]> {
  const relays = await SCHEDULE.all(
    tx,
    `WHERE environment_id = $environmentId AND state = 'active' AND definition ->> '$.trigger.kind' = 'schedule'
     ORDER BY name LIMIT ${MAX_SCHEDULES}`,
    { environmentId },
  );
  return relays.flatMap(({ name, definition: { trigger }, createdAt }) => {
    if (trigger.kind !== "schedule") return [];
    const period = periodOf(trigger);
    const firstMs = period.nextAfter(Math.max(heldAt, createdAt));
    const lastMs = period.startAt(nowMs);
    if (lastMs < firstMs) return [];
    // All periods of a schedule have the same length, because they are in UTC.
    const count = Math.round((lastMs - firstMs) / (period.nextAfter(firstMs) - firstMs)) + 1;
    return [{ relay: name, count, firstMs, lastMs }];
  });
}

function describeSkipped(skipped: readonly Skipped[]): string[] {
  if (skipped.length === 0) return [];
  const named = skipped.slice(0, MAX_NAMED).map(({ relay, count, firstMs, lastMs }) => {
    return count === 1
      ? `1 run of ${relay} (${toIso(firstMs)})`
      : `${formatCount(count)} runs of ${relay} (from ${toIso(firstMs)} to ${toIso(lastMs)})`;
  });
  const others = skipped.slice(MAX_NAMED).reduce((sum, { count }) => sum + count, 0);
  const words = others === 0 ? named : [...named, `${formatCount(others)} runs of other schedules`];
  const [first] = skipped;
  const name = skipped.length === 1 ? first?.relay : "<name>";
  return [
    `The hold skipped ${joinWords(words)}. They do not run after the release, unless you start them with relay relays skipped ${name}.`,
  ];
}
