/**
 * One receiver call from its bytes to its answer, in the order of recipes, "Order of a call". It answers 200 only after the event row is
 * durable, and lets no unverified byte past verification. Calls that become no event are noted for the owner, after their answer is
 * decided and never on the way of one that is accepted. It never runs an action.
 */

import { keyOfBody, keyOfEventId } from "../event/dedupe.ts";
import { insertEvent } from "../event/event-insert.ts";
import { makeReceiverPayload } from "../event/payload.ts";
import type { Clock } from "../ground/clock.ts";
import { type JsonObject, writeJson } from "../ground/json.ts";
import type { Log } from "../ground/log.ts";
import { Refusal } from "../ground/refusal.ts";
import { matchesWhen, readEventId, readMap } from "../relay/event-map.ts";
import type { LiveReceiver } from "../relay/live-receiver.ts";
import type { LiveRelay, LiveRelays } from "../relay/live-relay.ts";
import { type Store, StoreUnavailable, type Writer } from "../store/port.ts";
import type { ParsedBody, ReceivedCall, Verdict } from "../verify/contract.ts";
import { receiveCall } from "../verify/received-call.ts";
import { tellDuplicate, tellIgnored } from "./call-cause.ts";
import { CallNotebook } from "./call-notebook.ts";
import {
  explainToCaller,
  explainToOwner,
  type RefusedBy,
  refuseLargeBody,
  refuseSecondBody,
  refuseUnknownReceiver,
} from "./call-refusal.ts";
import { MinuteCap } from "./minute-cap.ts";
import { RelayHealth } from "./relay-health.ts";
import { type EarlierUse, findEarlierUse, type OnceUse, spendSignature } from "./signature-memory.ts";

export interface ReceiverRequest {
  appId: string;
  name: string;
  headers: Headers;
  body: Uint8Array;
  /** What followed the path, "?" included. */
  search: string;
  /** The caller's address, as the cap counts it; asked for only when it is needed. */
  source: () => string;
}

export type ReceiverAnswer =
  | { received: true; eventId: string }
  | { received: true; duplicate: true; eventId: string | null }
  | { received: true; ignored: "when" };

export interface ReceiverRooms {
  store: Store;
  clock: Clock;
  relays: LiveRelays;
  log: Log;
  verifiedEventsPerMinute: number;
  unverifiedCallsPerMinute: number;
  /** Told of every relay that got a new event, after its commit. */
  onEvent(relayId: string): void;
  /** Told how every call ended, for metrics: `accepted`, `duplicate`, `ignored`, or a refusal's code. */
  onCall(outcome: string): void;
}

type Verified = Extract<Verdict, { verified: true }>;

interface Accepted {
  relay: LiveRelay;
  receiver: LiveReceiver;
  call: ReceivedCall;
  verdict: Verified;
}

export class Receiver {
  readonly #rooms: ReceiverRooms;
  readonly #verified: MinuteCap;
  readonly #unverified: MinuteCap;
  readonly #notebook: CallNotebook;
  readonly #health: RelayHealth;

  constructor(rooms: ReceiverRooms) {
    this.#rooms = rooms;
    this.#notebook = new CallNotebook(rooms);
    this.#health = new RelayHealth(rooms);
    this.#verified = new MinuteCap(rooms.verifiedEventsPerMinute, rooms.clock);
    this.#unverified = new MinuteCap(rooms.unverifiedCallsPerMinute, rooms.clock);
  }

  /** Begins to watch for relays that go silent; calls are received without it too. */
  start(): Promise<void> {
    return this.#health.start();
  }

  /** After the last call: writes what is still only noted. */
  async stop(): Promise<void> {
    await this.#health.stop();
    await this.#notebook.stop();
  }

  /** Writes the calls noted so far, so that a list of recent calls holds them. */
  writeRecentCalls(): Promise<void> {
    return this.#notebook.flush();
  }

  /** Answers a call whose receiver exists; throws Refusal with a code of the specification's receiver table. */
  async receive(request: ReceiverRequest): Promise<ReceiverAnswer> {
    let accepted: Accepted | null = null;
    try {
      accepted = await this.#verify(request);
      this.#health.accept(accepted.relay);
      const answer = await this.#accept(accepted, request);
      this.#rooms.onCall("duplicate" in answer ? "duplicate" : "ignored" in answer ? "ignored" : "accepted");
      return answer;
    } catch (error) {
      const refusal = this.#asRefusal(error);
      if (accepted !== null) {
        const { code, message } = refusal;
        this.#notebook.noteRefused(
          { relay: accepted.relay, code, cause: message },
          request.source(),
          refusal,
        );
      }
      this.#rooms.onCall(refusal.code);
      throw refusal;
    }
  }

  /** Whether the path names a receiver at all, so that a body is not read for one that does not exist. */
  async requireReceiver(appId: string, name: string, from: () => string): Promise<void> {
    const snapshot = await this.#rooms.relays.current();
    if (snapshot.receiversOf(appId, name).length > 0) return;
    const source = from();
    const refusal = this.#refuseUnverified(source, refuseUnknownReceiver());
    this.#rooms.onCall(refusal.code);
    if (refusal.code === "unknown_receiver")
      this.#notebook.noteUnknown({ appId, name, source, atMs: this.#rooms.clock.now() });
    throw refusal;
  }

  /** The refusal of a body that was too large to read on. */
  async refuseTooLarge(appId: string, name: string, source: string): Promise<Refusal> {
    const refusal = this.#refuseUnverified(source, refuseLargeBody());
    this.#rooms.onCall(refusal.code);
    const cause = "the body is larger than 256 KB";
    for (const relay of (await this.#rooms.relays.current()).receiversOf(appId, name))
      this.#notebook.noteRefused({ relay, code: "body_too_large", cause }, source, refusal);
    return refusal;
  }

  /** Tries every environment's relay of that name; the one whose secret verifies receives. */
  async #verify(request: ReceiverRequest): Promise<Accepted> {
    const snapshot = await this.#rooms.relays.current();
    const nowMs = this.#rooms.clock.now();
    const refused: RefusedBy[] = [];
    for (const relay of snapshot.receiversOf(request.appId, request.name)) {
      const receiver = relay.receiver;
      if (receiver.verifier === null) {
        refused.push(explainToOwner(relay, null));
        continue;
      }
      const { headers, body, search } = request;
      const call = receiveCall({ headers, body, search, receiverUrl: receiver.url, nowMs });
      const verdict = receiver.verifier.verify(call);
      if (verdict.verified) return { relay, receiver, call, verdict };
      refused.push(explainToOwner(relay, verdict));
    }
    const refusal = this.#refuseUnverified(request.source(), explainToCaller(refused));
    for (const by of refused) {
      this.#health.refuse(by.relay, by.cause);
      this.#notebook.noteRefused(by, request.source(), refusal);
    }
    throw refusal;
  }

  async #accept(accepted: Accepted, request: ReceiverRequest): Promise<ReceiverAnswer> {
    const { relay, receiver, call, verdict } = accepted;
    const once: OnceUse | null =
      verdict.onceText === null
        ? null
        : {
            environmentId: relay.environmentId,
            relayName: relay.name,
            signedText: verdict.onceText,
            body: request.body,
            expiresAtMs: verdict.expiresAtMs,
          };
    if (once !== null) {
      const earlier = await this.#rooms.store.read((tx) => findEarlierUse(tx, once));
      if (earlier !== null) return this.#answerSecondUse(relay, earlier, request.source());
    }
    const parsed = call.parsed();
    if (!parsed.ok) throw new Refusal("invalid_json", parsed.message);
    const resetAtMs = this.#verified.take(relay.appId);
    if (resetAtMs !== null) {
      throw new Refusal(
        "receiver_capped",
        `This app received more than ${this.#verified.limit} verified events in a minute; send the event again after resetAt.`,
        { resetAtMs },
      );
    }
    const mapped = readMap(receiver.map, parsed);
    const mismatch = matchesWhen(receiver.when, mapped);
    if (mismatch !== null) {
      if (once !== null) await this.#spendIgnored(once);
      this.#notebook.noteIgnored(relay, request.source(), tellIgnored(mismatch));
      return { received: true, ignored: "when" };
    }
    const eventId = readEventId(mapped) ?? verdict.senderEventId;
    const stored = await this.#record(accepted, request, parsed, mapped, eventId, once);
    if ("sameBody" in stored) return this.#answerSecondUse(relay, stored, request.source());
    if (!stored.duplicate) {
      this.#health.receive(relay);
      return { received: true, eventId: stored.id };
    }
    this.#notebook.noteDuplicate(relay, request.source(), tellDuplicate(eventId), stored.id);
    return { received: true, duplicate: true, eventId: stored.id };
  }

  /** The stored event, or the first one of its key; or how the call's signature was used before. */
  #record(
    { relay, receiver }: Accepted,
    request: ReceiverRequest,
    parsed: Extract<ParsedBody, { ok: true }>,
    mapped: JsonObject,
    eventId: string | null,
    once: OnceUse | null,
  ): Promise<{ id: string; duplicate: boolean } | EarlierUse> {
    const nowMs = this.#rooms.clock.now();
    const dedupe =
      eventId === null
        ? keyOfBody(relay.environmentId, relay.name, request.body, nowMs)
        : keyOfEventId(relay.environmentId, relay.name, eventId);
    const eventText = parsed.form === null ? decodeBody(request.body) : writeJson(parsed.value);
    const payload = makeReceiverPayload(eventText, mapped);
    return this.#rooms.store.write("app", async (tx: Writer) => {
      if (once !== null) {
        const earlier = await findEarlierUse(tx, once);
        if (earlier !== null) return earlier;
      }
      const event = await insertEvent(tx, {
        environmentId: relay.environmentId,
        relayId: relay.id,
        relayName: relay.name,
        trigger: "receiver",
        payload,
        unsigned: receiver.unsigned,
        dedupe,
        nowMs,
      });
      if (once !== null) await spendSignature(tx, once, event.id);
      if (!event.duplicate) tx.afterCommit(() => this.#rooms.onEvent(relay.id));
      return event;
    });
  }

  #spendIgnored(once: OnceUse): Promise<void> {
    return this.#rooms.store.write("app", async (tx) => {
      if ((await findEarlierUse(tx, once)) === null) await spendSignature(tx, once, null);
    });
  }

  #answerSecondUse(relay: LiveRelay, earlier: EarlierUse, source: string): ReceiverAnswer {
    if (earlier.sameBody) {
      const cause = "its signature was accepted before, with the same body";
      this.#notebook.noteDuplicate(relay, source, cause, earlier.eventId);
      return { received: true, duplicate: true, eventId: earlier.eventId };
    }
    throw this.#refuseUnverified(source, refuseSecondBody());
  }

  /** Counts an unverified call against its address; over the cap that is what it is told. */
  #refuseUnverified(source: string, refusal: Refusal): Refusal {
    const resetAtMs = this.#unverified.take(source);
    if (resetAtMs === null) return refusal;
    return new Refusal(
      "source_capped",
      `More than ${this.#unverified.limit} unverified calls in a minute came from this address; fix the sender and try again after resetAt.`,
      { resetAtMs },
    );
  }

  #asRefusal(error: unknown): Refusal {
    if (error instanceof Refusal) return error;
    if (error instanceof StoreUnavailable)
      this.#rooms.log.error("event not recorded", { cause: error.message });
    else this.#rooms.log.error("receiver failed", { error });
    return new Refusal("not_recorded", "The event could not be stored and nothing ran; send it again.");
  }
}

const decoder = new TextDecoder();

/** The body as text, without a byte order mark; verified to be UTF-8 when it was parsed. */
function decodeBody(body: Uint8Array): string {
  return decoder.decode(body);
}
