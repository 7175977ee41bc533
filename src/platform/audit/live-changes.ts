/**
 * Streams which kinds of data change in an environment, at most twice a second. It costs nothing while no client follows. A message names the
 * kind only, never data, so it cannot be outdated or leak a secret.
 */
import type { Clock } from "../../base/clock.ts";
import { Refusal } from "../../base/refusal.ts";
import { ANYWHERE, type ChangedTopics, type Store, type Topic } from "../../store/port.ts";

/** `event`: an event arrived or ran. `audit`: a management change was audited. */
export const CHANGE_KINDS = [
  "event",
  "call",
  "record",
  "relay",
  "setting",
  "problem",
  "alert",
  "bulk_replay",
  "audit",
] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

const KINDS: Partial<Record<Topic, ChangeKind>> = {
  event_moved: "event",
  call: "call",
  record: "record",
  relay: "relay",
  environment: "setting",
  problem: "problem",
  alert: "alert",
  bulk_replay: "bulk_replay",
  audit: "audit",
};

/** Changes within this time share one message. */
const GATHER_MS = 30;
const NOTIFY_INTERVAL_MS = 500;
const MAX_OF_CALLER = 16;
const MAX_OF_ENVIRONMENT = 100;
/** A rejected client retries after this time. */
const RETRY_AFTER_MS = 30_000;

interface Follower {
  /** Identifies the caller: `session:…`, `key:…`. */
  caller: string;
  notify(kinds: readonly ChangeKind[]): void;
  /** Runs when the service stops. */
  end(): void;
}

interface Followed {
  readonly followers: Set<Follower>;
  readonly pending: Set<ChangeKind>;
  notifiedAtMs: number;
  cancel: (() => void) | null;
}

interface Deps {
  store: Pick<Store, "listen" | "watch">;
  clock: Clock;
}

export class LiveChanges {
  readonly #deps: Deps;
  readonly #followed = new Map<number, Followed>();
  #stopListening: (() => void) | null = null;
  #isStopped = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Notifies the follower until the returned function is called. Throws `streams_capped` if too many clients follow. */
  follow(environmentId: number, follower: Follower): () => void {
    const followed = this.#followed.get(environmentId) ?? newFollowed();
    const ownStreams = [...followed.followers].filter(({ caller }) => caller === follower.caller).length;
    if (this.#isStopped || ownStreams >= MAX_OF_CALLER || followed.followers.size >= MAX_OF_ENVIRONMENT)
      throw new Refusal(
        "streams_capped",
        `At most ${MAX_OF_CALLER} streams of one session or key and ${MAX_OF_ENVIRONMENT} of the environment can be open at a time: end one, or poll every few seconds.`,
        { resetAtMs: this.#deps.clock.now() + RETRY_AFTER_MS },
      );
    followed.followers.add(follower);
    this.#followed.set(environmentId, followed);
    this.#stopListening ??= this.#listen();
    return () => this.#leave(environmentId, followed, follower);
  }

  stop(): void {
    this.#isStopped = true;
    for (const { followers } of [...this.#followed.values()]) for (const one of [...followers]) one.end();
  }

  #leave(environmentId: number, followed: Followed, follower: Follower): void {
    if (!followed.followers.delete(follower) || followed.followers.size > 0) return;
    followed.cancel?.();
    this.#followed.delete(environmentId);
    if (this.#followed.size > 0) return;
    this.#stopListening?.();
    this.#stopListening = null;
  }

  #listen(): () => void {
    const { store } = this.#deps;
    const stops = [
      store.listen((changes) => this.#recordTouched(changes)),
      // Another process does not say what it changed, so every kind may have changed.
      store.watch(({ foreignChange }) => {
        if (foreignChange) for (const kind of CHANGE_KINDS) this.#record(kind, null);
      }),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }

  #recordTouched(changes: ChangedTopics): void {
    for (const [topic, ids] of changes) {
      const kind = KINDS[topic];
      if (kind === undefined) continue;
      for (const id of ids) this.#record(kind, id === ANYWHERE ? null : Number(id));
    }
  }

  /** `environmentId` null: any environment may have changed. */
  #record(kind: ChangeKind, environmentId: number | null): void {
    const one = environmentId === null ? undefined : this.#followed.get(environmentId);
    const all = environmentId === null ? this.#followed.values() : one === undefined ? [] : [one];
    for (const followed of all) {
      followed.pending.add(kind);
      followed.cancel ??= this.#scheduleNotify(followed);
    }
  }

  #scheduleNotify(followed: Followed): () => void {
    const { clock } = this.#deps;
    const waitMs = Math.max(GATHER_MS, followed.notifiedAtMs + NOTIFY_INTERVAL_MS - clock.monotonicMs());
    return clock.after(waitMs, () => {
      followed.cancel = null;
      followed.notifiedAtMs = clock.monotonicMs();
      const kinds = [...followed.pending];
      followed.pending.clear();
      for (const follower of [...followed.followers]) follower.notify(kinds);
    });
  }
}

function newFollowed(): Followed {
  return { followers: new Set(), pending: new Set(), notifiedAtMs: Number.NEGATIVE_INFINITY, cancel: null };
}
