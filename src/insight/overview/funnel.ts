/**
 * Shows where a relay's events of the last 24 hours went, with a box for each step. A box says how many arrived, how many stopped and why, and
 * where the dashboard lists them. Each query reads a bounded number of rows. The request log keeps only the environment's last thousand requests,
 * so counts of older ones are lower bounds.
 */
import { type Static, Type } from "typebox";
import { type Clock, toIso, toIsoOrNull } from "../../base/clock.ts";
import { DAY_MS } from "../../base/limit.ts";
import { oneOf, orNull, quotingText, textOrNull, time } from "../../base/schema.ts";
import { formatCount } from "../../base/text.ts";
import { findNameKey } from "../../engine/event/list.ts";
import { sumPassed } from "../../engine/event/passed-count.ts";
import { findKnownSince } from "../../engine/receiver/request.ts";
import { bindAction, findAction } from "../../rules/action/registry.ts";
import type { RelayRow } from "../../rules/relay/relay.ts";
import { canHavePerson } from "../../rules/trigger/registry.ts";
import type { Reader, Store } from "../../store/port.ts";
import { firstSeqAbout } from "../../store/time-index.ts";
import { countOnce } from "./count-cache.ts";
import { BEFORE_ACTIONS, countEvents, type EventEnds, type StopCount, type Warned } from "./funnel-event.ts";

const stopView = Type.Object({
  /** The code of a rejection or a failure, `when` or `duplicate`. */
  code: Type.String(),
  count: Type.Integer(),
  /** The reason why the newest of them stopped. */
  message: quotingText,
  /** The place that lists these: a page of the dashboard or a list of the API, and its query. */
  see: orNull(
    Type.Object({
      room: oneOf(["calls", "events"]),
      query: Type.Record(Type.String(), Type.String()),
    }),
  ),
});
type StopView = Static<typeof stopView>;

const boxView = Type.Object({
  step: oneOf(["calls", "verified", "when", "dedupe", "event", "person", "action"]),
  title: Type.String(),
  /** The action's index; null for other steps. */
  action: orNull(Type.Integer()),
  came: Type.Integer(),
  passed: Type.Integer(),
  /** Events that wait at this step: for their turn, a resume, a release, or a retry. */
  waits: Type.Integer(),
  /** The most common failure of the events that wait for a retry; null where none waits. */
  waitsFor: orNull(stopView),
  stops: Type.Array(stopView),
});
type BoxView = Static<typeof boxView>;

export const funnelView = Type.Object({
  relay: Type.String(),
  since: time,
  boxes: Type.Array(boxView),
  /** Events whose every action is done. */
  done: Type.Integer(),
  /** True if the step at which events stopped was read only from the newest ones, and scaled to all. */
  approximate: Type.Boolean(),
  /** The time from which the request log has entries, where it does not reach back 24 hours. The counts are lower bounds then. */
  callsSince: textOrNull,
  /** The result in a sentence. */
  message: quotingText,
});
export type FunnelView = Static<typeof funnelView>;

interface FunnelContext {
  environmentId: number;
  clock: Clock;
}

export async function showFunnel(
  store: Store,
  { environmentId, clock }: FunnelContext,
  relay: RelayRow,
): Promise<FunnelView> {
  const sinceMs = clock.now() - DAY_MS;
  const count = async () => {
    const from = await store.read((tx) => firstSeqAbout(tx, "event", sinceMs));
    const nameKey = await store.read((tx) => findNameKey(tx, environmentId, relay.name));
    const types = relay.definition.actions.map(({ type }) => type);
    return await countEvents(store, { environmentId, nameKey, relayId: relay.id, from, types });
  };
  const events = await countOnce({ store, clock }, `funnel ${relay.id} ${relay.version}`, count);
  const calls = await store.read((tx) => readCalls(tx, environmentId, relay, sinceMs));
  const isReceiver = relay.definition.trigger.kind === "receiver";
  const before = isReceiver ? boxesOfCalls(relay, calls, events.all) : [boxOfEvents(relay, events.all)];
  const boxes = [...before, ...boxesOfEvents(relay, events, toIso(sinceMs))];
  return {
    relay: relay.name,
    since: toIso(sinceMs),
    boxes,
    done: events.done,
    approximate: events.approximate,
    callsSince: isReceiver ? calls.keptSince : null,
    message: formatSummary(relay, boxes, events, sinceMs),
  };
}

interface CallStop {
  outcome: "refused" | "ignored" | "duplicate";
  code: string;
  count: number;
  cause: string;
  /** True if the request log has some of them. */
  isLogged: boolean;
}

/**
 * Counts the requests that became no event by what stopped them, and finds since when the log has entries. The requests of a follower are its
 * source's. The log has those that no relay took. If relays follow a receiver, those that another relay took are counted too.
 */
async function readCalls(tx: Reader, environmentId: number, { name, sourceName }: RelayRow, sinceMs: number) {
  const logged =
    sourceName === null
      ? await tx.all<Omit<CallStop, "isLogged">>(CALLS, { environmentId, relay: name, sinceMs })
      : await readFollowerCalls(tx, { environmentId, source: sourceName, follower: name, sinceMs });
  const stops: CallStop[] = logged.map((one) => ({ ...one, isLogged: true }));
  const passed = await sumPassed(tx, { environmentId, relay: name, sinceMs });
  for (const { outcome, code, cause } of PASSED) {
    const known = stops.find((one) => one.outcome === outcome && one.code === code);
    if (known !== undefined) known.count += passed[outcome];
    else if (passed[outcome] > 0)
      stops.push({ outcome, code, count: passed[outcome], cause, isLogged: false });
  }
  stops.sort((one, other) => other.count - one.count);
  return { stops, keptSince: toIsoOrNull(await findKnownSince(tx, environmentId, sinceMs)) };
}

async function readFollowerCalls(
  tx: Reader,
  asked: { environmentId: number; source: string; follower: string; sinceMs: number },
): Promise<Omit<CallStop, "isLogged">[]> {
  const rows = await tx.all<Pick<CallStop, "outcome" | "count" | "cause">>(FOLLOWER_CALLS, asked);
  const stops = new Map<string, Omit<CallStop, "isLogged">>();
  for (const { outcome, count, cause } of rows) {
    const earlier = stops.get(outcome)?.count ?? 0;
    const code = outcome === "ignored" ? "when" : "duplicate";
    stops.set(outcome, { outcome, code, count: earlier + count, cause });
  }
  return [...stops.values()];
}

/** The requests that another relay of the receiver took. */
const PASSED = [
  {
    outcome: "ignored",
    code: "when",
    cause: "its when does not match, and another relay of the same receiver takes these requests",
  },
  {
    outcome: "duplicate",
    code: "duplicate",
    cause: "it received these events before, and another relay did not",
  },
] as const;

/** The last row of an outcome has the newest cause. */
const FOLLOWER_CALLS = `SELECT follower.value ->> '$.outcome' AS outcome, recent_request.count AS count, follower.value ->> '$.cause' AS cause
  FROM recent_request, json_each(recent_request.followers) AS follower
  WHERE environment_id = $environmentId AND relay_name = $source AND at >= $sinceMs AND followers IS NOT NULL
    AND follower.value ->> '$.relay' = $follower ORDER BY at`;

/** The cause is the newest request's. */
const CALLS = `SELECT outcome, code, sum(count) AS count, max(at) AS at, (
    SELECT cause FROM recent_request AS newest WHERE environment_id = $environmentId AND relay_name = $relay AND at >= $sinceMs
      AND newest.outcome = recent_request.outcome AND newest.code = recent_request.code ORDER BY at DESC LIMIT 1) AS cause
  FROM recent_request
  WHERE environment_id = $environmentId AND relay_name = $relay AND at >= $sinceMs AND outcome <> 'answered' GROUP BY outcome, code ORDER BY count DESC`;

function boxesOfCalls(relay: RelayRow, { stops }: { stops: readonly CallStop[] }, events: number): BoxView[] {
  const of = (outcome: CallStop["outcome"]): StopView[] =>
    stops
      .filter((one) => one.outcome === outcome)
      .map(({ code, count, cause, isLogged }) => ({
        code,
        count,
        message: cause,
        see: isLogged ? { room: "calls", query: { relay: relay.name, outcome } } : null,
      }));
  const boxes: BoxView[] = [];
  let arrived = events + stops.reduce((sum, { count }) => sum + count, 0);
  const add = (step: BoxView["step"], title: string, stopped: StopView[]): void => {
    const passed = arrived - sumOf(stopped);
    boxes.push({
      step,
      title,
      action: null,
      came: arrived,
      passed,
      waits: 0,
      waitsFor: null,
      stops: stopped,
    });
    arrived = passed;
  };
  if (relay.sourceName === null) {
    add("calls", "Requests", []);
    add("verified", "Verified", of("refused"));
  } else add("verified", `Verified at ${relay.sourceName}`, []);
  add("when", "Matches when", of("ignored"));
  add("dedupe", "Not a duplicate", of("duplicate"));
  return boxes;
}

/** A schedule or a record change has only this box before its events run. */
function boxOfEvents({ definition }: RelayRow, all: number): BoxView {
  const title = definition.trigger.kind === "schedule" ? "Ticks" : "Changes that match";
  return { step: "event", title, action: null, came: all, passed: all, waits: 0, waitsFor: null, stops: [] };
}

function boxesOfEvents(relay: RelayRow, events: EventEnds, since: string): BoxView[] {
  const boxes: BoxView[] = [];
  let arrived = events.all;
  const add = (step: BoxView["step"], title: string, action: number | null, at: number, waits: number) => {
    const stops = events.stops.filter((one) => one.at === at).map((one) => seeEvents(relay.name, since, one));
    const retries = events.retries.get(at) ?? null;
    const waiting = waits + (retries?.all ?? 0);
    const waitsFor = retries === null ? null : seeEvents(relay.name, since, retries.commonest, "queued");
    const passed = Math.max(0, arrived - sumOf(stops) - waiting);
    boxes.push({ step, title, action, came: arrived, passed, waits: waiting, waitsFor, stops });
    arrived = passed;
  };
  add(
    "person",
    canHavePerson(relay.definition.trigger) ? "Person found" : "Started",
    null,
    BEFORE_ACTIONS,
    events.waiting,
  );
  for (const [at, action] of relay.definition.actions.entries())
    add("action", formatAction(action), at, at, 0);
  return boxes;
}

/** Formats an action, as in "Write a record: orders". */
function formatAction(action: { type: string }): string {
  const title = findAction(action.type)?.title ?? action.type;
  const target = bindAction(action)?.target ?? "";
  return target === "" || title.toLowerCase().includes(target) ? title : `${title}: ${target}`;
}

function seeEvents(
  relay: string,
  since: string,
  { code, count, message, reason, state: ended }: StopCount,
  state: StopCount["state"] | "queued" = ended,
): StopView {
  return {
    code,
    count,
    message,
    see: { room: "events", query: { relay, state, since, ...(reason === null ? {} : { reason }) } },
  };
}

function sumOf(stops: readonly { count: number }[]): number {
  return stops.reduce((sum, { count }) => sum + count, 0);
}

const formatNoun = (count: number, noun: string): string =>
  `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;

/** Formats the result: how many arrived and ended, and what stopped most of them. */
function formatSummary(
  relay: RelayRow,
  boxes: readonly BoxView[],
  { done, warned }: EventEnds,
  sinceMs: number,
): string {
  const { trigger } = relay.definition;
  const noun = { receiver: "request", schedule: "tick", data_change: "change" }[trigger.kind];
  const arrived = boxes[0]?.came ?? 0;
  if (arrived === 0) return formatNothing(relay, sinceMs);
  const [worst] = boxes
    .flatMap(({ title, stops }) => stops.map((stop) => ({ title, ...stop })))
    .toSorted((one, other) => other.count - one.count);
  const waits = boxes.reduce((sum, box) => sum + box.waits, 0);
  const ended =
    done === arrived
      ? arrived === 1
        ? "It was done"
        : "All were done"
      : `${formatNoun(done, "event")} done`;
  const waiting = waits === 0 ? "" : `, ${formatCount(waits)} waiting`;
  const began = `${formatNoun(arrived, noun)} arrived in the last 24 hours. ${ended}${waiting}.${formatWarned(warned)}`;
  if (worst === undefined) return began;
  const why = /[.!?]$/.test(worst.message) ? worst.message : `${worst.message}.`;
  return `${began} Most of what stopped, ${formatCount(worst.count)}, stopped at “${worst.title}” with ${worst.code}: ${why}`;
}

/** Formats the warnings. A map that finds no value leaves it empty and warns, and the event does not fail. */
function formatWarned({ events, of, message }: Warned): string {
  if (message === null) return "";
  const why = /[.!?]$/.test(message) ? message : `${message}.`;
  if (of === 1) return ` It carries a warning: ${why}`;
  const which =
    events === of
      ? `Each of the newest ${of} carries`
      : `${events} of the newest ${of} ${events === 1 ? "carries" : "carry"}`;
  return ` ${which} a warning${events === 1 ? "" : ", the last one"}: ${why}`;
}

/** Formats why nothing arrived. A relay that is younger than a day names its creation, because a day without requests would look like a fault. */
function formatNothing(
  { definition: { trigger }, state, sourceName, createdAt }: RelayRow,
  sinceMs: number,
): string {
  const isNew = createdAt > sinceMs;
  const when = isNew ? `since the relay was created at ${toIso(createdAt)}` : "in the last 24 hours";
  switch (trigger.kind) {
    case "receiver":
      if (sourceName !== null)
        return `No request for this relay arrived ${when}. It follows ${sourceName}: see relay relays funnel ${sourceName}.`;
      return `No request arrived ${when}. ${isNew ? "Register its receiver URL at the sender." : "Ask the sender to which URL it sends."} See requests to unknown names with relay requests list.`;
    case "schedule":
      return state === "paused"
        ? `No tick was recorded ${when}: the relay is paused, and its ticks are not recorded until it is resumed.`
        : `No tick was recorded ${when}: none was due outside of a pause or a hold.`;
    case "data_change":
      return `No change that the relay watches for came ${when}. What your app, the dashboard or a receipt writes counts; what a relay writes starts no relay.`;
  }
}
