/**
 * The roads of relays that only touch the database: every event runs whole inside one transaction. The shortest is the one that stores it, where
 * nothing of the relay waits before it and nothing about relays changes meanwhile: its row is written once, as the run leaves it. Whatever else
 * comes is stored as it came, and so is all of a transaction that has to be undone; it runs in batches, one transaction for events of all such
 * relays, in the order of their arrival and as many of each as of the others. What has arrived for them is held in between.
 */

import type { Clock } from "../../base/clock.ts";
import type { LiveRelay, LiveRelays, Snapshot } from "../../rules/relay/live-relay.ts";
import type { Holder } from "../../store/lease/lease-holder.ts";
import { type FencedStore, StoreUnavailable, type WholeTransaction, type Writer } from "../../store/port.ts";
import { countAttempt, type HandedEvent, listDueEvents } from "../event/event.ts";
import type { EndedRun, EventCame } from "../event/run.ts";
import { Attempt, type AttemptDeps } from "./attempt.ts";
import { type Ending, type Finished, finishAttempts, finishCarefully, runWhole } from "./attempt-result.ts";
import { type EventToCome, listClear, listStanding } from "./idle-relays.ts";

/** Events in one transaction. */
export const BATCH_SIZE = 128;
/** Of those that have to be read: each may take 32 KB, and is read anew where the time did not suffice for it. */
export const MOST_READ = 64;
/** A batch ends after so many, and after this long, whatever is left of it: every receiver waits meanwhile. The usual one takes less. */
export const MOST_RUN = 384;
export const MAX_BATCH_MS = { whole: 8, shared: 40 } as const;
/** Events that are held for batches. Some megabytes at most, as a payload that is stored whole takes 32 KB. */
const MAX_HELD = 1_024;
const MAX_HELD_CHARS = 4 * 1024 * 1024;
/** Runs end after this long: those who only brought an event wait for them. Where others write too they hold no event loop. */
const MAX_BESIDE_MS = { whole: 12, shared: 40 } as const;

interface RoadDeps extends AttemptDeps {
  holding: Holder;
  clock: Clock;
  relays: LiveRelays;
  arrivals: Arrivals;
}

interface BesideDeps extends RoadDeps {
  /** Whether the environment's events may be taken here. */
  isOpen: (environmentId: number) => boolean;
  /** Told of runs once they are durable. */
  onFinished: (finished: Finished) => void;
}

/** A transaction that events may run in. `clear`: relays whose next event is the oldest; null: this process alone stores any, and knows it. */
interface Open {
  whole: WholeTransaction;
  relays: Snapshot;
  clear: ReadonlyMap<string, number> | null;
}

/** Runs beside the events that one work of a transaction stores. */
export class Beside {
  readonly #tx: Writer;
  readonly #deps: BesideDeps;
  readonly #events: readonly EventToCome[];
  readonly #nowMs: number;
  readonly #endMs: number;
  readonly #endings: Ending[] = [];
  /** null: nothing may run here. undefined: that was not looked into. */
  #open: Open | null | undefined;
  /** Which of the fenced stores let pass what is done in this transaction. */
  readonly #passing = new Map<FencedStore, boolean>();

  /** `events`: what may come; those that are handed to nobody are not overtaken. `takes`: whether the runner takes anything now. */
  constructor(tx: Writer, deps: BesideDeps, events: readonly EventToCome[], takes: boolean) {
    if (!takes) this.#open = null;
    for (const { relayId, hand } of events) if (hand == null) deps.arrivals.leaveIn(tx.whole, relayId);
    this.#tx = tx;
    this.#events = events;
    this.#deps = deps;
    this.#nowMs = deps.clock.now();
    this.#endMs = deps.clock.monotonicMs() + MAX_BESIDE_MS[deps.holding.whole ? "whole" : "shared"];
  }

  /** Runs an event that is about to be stored; null: it did not run, and waits once it is stored. `end` must follow the last one. */
  async run({ relayId, event, payload }: HandedEvent): Promise<EndedRun | null> {
    const tx = this.#tx;
    if (this.#open === undefined) this.#open = await this.#look();
    const open = this.#open;
    const relay = open === null ? null : this.#free(open, relayId, event.mapVersion);
    const isOwn = (relay !== null && open?.clear != null) || (await this.#holds(event.environmentId));
    if (open === null || relay === null || !isOwn) {
      // Whoever runs it instead is told by the commit.
      if (!isOwn && !this.#deps.holding.whole) tx.touch("event", relayId);
      this.#deps.arrivals.leaveIn(tx.whole, relayId);
      return null;
    }
    open.whole.hush();
    const begin = () => new Attempt(countAttempt(event), relay, this.#nowMs, this.#deps, { payload });
    const ending = await tx.attempt(() => runWhole(tx, begin(), "first", this.#nowMs));
    this.#endings.push(ending);
    return ending.row;
  }

  /** Writes down how the runs ended, behind their events' rows. */
  async end(): Promise<void> {
    if (this.#endings.length === 0) return;
    const finished = await this.#tx.attempt(() => finishAttempts(this.#tx, this.#endings, this.#nowMs));
    this.#tx.afterCommit(() => finished.forEach(this.#deps.onFinished));
  }

  /** What is asked once for all: the transaction as it stands now, before any of its runs. */
  async #look(): Promise<Open | null> {
    const { whole, foreignVersion } = this.#tx;
    const { arrivals, holding } = this.#deps;
    const relays = this.#deps.relays.known;
    if (whole === null || relays === null) return null;
    if (whole.hasTouched("relay") || whole.hasTouched("environment")) return null;
    if (!holding.whole) return { whole, relays, clear: await listClear(this.#tx, this.#events, relays) };
    arrivals.begin(foreignVersion);
    return { whole, relays, clear: null };
  }

  /** Whether the environment's events are this process's to run; asked once for all that one lease stands for. */
  async #holds(environmentId: number): Promise<boolean> {
    const { isOpen, holding } = this.#deps;
    if (!isOpen(environmentId)) return false;
    const store = holding.storeOf(environmentId);
    const passes = this.#passing.get(store) ?? (await store.letsPass(this.#tx));
    this.#passing.set(store, passes);
    return passes;
  }

  /** The relay, if its newest event may run before any other of its. */
  #free({ whole, relays, clear }: Open, relayId: string, mapVersion: number | null): LiveRelay | null {
    const { arrivals, clock } = this.#deps;
    const relay = relays.findRelay(relayId);
    if (relay === null || relay.waiting || relay.releasing || relay.sends) return null;
    if (relay.version !== mapVersion) return null;
    if (whole.hasTouched("event", relayId) || whole.hasTouched("event_left", relayId)) return null;
    if (!arrivals.isClear(whole, relayId, clear && clear.get(relayId) === relay.version)) return null;
    return clock.monotonicMs() < this.#endMs ? relay : null;
  }
}

/** `careful`: each event's end is written by itself, so that one which breaks fails alone. */
type BatchDeps = RoadDeps & { store: FencedStore; careful?: boolean };

/** A relay's part of a batch: what was taken of it, how far that ran, and whether the store may hold more. */
interface Share {
  readonly relay: LiveRelay;
  through: number;
  readonly due: readonly Omit<HandedEvent, "relayId">[];
  readonly came: EventCame;
  readonly hasMore: boolean;
  readonly losses: number;
}
type Reached = Pick<Share, "relay" | "through">;

/**
 * Runs the relays' oldest due events to the end of their attempt, whosever they are in the order of their arrival: what little waited together,
 * as while its environment was held, runs as it came. Relays that the time of their last batch did not suffice for come first. Nothing is kept of a batch
 * that breaks; it is run again, carefully.
 */
export async function runBatch(relays: readonly LiveRelay[], deps: BatchDeps): Promise<Finished[]> {
  try {
    return await commitBatch(relays, deps);
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    const names = relays.map(({ name }) => name).join();
    deps.log.error("a batch broke; its events run one by one", { relay: names, error });
    for (const { id } of relays) deps.arrivals.lose(id);
    return await commitBatch(relays, { ...deps, careful: true });
  }
}

function commitBatch(relays: readonly LiveRelay[], deps: BatchDeps): Promise<Finished[]> {
  const { store, clock, arrivals, holding, careful = false } = deps;
  return store.write("relay", async (tx) => {
    arrivals.begin(tx.foreignVersion);
    const nowMs = clock.now();
    const endMs = clock.monotonicMs() + MAX_BATCH_MS[holding.whole ? "whole" : "shared"];
    const isOver = (): boolean => clock.monotonicMs() >= endMs;
    const [ended, finished]: [Ending[], Finished[]] = [[], []];
    const isFull = (): boolean => ended.length + finished.length >= MOST_RUN;
    const standing = await listStanding(tx, relays, deps.relays);
    for (const relay of relays) if (!standing.includes(relay)) arrivals.lose(relay.id);
    let round: Reached[] = standing.map((relay) => ({ relay, through: 0 }));
    do {
      // While anything waits, what comes on any node waits behind it: one share may be less than what comes until the next.
      const shares: Share[] = [];
      for (const share of round) shares.push(await takeShare(tx, share, standing.length, arrivals));
      for (const [at, { share, due }] of listInTurn(shares, arrivals.late).entries()) {
        if (at > 0 && isOver()) break;
        const [event, { relay, came }] = [countAttempt(due.event), share];
        const attempt = () => new Attempt(event, relay, nowMs, deps, { payload: due.payload });
        const run = () => runWhole(tx, attempt(), came, nowMs);
        if (careful) finished.push(await finishCarefully(tx, relay, event, run, nowMs, deps));
        else ended.push(await run());
        share.through = event.seq;
      }
      const unreached = shares.filter(({ due: [first], through }) => first && through < first.event.seq);
      arrivals.late = new Set(unreached.map(({ relay }) => relay.id));
      round = shares.filter((share) => unreached.includes(share) || passShare(tx, share, arrivals));
    } while (!holding.whole && !isOver() && !isFull() && round.length > 0);
    return [...finished, ...(await finishAttempts(tx, ended, nowMs))];
  });
}

/** Takes the relay's due events behind those that ran, up to its part of a batch. */
async function takeShare(tx: Writer, from: Reached, shares: number, arrivals: Arrivals): Promise<Share> {
  const { relay, through } = from;
  const { arrived, losses } = arrivals.peek(relay.id, Math.ceil(BATCH_SIZE / shares));
  // A map that moved is read with the row.
  if (arrived?.every(({ event }) => event.mapVersion === relay.version) === true)
    return { relay, through, due: arrived, came: "handed", hasMore: false, losses };
  const most = Math.ceil(MOST_READ / shares);
  const read = await listDueEvents(tx, relay.id, most, through);
  const due = read.map((event) => ({ event, payload: null }));
  return { relay, through, due, came: "read", hasMore: read.length === most, losses };
}

function listInTurn(shares: readonly Share[], late: ReadonlySet<string>) {
  const turn = ({ relay }: Share): number => (late.has(relay.id) ? 0 : 1);
  const all = shares.flatMap((share) => share.due.map((due) => ({ share, due })));
  return all.sort((a, b) => turn(a.share) - turn(b.share) || a.due.event.seq - b.due.event.seq);
}

/** Tells the arrivals how far the relay's events ran, once that is durable; answers whether the store may hold more. */
function passShare(tx: Writer, share: Share, arrivals: Arrivals): boolean {
  const { relay, through, due, came, hasMore, losses } = share;
  const isWhole = came === "handed" || (!hasMore && through === (due.at(-1)?.event.seq ?? through));
  arrivals.runIn(tx.whole, relay.id, through);
  tx.afterCommit(() => arrivals.pass(relay.id, through, { isWhole, losses }));
  return !isWhole;
}

/**
 * Events handed over by whoever has just stored them, so that a batch need not read them again. A relay's are taken from here only while this
 * memory is whole: every event of it that is due now came this way after a batch had looked into the store and left none. Whatever else may
 * make an event due (a retry, a replay, another process, a start) loses the relay's memory, and its next batch looks again. What was handed over
 * may have changed since: who ends its run asks for the row as it was stored. It bounds itself; what it drops is in the store.
 */
export class Arrivals {
  /** Relays that the time of their last batch did not suffice for. */
  late: ReadonlySet<string> = new Set();
  readonly #byRelay = new Map<string, RelayMemory>();
  #count = 0;
  #chars = 0;
  #foreignVersion: number | null = null;

  /**
   * Call in the transaction that takes events: another process may have stored older ones than were handed over since, or made some
   * due again, so that every relay is looked into.
   */
  begin(foreignVersion: number): void {
    if (foreignVersion === this.#foreignVersion) return;
    this.#foreignVersion = foreignVersion;
    this.loseAll();
  }

  /** After the commit that stored it. */
  add(arrived: HandedEvent): void {
    const { relayId, event } = arrived;
    const memory = this.#of(relayId);
    if (!memory.isWhole || event.seq <= memory.through) return;
    if (this.#count < MAX_HELD && this.#chars + event.payload.length <= MAX_HELD_CHARS) {
      memory.held.push(arrived);
      this.#count += 1;
      this.#chars += event.payload.length;
    } else this.lose(relayId);
  }

  /** An event of the relay may be due that did not come this way. */
  lose(relayId: string): void {
    const memory = this.#of(relayId);
    memory.isWhole = false;
    memory.losses += 1;
    this.#drop(memory, memory.held.length);
  }

  /** Events of any relay may be due that did not come this way. */
  loseAll(): void {
    for (const relayId of this.#byRelay.keys()) this.lose(relayId);
  }

  /** Whether the relay may have an event that is due. */
  mayHold(relayId: string): boolean {
    const { isWhole, held } = this.#of(relayId);
    return !isWhole || held.length > 0;
  }

  /** In a transaction: the relay's events up to `through` were run in it. */
  runIn(whole: WholeTransaction | null, relayId: string, through: number): void {
    this.#of(relayId).ranIn = { whole, through };
  }

  /** In a transaction: an event of the relay was stored that is due, or may be. */
  leaveIn(whole: WholeTransaction | null, relayId: string): void {
    this.#of(relayId).leftIn = whole;
  }

  /**
   * Whether no event of the relay is due, as a transaction sees it that told of all it did: then the next to come is the oldest. `asked`: what the
   * store says of all before this transaction; null: it was not asked.
   */
  isClear(whole: WholeTransaction, relayId: string, asked: boolean | null): boolean {
    const { isWhole, held, ranIn, leftIn } = this.#of(relayId);
    const last = held.at(-1)?.event.seq ?? 0;
    const before = () => isWhole && (last === 0 || (ranIn?.whole === whole && ranIn.through >= last));
    return leftIn !== whole && (asked ?? before());
  }

  /** The relay is gone. */
  forget(relayId: string): void {
    this.lose(relayId);
    this.#byRelay.delete(relayId);
  }

  /** The relay's oldest due events, which stay; null: only the store knows them. */
  peek(relayId: string, limit: number): { arrived: readonly HandedEvent[] | null; losses: number } {
    const { isWhole, held, losses } = this.#of(relayId);
    return { arrived: isWhole ? held.slice(0, limit) : null, losses };
  }

  /** After the commit of a batch: the relay's events up to `through` were run; `isWhole`: and no other was due, unless it was lost since. */
  pass(relayId: string, through: number, { isWhole, losses }: { isWhole: boolean; losses: number }): void {
    const memory = this.#of(relayId);
    memory.through = Math.max(memory.through, through);
    memory.isWhole = isWhole && memory.losses === losses;
    const left = memory.held.findIndex(({ event }) => event.seq > memory.through);
    this.#drop(memory, left < 0 || !memory.isWhole ? memory.held.length : left);
  }

  #drop(memory: RelayMemory, count: number): void {
    this.#count -= count;
    for (const { event } of memory.held.splice(0, count)) this.#chars -= event.payload.length;
  }

  #of(relayId: string): RelayMemory {
    let memory = this.#byRelay.get(relayId);
    if (memory === undefined) {
      memory = new RelayMemory();
      this.#byRelay.set(relayId, memory);
    }
    return memory;
  }
}

class RelayMemory {
  isWhole = false;
  /** Everything up to this event was run, or seen by the look that made the memory whole. */
  through = 0;
  /** Counts how often it was lost, so that a look from before does not make it whole again. */
  losses = 0;
  held: HandedEvent[] = [];
  /** What was run, and whether anything was left, in a transaction that is not durable yet; of an earlier one it says nothing. */
  ranIn: { whole: WholeTransaction | null; through: number } | null = null;
  leftIn: WholeTransaction | null = null;
}
