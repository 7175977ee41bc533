/**
 * What nodes tell each other that they touched. What another node acts upon is told with the commit that touched it. What somebody looks at, or what
 * is looked for once more for safety's sake, is gathered for a moment, since each notice wakes every node and its listener.
 */
import { systemClock } from "../../base/clock.ts";
import { ANYWHERE, type ChangedTopics, type Topic } from "../port.ts";

/** The channel on which they do. */
export const CHANGES_CHANNEL = "relay_touched";
/** A longer message is refused by the server. */
const MAX_NOTICE_BYTES = 7_500;

/** Nobody but who follows an environment hears of them, and is told twice a second at most; or the runner, of what it does not run now. */
const MAY_WAIT: ReadonlySet<Topic> = new Set(["event_left", "event_moved", "record", "call", "audit"]);
const GATHER_MS = 50;
/** Where nobody could be told. */
const AGAIN_MS = 1_000;

/** `text`: what others are told. */
interface Notice {
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

  /** `node`: who tells; `send`: where no transaction takes it with it. */
  constructor(node: string, send: (text: string) => Promise<unknown>) {
    this.#node = node;
    this.#send = send;
  }

  /** What a transaction that touched this tells with its commit, with all that was gathered; null: nothing, so its touches are gathered behind it. */
  take(changes: ChangedTopics): Notice | null {
    const isDue =
      [...changes.keys()].some((topic) => !MAY_WAIT.has(topic)) ||
      (this.#gathered.size > 0 && systemClock.monotonicMs() - this.#sinceMs >= GATHER_MS);
    if (!isDue) return null;
    this.gather(changes);
    return this.#takeAll();
  }

  /** What others can see by now: told earlier they would see what was before, and nobody would tell them again. */
  gather(changes: ChangedTopics): void {
    this.#gather(changes, GATHER_MS);
  }

  /** Nobody was told, or nobody knows. */
  giveBack(changes: ChangedTopics): void {
    this.#gather(changes, AGAIN_MS);
  }

  /** Tells what is left, where somebody can be told. */
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

/** A long list of relays becomes any relay's. */
function writeNotice(node: string, changes: ChangedTopics): string {
  const topics = Object.fromEntries([...changes].map(([topic, ids]) => [topic, [...ids]]));
  const notice = JSON.stringify({ node, topics });
  if (Buffer.byteLength(notice) <= MAX_NOTICE_BYTES) return notice;
  return JSON.stringify({
    node,
    topics: Object.fromEntries(Object.keys(topics).map((topic) => [topic, null])),
  });
}

/** Without `topics`: somebody wrote by SQL of their own. */
interface Heard {
  node?: string;
  topics?: (readonly [Topic, ReadonlySet<string>])[];
}

/** A topic without ids: any. Whoever may connect can send one; what no node wrote is somebody's. */
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
