/**
 * A bulk replay: replays every matching event once, the oldest first, and no faster than requested. Its row has a cursor that moves in the
 * transaction that queues the events. So no event is replayed twice or left out, whenever the service stops. An event that fails again is behind the
 * cursor.
 * The maintenance jobs run its steps.
 */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { newId } from "../../base/id.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { oneOf, show, time, timeOrNull } from "../../base/schema.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import { equals, walkPage } from "../../store/index-scan.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, flag, integer, json, orNull, type RowOf, text } from "../../store/table.ts";
import { type BulkFilter, bulkFilter, type Counted, listSelected, resolveFilter } from "./bulk-choice.ts";
import { type ReplayRefusal, tryReplays } from "./replay.ts";

export const MAX_PER_SECOND = 1_000;
export const DEFAULT_PER_SECOND = 50;

const RUN_STATES = ["running", "done", "stopped"] as const;

/**
 * The stored form of a filter by reason. A node of version 0.15.0 or before ignores the reason, and during an upgrade it may run the steps. The empty
 * relay name makes such a node match no event.
 */
interface ReasonFilter extends Pick<BulkFilter, "state"> {
  relay: "";
  asked: BulkFilter;
}
type StoredFilter = BulkFilter | ReasonFilter;

const BULK_REPLAY = defineTable({
  name: "bulk_replay",
  key: ["id"],
  columns: {
    id: text(),
    environmentId: integer(),
    state: text<(typeof RUN_STATES)[number]>(),
    chosen: json<StoredFilter>(),
    perSecond: integer(),
    /** True if it also runs work that was done for another person than the event's current one. */
    move: flag(),
    /** The number of events that matched at its start. */
    matched: integer(),
    replayed: integer(),
    /** Events that were left out, by reason. */
    leftOut: json<Partial<Record<ReplayRefusal, number>>>(),
    /** The number of the last event that was read. */
    cursor: integer(),
    /** Events with a higher number, or with a later end, came after its start. */
    untilSeq: integer(),
    endedUntil: integer(),
    createdBy: text(),
    createdAt: integer(),
    finishedAt: orNull(integer()),
    /** The replayed events whose results are counted; null for a bulk replay of a version that counted none. */
    followed: orNull(integer()),
    /** Two triggers of the event table count the results. */
    succeeded: integer(),
    failed: integer(),
    lastResultAt: orNull(integer()),
  },
});
type BulkReplayRow = RowOf<typeof BULK_REPLAY>;

/** An event that a bulk replay queued and that has no result yet. A trigger of the event table deletes the row with the result. */
const BULK_REPLAY_EVENT = defineTable({
  name: "bulk_replay_event",
  key: ["eventSeq"],
  columns: { eventSeq: integer(), bulkReplayId: text() },
});

const bulkResults = Type.Object({
  succeeded: Type.Integer({ description: "events that are done" }),
  failed: Type.Integer({ description: "events that failed, died, or were deleted before they ran" }),
  pending: Type.Integer({ description: "events that are queued, run or wait for a retry" }),
  lastAt: Type.Union([time, Type.Null()], { description: "the time of the newest result" }),
});

export const bulkReplayView = Type.Object({
  id: Type.String(),
  state: oneOf(RUN_STATES),
  filter: Type.Object(bulkFilter),
  perSecond: Type.Integer(),
  /** True if it also runs work that was done for another person than the event's current one: purchases move. */
  move: Type.Boolean(),
  matched: Type.Integer(),
  replayed: Type.Integer(),
  leftOut: Type.Record(Type.String(), Type.Integer()),
  /** The results of the replayed events; null if an earlier version started the bulk replay. */
  results: Type.Union([bulkResults, Type.Null()]),
  by: Type.String(),
  createdAt: time,
  /** The time when it queued its last event. */
  finishedAt: timeOrNull,
});
export type BulkReplayView = Static<typeof bulkReplayView>;

interface NewBulkReplay extends Change, Counted {
  filter: BulkFilter;
  perSecond: number;
  move: boolean;
}

/** Starts a bulk replay. It is done at once if no event matches. Refuses with `replay_running` while another one of the environment runs. */
export async function beginBulkReplay(tx: Writer, wanted: NewBulkReplay): Promise<BulkReplayView> {
  const { environmentId, by, nowMs, filter, perSecond, move, matched, endedUntil } = wanted;
  const other = await findRunning(tx, environmentId);
  if (other !== null) {
    throw new Refusal(
      "replay_running",
      `The bulk replay ${other.id} of this environment is under way: wait until it has ended, or stop it with relay replays stop ${other.id}.`,
    );
  }
  const chosen = matched === 0 ? null : await resolveFilter(tx, environmentId, filter);
  const moves = move || filter.state === "done";
  const row: BulkReplayRow = {
    id: newId("rpl", nowMs),
    environmentId,
    state: chosen === null ? "done" : "running",
    chosen: filter.reason === undefined ? filter : { state: filter.state, relay: "", asked: filter },
    perSecond,
    move: moves,
    matched,
    replayed: 0,
    leftOut: {},
    cursor: chosen?.cursor ?? 0,
    untilSeq: chosen?.untilSeq ?? 0,
    endedUntil,
    createdBy: by,
    createdAt: nowMs,
    finishedAt: chosen === null ? nowMs : null,
    followed: 0,
    succeeded: 0,
    failed: 0,
    lastResultAt: null,
  };
  await BULK_REPLAY.insert(tx, row);
  tx.notify("bulk_replay", environmentId);
  const after = { filter, perSecond, matched, ...(moves ? { move: true } : {}) };
  await writeAudit(tx, { environmentId, by, nowMs, action: "replay.began", target: targetOf(row), after });
  return view(row);
}

/** Stops a running bulk replay. Events that it queued stay queued. Has no effect if it has ended. Refuses with `not_found`. */
export async function stopBulkReplay(tx: Writer, id: string, change: Change): Promise<BulkReplayView> {
  const row = await requireRow(tx, change.environmentId, id);
  if (row.state !== "running") return view(row);
  const ended = { state: "stopped", finishedAt: change.nowMs } as const;
  await BULK_REPLAY.change(tx, { id }, ended);
  const after = { replayed: row.replayed, matched: row.matched };
  await writeAudit(tx, { ...change, action: "replay.stopped", target: targetOf(row), after });
  return view({ ...row, ...ended });
}

/** Replays at most `most` of the next events. Returns how many it took, or null if the bulk replay has ended. */
export async function stepBulkReplay(
  tx: Writer,
  id: string,
  most: number,
  nowMs: number,
): Promise<number | null> {
  const row = await BULK_REPLAY.find(tx, { id });
  if (row === null || row.state !== "running") return null;
  const chosen = await resolveFilter(tx, row.environmentId, filterOf(row.chosen));
  const { cursor, untilSeq, endedUntil } = row;
  const within = chosen === null ? null : { ...chosen, cursor, untilSeq, endedUntil };
  const step = within === null ? null : await listSelected(tx, within);
  const found = step?.found.slice(0, most) ?? [];
  const isCut = step !== null && step.found.length > most;
  const leftOut = { ...row.leftOut };
  let { replayed } = row;
  const { environmentId, createdBy: actor, move } = row;
  const request = { environmentId, actor, nowMs, move, bulkReplay: id };
  const refusals = await tryReplays(
    tx,
    found.map((seq) => ({ ...request, seq })),
  );
  for (const refusal of refusals) {
    if (refusal === null) replayed += 1;
    else leftOut[refusal] = (leftOut[refusal] ?? 0) + 1;
  }
  const followed = row.followed === null ? null : row.followed + replayed - row.replayed;
  const queued = found.filter((_, at) => refusals[at] === null);
  if (followed !== null)
    await BULK_REPLAY_EVENT.insertEach(
      tx,
      queued.map((eventSeq) => ({ eventSeq, bulkReplayId: id })),
    );
  const next = isCut ? (found.at(-1) ?? null) : (step?.next ?? null);
  const isDone = next === null;
  await BULK_REPLAY.change(
    tx,
    { id },
    {
      replayed,
      followed,
      leftOut,
      cursor: next ?? cursor,
      state: isDone ? "done" : "running",
      finishedAt: isDone ? nowMs : null,
    },
  );
  if (isDone) {
    const { environmentId, createdBy: by, matched } = row;
    const after = { replayed, matched, leftOut };
    await writeAudit(tx, { environmentId, by, nowMs, action: "replay.ended", target: targetOf(row), after });
  }
  return isDone ? null : found.length;
}

/** Lists the running bulk replays of all environments. */
export async function listRunning(
  tx: Reader,
): Promise<Pick<BulkReplayRow, "id" | "environmentId" | "perSecond">[]> {
  return await BULK_REPLAY.pick("id", "environmentId", "perSecond").all(
    tx,
    "INDEXED BY bulk_replay_running WHERE state = 'running' ORDER BY id",
  );
}

export async function requireBulkReplay(
  tx: Reader,
  environmentId: number,
  id: string,
): Promise<BulkReplayView> {
  return view(await requireRow(tx, environmentId, id));
}

/** A page of the environment's bulk replays, the newest first. */
export async function listBulkReplays(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
): Promise<Page<BulkReplayView>> {
  const led = [equals("environment_id", environmentId)];
  return await walkPage(
    tx,
    BULK_REPLAY,
    request,
    { index: "bulk_replay_by_environment", key: "id", led },
    view,
  );
}

function requireRow(tx: Reader, environmentId: number, id: string): Promise<BulkReplayRow> {
  const sentence = `There is no bulk replay ${id} in this environment: relay replays list shows them.`;
  return BULK_REPLAY.require(tx, { environmentId, id }, sentence);
}

function findRunning(tx: Reader, environmentId: number): Promise<BulkReplayRow | null> {
  return BULK_REPLAY.get(tx, "WHERE environment_id = $environmentId AND state = 'running'", {
    environmentId,
  });
}

function targetOf({ id }: Pick<BulkReplayRow, "id">): string {
  return `replay:${id}`;
}

function filterOf(chosen: StoredFilter): BulkFilter {
  return "asked" in chosen ? chosen.asked : chosen;
}

function view({ chosen, createdBy: by, leftOut, ...row }: BulkReplayRow): BulkReplayView {
  const filter = filterOf(chosen);
  const results = resultsOf(row);
  return show(bulkReplayView, { ...row, filter, by, leftOut: leftOut as Record<string, number>, results });
}

function resultsOf({
  followed,
  succeeded,
  failed,
  lastResultAt,
}: Pick<BulkReplayRow, "followed" | "succeeded" | "failed" | "lastResultAt">): BulkReplayView["results"] {
  if (followed === null) return null;
  const lastAt = lastResultAt === null ? null : toIso(lastResultAt);
  return { succeeded, failed, pending: followed - succeeded - failed, lastAt };
}
