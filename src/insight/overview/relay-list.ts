/**
 * Lists an environment's relays in the chosen order, with a filter by state and text. Only the order `newest` without a filter reads one page. The
 * others compare every relay, so they read all of them in steps, each with a fixed number of statements.
 */
import { makePage, type Page, type PageRequest, readCursor } from "../../base/page.ts";
import { listRelays, type RelayItem, type ViewContext } from "../../rules/relay/relay-view.ts";
import { readPage, yieldToEventLoop } from "../../store/index-scan.ts";
import type { Store } from "../../store/port.ts";
import type { AttentionContext } from "./attention.ts";
import { addHealth, type HealthState, type ListedRelayView, rankOf } from "./health.ts";

/** `trouble`: the worst health first, then the most events of the last 24 hours. `traffic`: the most of those events first. */
export const RELAY_SORTS = ["newest", "trouble", "traffic", "name"] as const;
type RelaySort = (typeof RELAY_SORTS)[number];

/** Relays that one step reads. */
const STEP = 100;
/** More than any count, so that the difference sorts the largest count first as text. */
const ABOVE_COUNTS = 10_000_000;

interface ListContext extends AttentionContext, Pick<ViewContext, "baseUrl" | "sealer"> {
  environment: ViewContext["environment"];
}

interface RelayFilter {
  sort: RelaySort;
  /** `paused` also selects paused relays whose health is worse. */
  state?: HealthState | undefined;
  /** A part of the name or of the trigger in words, in any case. */
  search?: string | undefined;
}

export async function listRelaysInOrder(
  store: Store,
  context: ListContext,
  { sort, state, search = "" }: RelayFilter,
  request: PageRequest,
): Promise<Page<ListedRelayView>> {
  const view = { ...context, nowMs: context.clock.now() };
  if (sort === "newest" && state === undefined && search === "") {
    const { items, next } = await readPage(store, request, (tx, part) => listRelays(tx, view, part));
    return { items: await addHealth(store, context, items), next };
  }
  const first = sort === "newest" ? request.after : null;
  const { relays, keys } = await readAll(store, view, first);
  const all = await addHealth(store, context, relays);
  const wanted = search.toLowerCase();
  const matching = all
    .filter((relay) => state === undefined || hasState(relay, state))
    .filter(({ name, triggerInWords }) => `${name} ${triggerInWords}`.toLowerCase().includes(wanted));
  const keyOf = (relay: ListedRelayView): string =>
    sort === "newest" ? (keys.get(relay.name) ?? "") : makeSortKey(sort, relay);
  let rows = matching.map((relay) => ({ relay, key: keyOf(relay) }));
  if (sort !== "newest")
    rows = rows
      .filter(({ key }) => request.after === null || key > request.after)
      .sort((one, other) => (one.key < other.key ? -1 : 1));
  return makePage(
    rows,
    request,
    ({ key }) => key,
    ({ relay }) => relay,
  );
}

/** Reads all relays after the key `first`, newest first, with the key of each by its name. */
async function readAll(
  store: Store,
  view: ViewContext,
  first: string | null,
): Promise<{ relays: RelayItem[]; keys: ReadonlyMap<string, string> }> {
  const relays: RelayItem[] = [];
  const keys = new Map<string, string>();
  let after = first;
  do {
    const part: PageRequest = { limit: STEP, after };
    const page = await store.read((tx) => listRelays(tx, view, part));
    relays.push(...page.items);
    for (const [name, key] of page.keys) keys.set(name, key);
    after = page.next === null ? null : readCursor(page.next);
    await yieldToEventLoop();
  } while (after !== null);
  return { relays, keys };
}

function hasState({ health, state }: ListedRelayView, wanted: HealthState): boolean {
  return health.state === wanted || (wanted === "paused" && state === "paused");
}

/**
 * Returns a text by which relays sort. It is also the cursor, so a page begins after the last relay even if relays came or went. By `trouble` and
 * `traffic`, a relay can move between pages, because its health and its events change.
 */
function makeSortKey(sort: Exclude<RelaySort, "newest">, { name, health, last24h }: ListedRelayView): string {
  const events = last24h.done + last24h.failed + last24h.dead + last24h.waiting;
  const traffic = pad(ABOVE_COUNTS - events);
  if (sort === "name") return name;
  return sort === "traffic" ? `${traffic} ${name}` : `${pad(rankOf(health))} ${traffic} ${name}`;
}

function pad(value: number): string {
  return String(value).padStart(8, "0");
}
