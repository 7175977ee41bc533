/**
 * Evaluates the health of a relay: a word, the reason and what to do. Its page, the list of relays, Home and the command line all show this one
 * answer, which follows from the attention items.
 */
import { type Static, Type } from "typebox";
import { toIsoOrNull } from "../../base/clock.ts";
import { oneOf, orNull, quotingText, textOrNull, timeOrNull } from "../../base/schema.ts";
import { formatCount } from "../../base/text.ts";
import type { EventTrigger } from "../../engine/event/event.ts";
import { recentChangeView } from "../../rules/relay/recent-change.ts";
import { type RelayItem, relayItem } from "../../rules/relay/relay-view.ts";
import type { Reader, Store } from "../../store/port.ts";
import { type AttentionContext, HELD, listAttention } from "./attention.ts";
import type { AttentionItem } from "./attention-item.ts";
import { causeView } from "./failure-cause.ts";
import { latestFailure } from "./latest-failure.ts";

/** The health states, from the worst to the best. */
export const HEALTH_STATES = [
  "refusing",
  "failing",
  "nobody",
  "ignoring",
  "broken",
  "capped",
  "silent",
  "attention",
  "held",
  "paused",
  "new",
  "ok",
] as const;
export type HealthState = (typeof HEALTH_STATES)[number];

export const healthView = Type.Object({
  state: oneOf(HEALTH_STATES),
  /** The text that the dashboard shows, such as "Failing · 94 % dead". */
  word: Type.String(),
  /** The reason in a sentence. */
  message: quotingText,
  /** The next step, in a sentence; null where nothing is wrong. */
  todo: textOrNull,
  /** The next step that Relay takes by itself; null where none is known. */
  next: textOrNull,
  since: timeOrNull,
  /** The change shortly before the problem began; null where there is none or where it was not looked for. */
  change: orNull(recentChangeView),
  /** The code of the attention item; null where there is none. */
  code: textOrNull,
  newest: latestFailure,
  /** The state of the cause, where that was evaluated: of the newest dead event, or after a change that is newer than the last failure. */
  cause: orNull(causeView),
});
export type HealthView = Static<typeof healthView>;

/** A relay of the list, with its health. */
export const listedRelay = Type.Object({ ...relayItem.properties, health: healthView });
export type ListedRelayView = Static<typeof listedRelay>;

const STATE_OF: Readonly<Record<string, HealthState>> = {
  relay_refusing: "refusing",
  never_verified: "refusing",
  secret_missing: "refusing",
  relay_unsigned_event: "refusing",
  relay_key_as_secret: "refusing",
  relay_failed: "failing",
  relay_failing: "failing",
  relay_nobody: "nobody",
  relay_ignoring: "ignoring",
  relay_misfit: "broken",
  definition_broken: "broken",
  relay_capped: "capped",
  relay_silent: "silent",
  relay_uncalled: "new",
  events_expiring: "paused",
};

const WORDS: Readonly<Record<HealthState, string>> = {
  refusing: "Rejecting requests",
  failing: "Failing",
  nobody: "Finds no person",
  ignoring: "Ignoring requests",
  broken: "Invalid",
  capped: "Over its limit",
  silent: "Silent",
  attention: "Needs attention",
  held: "On hold",
  paused: "Paused",
  new: "No requests yet",
  ok: "OK",
};

/** The facts that the health is evaluated from, in addition to the attention items. */
interface RelayFacts
  extends Pick<RelayItem, "name" | "state" | "trigger" | "lastEventAt" | "last24h" | "follows"> {
  /** True if any request is known, verified or not. The requests of a follower are its source's. */
  called: boolean;
  /** The time when the hold of its environment began. */
  heldAt: string | null;
}

export function rankOf({ state }: Pick<HealthView, "state">): number {
  return HEALTH_STATES.indexOf(state);
}

export function evaluateHealth(facts: RelayFacts, items: readonly AttentionItem[]): HealthView {
  const calm = untroubledHealth(facts);
  const states = [calm, ...items.filter(({ relay }) => relay === facts.name).map(healthOfItem(facts))];
  const worst = states.reduce((most, one) => (rankOf(one) < rankOf(most) ? one : most));
  return calm.state === "paused" && worst !== calm ? addPause(worst, calm) : worst;
}

/** Adds the pause to a trouble of a paused relay. Otherwise an owner would look for the reason only in the trouble. */
function addPause(trouble: HealthView, pause: HealthView): HealthView {
  const message = `${pause.message} ${trouble.message}`;
  if (trouble.state === "paused") return { ...trouble, message };
  return { ...trouble, word: `${trouble.word}, paused`, message };
}

const healthOfItem =
  (facts: RelayFacts) =>
  ({ code, message, todo, next, since, change, doubt, dead, newest }: AttentionItem): HealthView => {
    const state = STATE_OF[code] ?? "attention";
    const word = code === "relay_failed" ? formatFailing(facts, dead?.events ?? null) : WORDS[state];
    return { state, word, message, todo, next, since, change, code, newest, cause: dead?.cause ?? doubt };
  };

/** Formats the share of events that died in the last day, or else the number of dead events. */
function formatFailing({ last24h }: RelayFacts, dead: number | null): string {
  const all = last24h.done + last24h.waiting + last24h.failed + last24h.dead;
  if (last24h.dead > 0)
    return `Failing · ${Math.min(100, Math.max(1, Math.round((last24h.dead / all) * 100)))} % dead`;
  return dead === null ? "Failing" : `Failing · ${formatCount(dead)} dead`;
}

/** Returns the health of a relay that has no attention item: on hold, paused, new or OK. */
function untroubledHealth({
  name,
  state,
  trigger,
  lastEventAt,
  last24h,
  follows,
  called,
  heldAt,
}: RelayFacts): HealthView {
  const say = (to: HealthState, message: string, more: Partial<HealthView> = {}): HealthView => {
    return {
      state: to,
      word: WORDS[to],
      message,
      todo: null,
      next: null,
      since: null,
      change: null,
      code: null,
      newest: null,
      cause: null,
      ...more,
    };
  };
  const waits =
    trigger === "schedule" ? "its ticks are not recorded" : "what arrives is recorded and waits in order";
  if (heldAt !== null)
    return say("held", `The environment is on hold, so ${waits}.`, {
      todo: "Release the hold with relay settings set held off; what waits runs then.",
      since: heldAt,
    });
  if (state === "paused")
    return say("paused", `The relay is paused: ${waits}.`, {
      todo: `Resume it with relay relays resume ${name}.`,
    });
  if (lastEventAt === null)
    return say("new", FIRST[trigger](called, follows), { word: NOTHING_YET[trigger](called) });
  const all = last24h.done + last24h.waiting + last24h.failed + last24h.dead;
  if (all === 0)
    return say(
      "ok",
      `Nothing is wrong. No event arrived in the last 24 hours. The last one arrived at ${lastEventAt}.`,
    );
  return say("ok", `Nothing is wrong. The last event arrived at ${lastEventAt}.`);
}

const NOTHING_YET: Readonly<Record<EventTrigger, (called: boolean) => string>> = {
  receiver: (called) => (called ? "No events yet" : "No requests yet"),
  schedule: () => "No ticks yet",
  data_change: () => "No changes yet",
};
const FIRST: Readonly<Record<EventTrigger, (called: boolean, follows?: string) => string>> = {
  receiver: (called, follows) =>
    called
      ? "Requests arrived, but none became an event yet."
      : follows === undefined
        ? "No request has arrived yet. Register the receiver URL at the sender."
        : `No request has arrived yet. The relay follows ${follows}: register the URL of ${follows} at the sender.`,
  schedule: () => "Its first tick is not due yet.",
  data_change: () => "No record that it watches for has changed yet.",
};

/** Adds the health to each relay. With `describes`, the health also says why events died and what changed shortly before, which is slow. */
export async function addHealth<Item extends RelayItem>(
  store: Store,
  context: AttentionContext,
  relays: readonly Item[],
  describes = false,
): Promise<(Item & { health: HealthView })[]> {
  const { environment } = context;
  const { items } = await listAttention(store, context, describes);
  const called = await store.read((tx) => listCalled(tx, environment.id));
  const heldAt = toIsoOrNull(environment.heldAt);
  const hold = describes ? items.find(({ code }) => code === HELD) : undefined;
  return relays.map((relay) => {
    const health = evaluateHealth(
      { ...relay, called: called.has(relay.follows ?? relay.name), heldAt },
      items,
    );
    if (health.state !== "held" || hold === undefined) return { ...relay, health };
    return { ...relay, health: { ...health, message: `${health.message} ${hold.message}` } };
  });
}

/** Lists the names of relays that received a request, as far as the database remembers it. */
async function listCalled(tx: Reader, environmentId: number): Promise<Set<string>> {
  const rows = await tx.all<{ name: string }>(CALLED, environmentId);
  return new Set(rows.map(({ name }) => name));
}

const CALLED = `SELECT name FROM relay WHERE environment_id = ?1 AND (accepted_at IS NOT NULL OR refused_at IS NOT NULL)
  UNION SELECT relay_name FROM recent_request WHERE environment_id = ?1`;
