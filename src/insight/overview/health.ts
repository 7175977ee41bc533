/**
 * How a relay is, in a word, with the reason and the way out: the one answer that its page, the list of relays, Home and the command line show.
 * It is judged from what needs somebody, so that a relay is never well here and in trouble there.
 */
import { type Static, Type } from "typebox";
import { toIsoOrNull } from "../../base/clock.ts";
import { oneOf, orNull, textOrNull, timeOrNull } from "../../base/schema.ts";
import type { EventTrigger } from "../../engine/event/event.ts";
import { type RelayItem, relayItem } from "../../rules/relay/relay-view.ts";
import type { Reader, Store } from "../../store/port.ts";
import { type AttentionContext, type AttentionItem, listAttention } from "./attention.ts";
import { causeView } from "./failure-cause.ts";
import { latestFailure } from "./latest-failure.ts";

/** The worst first. */
const HEALTH_STATES = [
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
type HealthState = (typeof HEALTH_STATES)[number];

export const healthView = Type.Object({
  state: oneOf(HEALTH_STATES),
  /** As it is shown: "Failing · 94 % dead". */
  word: Type.String(),
  /** Why, in a sentence. */
  message: Type.String(),
  /** The way out, in a sentence; null: nothing is wrong. */
  todo: textOrNull,
  since: timeOrNull,
  /** Of what needs somebody; null: nothing does. */
  code: textOrNull,
  newest: latestFailure,
  /** Of dead events that are looked into: whether what the newest one died of is still so. */
  cause: orNull(causeView),
});
export type HealthView = Static<typeof healthView>;

/** A relay of the list, with how it is. */
export const listedRelay = Type.Object({ ...relayItem.properties, health: healthView });
export type ListedRelayView = Static<typeof listedRelay>;

const STATE_OF: Readonly<Record<string, HealthState>> = {
  relay_refusing: "refusing",
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
  refusing: "Refusing",
  failing: "Failing",
  nobody: "Finds nobody",
  ignoring: "Ignoring",
  broken: "Does not fit",
  capped: "Over the cap",
  silent: "Silent",
  attention: "Needs you",
  held: "On hold",
  paused: "Paused",
  new: "No calls yet",
  ok: "OK",
};

/** What a relay's health is judged from, beside what needs somebody. */
interface RelayFacts extends Pick<RelayItem, "name" | "state" | "trigger" | "lastEventAt" | "last24h"> {
  /** Whether any call is known, right or wrong. */
  called: boolean;
  /** Since when its environment is on hold. */
  heldAt: string | null;
}

export function rankOf({ state }: Pick<HealthView, "state">): number {
  return HEALTH_STATES.indexOf(state);
}

export function evaluateHealth(facts: RelayFacts, needs: readonly AttentionItem[]): HealthView {
  const calm = untroubledHealth(facts);
  const states = [calm, ...needs.filter(({ relay }) => relay === facts.name).map(ofNeed(facts))];
  const worst = states.reduce((most, one) => (rankOf(one) < rankOf(most) ? one : most));
  return calm.state === "paused" && worst !== calm ? besidePause(worst, calm) : worst;
}

/** What is wrong with a relay that is paused: that it does nothing now would be looked for in the trouble alone. */
function besidePause(trouble: HealthView, pause: HealthView): HealthView {
  const message = `${pause.message} ${trouble.message}`;
  if (trouble.state === "paused") return { ...trouble, message };
  return { ...trouble, word: `${trouble.word}, paused`, message };
}

const ofNeed =
  (facts: RelayFacts) =>
  ({ code, message, todo, since, dead, newest }: AttentionItem): HealthView => {
    const state = STATE_OF[code] ?? "attention";
    const word = code === "relay_failed" ? formatFailing(facts, dead?.events ?? null) : WORDS[state];
    return { state, word, message, todo, since, code, newest, cause: dead?.cause ?? null };
  };

/** The share of the last day where some of it died; else that there are dead ones. */
function formatFailing({ last24h }: RelayFacts, dead: number | null): string {
  const all = last24h.done + last24h.waiting + last24h.failed + last24h.dead;
  if (last24h.dead > 0)
    return `Failing · ${Math.min(100, Math.max(1, Math.round((last24h.dead / all) * 100)))} % dead`;
  return dead === null ? "Failing" : `Failing · ${dead.toLocaleString("en")} dead`;
}

/** Of a relay that nothing is said against. */
function untroubledHealth({
  name,
  state,
  trigger,
  lastEventAt,
  last24h,
  called,
  heldAt,
}: RelayFacts): HealthView {
  const say = (to: HealthState, message: string, more: Partial<HealthView> = {}): HealthView => {
    return {
      state: to,
      word: WORDS[to],
      message,
      todo: null,
      since: null,
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
  if (lastEventAt === null) return say("new", FIRST[trigger](called), { word: NOTHING_YET[trigger](called) });
  const all = last24h.done + last24h.waiting + last24h.failed + last24h.dead;
  if (all === 0)
    return say(
      "ok",
      `Nothing is wrong. No event came in the last 24 hours; the last one came at ${lastEventAt}.`,
    );
  return say("ok", `Nothing is wrong. Its last event came at ${lastEventAt}.`);
}

const NOTHING_YET: Readonly<Record<EventTrigger, (called: boolean) => string>> = {
  receiver: (called) => (called ? "No events yet" : "No calls yet"),
  schedule: () => "No ticks yet",
  data_change: () => "No changes yet",
};
const FIRST: Readonly<Record<EventTrigger, (called: boolean) => string>> = {
  receiver: (called) =>
    called
      ? "It was called, and no call became an event yet."
      : "Nobody has called its receiver yet: give its URL and secret to the sender, or send a test event.",
  schedule: () => "Its first tick is still to come.",
  data_change: () => "No record that it watches for has changed yet.",
};

/** The items with how each is. `looksInto`: the sentence of dead events says why the newest one died. */
export async function addHealth<Item extends RelayItem>(
  store: Store,
  context: AttentionContext,
  items: readonly Item[],
  looksInto = false,
): Promise<(Item & { health: HealthView })[]> {
  const { environment } = context;
  // Whether a backup is missing is no relay's.
  const server = { ...context.server, backsUp: false };
  const { needs } = await listAttention(store, { ...context, server }, looksInto);
  const called = await store.read((tx) => listCalled(tx, environment.id));
  const heldAt = toIsoOrNull(environment.heldAt);
  return items.map((item) => ({
    ...item,
    health: evaluateHealth({ ...item, called: called.has(item.name), heldAt }, needs),
  }));
}

/** Names of relays that somebody called, as far as that is remembered. */
async function listCalled(tx: Reader, environmentId: number): Promise<Set<string>> {
  const rows = await tx.all<{ name: string }>(CALLED, environmentId);
  return new Set(rows.map(({ name }) => name));
}

const CALLED = `SELECT name FROM relay WHERE environment_id = ?1 AND (accepted_at IS NOT NULL OR refused_at IS NOT NULL)
  UNION SELECT relay_name FROM recent_call WHERE environment_id = ?1`;
