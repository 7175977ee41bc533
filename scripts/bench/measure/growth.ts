/** Measures ingestion, memory and the list of events on a store that years of use have filled, next to an empty one. */
import { loadAlternately } from "../alternate-load.ts";
import { type Listed, listEvents } from "../event-list.ts";
import { compareAmounts, compareRates, type Figure, median } from "../figure.ts";
import { FILLED_RELAYS, fillStore } from "../fill-store.ts";
import type { Measure } from "../measure.ts";
import { scratch } from "../process.ts";

const MOST_RESIDENT_MIB = 200;
const MOST_LIST_MS = 20;

export const growth: Measure = {
  name: "growth",
  what: "ingestion, memory and event filters on a store filled with --rows events",
  pinned: true,
  async measure(run) {
    const { path } = await fillStore(run);
    const lists = await compareLists(path);
    using folder = scratch(run.stores);
    const [empty, filled] = await loadAlternately(
      { path: folder.path, relays: FILLED_RELAYS },
      { path, relays: FILLED_RELAYS },
      run,
    );
    const limit = `a store that was empty at first and has ${empty.stored} events at the end`;
    return [
      compareRates(`webhooks stored, ${run.rows} events there`, filled.rounds, limit, empty.rounds, 0.9),
      compareAmounts(
        "resident memory during these, most",
        "MiB",
        filled.residentMiB,
        { name: "the store that was empty", amount: empty.residentMiB },
        { atMost: MOST_RESIDENT_MIB },
      ),
      ...lists,
    ];
  },
};

async function compareLists(path: string): Promise<Figure[]> {
  using folder = scratch();
  const [empty, filled] = [await listEvents(folder.path), await listEvents(path)];
  const all = (of: readonly Listed[]): number[] => of.flatMap(({ ms }) => ms);
  const worst = (which: string, of: readonly Listed[]): Figure[] => {
    const [first] = of.map(({ name, ms }) => ({ name, ms: Math.max(...ms) })).toSorted((a, b) => b.ms - a.ms);
    if (first === undefined) return [];
    const what = `a page of event filters that ${which}, slowest (${first.name})`;
    const limit = { name: "empty store, slowest", amount: Math.max(...all(empty)) };
    return [compareAmounts(what, "ms", first.ms, limit, { atMost: MOST_LIST_MS })];
  };
  const emptyPage = { name: "empty store", amount: median(all(empty)) };
  return [
    compareAmounts("a page of event filters, p50", "ms", median(all(filled)), emptyPage),
    ...worst(
      "find events",
      filled.filter(({ items }) => items > 0),
    ),
    ...worst(
      "find none",
      filled.filter(({ items }) => items === 0),
    ),
  ];
}
