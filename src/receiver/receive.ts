/**
 * One receiver call from its bytes to its answer, in the order of recipes, "Order of a call". It answers 200 only after the event row is
 * durable, and lets no unverified byte past verification. Calls that become no event are noted for the owner, after their answer is
 * decided and never on the way of one that is accepted. It never runs an action.
 */

import type { Clock } from "../ground/clock.ts";
import type { Log } from "../ground/log.ts";
import { Refusal } from "../ground/refusal.ts";
import { matchesWhen, readEventId, readMap } from "../relay/event-map.ts";
import type { LiveRelay, LiveRelays, ReceiverRelay } from "../relay/live-relay.ts";
import { type Store, StoreUnavailable } from "../store/port.ts";
import type { ReceivedCall, Verified } from "../verify/contract.ts";
import { ReceivedBody, receiveCall } from "../verify/received-call.ts";
import { CallCaps, type CallLimits, WorkMeter } from "./call-cap.ts";
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
import { recordEvent } from "./event-record.ts";
import { RelayHealth } from "./relay-health.ts";
import { type EarlierUse, findEarlierUse, spendIgnored, useOnce } from "./signature-memory.ts";

interface ReceiverRequest {
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

interface ReceiverRooms {
  store: Store;
  clock: Clock;
  relays: LiveRelays;
  log: Log;
  limits: CallLimits;
  /** Told how every call ended, for metrics: `accepted`, `duplicate`, `ignored`, or a refusal's code. */
  onCall(outcome: string): void;
}

interface Accepted {
  relay: ReceiverRelay;
  call: ReceivedCall;
  verdict: Verified;
}

export class Receiver {
  readonly #rooms: ReceiverRooms;
  readonly #caps: CallCaps;
  readonly #notebook: CallNotebook;
  readonly #health: RelayHealth;

  constructor(rooms: ReceiverRooms) {
    this.#rooms = rooms;
    this.#notebook = new CallNotebook(rooms);
    this.#health = new RelayHealth(rooms);
    this.#caps = new CallCaps(rooms.limits, rooms.clock);
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
    const refusal = this.#caps.countUnverified(source, refuseUnknownReceiver());
    this.#rooms.onCall(refusal.code);
    if (refusal.code === "unknown_receiver")
      this.#notebook.noteUnknown({ appId, name, source, atMs: this.#rooms.clock.now() });
    throw refusal;
  }

  /** What is told of a call whose body was not read to its end, and noted for the relay's owner; one that broke off is nobody's fault. */
  async refuseUnread(appId: string, name: string, source: string, unread: Refusal): Promise<Refusal> {
    const tooLarge = unread.code === "body_too_large";
    const refusal = tooLarge ? this.#caps.countUnverified(source, refuseLargeBody()) : unread;
    this.#rooms.onCall(refusal.code);
    if (unread.code === "body_incomplete") return refusal;
    const { code, message } = unread;
    const cause = tooLarge ? "the body is larger than 256 KB" : message;
    for (const relay of (await this.#rooms.relays.current()).receiversOf(appId, name))
      this.#notebook.noteRefused({ relay, code, cause }, source, refusal);
    return refusal;
  }

  /** Tries every environment's relay of that name; the one whose secret verifies receives. */
  async #verify(request: ReceiverRequest): Promise<Accepted> {
    const snapshot = await this.#rooms.relays.current();
    const nowMs = this.#rooms.clock.now();
    const refused: RefusedBy[] = [];
    const relays = snapshot.receiversOf(request.appId, request.name);
    const meter = new WorkMeter(() => this.#refuseFullSource(request.source(), relays));
    const { headers, search } = request;
    const body = new ReceivedBody(request.body, headers.get("content-type"), (us) => meter.charge(us));
    for (const relay of relays) {
      const receiver = relay.receiver;
      if (receiver.verifier === null) {
        refused.push(explainToOwner(relay, null));
        continue;
      }
      const { url: receiverUrl, bodies: kinds } = receiver;
      const call = receiveCall({ headers, body, kinds, search, receiverUrl, nowMs });
      const verdict = receiver.verifier.verify(call);
      if (verdict.verified) {
        meter.stop();
        return { relay, call, verdict };
      }
      refused.push(explainToOwner(relay, verdict));
    }
    const refusal = this.#caps.countUnverified(request.source(), explainToCaller(refused));
    for (const by of refused) {
      this.#health.refuse(by.relay, by.cause);
      this.#notebook.noteRefused(by, request.source(), refusal);
    }
    throw refusal;
  }

  /** Throws where the address has made so many unverified calls that nothing costly is done for another, right or wrong. */
  #refuseFullSource(source: string, relays: readonly LiveRelay[]): void {
    const refusal = this.#caps.findFullSource(source);
    if (refusal === null) return;
    const cause = "the call was too costly to verify after so many bad ones from its address";
    for (const relay of relays)
      this.#notebook.noteRefused({ relay, code: "source_capped", cause }, source, refusal);
    throw refusal;
  }

  async #accept(accepted: Accepted, request: ReceiverRequest): Promise<ReceiverAnswer> {
    const { relay, call, verdict } = accepted;
    const { receiver } = relay;
    const once = useOnce(relay, verdict, request.body);
    if (once !== null) {
      const earlier = await this.#rooms.store.read((tx) => findEarlierUse(tx, once));
      if (earlier !== null) return this.#answerSecondUse(relay, earlier, request.source());
    }
    const parsed = call.parsed();
    if (!parsed.ok) {
      this.#caps.countEventless(relay.id);
      throw new Refusal("invalid_json", parsed.message);
    }
    const mapped = readMap(receiver.map, parsed);
    const mismatch = matchesWhen(receiver.when, mapped);
    if (mismatch !== null) {
      this.#caps.countEventless(relay.id);
      if (once !== null) await spendIgnored(this.#rooms.store, once);
      this.#notebook.noteIgnored(relay, request.source(), tellIgnored(mismatch));
      return { received: true, ignored: "when" };
    }
    const eventId = readEventId(mapped) ?? verdict.senderEventId;
    const { body } = request;
    const stored = await recordEvent(this.#rooms, this.#caps, { relay, body, parsed, mapped, eventId, once });
    if (stored instanceof Refusal) throw stored;
    if ("sameBody" in stored) return this.#answerSecondUse(relay, stored, request.source());
    if (!stored.duplicate) {
      this.#health.receive(relay);
      return { received: true, eventId: stored.id };
    }
    this.#caps.countEventless(relay.id);
    this.#notebook.noteDuplicate(relay, request.source(), tellDuplicate(eventId), stored.id);
    return { received: true, duplicate: true, eventId: stored.id };
  }

  #answerSecondUse(relay: LiveRelay, earlier: EarlierUse, source: string): ReceiverAnswer {
    if (earlier.sameBody) {
      this.#caps.countEventless(relay.id);
      const cause = "its signature was accepted before, with the same body";
      this.#notebook.noteDuplicate(relay, source, cause, earlier.eventId);
      return { received: true, duplicate: true, eventId: earlier.eventId };
    }
    throw this.#caps.countUnverified(source, refuseSecondBody());
  }

  #asRefusal(error: unknown): Refusal {
    if (error instanceof Refusal) return error;
    if (error instanceof StoreUnavailable)
      this.#rooms.log.error("event not recorded", { cause: error.message });
    else this.#rooms.log.error("receiver failed", { error });
    return new Refusal("not_recorded", "The event could not be stored and nothing ran; send it again.");
  }
}
