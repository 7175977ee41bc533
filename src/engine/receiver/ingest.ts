/**
 * Decides the result of a verified request, and answers: a handshake, an event, a duplicate of one, or nothing where `when` ignores it. It maps the
 * payload and chooses the deduplication key. event-storage.ts stores the event. Requests that create no event are recorded for the owner, and never
 * delay one that creates an event.
 */

import type { Clock } from "../../base/clock.ts";
import {
  isJsonObject,
  type Json,
  type JsonObject,
  parseJson,
  writeCanonicalJson,
  writeJson,
} from "../../base/json.ts";
import { CAP_WINDOW_MS, type RaisableLimits } from "../../base/limit.ts";
import { drawPlaces } from "../../base/limit-window.ts";
import { Limiter, type Places } from "../../base/limiter.ts";
import { Refusal } from "../../base/refusal.ts";
import { type LiveHandshake, readEventId } from "../../rules/relay/live-receiver.ts";
import type { LiveRelay, ReceiverRelay } from "../../rules/relay/live-relay.ts";
import type { ReceivedRequest, Verified } from "../../rules/verify/contract.ts";
import { answerHandshake, type HandshakeAnswer, type NamedHandshake } from "../../rules/verify/handshake.ts";
import type { Store } from "../../store/port.ts";
import { type EventDraft, keyOfBody, keyOfEventId } from "../event/insert.ts";
import { findEventView } from "../event/view.ts";
import type { Health } from "../health/health.ts";
import { type EventRunner, EventStorage, type ReceivedEvent, type StoredEvent } from "./event-storage.ts";
import {
  makeEventPayload,
  type ReadableBody,
  type Reading,
  readRequest,
  requireReadable,
  textOf,
} from "./reading.ts";
import { rejectEventless, rejectHandshake, rejectReusedSignature } from "./rejection.ts";
import { type FollowerOutcome, formatDuplicate, formatMismatch } from "./request.ts";
import type { RequestLog } from "./request-log.ts";
import { DurableUses, type EarlierUse, type SignatureUse, signatureUse } from "./signature-memory.ts";

/** `events`: one of each relay that took the request, where other relays follow the receiver. */
export type ReceiverAnswer =
  | HandshakeAnswer
  | { received: true; eventId: string; events?: readonly RelayEvent[] }
  | { received: true; duplicate: true; eventId: string | null; events?: readonly RelayEvent[] }
  | { received: true; ignored: "when" };

interface RelayEvent {
  relay: string;
  eventId: string;
}

/** A request and the relay whose secret verified it. */
export interface VerifiedRequest {
  relay: ReceiverRelay;
  received: ReceivedRequest;
  verdict: Verified;
  /** True if Relay made the request. It does not count for the sender's health. */
  isTest: boolean;
}

/** Receives each verified request that became an event, once for each event. Times are wall times. */
export type TraceRequest = (request: {
  relay: LiveRelay;
  eventId: string;
  startedAtMs: number;
  endedAtMs: number;
}) => void;

interface IngestionDeps {
  store: Store;
  runner: EventRunner;
  clock: Clock;
  limits: Pick<RaisableLimits, "verifiedEventsPerMinute" | "eventlessCallsPerMinute">;
  places: Places | null;
  requestLog: RequestLog;
  health: Health;
  /** Counts the request as an unverified one of the address. Returns the refusal for the caller. */
  rejectUnverified(source: string, refusal: Refusal): Promise<Refusal>;
  /** Absent: traces are off. */
  traceRequest?: TraceRequest;
}

export class Ingestion {
  readonly #deps: IngestionDeps;
  readonly #events: EventStorage;
  /** Caps verified requests without an event, by relay. */
  readonly #eventless: Limiter;
  readonly #uses: DurableUses;

  constructor(deps: IngestionDeps) {
    this.#deps = deps;
    this.#uses = new DurableUses(deps.store);
    this.#events = new EventStorage(deps);
    this.#eventless = new Limiter(deps.clock, deps.limits.eventlessCallsPerMinute, CAP_WINDOW_MS, {
      kind: "eventless",
      places: deps.places,
      // A duplicate is answered without a transaction, so also while another one holds the writer's lock.
      drawing: "blocks above",
    });
  }

  /** Answers after the event rows are durable; throws Refusal where there is none. `followers` follow the relay that verified the request. */
  async ingest(
    verified: VerifiedRequest,
    followers: readonly ReceiverRelay[],
    source: () => string,
  ): Promise<ReceiverAnswer> {
    const { relay, received, verdict, isTest } = verified;
    const { health } = this.#deps;
    const { receiver } = relay;
    const { body } = received;
    if (receiver.handshake !== null) {
      const answer = await this.#shakeHands(relay, receiver.handshake, received, verdict, source);
      if (answer !== null) return answer;
    }
    const oneTimeUse = verdict.onceText === null ? null : signatureUse(relay, verdict, body);
    const earlier = oneTimeUse === null ? null : await this.#uses.find(oneTimeUse);
    const firstAtMs =
      earlier === null || followers.length === 0 ? null : await this.#findFirstTime(relay, earlier);
    const noEvents = followers.length === 0 ? {} : { events: [] };
    if (earlier !== null && firstAtMs === null)
      return { ...(await this.#answerSecondUse(relay, earlier, source())), ...noEvents };
    const parsed = received.parsed();
    if (!parsed.ok) {
      await this.#countEventless(relay);
      throw new Refusal("invalid_json", parsed.message);
    }
    requireReadable(followers);
    const readings = [relay, ...followers].map((one) => readRequest(one, parsed, verdict.senderEventId));
    const matched = readings.filter(({ mismatch }) => mismatch === null);
    const [first] = matched;
    if (first === undefined && earlier !== null)
      return { ...(await this.#answerSecondUse(relay, earlier, source())), ...noEvents };
    if (first === undefined) return await this.#answerIgnored(relay, readings, oneTimeUse, source());
    if (!isTest) {
      this.#recordIgnored(readings);
      for (const one of matched) health.recordMatch(one.relay);
    }
    const nowMs = this.#deps.clock.now();
    // A body's key changes each day, so a repeated request has that of its first day.
    const times = { nowMs, keyAtMs: firstAtMs ?? nowMs };
    const mark = isTest ? { source: "test" as const } : {};
    const events = matched.map((one) => ({ ...this.#makeEvent(one, body, parsed, times), ...mark })) as [
      ReceivedEvent,
      ...ReceivedEvent[],
    ];
    const spent = firstAtMs === null ? oneTimeUse : null;
    const stored = await this.#events.store({
      appId: relay.appId,
      events,
      oneTimeUse: spent,
      counted: false,
    });
    if (stored instanceof Refusal) {
      health.recordCapped(relay);
      throw stored;
    }
    // Another request with this signature was stored meanwhile. With followers, its event tells which of them have theirs.
    if ("sameBody" in stored)
      return followers.length > 0 && stored.sameBody
        ? await this.ingest(verified, followers, source)
        : await this.#answerSecondUse(relay, stored, source());
    return await this.#answerStored(verified, readings, stored, nowMs, source);
  }

  /**
   * Answers a request whose events are stored, now or by an earlier request, and records what each relay did with it. `stored` has the event of each
   * reading that matches, in their order.
   */
  async #answerStored(
    verified: VerifiedRequest,
    readings: readonly Reading[],
    stored: readonly StoredEvent[],
    nowMs: number,
    source: () => string,
  ): Promise<ReceiverAnswer> {
    const { relay, received, verdict, isTest } = verified;
    const { requestLog, health, traceRequest, clock } = this.#deps;
    const matched = readings.filter(({ mismatch }) => mismatch === null);
    const ids = stored.map(({ id }) => id);
    const [eventId = ""] = ids;
    const hasFollowers = readings.length > 1;
    const events = matched.map(({ relay: { name } }, at) => ({ relay: name, eventId: ids[at] ?? "" }));
    const taken = hasFollowers ? { events } : {};
    if (stored.every(({ duplicate }) => duplicate)) {
      const [own, ...others] = readings.map((one) => listOther(one, ids[matched.indexOf(one)]));
      const [first] = matched;
      const cause = async () =>
        first?.relay === relay
          ? await this.#explainDuplicate(verified, first.mapped, eventId)
          : (own?.cause ?? "");
      return { ...(await this.#answerDuplicate(relay, cause, source(), eventId, others)), ...taken };
    }
    for (const [at, { duplicate, id }] of stored.entries()) {
      const taker = matched[at]?.relay;
      if (duplicate || taker === undefined) continue;
      if (!isTest) health.recordEvent(taker);
      if (taker.waiting) requestLog.recordWaiting(taker, id);
      traceRequest?.({ relay: taker, eventId: id, startedAtMs: received.nowMs, endedAtMs: clock.now() });
    }
    if (hasFollowers) this.#countPassed(readings, (one) => stored[matched.indexOf(one)]?.duplicate, nowMs);
    if (verdict.onceText !== null) this.#uses.remember(eventId);
    return { received: true, eventId, ...taken };
  }

  /** Counts the relays that did not take a request that another one took. */
  #countPassed(
    readings: readonly Reading[],
    isDuplicate: (reading: Reading) => boolean | undefined,
    nowMs: number,
  ): void {
    const { requestLog } = this.#deps;
    for (const reading of readings)
      if (reading.mismatch !== null) requestLog.countPassed(reading.relay, "ignored", nowMs);
      else if (isDuplicate(reading) === true) requestLog.countPassed(reading.relay, "duplicate", nowMs);
  }

  /** Returns when the first use of a signature with the same body was stored. Returns null if its event, and so the keys of its time, are gone. */
  async #findFirstTime({ environmentId }: LiveRelay, earlier: EarlierUse): Promise<number | null> {
    if (!earlier.sameBody || earlier.eventId === null) return null;
    const { eventId } = earlier;
    const event = await this.#deps.store.read((tx) => findEventView(tx, environmentId, eventId));
    return event === null ? null : Date.parse(event.createdAt);
  }

  /** Answers a request that no relay takes. The log has it once, with what each follower did with it. */
  async #answerIgnored(
    relay: ReceiverRelay,
    readings: readonly Reading[],
    oneTimeUse: SignatureUse | null,
    source: string,
  ): Promise<ReceiverAnswer> {
    await this.#countEventless(relay);
    if (oneTimeUse !== null) await this.#uses.spendIgnored(oneTimeUse);
    const [own, ...followers] = readings.map((reading) => listOther(reading));
    const usual = this.#recordIgnored(readings);
    const logged = { outcome: "ignored", code: "when", cause: own?.cause ?? "", source, usual } as const;
    this.#deps.requestLog.record(relay, { ...logged, followers });
    return { received: true, ignored: "when" };
  }

  /** Records what each relay ignored. Returns whether one of them takes other requests. */
  #recordIgnored(readings: readonly Reading[]): boolean {
    let usual = false;
    for (const { relay, mismatch } of readings)
      if (mismatch !== null)
        usual = this.#deps.health.recordIgnored(relay, () => formatMismatch(mismatch)) || usual;
    return usual;
  }

  /** Answers a verified request that is its sender's handshake, which makes no event. Returns null if it is none. */
  async #shakeHands(
    relay: LiveRelay,
    { handshake, present, previous }: LiveHandshake,
    received: ReceivedRequest,
    { byPrevious = false }: Verified,
    source: () => string,
  ): Promise<HandshakeAnswer | null> {
    const answer = answerHandshake(handshake, received, byPrevious ? previous : present);
    if (answer === null) return null;
    await this.#countEventless(relay);
    if (typeof answer === "string") throw rejectHandshake(handshake, answer);
    this.#recordAnswered(relay, handshake, source());
    return answer;
  }

  /** Records a handshake that came without a signature and is answered. Throws Refusal over the relay's cap. */
  async recordHandshake(relay: LiveRelay, handshake: NamedHandshake, source: string): Promise<void> {
    await this.#countEventless(relay);
    this.#recordAnswered(relay, handshake, source);
  }

  #recordAnswered(relay: LiveRelay, { label }: NamedHandshake, source: string): void {
    const cause = `${label} was answered`;
    this.#deps.requestLog.record(relay, { outcome: "answered", code: "handshake", cause, source });
  }

  /** Makes the event of a relay. A body's deduplication key is for the UTC day of `keyAtMs`. */
  #makeEvent(
    reading: Reading,
    body: Uint8Array,
    parsed: ReadableBody,
    { nowMs, keyAtMs }: { nowMs: number; keyAtMs: number },
  ): ReceivedEvent {
    const { relay, mapped, eventId } = reading;
    const { environmentId, id: relayId, key: relayKey, nameKey, name: relayName } = relay;
    const dedupe =
      eventId === null
        ? keyOfBody(environmentId, relayName, body, keyAtMs)
        : keyOfEventId(environmentId, relayName, eventId);
    const payload = makeEventPayload(reading, parsed);
    return {
      environmentId,
      relayId,
      relayKey,
      nameKey,
      trigger: "receiver",
      payload,
      mapVersion: relay.version,
      unsigned: relay.receiver.unsigned,
      form: parsed.form !== null,
      dedupe,
      nowMs,
      dispatch: relay.waiting ? null : { relayName, payload: asStored(payload, parsed.value, mapped) },
    };
  }

  async #answerSecondUse(relay: LiveRelay, earlier: EarlierUse, source: string) {
    if (!earlier.sameBody) throw await this.#deps.rejectUnverified(source, rejectReusedSignature());
    const cause = async () => "its signature was accepted before, with the same body";
    return await this.#answerDuplicate(relay, cause, source, earlier.eventId);
  }

  /** Answers a duplicate. `eventId` is the first event's; null where `when` ignored the first request. */
  async #answerDuplicate(
    relay: LiveRelay,
    cause: () => Promise<string>,
    source: string,
    eventId: string | null,
    followers: readonly FollowerOutcome[] = [],
  ): Promise<{ received: true; duplicate: true; eventId: string | null }> {
    await this.#countEventless(relay);
    const logged = { outcome: "duplicate", code: "duplicate", source, eventId, followers } as const;
    this.#deps.requestLog.record(relay, { ...logged, cause: await cause() });
    return { received: true, duplicate: true, eventId };
  }

  /** Explains by which key the request is a duplicate of the event with this id. */
  async #explainDuplicate(
    { relay, received, verdict }: VerifiedRequest,
    mapped: JsonObject,
    id: string,
  ): Promise<string> {
    const mappedId = readEventId(mapped);
    const eventId = mappedId ?? verdict.senderEventId;
    if (eventId === null) return formatDuplicate("body", false);
    const own = verdict.idOfValues === true ? "values" : "header";
    const key = { id: eventId, from: mappedId === null ? own : "event_id" } as const;
    return formatDuplicate(key, await this.#hadOtherBody(relay, id, received));
  }

  /** Reports whether the stored event differs from the request; false where that cannot be known. */
  async #hadOtherBody({ environmentId }: LiveRelay, id: string, received: ReceivedRequest): Promise<boolean> {
    const first = await this.#deps.store.read((tx) => findEventView(tx, environmentId, id)).catch(() => null);
    const parsed = received.parsed();
    if (first === null || first.expunged !== null || !parsed.ok || !isJsonObject(first.payload)) return false;
    const { event = null } = first.payload;
    if (!first.truncated) return writeCanonicalJson(event) !== writeCanonicalJson(parsed.value);
    return first.preview !== null && !textOf(parsed).startsWith(first.preview);
  }

  /** Counts a request without an event. Refuses with `receiver_capped` over the relay's cap. */
  async #countEventless({ id }: LiveRelay): Promise<void> {
    await drawPlaces([{ limiter: this.#eventless, name: id }]);
    const resetAtMs = this.#eventless.take(id);
    if (resetAtMs !== null) throw rejectEventless(this.#eventless.limit, resetAtMs);
  }
}

/**
 * Returns the payload's value as its stored text gives it; null if it was cut. Texts stay the same, but another value may change: a number that is
 * too large becomes null.
 */
function asStored({ truncated }: EventDraft["payload"], event: Json, mapped: JsonObject): JsonObject | null {
  if (truncated) return null;
  const isText = Object.values(mapped).every((value) => typeof value === "string");
  return { event, mapped: isText ? mapped : parseJson(writeJson(mapped)) };
}

/** Describes what a relay did with a request that created no event. `eventId`: the event that it received before. */
function listOther({ relay, mismatch }: Reading, eventId: string | null = null): FollowerOutcome {
  return mismatch === null
    ? { relay: relay.name, outcome: "duplicate", cause: "it received this event before", eventId }
    : { relay: relay.name, outcome: "ignored", cause: formatMismatch(mismatch), eventId: null };
}
