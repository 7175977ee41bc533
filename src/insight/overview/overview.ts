/** Shows an environment at a glance: the attention items, the last 24 hours, the relays in trouble, and what the owner must still set up. */
import { type Static, Type } from "typebox";
import { toIso, toIsoOrNull } from "../../base/clock.ts";
import { DAY_MS } from "../../base/limit.ts";
import { oneOf, orNull, textOrNull, time } from "../../base/schema.ts";
import type { EventTrigger } from "../../engine/event/event.ts";
import type { Environment } from "../../platform/account/environment.ts";
import type { LiveRelays } from "../../rules/relay/live-relay.ts";
import { findLastEventAt } from "../../rules/relay/relay-activity.ts";
import { describeNextTick } from "../../rules/relay/relay-view.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import { type AttentionItem, attentionItemView } from "./attention-item.ts";
import { orderAttention } from "./attention-order.ts";
import { countOnce } from "./count-cache.ts";
import { evaluateHealth, healthView, rankOf } from "./health.ts";
import { countDay, type Day, hourView, outcomeCounts } from "./last-day.ts";
import { listOpenItems, type OpenItemContext } from "./open-item.ts";

/** The most relays and upcoming ticks that are shown. */
const MAX_RELAYS = 12;
const MAX_TICKS = 5;

const relayState = oneOf(["active", "paused"]);
const relayOverview = Type.Object({
  name: Type.String(),
  state: relayState,
  /** The codes of the relay's attention items. */
  needs: Type.Array(Type.String()),
  health: healthView,
  last24h: outcomeCounts,
});

/** The steps to do before the first event arrives. */
const setupView = Type.Object({
  /** The name of the newest relay; null where there is none. */
  relay: textOrNull,
  /** True if the relay has a secret, or needs none. */
  secret: Type.Boolean(),
  called: Type.Boolean(),
  /** True if the environment has an API key. */
  key: Type.Boolean(),
});

export const overviewView = Type.Object({
  /** The attention items, the most urgent first. */
  needs: Type.Array(attentionItemView),
  /** True if there are more items than these. */
  more: Type.Boolean(),
  /** The last 24 hours, oldest first. The last one is not over. */
  hours: Type.Array(hourView),
  last24h: outcomeCounts,
  /** True if some events were estimated and not counted; otherwise absent. */
  approximate: Type.Optional(Type.Literal(true)),
  /** Rejected requests of the last 24 hours in the request log, by relay, the most first. */
  refused: Type.Object({
    calls: Type.Integer(),
    relays: Type.Array(
      Type.Object({ relay: Type.String(), calls: Type.Integer(), lastAt: time, cause: Type.String() }),
    ),
  }),
  ticks: Type.Array(Type.Object({ relay: Type.String(), at: time })),
  /** The number of all relays. */
  relayCount: Type.Integer(),
  /** The relays, the worst first, then the busiest; at most twelve. */
  relays: Type.Array(relayOverview),
  /** The setup steps; null once an event has arrived. */
  start: orNull(setupView),
});
export type OverviewView = Static<typeof overviewView>;

interface OverviewContext extends OpenItemContext {
  relays: Pick<LiveRelays, "current">;
}

export async function showOverview(store: Store, context: OverviewContext): Promise<OverviewView> {
  const { environment, clock } = context;
  const { id } = environment;
  const nowMs = clock.now();
  const rows = await store.read((tx) => tx.all<RelayRow>(RELAYS, id));
  await yieldToEventLoop();
  const { items: needs, more } = await listOpenItems(store, context);
  const hasEvents = await store.read((tx) => tx.get<object>(ANY_EVENT, id));
  const day = await countOnce({ store, clock }, `day ${id}`, () => countDay(store, id, nowMs));
  const refused = await store.read((tx) => countRefused(tx, id, nowMs - DAY_MS));
  const refusedCalls = new Map(refused.relays.map(({ relay, calls }) => [relay, calls]));
  return {
    needs: orderAttention(needs, day, refusedCalls),
    more,
    hours: day.hours,
    last24h: sum(day.hours),
    ...(day.approximate ? { approximate: true as const } : {}),
    refused,
    ticks: await nextTicks(context, nowMs),
    relayCount: rows.length,
    relays: await orderRelays(store, environment, rows, needs, day),
    start: hasEvents === null ? await store.read((tx) => findSetupState(tx, environment, rows)) : null,
  };
}

interface RelayRow {
  name: string;
  state: "active" | "paused";
  trigger: EventTrigger;
  secretKind: string;
  hasSecret: number;
  called: number;
  /** The receiver that it follows; null: none. */
  sourceName: string | null;
}

const RELAYS = `SELECT name, state, json_extract(definition, '$.trigger.kind') AS trigger, secret_kind AS secretKind, secret_set_at IS NOT NULL AS hasSecret,
    (accepted_at IS NOT NULL OR refused_at IS NOT NULL) AS called, source_name AS sourceName
  FROM relay WHERE environment_id = ?1 ORDER BY created_at DESC, name`;
const ANY_EVENT = `SELECT 1 FROM relay_name CROSS JOIN event INDEXED BY event_of_relay ON event.name_key = relay_name.key
  WHERE relay_name.environment_id = ?1 LIMIT 1`;
const ANY_KEY = "SELECT 1 FROM api_key WHERE environment_id = ?1 AND revoked_at IS NULL LIMIT 1";

async function findSetupState(
  tx: Reader,
  { id, processorSecretSetAt }: Environment,
  rows: readonly RelayRow[],
): Promise<OverviewView["start"]> {
  const call = await tx.get<object>("SELECT 1 FROM recent_request WHERE environment_id = ?1 LIMIT 1", id);
  const key = await tx.get<object>(ANY_KEY, id);
  // Each receiver needs a secret. One that the sender creates is missing until it is pasted.
  const isSet = ({ trigger, secretKind, hasSecret }: RelayRow) =>
    trigger !== "receiver" ||
    hasSecret === 1 ||
    (secretKind === "processor" && processorSecretSetAt !== null);
  return {
    relay: rows[0]?.name ?? null,
    secret: rows.some(isSet),
    called: call !== null || rows.some(({ called }) => called === 1),
    key: key !== null,
  };
}

function sum(hours: readonly OverviewView["last24h"][]): OverviewView["last24h"] {
  const all = { done: 0, waiting: 0, failed: 0, dead: 0 };
  for (const hour of hours) {
    all.done += hour.done;
    all.waiting += hour.waiting;
    all.failed += hour.failed;
    all.dead += hour.dead;
  }
  return all;
}

async function orderRelays(
  store: Store,
  { id, heldAt }: Environment,
  rows: readonly RelayRow[],
  needs: readonly AttentionItem[],
  day: Pick<Day, "relays">,
): Promise<OverviewView["relays"]> {
  const noEvents = { done: 0, waiting: 0, failed: 0, dead: 0 };
  const own = new Map<string, AttentionItem[]>();
  for (const need of needs)
    if (need.relay !== null) own.set(need.relay, [...(own.get(need.relay) ?? []), need]);
  const called = new Set(rows.filter((row) => row.called === 1).map(({ name }) => name));
  const evaluate = ({ name, state, trigger, sourceName }: RelayRow, lastEventAt: string | null) => {
    const last24h = day.relays.get(name) ?? noEvents;
    const facts = {
      name,
      state,
      trigger,
      lastEventAt,
      last24h,
      ...(sourceName === null ? {} : { follows: sourceName }),
      called: called.has(sourceName ?? name),
      heldAt: toIsoOrNull(heldAt),
    };
    const of = own.get(name) ?? [];
    return { name, state, needs: of.map(({ code }) => code), health: evaluateHealth(facts, of), last24h };
  };
  const weigh = (row: RelayRow): number[] => {
    const { health, last24h } = evaluate(row, "");
    return [-rankOf(health), last24h.dead + last24h.failed, last24h.waiting, last24h.done];
  };
  const worst = rows
    .map((row) => ({ row, weight: weigh(row) }))
    .sort(({ weight: one }, { weight: other }) => {
      const at = one.findIndex((value, index) => value !== other[index]);
      return at === -1 ? 0 : (other[at] ?? 0) - (one[at] ?? 0);
    })
    .slice(0, MAX_RELAYS);
  return await store.read(async (tx) => {
    const shown: OverviewView["relays"] = [];
    for (const { row } of worst)
      shown.push(evaluate(row, toIsoOrNull(await findLastEventAt(tx, id, row.name))));
    return shown;
  });
}

async function countRefused(
  tx: Reader,
  environmentId: number,
  sinceMs: number,
): Promise<OverviewView["refused"]> {
  const rows = await tx.all<{ relay: string; calls: number; lastMs: number; cause: string }>(
    `SELECT relay_name AS relay, sum(count) AS calls, max(at) AS lastMs,
       (SELECT cause FROM recent_request AS newest WHERE newest.environment_id = $environmentId AND newest.relay_name = recent_request.relay_name
          AND newest.outcome = 'refused' ORDER BY newest.at DESC LIMIT 1) AS cause FROM recent_request
     WHERE environment_id = $environmentId AND outcome = 'refused' AND at >= $sinceMs GROUP BY relay_name ORDER BY calls DESC`,
    { environmentId, sinceMs },
  );
  return {
    calls: rows.reduce((all, { calls }) => all + calls, 0),
    relays: rows.slice(0, MAX_RELAYS).map(({ relay, calls, lastMs, cause }) => ({
      relay,
      calls,
      lastAt: toIso(lastMs),
      cause,
    })),
  };
}

async function nextTicks(
  { environment, relays }: OverviewContext,
  nowMs: number,
): Promise<OverviewView["ticks"]> {
  const snapshot = await relays.current();
  const ticks = snapshot.relays.flatMap(({ environmentId, name, definition: { trigger }, waiting }) => {
    if (environmentId !== environment.id || trigger.kind !== "schedule" || waiting) return [];
    const { at } = describeNextTick(trigger, { state: "active", activeSince: 0 }, environment, nowMs);
    return at === null ? [] : [{ relay: name, at }];
  });
  return ticks.sort((a, b) => a.at.localeCompare(b.at)).slice(0, MAX_TICKS);
}
