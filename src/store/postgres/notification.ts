/**
 * Notifies other nodes of changed topics. A topic on which another node acts is sent with the commit. Topics that only viewers follow, or that
 * regular checks find anyway, are gathered for a moment, because each notification wakes every node.
 */
import { systemClock } from "../../base/clock.ts";
import { ANYWHERE, type ChangedTopics, type Topic } from "../port.ts";

/** The channel of these notifications. */
export const CHANGES_CHANNEL = "relay_touched";
/** The longest message, because the server refuses longer ones. */
const MAX_NOTICE_BYTES = 7_500;

/** Topics that can wait. Only viewers of an environment follow them, at most twice a second, or the runner for events that it does not run now. */
const MAY_WAIT: ReadonlySet<Topic> = new Set(["event_left", "event_moved", "record", "call", "audit"]);
const GATHER_MS = 50;
/** The wait before another attempt after a failed notification. */
const AGAIN_MS = 1_000;

/** A notification: its message, and the changes that the message carries. */
export interface Notice {
  text: string;
  changes: ChangedTopics;
}

export class Notices {
  readonly #node: string;
  readonly #send: (text: string) => Promise<unknown>;
  #gathered = new Map<Topic, Set<string>>();
  #sinceMs = 0;
  #cancel: () => void = () => undefined;
  #isClosed = false;

  /** `node` is the sender. `send` sends a message outside of a writer's transaction. */
  constructor(node: string, send: (text: string) => Promise<unknown>) {
    this.#node = node;
    this.#send = send;
  }

  /**
   * Returns the notification that a transaction with these changes must send with its commit, including all gathered changes. Returns null if the
   * changes can wait. The caller then gathers them after the commit.
   */
  take(changes: ChangedTopics): Notice | null {
    const isDue =
      [...changes.keys()].some((topic) => !MAY_WAIT.has(topic)) ||
      (this.#gathered.size > 0 && systemClock.monotonicMs() - this.#sinceMs >= GATHER_MS);
    if (!isDue) return null;
    this.gather(changes);
    return this.#takeAll();
  }

  /**
   * Gathers changes that are already committed. A notification before the commit would make other nodes read the old rows, and no second one would
   * follow.
   */
  gather(changes: ChangedTopics): void {
    this.#gather(changes, GATHER_MS);
  }

  /** Gathers changes again after a notification failed or its result is unknown. */
  giveBack(changes: ChangedTopics): void {
    this.#gather(changes, AGAIN_MS);
  }

  /** Sends what is left if `canTell` is true. */
  async close(canTell: boolean): Promise<void> {
    this.#isClosed = true;
    const left = this.#takeAll();
    if (canTell && left !== null) await this.#send(left.text).catch(() => undefined);
  }

  #gather(changes: ChangedTopics, withinMs: number): void {
    if (changes.size === 0 || this.#isClosed) return;
    if (this.#gathered.size === 0) {
      this.#sinceMs = systemClock.monotonicMs();
      this.#cancel = systemClock.after(withinMs, () => this.#sendAll());
    }
    for (const [topic, ids] of changes) {
      const gathered = this.#gathered.get(topic) ?? new Set();
      for (const id of ids) gathered.add(id);
      this.#gathered.set(topic, gathered);
    }
  }

  #takeAll(): Notice | null {
    if (this.#gathered.size === 0) return null;
    this.#cancel();
    const changes = this.#gathered;
    this.#gathered = new Map();
    return { text: writeNotice(this.#node, changes), changes };
  }

  #sendAll(): void {
    const notice = this.#takeAll();
    if (notice !== null) this.#send(notice.text).catch(() => this.giveBack(notice.changes));
  }
}

/** Writes the message. If it is too long, each topic applies to any ID. */
function writeNotice(node: string, changes: ChangedTopics): string {
  const topics = Object.fromEntries([...changes].map(([topic, ids]) => [topic, [...ids]]));
  const notice = JSON.stringify({ node, topics });
  if (Buffer.byteLength(notice) <= MAX_NOTICE_BYTES) return notice;
  return JSON.stringify({
    node,
    topics: Object.fromEntries(Object.keys(topics).map((topic) => [topic, null])),
  });
}

/** A received notification. A missing `topics` means that another program wrote by SQL. */
interface Heard {
  node?: string;
  topics?: (readonly [Topic, ReadonlySet<string>])[];
}

/**
 * Reads a message. A topic without IDs applies to any ID. Any user of the database can send a message, so an unreadable one counts as a write of
 * another program.
 */
export function readNotice(text: string): Heard {
  try {
    const { node, topics } = JSON.parse(text) as { node?: string; topics?: Record<string, string[] | null> };
    if (topics === undefined) return { ...(node === undefined ? {} : { node }) };
    const read = Object.entries(topics).map(
      ([topic, ids]) => [topic as Topic, new Set(ids ?? [ANYWHERE])] as const,
    );
    return { ...(node === undefined ? {} : { node }), topics: read };
  } catch {
    return {};
  }
}
