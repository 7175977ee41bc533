/**
 * Turns record changes of the change log into events: one for each relay that watched the collection at the time of the change. The relay must
 * still watch it, and its `where` must match. Runs when it is woken, and polls for changes of other processes and of plain SQL.
 * A transaction takes a bounded step, so that a change with many watchers takes several. A step's events and its progress in the log commit
 * together, so that a crash neither loses nor repeats an event. Capture never asks who wrote a record: writes that must not start a relay are not
 * in the log.
 */

import { BackgroundJob, type Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { matchesWhere } from "../../rules/trigger/data-change.ts";
import type { RecordView } from "../../shop/records/record.ts";
import { eachEnvironment } from "../../store/each-environment.ts";
import type { FencedStore, Writer } from "../../store/port.ts";
import { EventInserter, type StoredPayload } from "../event/insert.ts";
import {
  type ChangeRange,
  type ChangeRow,
  listChangedEnvironments,
  listWatchers,
  makeChangePayload,
  nextChange,
  RECORD_CHANGE,
  trimChanges,
  viewAfter,
  viewBefore,
} from "./change.ts";

/** The budget of one transaction, which bounds how long other writes wait. The last item may exceed the bytes. */
const STEP = { changes: 64, watchers: 1_024, events: 64, read: 192 * 1024, written: 512 * 1024 };
type Budget = typeof STEP;

const POLL_MS = 2_000;

interface CaptureDeps {
  store: FencedStore;
  clock: Clock;
  log: Log;
}

/** Starts by turning the changes that were written while nothing ran into events. Wake it after a change is durable. */
export class Capture extends BackgroundJob {
  readonly #deps: CaptureDeps;

  constructor(deps: CaptureDeps) {
    super({
      clock: deps.clock,
      everyMs: POLL_MS,
      // The next poll retries.
      onError: (error) =>
        deps.log.warn("record changes cannot be captured now", { cause: (error as Error).message }),
    });
    this.#deps = deps;
  }

  protected override async turn(): Promise<undefined> {
    const { store } = this.#deps;
    await this.loop.repeat(async () => {
      const changed = await store.read(listChangedEnvironments);
      await eachEnvironment(changed, (_, [range]) => this.#drain(range));
      return changed.length > 0;
    });
  }

  /** Takes all changes of the range, so that an environment does not wait for another one after each step. */
  async #drain(range: ChangeRange): Promise<void> {
    const { store, clock, log } = this.#deps;
    const step = async (tx: Writer): Promise<boolean> => {
      await drainChanges(tx, {}, clock.now(), log, range);
      return (await nextChange(tx, 0, range)) !== null;
    };
    await this.loop.repeat(() => store.write("app", step, range.environmentId));
  }
}

/**
 * Takes one step: the oldest changes, and of the last one as many watchers as the budget allows. `range` limits it to changes of one environment.
 * Returns how many changes it finished.
 */
export async function drainChanges(
  tx: Writer,
  most: Partial<Budget>,
  nowMs: number,
  log: Log,
  range: ChangeRange | null = null,
): Promise<number> {
  const budget = { ...STEP, ...most };
  const inserter = new EventInserter(tx);
  let finished = 0;
  let seq = 0;
  while (hasBudget(budget)) {
    const change = await nextChange(tx, seq, range);
    if (change === null) break;
    budget.changes -= 1;
    budget.read -= change.data.length + (change.previousData?.length ?? 0);
    if (!(await fanOut(tx, change, { inserter, budget, nowMs, log }))) break;
    finished += 1;
    seq = change.seq;
  }
  if (finished > 0) await trimChanges(tx, seq, range);
  return finished;
}

/** Inserts the change's events while the budget lasts. Returns whether these were all. */
async function fanOut(
  tx: Writer,
  change: ChangeRow,
  { inserter, budget, nowMs, log }: { inserter: EventInserter; budget: Budget; nowMs: number; log: Log },
): Promise<boolean> {
  let views: Views | null = null;
  let payload: StoredPayload | null = null;
  let lastRelayId = change.toldRelayId;
  while (hasEventBudget(budget)) {
    const most = Math.min(budget.watchers, budget.events);
    const watchers = await listWatchers(tx, change, lastRelayId, most);
    if (watchers.length === 0) return true;
    views ??= readOrLog(tx, change, log, () => view(change));
    if (views === null || views.isUnchanged) return true;
    const { record, previous } = views;
    for (const { wanted, ...watcher } of watchers) {
      if (!hasEventBudget(budget)) break;
      lastRelayId = watcher.relayId;
      budget.watchers -= 1;
      if (!matchesWhere(wanted, record.data)) continue;
      payload ??= readOrLog(tx, change, log, () =>
        makeChangePayload(record, change.change === "deleted" ? record : previous),
      );
      if (payload === null) return true;
      budget.events -= 1;
      budget.written -= payload.text.length;
      await inserter.insert({
        environmentId: change.environmentId,
        ...watcher,
        trigger: "data_change",
        payload,
        unsigned: false,
        dedupe: null,
        nowMs,
      });
    }
    if (watchers.length < most && hasEventBudget(budget)) return true;
  }
  if (lastRelayId !== change.toldRelayId)
    await RECORD_CHANGE.change(tx, change, { toldRelayId: lastRelayId });
  return false;
}

function hasBudget(budget: Budget): boolean {
  return budget.changes > 0 && budget.read > 0 && hasEventBudget(budget);
}

function hasEventBudget({ watchers, events, written }: Budget): boolean {
  return watchers > 0 && events > 0 && written > 0;
}

interface Views {
  record: RecordView;
  previous: RecordView | null;
  /** True if nothing differs. The log omits writes of the same text, but the same data can be written with its fields in another order. */
  isUnchanged: boolean;
}

function view(change: ChangeRow): Views {
  const record = viewAfter(change);
  const previous = viewBefore(change);
  const isUnchanged =
    previous !== null &&
    record.owner === previous.owner &&
    record.recipient === previous.recipient &&
    Bun.deepEquals(record.data, previous.data, true);
  return { record, previous, isUnchanged };
}

/** Returns null for a row that cannot be read, such as one that another program wrote. The log would otherwise stop at it forever. */
function readOrLog<Read>(tx: Writer, change: ChangeRow, log: Log, read: () => Read): Read | null {
  try {
    return read();
  } catch (error) {
    const what = { record: change.recordId, error };
    tx.afterCommit(() => log.error("a changed record cannot be read, so it fires nothing", what));
    return null;
  }
}
