/**
 * Plans a bulk replay: what it would do with the events of a filter. The oldest events are outlined one by one, and the others are counted. Both are
 * bounded, so that a plan is quick on a store of any size and no other work waits for it.
 */
import { type Static, Type } from "typebox";
import { oneOf } from "../../base/schema.ts";
import { type LookedAt, reach, yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import { type BulkFilter, countUpTo, listSelected, resolveFilter } from "./bulk-choice.ts";
import { outlineReplay, ReplayCache } from "./replay.ts";
import { WILL } from "./replay-plan.ts";

/** The most events that are outlined. The rest are only counted. */
const MAX_OUTLINED = 2_000;
/** The most rows that a plan looks at, if no index answers by itself. */
const MAX_LOOKED_AT = 20_000;
/** The most events that are outlined between two turns of the event loop: each may have a large payload, and its own large definition. */
const OUTLINE_STEP = 10;

export const bulkPlan = Type.Object({
  /** Events that match. */
  matched: Type.Integer(),
  /** True if there may be more: of done events, and of those of one person, a plan reads 20,000. */
  isMore: Type.Boolean(),
  /** The number of them that were planned, the oldest first. */
  planned: Type.Integer(),
  relays: Type.Array(Type.Object({ relay: Type.String(), events: Type.Integer() })),
  /** The effects of the planned events' actions, by type. */
  actions: Type.Array(Type.Object({ type: Type.String(), will: oneOf(WILL), events: Type.Integer() })),
  /** Planned events with work that was done for another person. It is skipped unless the replay moves it. */
  otherPerson: Type.Integer(),
  /** Planned events that would be left out, by reason. */
  leftOut: Type.Record(Type.String(), Type.Integer()),
});
export type BulkPlan = Static<typeof bulkPlan>;

/** Plans a bulk replay of the filter's events, in small steps. */
export async function planBulkReplay(
  store: Store,
  environmentId: number,
  filter: BulkFilter,
): Promise<BulkPlan> {
  const selection = await store.read((tx) => resolveFilter(tx, environmentId, filter));
  const tally = new Tally();
  const cache = new ReplayCache();
  let [listed, planned, looked] = [0, 0, 0];
  let cursor = selection?.cursor ?? null;
  while (selection !== null && cursor !== null && planned < MAX_OUTLINED && looked < MAX_LOOKED_AT) {
    const from = { ...selection, cursor };
    const { found, next, ...step } = await store.read((tx) => listSelected(tx, from));
    await yieldToEventLoop();
    let left = found.slice(0, MAX_OUTLINED - planned);
    listed += found.length;
    planned += left.length;
    looked += step.looked;
    cursor = next;
    while (left.length > 0) {
      const some = left;
      const outlines = await store.read((tx) => outlineFirst(tx, environmentId, some, cache));
      await yieldToEventLoop();
      for (const outline of outlines) tally.add(outline);
      left = left.slice(outlines.length);
    }
  }
  const rest =
    selection === null || cursor === null
      ? { matched: 0, isMore: false }
      : await countUpTo(store, { ...selection, cursor }, MAX_LOOKED_AT - looked);
  return { matched: listed + rest.matched, isMore: rest.isMore, planned, ...tally.show() };
}

type Outline = Awaited<ReturnType<typeof outlineReplay>>;

/** Outlines the first events, as many as one step may read. They are read in parallel, because each read is a round trip on PostgreSQL. */
async function outlineFirst(
  tx: Reader,
  environmentId: number,
  seqs: readonly number[],
  cache: ReplayCache,
): Promise<Outline[]> {
  const some = seqs.slice(0, OUTLINE_STEP);
  const costs = await tx.all<LookedAt>(
    `SELECT seq AS key, octet_length(payload) + coalesce((SELECT sum(octet_length(results)) FROM run WHERE event_seq = event.seq), 0) AS cost
     FROM event WHERE seq IN (SELECT CAST(value AS INTEGER) FROM json_each($seqs)) ORDER BY seq`,
    { seqs: JSON.stringify(some) },
  );
  const { floor } = reach(costs, OUTLINE_STEP);
  const within = some.filter((seq, at) => at === 0 || seq <= Number(floor ?? 0));
  return await Promise.all(within.map((seq) => outlineReplay(tx, { environmentId, seq }, cache)));
}

/** Counts outlines. */
class Tally {
  readonly #relays = new Map<string, number>();
  readonly #actions = new Map<string, BulkPlan["actions"][number]>();
  readonly #leftOut: Record<string, number> = {};
  #otherPerson = 0;

  add(outline: Outline): void {
    if ("left" in outline) {
      this.#leftOut[outline.left] = (this.#leftOut[outline.left] ?? 0) + 1;
      return;
    }
    this.#relays.set(outline.relay, (this.#relays.get(outline.relay) ?? 0) + 1);
    if (outline.will.some(([, will]) => will === "other_person")) this.#otherPerson += 1;
    for (const [type, will] of outline.will) {
      const key = `${type} ${will}`;
      this.#actions.set(key, { type, will, events: (this.#actions.get(key)?.events ?? 0) + 1 });
    }
  }

  show(): Pick<BulkPlan, "relays" | "actions" | "otherPerson" | "leftOut"> {
    const relays = [...this.#relays].map(([relay, events]) => ({ relay, events }));
    return {
      relays: relays.sort((a, b) => b.events - a.events),
      actions: [...this.#actions.values()].sort((a, b) => b.events - a.events),
      otherPerson: this.#otherPerson,
      leftOut: this.#leftOut,
    };
  }
}
