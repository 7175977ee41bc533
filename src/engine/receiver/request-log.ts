/**
 * Collects requests that became no event, and writes them to the request log once a second, in one transaction for each environment, equal ones as
 * one row (request-coalescing.ts). A flood thus costs the disk almost nothing, and a crash loses at most the last second. Notifications report requests of
 * one relay and cause together with their number. It decides nothing about a request.
 */
import type { Clock } from "../../base/clock.ts";
import type { RefusalCode } from "../../base/code/refusal-code.ts";
import { MAX_RECENT_CALLS } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import type { Refusal } from "../../base/refusal.ts";
import { cutToLine } from "../../base/text.ts";
import { WriteBehind } from "../../base/write-behind.ts";
import type { CallNotice, UnknownReceiverNotice } from "../../platform/audit/notifier.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import type { LiveRelay, LiveRelays } from "../../rules/relay/live-relay.ts";
import type { Store } from "../../store/port.ts";
import { PassedTally } from "../event/passed-count.ts";
import { RejectedTally } from "../event/rejected-count.ts";
import type { Health } from "../health/health.ts";
import type { LostEvent } from "./lost-event.ts";
import { RejectionLedger, writeRejections } from "./rejected-delivery.ts";
import type { Rejection } from "./rejection.ts";
import {
  type ClaimedEvent,
  type FollowerOutcome,
  type RecentRequest,
  writeRecentRequests,
} from "./request.ts";
import { type CoalescedRequest, PlainCauses, RequestCoalescer } from "./request-coalescing.ts";
import { showUnknownName } from "./unknown-name.ts";
import {
  type FoundCalls,
  findUnknownRequests,
  type UnknownRequest,
  writeUnknownRequests,
} from "./unknown-request.ts";

const WRITE_AFTER_MS = 1_000;
/** In local development a developer waits for the line. */
const WRITE_AFTER_LOCAL_MS = 50;
/** The most unknown names between two writes, because a scan can make up any number. */
const MAX_UNKNOWN_NAMES = 100;
/** The most characters of a name. Any relay's name is shorter, so a cut name is near no relay. */
const MAX_NAME_CHARS = 100;
const MAX_CAUSE_CHARS = 500;
/** The most kinds of requests that are reported separately. Beyond these, requests of one relay and code are one kind. */
const MAX_NOTIFIED_KINDS = 200;

const CAPS: readonly RefusalCode[] = ["source_capped", "receiver_capped", "body_capped"];

/** A request without its relay and time. */
type LoggedRequest = Pick<RecentRequest, "outcome" | "code" | "cause" | "source"> & {
  eventId?: string | null;
  /** True if the relay ignored it but acts on other requests. */
  usual?: boolean;
  /** The result at each relay that follows it. */
  followers?: readonly FollowerOutcome[];
};

interface RequestLogDeps {
  store: Store;
  clock: Clock;
  log: Log;
  relays: LiveRelays;
  /** Makes fingerprints of names that may be secrets. */
  sealer: Pick<Sealer, "fingerprint">;
  /** True in local development. */
  local: boolean;
  health: Pick<Health, "flush">;
  /** Resolves when the causes in diagnosis are found. */
  causesFound(): Promise<void>;
  /** Reports the requests after each write. */
  notifier: RequestNotifier;
}

export interface RequestNotifier {
  notifyCall(request: CallNotice): void;
  notifyUnknownCall(request: UnknownReceiverNotice): void;
}

/** Requests of one relay and cause: the last one and the number. */
interface Kind {
  relay: LiveRelay;
  request: Pick<RecentRequest, "code" | "cause" | "eventId">;
  usual: boolean;
  calls: number;
}

export class RequestLog {
  readonly #deps: RequestLogDeps;
  readonly #behind: WriteBehind;
  /** The requests by environment, oldest first. */
  #logged = new Map<number, CoalescedRequest[]>();
  readonly #causes = new PlainCauses();
  readonly #folds = new RequestCoalescer(this.#causes);
  /** The requests to unknown names, by app and name. */
  #unknown = new Map<string, UnknownRequest>();
  /** Requests to unknown names that were assigned to environments, and could not be written. */
  #assigned: FoundCalls["unknown"] = [];
  readonly #kinds = new Map<string, Kind>();
  readonly #ledger = new RejectionLedger();
  readonly #rejected = new RejectedTally();
  readonly #passed = new PassedTally();
  /** The last waiting event and the number of requests, by relay. */
  readonly #waiting = new Map<string, { relay: LiveRelay; eventId: string; calls: number }>();

  constructor(deps: RequestLogDeps) {
    this.#deps = deps;
    const afterMs = deps.local ? WRITE_AFTER_LOCAL_MS : WRITE_AFTER_MS;
    const write = () => this.#write();
    this.#behind = new WriteBehind({ ...deps, afterMs, what: "recent calls", write });
  }

  /** Records a verified request that became no event: ignored by `when`, or a duplicate of `eventId`. */
  record(relay: LiveRelay, { usual = false, ...logged }: LoggedRequest): void {
    const request = this.#requestOf(relay, logged);
    this.#keep(request);
    this.#tally(relay, request, usual);
  }

  /** Counts a request that the relay did not take, while another relay of the receiver took it. The log has only requests that none took. */
  countPassed(relay: LiveRelay, outcome: "ignored" | "duplicate", atMs: number): void {
    this.#passed.add(relay, outcome, atMs);
    this.#behind.arm();
  }

  /** Reports an event that waits for a paused relay or a held environment. It is in the list of events, so it is not logged. */
  recordWaiting(relay: LiveRelay, eventId: string): void {
    if (relay.waitsFor === null) return;
    const pending = this.#waiting.get(relay.id);
    if (pending === undefined) this.#waiting.set(relay.id, { relay, eventId, calls: 1 });
    else {
      pending.relay = relay;
      pending.eventId = eventId;
      pending.calls += 1;
    }
    this.#behind.arm();
  }

  /**
   * Records a rejected request with the cause for the owner of one environment. Over a cap it has the caller's code, and the waiting ones of one
   * address share the last one's time and cause.
   */
  recordRejected({ relay, code, cause }: Rejection, source: string, refusal: Refusal): void {
    const isCapped = CAPS.includes(refusal.code);
    const logged = { outcome: "refused", code: isCapped ? refusal.code : code, cause, source } as const;
    this.#add(relay, this.#requestOf(relay, logged), isCapped);
  }

  /** Records a rejected request that is read or diagnosed later. The returned function takes its cause and what its event claims to be. */
  recordUnexplained(
    { relay, code, cause }: Rejection,
    source: string,
  ): (found: string, claimed: ClaimedEvent | null) => void {
    const request = this.#requestOf(relay, { outcome: "refused", code, cause, source });
    this.#behind.arm();
    return (found, claimed) => {
      this.#add(relay, { ...request, cause: cutToLine(found, MAX_CAUSE_CHARS), claimed });
    };
  }

  /** Records a rejected request that would have become an event; null where its body was not read. */
  recordLoss(relay: LiveRelay, lost: LostEvent | null, at: number): void {
    this.#ledger.record(relay, lost?.eventId ?? null, at, lost?.claimed?.type);
    this.#behind.arm();
  }

  /** Forgets the losses since this time, because the rejected requests were stray ones. */
  forgetLosses(relay: LiveRelay, since: number, until: number): void {
    this.#ledger.forget(relay, since, until);
    this.#behind.arm();
  }

  /** Records a request to an unknown name. The environment is looked up at the next write. */
  recordUnknown({ appId, name, source }: Pick<UnknownRequest, "appId" | "name" | "source">): void {
    const at = this.#deps.clock.now();
    const shown = showUnknownName(name, this.#deps.sealer);
    const key = `${appId}/${shown}`;
    const known = this.#unknown.get(key);
    if (known !== undefined) Object.assign(known, { at, source, count: known.count + 1 });
    else if (this.#unknown.size < MAX_UNKNOWN_NAMES)
      this.#unknown.set(key, { appId, name: name.slice(0, MAX_NAME_CHARS), shown, at, source, count: 1 });
    this.#behind.arm();
  }

  /** Writes what waits. Resolves when it is durable; without a writable store it stays waiting. */
  flush(): Promise<void> {
    return this.#behind.flush();
  }

  /** Writes what waits for the last time. */
  stop(): Promise<void> {
    return this.#behind.stop();
  }

  #requestOf(
    { environmentId, name: relayName }: LiveRelay,
    { outcome, code, cause: fullCause, source, eventId = null, followers = [] }: LoggedRequest,
  ): RecentRequest {
    const at = this.#deps.clock.now();
    const cause = cutToLine(fullCause, MAX_CAUSE_CHARS);
    const seen = { firstAt: at, at, count: 1 };
    const shown = followers.length === 0 ? null : followers;
    return { environmentId, relayName, ...seen, outcome, code, cause, source, eventId, followers: shown };
  }

  #add(relay: LiveRelay, request: RecentRequest, isCapped = false): void {
    this.#keep(request, isCapped);
    this.#tally(relay, request);
  }

  #keep(request: RecentRequest, isCapped = false): void {
    if (request.outcome === "refused")
      this.#rejected.add(request.environmentId, request.relayName, request.at);
    const folded = this.#folds.add(request, isCapped);
    if (folded === null) return;
    const calls = this.#logged.get(request.environmentId);
    if (calls === undefined) this.#logged.set(request.environmentId, [folded]);
    else {
      calls.push(folded);
      if (calls.length >= 2 * MAX_RECENT_CALLS) detach(calls.splice(0, MAX_RECENT_CALLS));
    }
  }

  #tally(relay: LiveRelay, request: Kind["request"], usual = false): void {
    let key = `${relay.id} ${request.code} ${this.#causes.strip(request.cause)}`;
    let kind = this.#kinds.get(key);
    if (kind === undefined && this.#kinds.size >= MAX_NOTIFIED_KINDS) {
      key = `${relay.id} ${request.code}`;
      kind = this.#kinds.get(key);
    }
    if (kind === undefined) this.#kinds.set(key, { relay, request, usual, calls: 1 });
    else {
      kind.request = request;
      kind.usual = usual;
      kind.calls += 1;
    }
    this.#behind.arm();
  }

  #notify(): void {
    const kinds = [...this.#kinds.values()];
    for (const { relay, eventId, calls } of this.#waiting.values()) {
      const cause = relay.waitsFor === null ? "" : WAITS[relay.waitsFor](relay.name);
      kinds.push({ relay, request: { code: "waiting", cause, eventId }, usual: false, calls });
    }
    this.#kinds.clear();
    this.#waiting.clear();
    for (const { relay, request, usual, calls } of kinds) {
      const { appId, environmentName, name: relayName } = relay;
      const { code, cause, eventId } = request;
      this.#deps.notifier.notifyCall({
        appId,
        environmentName,
        relayName,
        code: CODES[code] ?? code,
        cause,
        eventId,
        calls,
        usual,
      });
    }
  }

  async #write(): Promise<void> {
    await this.#deps.causesFound();
    this.#notify();
    this.#folds.prune(this.#deps.clock.now());
    const tallies = [this.#ledger, this.#rejected, this.#passed];
    const isEmpty = this.#logged.size + this.#unknown.size + this.#assigned.length === 0;
    if (isEmpty && tallies.every((tally) => tally.isEmpty)) return;
    await this.#assignUnknown();
    const snapshot = await this.#deps.relays.current();
    // The streak of rejected requests is stored before their rows, and its end deletes the rows of stray ones. The rows are taken last, so that such
    // an end always follows this transaction.
    if (!this.#ledger.isEmpty) await this.#deps.health.flush();
    const losses = [...this.#ledger.take()].map(([relayId, lost]) => {
      const environmentId = snapshot.findRelay(relayId)?.environmentId;
      return { environmentId, relayId, lost };
    });
    const [logged, assigned, rejected, passed] = [
      this.#logged,
      this.#assigned,
      this.#rejected.take(),
      this.#passed.take(),
    ];
    for (const calls of logged.values()) detach(calls);
    this.#logged = new Map();
    this.#assigned = [];
    const environmentIds = new Set([
      ...logged.keys(),
      ...[...assigned, ...losses].flatMap(({ environmentId = [] }) => environmentId),
      ...rejected.environmentIds,
      ...passed.environmentIds,
    ]);
    const written = await Promise.allSettled(
      [...environmentIds].map((environmentId) =>
        this.#writePart({
          environmentId,
          calls: logged.get(environmentId) ?? [],
          unknown: assigned.filter((one) => one.environmentId === environmentId),
          losses: new Map(
            losses
              .filter((one) => one.environmentId === environmentId)
              .map(({ relayId, lost }) => [relayId, lost]),
          ),
          rejected,
          passed,
        }),
      ),
    );
    for (const one of written) if (one.status === "rejected") throw one.reason;
  }

  /** Finds the environments of the requests to unknown names, and reports them. Requests of a deleted relay go to its log. */
  async #assignUnknown(): Promise<void> {
    if (this.#unknown.size === 0) return;
    const unknown = this.#unknown;
    this.#unknown = new Map();
    const { store, relays, notifier } = this.#deps;
    try {
      const found = await findUnknownRequests(store, await relays.current(), [...unknown.values()]);
      for (const request of found.former) {
        const calls = this.#logged.get(request.environmentId) ?? [];
        this.#logged.set(
          request.environmentId,
          [...calls, { ...request, fold: null }].slice(-MAX_RECENT_CALLS),
        );
      }
      this.#assigned.push(...found.unknown);
      for (const notice of found.notices) notifier.notifyUnknownCall(notice);
    } catch (error) {
      for (const [key, request] of unknown)
        if (!this.#unknown.has(key) && this.#unknown.size < MAX_UNKNOWN_NAMES)
          this.#unknown.set(key, request);
      throw error;
    }
  }

  /** Writes what waits for one environment in one transaction. If it throws, all of it waits again. */
  async #writePart({ environmentId, calls, unknown, losses, rejected, passed }: Part): Promise<void> {
    try {
      const rows = await this.#deps.store.write(
        "app",
        async (tx) => {
          const seqs = calls.length === 0 ? [] : await writeRecentRequests(tx, environmentId, calls);
          if (calls.length > 0) tx.notify("call", environmentId);
          await writeUnknownRequests(tx, unknown);
          await writeRejections(tx, losses);
          await rejected.write(tx, environmentId);
          await passed.write(tx, environmentId);
          return seqs;
        },
        environmentId,
      );
      for (const [nth, { fold }] of calls.entries()) if (fold !== null) fold.seq = rows[nth] ?? null;
    } catch (error) {
      this.#ledger.restore(losses);
      this.#rejected.restore(rejected, environmentId);
      this.#passed.restore(passed, environmentId);
      this.#assigned.push(...unknown.slice(-MAX_UNKNOWN_NAMES));
      this.#putBack(environmentId, calls);
      throw error;
    }
  }

  /** Puts requests in front of those that the environment's log got since. */
  #putBack(environmentId: number, calls: readonly CoalescedRequest[]): void {
    const later = this.#logged.get(environmentId) ?? [];
    this.#logged.set(environmentId, [...calls, ...later].slice(-MAX_RECENT_CALLS));
  }
}

/** The rows of one environment that wait to be written. The tallies are those of all environments. */
interface Part {
  environmentId: number;
  calls: readonly CoalescedRequest[];
  unknown: FoundCalls["unknown"];
  losses: ReturnType<RejectionLedger["take"]>;
  rejected: RejectedTally;
  passed: PassedTally;
}

/** Detaches the requests from their groups, because a later request of the group is another write to the same row. */
function detach(calls: readonly CoalescedRequest[]): void {
  for (const { fold } of calls) if (fold !== null) fold.waiting = null;
}

/** Maps a code of the log to the code of a notification. */
const CODES: Readonly<Record<string, string>> = { when: "ignored" };

const WAITS = {
  paused: (name: string) => `its relay is paused: it runs when you resume it (relay relays resume ${name})`,
  held: () => "its environment is on hold: it runs when you release the hold (relay settings set held off)",
  both: (name: string) =>
    `its environment is on hold and its relay is paused: it runs when you release the hold (relay settings set held off) and resume the relay (relay relays resume ${name})`,
} as const;
