/**
 * Receives one request: verifies it, ingests it and answers, in the order of recipes, "Order of a call". It answers 200 only after the event is
 * durable, and nothing unverified passes verification. A rejected request is logged for the owner after its answer is decided. It never runs an
 * action.
 */
import type { Clock } from "../../base/clock.ts";
import { MAX_UNCOUNTED_US, type RaisableLimits } from "../../base/limit.ts";
import type { Places } from "../../base/limiter.ts";
import type { Log } from "../../base/log.ts";
import { Refusal } from "../../base/refusal.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import { type LiveRelay, type LiveRelays, Snapshot } from "../../rules/relay/live-relay.ts";
import { askHandshake, HandshakeAnswer, type NamedHandshake } from "../../rules/verify/handshake.ts";
import { ReceivedBody, receiveRequest } from "../../rules/verify/received-request.ts";
import { signingMethodOf } from "../../rules/verify/signing-method.ts";
import { type Store, StoreUnavailable } from "../../store/port.ts";
import { updateRejected } from "../event/rejected-arrival.ts";
import type { Health } from "../health/health.ts";
import type { EventRunner } from "./event-storage.ts";
import { Ingestion, type ReceiverAnswer, type TraceRequest, type VerifiedRequest } from "./ingest.ts";
import { readLostEvent } from "./lost-event.ts";
import {
  explainToCaller,
  explainToOwner,
  HANDSHAKE_REFUSED,
  type Rejection,
  rejectLargeBody,
  UNKNOWN_RECEIVER,
  type UnverifiedRejection,
} from "./rejection.ts";
import { CauseFinder } from "./rejection-cause.ts";
import type { ClaimedEvent } from "./request.ts";
import { RequestLog, type RequestNotifier } from "./request-log.ts";
import { UnverifiedCap } from "./unverified-cap.ts";

/** Headers that may contain a signature, by their names. */
const SIGNING_HEADER = /sign|hmac|digest|token|secret|auth|key|hook/i;

/** The shortest time between two searches for events that arrived. */
const UPDATE_EVERY_MS = 2_000;

interface ReceiverRequest {
  appId: string;
  name: string;
  headers: Headers;
  body: Uint8Array;
  /** The query of the URL with its "?", or "". */
  search: string;
  /** The caller's address, as the caps count it. It is computed only when it is needed. */
  source: () => string;
  /** The environment of a test. No other one can receive the request, and its events are marked. Absent: a sender's request. */
  testIn?: number;
}

/** A GET or HEAD of a receiver URL. */
interface AskedUrl {
  appId: string;
  name: string;
  method: "GET" | "HEAD";
  search: string;
  source: () => string;
}

interface ReceiverDeps {
  store: Store;
  clock: Clock;
  relays: LiveRelays;
  log: Log;
  /** Opens the secrets for the diagnosis of a rejected request. */
  sealer: Sealer;
  limits: Pick<
    RaisableLimits,
    "verifiedEventsPerMinute" | "eventlessCallsPerMinute" | "unverifiedCallsPerMinute"
  >;
  /** The shared counts of the caps, where several nodes share them. */
  places?: Places | null;
  /** True in local development. */
  local: boolean;
  /** Reports requests that became no event, shortly after their answers. */
  notifier: RequestNotifier;
  health: Health;
  runner: EventRunner;
  /** Counts each request by its outcome: `accepted`, `duplicate`, `ignored`, or the code of a refusal. */
  metrics: { recordRequest(outcome: string): void };
  /** Absent: traces are off. */
  traceRequest?: TraceRequest;
}

export class Receiver {
  readonly #deps: ReceiverDeps;
  readonly #unverified: UnverifiedCap;
  readonly #requestLog: RequestLog;
  readonly #ingestion: Ingestion;
  readonly #causes: CauseFinder;
  /** The monotonic time when arrived events were last marked. */
  #updatedMs = Number.NEGATIVE_INFINITY;

  constructor(deps: ReceiverDeps) {
    this.#deps = deps;
    const { limits, places = null } = deps;
    this.#unverified = new UnverifiedCap(deps.clock, limits.unverifiedCallsPerMinute, places);
    this.#causes = new CauseFinder(deps);
    this.#requestLog = new RequestLog({ ...deps, causesFound: () => this.#causes.whenIdle() });
    this.#ingestion = new Ingestion({
      ...deps,
      places,
      requestLog: this.#requestLog,
      rejectUnverified: async (source, refusal) => this.#unverified.reject(source, () => refusal),
    });
  }

  /** Stops after the last request, and writes pending entries of the log. */
  stop(): Promise<void> {
    return this.#requestLog.stop();
  }

  /** Writes pending entries, and brings the ledger of rejected requests up to date, so that lists show both. */
  async writeRecentRequests(): Promise<void> {
    await this.#requestLog.flush();
    const { clock, store } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#updatedMs < UPDATE_EVERY_MS) return;
    this.#updatedMs = nowMs;
    await updateRejected(store, clock.now());
  }

  /**
   * Answers a request. A refusal has a code of the specification's receiver table. It is returned and not thrown, because any caller can cause one,
   * and throwing costs more than the request.
   */
  async receive(request: ReceiverRequest): Promise<ReceiverAnswer | Refusal> {
    let verified: VerifiedRequest | null = null;
    try {
      const current = this.#deps.relays.current();
      const snapshot = current instanceof Snapshot ? current : await current;
      const verifying = this.#verify(request, snapshot);
      const result = verifying instanceof Promise ? await verifying : verifying;
      if (result instanceof Refusal) {
        this.#deps.metrics.recordRequest(result.code);
        return result;
      }
      verified = result;
      const { relay, received, isTest } = verified;
      const strayedSince = isTest ? null : this.#deps.health.recordVerified(relay, received.nowMs);
      if (strayedSince !== null) this.#requestLog.forgetLosses(relay, strayedSince, received.nowMs);
      const answer = await this.#ingestion.ingest(verified, snapshot.followersOf(relay.id), request.source);
      this.#deps.metrics.recordRequest(nameOutcome(answer));
      return answer;
    } catch (error) {
      const refusal = this.#asRefusal(error);
      if (verified !== null) {
        const { code, message: cause } = refusal;
        this.#requestLog.recordRejected({ relay: verified.relay, code, cause }, request.source(), refusal);
      }
      this.#deps.metrics.recordRequest(refusal.code);
      return refusal;
    }
  }

  /**
   * Answers a GET or HEAD where the definition's handshake asks for it. Returns null where it is none. It counts as an unverified request of its
   * address.
   */
  async ask({ appId, name, method, search, source }: AskedUrl): Promise<HandshakeAnswer | Refusal | null> {
    const refused: Rejection[] = [];
    for (const relay of (await this.#deps.relays.current()).receiversOf(appId, name)) {
      const live = relay.receiver.handshake;
      const asked = live === null ? null : askHandshake(live.handshake, method, search, live.verifyToken);
      if (live === null || asked === null) continue;
      const why = `${live.handshake.label} was not answered`;
      if (typeof asked === "string") {
        refused.push({ relay, code: "handshake_refused", cause: `${why}: ${asked}` });
        continue;
      }
      const from = source();
      const refusal = await this.#countAsked(relay, live.handshake, from);
      this.#deps.metrics.recordRequest(refusal?.code ?? "handshake");
      if (refusal !== null)
        this.#requestLog.recordRejected({ relay, code: refusal.code, cause: why }, from, refusal);
      return refusal ?? asked;
    }
    if (refused.length === 0) return null;
    const from = source();
    const refusal = await this.#unverified.reject(from, () => HANDSHAKE_REFUSED);
    this.#deps.metrics.recordRequest(refusal.code);
    for (const by of refused) this.#requestLog.recordRejected(by, from, refusal);
    return refusal;
  }

  /** Counts and logs an answered handshake. Returns the refusal over a cap, or null. */
  async #countAsked(relay: LiveRelay, handshake: NamedHandshake, source: string): Promise<Refusal | null> {
    const capped = await this.#unverified.take(source);
    if (capped !== null) return capped;
    try {
      await this.#ingestion.recordHandshake(relay, handshake, source);
      return null;
    } catch (error) {
      return this.#asRefusal(error);
    }
  }

  /** Returns the refusal of a path that names no receiver, so that its body is not read; null where there is one. */
  rejectUnknownReceiver(
    appId: string,
    name: string,
    from: () => string,
  ): Refusal | null | Promise<Refusal | null> {
    const snapshot = this.#deps.relays.current();
    const check = (now: Snapshot): Refusal | null | Promise<Refusal> =>
      now.receiversOf(appId, name).length > 0 ? null : this.#rejectUnknown(appId, name, from());
    return snapshot instanceof Snapshot ? check(snapshot) : snapshot.then(check);
  }

  #rejectUnknown(appId: string, name: string, source: string): Refusal | Promise<Refusal> {
    const record = (refusal: Refusal): Refusal => {
      this.#deps.metrics.recordRequest(refusal.code);
      if (refusal === UNKNOWN_RECEIVER) this.#requestLog.recordUnknown({ appId, name, source });
      return refusal;
    };
    const refusing = this.#unverified.reject(source, () => UNKNOWN_RECEIVER);
    return refusing instanceof Promise ? refusing.then(record) : record(refusing);
  }

  /** Counts a captured request. Returns the refusal of an address over the cap of unverified requests, or null. */
  async takeCaptured(source: string): Promise<Refusal | null> {
    const capped = await this.#unverified.take(source);
    this.#deps.metrics.recordRequest(capped?.code ?? "captured");
    return capped;
  }

  /** Returns the refusal of a request to a capture that does not exist, has ended or is full. It stores nothing, so that guesses cost no query. */
  async rejectCapture(source: string, refusal: Refusal = UNKNOWN_RECEIVER): Promise<Refusal> {
    const refused = await this.#unverified.reject(source, () => refusal);
    this.#deps.metrics.recordRequest(refused.code);
    return refused;
  }

  /** Returns the refusal of a request whose body was not read to its end, and logs it. An aborted request is not logged. */
  async rejectUnread(appId: string, name: string, source: string, unread: Refusal): Promise<Refusal> {
    const tooLarge = unread.code === "body_too_large";
    const refusal = tooLarge ? await this.#unverified.reject(source, rejectLargeBody) : unread;
    this.#deps.metrics.recordRequest(refusal.code);
    if (unread.code === "body_incomplete") return refusal;
    const { code, message } = unread;
    const cause = tooLarge ? "the body is larger than 256 KB" : message;
    for (const relay of (await this.#deps.relays.current()).receiversOf(appId, name))
      this.#requestLog.recordRejected({ relay, code, cause }, source, refusal);
    return refusal;
  }

  /** Logs a request to another host. Local development answers only to this machine's names and to the base URL. */
  async recordOtherHost(appId: string, name: string, source: string, refusal: Refusal): Promise<void> {
    const { code } = refusal;
    const cause =
      "it came for a host that local development does not answer to, as through a tunnel: start relay dev with --base-url and the tunnel's address";
    for (const relay of (await this.#deps.relays.current()).receiversOf(appId, name))
      this.#requestLog.recordRejected({ relay, code, cause }, source, refusal);
  }

  /** Tries each environment's relay of this name. The relay whose secret verifies receives the request. */
  #verify(request: ReceiverRequest, snapshot: Snapshot): VerifiedRequest | Refusal | Promise<Refusal> {
    const nowMs = this.#deps.clock.now();
    const refused: UnverifiedRejection[] = [];
    const { headers, search, testIn } = request;
    const isTest = testIn !== undefined;
    const named = snapshot.receiversOf(request.appId, request.name);
    const relays = isTest ? named.filter(({ environmentId }) => environmentId === testIn) : named;
    let [spentUs, mayCharge] = [0, true];
    /** Charges the CPU time of a request that has not verified. Over the bound, it checks once whether the address may continue. */
    const charge = (us: number): void => {
      spentUs += us;
      if (!mayCharge || spentUs <= MAX_UNCOUNTED_US) return;
      mayCharge = false;
      this.#requireRoom(request.source(), relays);
    };
    const body = new ReceivedBody(request.body, headers.get("content-type"), charge);
    for (const relay of relays) {
      const { verifier, url: receiverUrl, bodies: kinds } = relay.receiver;
      if (verifier === null) {
        refused.push(explainToOwner(relay, null));
        continue;
      }
      const received = receiveRequest({ headers, body, kinds, search, receiverUrl, nowMs });
      const verdict = verifier.verify(received);
      if (verdict.verified) {
        // The cost from here on belongs to the relay.
        mayCharge = false;
        const { overlap } = relay.receiver;
        if (overlap !== null && !isTest)
          overlap[verdict.byPrevious === true ? "previousAt" : "presentAt"] = nowMs;
        return { relay, received, verdict, isTest };
      }
      refused.push(explainToOwner(relay, verdict));
    }
    const record = (refusal: Refusal): Refusal => {
      for (const by of refused) {
        const isStray = isStranger(by.relay, request);
        // A wrong secret rejects what is signed otherwise. A wrong recipe also rejects what it finds no signature in, before any request verified.
        const isLoss =
          !isStray &&
          (by.unmatched || !by.open || this.#deps.health.healthOf(by.relay.id).acceptedAt === null);
        if (!isStray) this.#deps.health.recordRejected(by.relay, by.cause);
        this.#recordUnverified(by, request, refusal, { nowMs, isStray, isLoss });
      }
      return refusal;
    };
    const refusing = this.#unverified.reject(request.source(), () => explainToCaller(refused));
    return refusing instanceof Promise ? refusing.then(record) : record(refusing);
  }

  /** Logs the request, and diagnoses its cause after the answer where there is capacity. */
  #recordUnverified(
    by: UnverifiedRejection,
    request: ReceiverRequest,
    refusal: Refusal,
    { nowMs, isStray, isLoss }: { nowMs: number; isStray: boolean; isLoss: boolean },
  ): void {
    const { body, search } = request;
    const source = request.source();
    const isCapped = refusal.code === "source_capped";
    const mayFind = !isCapped && by.open && by.code === "bad_signature";
    if (isCapped || !(mayFind || isLoss) || !this.#causes.hasRoom(body.byteLength)) {
      this.#requestLog.recordRejected(by, source, refusal);
      if (isLoss) this.#requestLog.recordLoss(by.relay, null, nowMs);
      return;
    }
    const { url: receiverUrl, bodies: kinds } = by.relay.receiver;
    const headers = new Headers(request.headers);
    const received = receiveRequest({ headers, body, kinds, search, receiverUrl, nowMs });
    const explain = this.#requestLog.recordUnexplained(by, source);
    let claimed: ClaimedEvent | null = null;
    const identify = (): void => {
      const followers = this.#deps.relays.cached?.followersOf(by.relay.id) ?? [];
      const lost = readLostEvent(by.relay, followers, received);
      if (lost === null) return;
      claimed = lost.claimed;
      if (isLoss && !lost.isIgnored) this.#requestLog.recordLoss(by.relay, lost, nowMs);
    };
    if (!mayFind) {
      this.#causes.addIdentification(body.byteLength, identify, () => explain(by.cause, claimed));
      return;
    }
    // The diagnosis counts the bytes of the same body.
    if (!isStray) this.#causes.addIdentification(0, identify);
    const record = (cause: string, names: "difference" | "since" | null): void => {
      if (names !== null) this.#deps.health.recordCause(by.relay, cause, names === "difference");
      explain(cause, claimed);
    };
    const acceptedAt = this.#deps.health.healthOf(by.relay.id).acceptedAt;
    this.#causes.add({ by, received, headers: [...headers], acceptedAt, record });
  }

  /** Throws where the address is over its cap. Costly work is then refused, whether the request would verify or not. */
  #requireRoom(source: string, relays: readonly LiveRelay[]): void {
    const refusal = this.#unverified.findRefusal(source);
    if (refusal === null) return;
    const cause = "the request was too costly to verify after so many rejected ones from its address";
    for (const relay of relays)
      this.#requestLog.recordRejected({ relay, code: "source_capped", cause }, source, refusal);
    throw refusal;
  }

  #asRefusal(error: unknown): Refusal {
    if (error instanceof Refusal) return error;
    if (error instanceof StoreUnavailable)
      this.#deps.log.error("event not recorded", { cause: error.message });
    else this.#deps.log.error("receiver failed", { error });
    return new Refusal("not_recorded", "The event could not be stored and nothing ran; send it again.");
  }
}

function nameOutcome(answer: ReceiverAnswer): string {
  if (answer instanceof HandshakeAnswer) return "handshake";
  if ("duplicate" in answer) return "duplicate";
  return "ignored" in answer ? "ignored" : "accepted";
}

/** Reports whether a scanner sent the request: it has nothing that could be a signature, where the relay's sender sends one in a header. */
function isStranger({ definition: { trigger } }: LiveRelay, { headers, search }: ReceiverRequest): boolean {
  if (trigger.kind !== "receiver") return false;
  const way = signingMethodOf(trigger.verify);
  const elsewhere = way.fields.signatureField !== undefined || search !== "";
  if (elsewhere || way.headers.some((name) => headers.has(name))) return false;
  for (const name of headers.keys()) if (SIGNING_HEADER.test(name)) return false;
  return true;
}
