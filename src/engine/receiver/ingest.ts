/**
 * Decides the result of a verified request: an event, a duplicate of one, or nothing where `when` ignores it. One transaction checks how its
 * signature was used, its deduplication key and the app's cap of the minute. It then stores the row, or finds why there is none. Only a stored row
 * takes a place in the minute. Requests that create no event are recorded for the owner, and never delay one that creates an event.
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
import { type LiveHandshake, matchesWhen, readEventId, readMap } from "../../rules/relay/live-receiver.ts";
import type { LiveRelay, ReceiverRelay } from "../../rules/relay/live-relay.ts";
import type { ParsedBody, ReceivedRequest, Verified } from "../../rules/verify/contract.ts";
import { answerHandshake, type HandshakeAnswer, type NamedHandshake } from "../../rules/verify/handshake.ts";
import { OutcomeUnknown, type PrefetchReader, type Store, type Writer } from "../../store/port.ts";
import {
  type DedupeKey,
  type EventDispatcher,
  type EventDraft,
  EventInserter,
  findDuplicate,
  keyOfBody,
  keyOfEventId,
  makeReceiverPayload,
} from "../event/insert.ts";
import { findEventView } from "../event/view.ts";
import type { Health } from "../health/health.ts";
import { rejectEventless, rejectFullApp, rejectHandshake, rejectReusedSignature } from "./rejection.ts";
import { formatDuplicate, formatMismatch, formatMissingEventId } from "./request.ts";
import type { RequestLog } from "./request-log.ts";
import {
  DurableUses,
  type EarlierUse,
  findEarlierUse,
  type SignatureUse,
  signatureUse,
  spendSignature,
} from "./signature-memory.ts";

export type ReceiverAnswer =
  | HandshakeAnswer
  | { received: true; eventId: string }
  | { received: true; duplicate: true; eventId: string | null }
  | { received: true; ignored: "when" };

/** A request and the relay whose secret verified it. */
export interface VerifiedRequest {
  relay: ReceiverRelay;
  call: ReceivedRequest;
  verdict: Verified;
}

/** Takes each new event, so that it runs. */
export interface EventRunner extends Pick<EventDispatcher, "enqueue"> {
  /** Runs events in the transaction that stores them, where possible. `finalize` must follow the last event. */
  startInline(
    tx: Writer,
    events: readonly EventDraft[],
  ): { run: EventDispatcher["runInline"]; finalize(): Promise<void> };
  /** Prefetches what runs of these events would read. */
  prefetch(reader: PrefetchReader, events: readonly EventDraft[]): readonly Promise<unknown>[];
}

interface IngestionDeps {
  store: Store;
  runner: EventRunner;
  clock: Clock;
  limits: Pick<RaisableLimits, "verifiedEventsPerMinute" | "eventlessCallsPerMinute">;
  places: Places | null;
  requestLog: RequestLog;
  health: Health;
  /** Counts the request as an unverified one of the address. Returns the refusal for the caller. */
  refuseUnverified(source: string, refusal: Refusal): Promise<Refusal>;
}

/** A verified request that `when` accepts. */
export interface MatchedRequest {
  relay: ReceiverRelay;
  /** The bytes received. */
  body: Uint8Array;
  parsed: Extract<ParsedBody, { ok: true }>;
  mapped: JsonObject;
  /** The sender's own id; null if the body deduplicates. */
  eventId: string | null;
  /** The use of a signature that counts once; null for other signatures. */
  once: SignatureUse | null;
}

type ReceivedEvent = EventDraft & { dedupe: DedupeKey };

interface Draft {
  appId: string;
  event: ReceivedEvent;
  once: SignatureUse | null;
  /** True if it holds a place in the app's minute. */
  counted: boolean;
}

type Stored = { id: string; duplicate: boolean } | EarlierUse | Refusal;
type Answered = Stored | "no place";

export class Ingestion {
  readonly #deps: IngestionDeps;
  readonly #write: (draft: Draft) => Promise<Answered>;
  /** The caps of new events by app, and of verified requests without an event by relay. */
  readonly #events: Limiter;
  readonly #eventless: Limiter;
  readonly #uses: DurableUses;

  constructor(deps: IngestionDeps) {
    this.#deps = deps;
    this.#uses = new DurableUses(deps.store);
    this.#write = deps.store.batchWrites(
      "app",
      (tx, drafts) => this.#storeAll(tx, drafts),
      (reader, drafts) => this.#prefetch(reader, drafts),
    );
    const limiter = (kind: string, limit: number, drawing: "blocks" | "blocks above") =>
      new Limiter(deps.clock, limit, CAP_WINDOW_MS, { kind, places: deps.places, drawing });
    this.#events = limiter("event", deps.limits.verifiedEventsPerMinute, "blocks");
    // A duplicate is answered without a transaction, so also while another one holds the writer's lock.
    this.#eventless = limiter("eventless", deps.limits.eventlessCallsPerMinute, "blocks above");
  }

  /** Answers after the event row is durable; throws Refusal where there is none. */
  async ingest({ relay, call, verdict }: VerifiedRequest, source: () => string): Promise<ReceiverAnswer> {
    const { requestLog, health } = this.#deps;
    const { receiver } = relay;
    const { body } = call;
    if (receiver.handshake !== null) {
      const answer = await this.#shakeHands(relay, receiver.handshake, call, verdict, source);
      if (answer !== null) return answer;
    }
    const once = verdict.onceText === null ? null : signatureUse(relay, verdict, body);
    const earlier = once === null ? null : await this.#uses.find(once);
    if (earlier !== null) return this.#answerSecondUse(relay, earlier, source());
    const parsed = call.parsed();
    if (!parsed.ok) {
      await this.#countEventless(relay);
      throw new Refusal("invalid_json", parsed.message);
    }
    const mapped = readMap(receiver.map, parsed);
    const mismatch = matchesWhen(receiver.when, mapped);
    if (mismatch !== null) {
      await this.#countEventless(relay);
      if (once !== null) await this.#uses.spendIgnored(once);
      const cause = formatMismatch(mismatch);
      const usual = health.recordIgnored(relay, cause);
      requestLog.record(relay, { outcome: "ignored", code: "when", cause, source: source(), usual });
      return { received: true, ignored: "when" };
    }
    health.recordMatch(relay);
    const eventId = readEventId(mapped) ?? verdict.senderEventId;
    const draft = this.#draft({ relay, body, parsed, mapped, eventId, once });
    let stored: Stored;
    try {
      stored = await this.#store(draft);
    } catch (error) {
      // A row that may exist keeps its place.
      if (!(error instanceof OutcomeUnknown)) this.#count(draft, false);
      throw error;
    }
    if (stored instanceof Refusal) {
      health.recordCapped(relay);
      throw stored;
    }
    if ("sameBody" in stored) return this.#answerSecondUse(relay, stored, source());
    if (stored.duplicate) {
      const own = verdict.idOfValues === true ? "values" : "header";
      const from = readEventId(mapped) === null ? own : "event_id";
      const cause = async () =>
        eventId === null
          ? formatDuplicate("body", false)
          : formatDuplicate({ id: eventId, from }, await this.#hadOtherBody(relay, stored.id, call));
      return this.#answerDuplicate(relay, cause, source(), stored.id);
    }
    health.recordEvent(relay);
    if (once !== null) this.#uses.remember(stored.id);
    if (relay.waiting) requestLog.recordWaiting(relay, stored.id);
    return { received: true, eventId: stored.id };
  }

  /** Draws places of the minute if this node has none, and again if other requests took the drawn ones meanwhile. */
  async #store(draft: Draft): Promise<Stored> {
    for (;;) {
      await drawPlaces([{ limiter: this.#events, name: draft.appId }]);
      const stored = await this.#write(draft);
      if (stored !== "no place") return stored;
    }
  }

  /** Answers a verified request that is its sender's handshake, which makes no event. Returns null if it is none. */
  async #shakeHands(
    relay: LiveRelay,
    { handshake, present, previous }: LiveHandshake,
    call: ReceivedRequest,
    { byPrevious = false }: Verified,
    source: () => string,
  ): Promise<HandshakeAnswer | null> {
    const answer = answerHandshake(handshake, call, byPrevious ? previous : present);
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

  /** Makes the draft of the row. A body's deduplication key is for the current UTC day. */
  #draft(call: MatchedRequest): Draft {
    const { relay, body, parsed, mapped, eventId, once } = call;
    const { environmentId, appId, id: relayId, key: relayKey, nameKey, name: relayName } = relay;
    const nowMs = this.#deps.clock.now();
    const dedupe =
      eventId === null
        ? keyOfBody(environmentId, relayName, body, nowMs)
        : keyOfEventId(environmentId, relayName, eventId);
    const made = makeReceiverPayload(textOf(parsed), mapped);
    const unnamed = formatMissingEventId(relay, mapped, eventId);
    const payload = unnamed === null ? made : { ...made, warnings: [unnamed, ...made.warnings] };
    const event: ReceivedEvent = {
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
    return { appId, event, once, counted: false };
  }

  async #storeAll(tx: Writer, drafts: readonly Draft[]): Promise<Answered[]> {
    const events = drafts.map(({ event }) => event);
    const inline = this.#deps.runner.startInline(tx, events);
    const inserter = new EventInserter(tx, {
      runInline: (event) => inline.run(event),
      enqueue: (event) => this.#deps.runner.enqueue(event),
    });
    const stored: Answered[] = [];
    for (const draft of drafts) {
      const { once, event } = draft;
      const instead = this.#mayStore(draft) ? null : await this.#findInstead(tx, draft);
      if (instead !== null) {
        stored.push(instead);
        continue;
      }
      const one = await inserter.insert(event);
      if (once !== null) await spendSignature(tx, once, one.id);
      this.#count(draft, !one.duplicate);
      stored.push(one);
    }
    await inline.finalize();
    return stored;
  }

  #prefetch(reader: PrefetchReader, drafts: readonly Draft[]): readonly Promise<unknown>[] {
    const events = drafts.map(({ event }) => event);
    return [...EventInserter.prefetch(reader, events), ...this.#deps.runner.prefetch(reader, events)];
  }

  /** Reports whether only its deduplication key can prevent storing it. Most requests need no other check. */
  #mayStore({ once, counted, appId }: Draft): boolean {
    return once === null && (counted || this.#events.hasPlace(appId));
  }

  /**
   * Finds the answer for a request that cannot be stored: its signature was used before, or no place of the app's minute is left. Returns null if it
   * can be stored.
   */
  async #findInstead(tx: Writer, { once, counted, appId, event }: Draft): Promise<Answered | null> {
    const earlier = once === null ? null : await findEarlierUse(tx, once);
    if (earlier !== null) return earlier;
    const resetAtMs = counted ? null : this.#events.fullUntil(appId);
    if (resetAtMs === null) return counted || this.#events.hasPlace(appId) ? null : "no place";
    return (await findDuplicate(tx, event.dedupe)) ?? rejectFullApp(this.#events.limit, resetAtMs);
  }

  /** Takes or returns the draft's place in the minute. The draft holds one place even if the store runs the work twice. */
  #count(draft: Draft, isEvent: boolean): void {
    if (isEvent && !draft.counted) this.#events.count(draft.appId);
    if (!isEvent && draft.counted) this.#events.giveBack(draft.appId);
    draft.counted = isEvent;
  }

  async #answerSecondUse(relay: LiveRelay, earlier: EarlierUse, source: string): Promise<ReceiverAnswer> {
    if (!earlier.sameBody) throw await this.#deps.refuseUnverified(source, rejectReusedSignature());
    const cause = async () => "its signature was accepted before, with the same body";
    return await this.#answerDuplicate(relay, cause, source, earlier.eventId);
  }

  /** Answers a duplicate. `eventId` is the first event's; null where `when` ignored the first request. */
  async #answerDuplicate(
    relay: LiveRelay,
    cause: () => Promise<string>,
    source: string,
    eventId: string | null,
  ): Promise<ReceiverAnswer> {
    await this.#countEventless(relay);
    const noted = { outcome: "duplicate", code: "duplicate", source, eventId } as const;
    this.#deps.requestLog.record(relay, { ...noted, cause: await cause() });
    return { received: true, duplicate: true, eventId };
  }

  /** Reports whether the stored event differs from the request; false where that cannot be known. */
  async #hadOtherBody({ environmentId }: LiveRelay, id: string, call: ReceivedRequest): Promise<boolean> {
    const first = await this.#deps.store.read((tx) => findEventView(tx, environmentId, id)).catch(() => null);
    const parsed = call.parsed();
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

/** Returns the event's text for the row: JSON as received, or a form's fields as JSON. */
export function textOf(parsed: MatchedRequest["parsed"]): string {
  return parsed.form === null ? parsed.text : writeJson(parsed.value);
}
