/**
 * The runner: takes due events and runs them. It is woken by every new row and polls as the fallback. Events of one relay start in arrival
 * order. Different relays never wait for each other, except while a hold's release is in progress (hold-release.ts). It never knows where an event came from.
 * Relays whose actions only touch the database run beside the ingest or in batches (database-run.ts): an event, its effects, results and next state
 * are one transaction. A relay that sends takes its events (`running`, the attempt counts) and goes with each up to its first send in one
 * transaction, then runs each by itself, committing before and after every send.
 */

import { type Clock, waitAtMost } from "../../base/clock.ts";
import type { RaisableLimits } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import type { ToldRun } from "../../platform/audit/call-notifier.ts";
import type { ActionPorts } from "../../rules/action/contract.ts";
import type { LiveRelay, LiveRelays, Snapshot } from "../../rules/relay/live-relay.ts";
import { HOUSE, type Holder } from "../../store/lease/lease-holder.ts";
import {
  type Ahead,
  ANYWHERE,
  type FencedStore,
  StoreUnavailable,
  type Touched,
  type Writer,
} from "../../store/port.ts";
import type { EventToRun, HandedEvent } from "../event/event.ts";
import { type EndedRun, type Finished, failOrphanedEvents } from "./attempt-result.ts";
import { Arrivals, BATCH_SIZE, Beside, runBatch } from "./database-run.ts";
import { Releases } from "./hold-release.ts";
import { type EventToCome, lookAhead } from "./idle-relays.ts";
import { UnderWay } from "./in-flight.ts";
import { Poller } from "./poller.ts";
import { type Claimed, claimSending, runSending, Slots } from "./sending.ts";

/** A graceful stop waits so long for what is out of the house; a call_url takes 10 seconds at most. */
const STOP_WAIT_MS = 12_000;

interface RunnerDeps {
  holding: Holder;
  clock: Clock;
  relays: LiveRelays;
  ports: ActionPorts;
  log: Log;
  concurrency: number;
  limits: RaisableLimits;
  /** Takes the line of every run, without its newline. */
  printRun: (line: string) => void;
  /** Told of every run that failed, after its line. */
  teller: { tellRun(told: ToldRun): void };
  /** Told of every run that ended, after its commit. */
  watchers: readonly { noteRun(run: EndedRun): void }[];
}

export class Runner {
  readonly #deps: RunnerDeps;
  /** Relays that may have a due event, the longest ready first. */
  #ready = new Set<string>();
  /** Relays with a claim or a batch on its way. */
  readonly #busy = new Set<string>();
  /** Relays whose last claim the store undid: the next takes one event without its first step, so that one that breaks the store fails alone. */
  readonly #undone = new Set<string>();
  readonly #slots: Slots;
  readonly #poller: Poller;
  readonly #arrivals = new Arrivals();
  readonly #besideDeps: ConstructorParameters<typeof Beside>[1];
  /** The stores that a batch is on its way in. */
  readonly #batching = new Set<FencedStore>();
  readonly #releases: Releases;
  readonly #working = new UnderWay();
  #pumping = false;
  /** Somebody asked while a pump was on its way. */
  #pumpAgain = false;
  #stopped = false;
  #stopping: Promise<void> | null = null;

  constructor(deps: RunnerDeps) {
    this.#deps = deps;
    this.#slots = new Slots(deps.concurrency);
    this.#poller = new Poller(deps, (relayIds) => {
      const releasing = deps.relays.known?.releasing ?? [];
      for (const relayId of [...relayIds, ...releasing]) this.#lookInto(relayId);
      this.#pump();
    });
    this.#releases = new Releases({ ...deps, slots: this.#slots, poller: this.#poller });
    const isOpen = (environmentId: number): boolean => this.#isOpen(environmentId);
    this.#besideDeps = { ...deps, isOpen, arrivals: this.#arrivals, onFinished: this.#onFinished };
  }

  /** Whether the environment's events may be taken. */
  #isOpen(environmentId: number): boolean {
    const { holding } = this.#deps;
    return holding.holds(environmentId) && (holding.whole || this.#poller.hasRescued(environmentId));
  }

  /** The relay's due events are to be looked for in the store. */
  #lookInto(relayId: string): void {
    this.#arrivals.lose(relayId);
    this.#ready.add(relayId);
  }

  /** Takes an event that was just stored, after its commit. */
  handOver(arrived: HandedEvent): void {
    if (this.#stopped) return;
    this.#arrivals.add(arrived);
    this.#ready.add(arrived.relayId);
    this.#pump();
  }

  /** For a transaction that stores events: runs those that may run in it. */
  beside(tx: Writer, events: readonly EventToCome[]): Pick<Beside, "run" | "end"> {
    return new Beside(tx, this.#besideDeps, events, !this.#stopped);
  }

  /** Asks for what `beside` would read to run such events. */
  lookAhead(ahead: Ahead, events: readonly EventToCome[]): readonly Promise<unknown>[] {
    return this.#stopped ? [] : lookAhead(ahead, events, this.#besideDeps);
  }

  /** Runs the environment's events from now on, or what is done once for all. */
  take(environmentId: number): void {
    // Another one may have stored some meanwhile.
    this.#arrivals.loseAll();
    if (environmentId === HOUSE) this.#poller.takeHouse();
    else this.#poller.take(environmentId);
  }

  /** Takes none of the environment's events any more. `wait`: resolves when those that run have ended, or after a while. */
  async drop(environmentId: number, { wait }: { wait: boolean }): Promise<void> {
    this.#poller.drop(environmentId);
    if (wait) await waitAtMost(this.#deps.clock, STOP_WAIT_MS, this.#working.whenIdle(environmentId));
  }

  /** Rescues what a dead process left running. Throws StoreUnavailable. */
  rescue(): Promise<void> {
    return this.#poller.rescue();
  }

  start(): Promise<void> {
    return this.#poller.start();
  }

  /** A relay has a new due event, or may run again. Without a name: any relay. */
  wake(relayId?: string): void {
    if (this.#stopped) return;
    if (relayId === undefined) this.#poller.wake();
    else this.#lookInto(relayId);
    this.#pump();
  }

  /** For the store: wakes the relays of the events that a write named. */
  readonly hear = (touched: Touched): void => {
    for (const topic of ["event", "event_left"] as const)
      for (const relayId of touched.get(topic) ?? []) this.wake(relayId === ANYWHERE ? undefined : relayId);
  };

  /** Whether it can reach its store. */
  get alive(): boolean {
    return !this.#stopped && this.#poller.reachesStore;
  }

  /** Events running now. */
  get runningCount(): number {
    return this.#slots.taken;
  }

  /**
   * Takes nothing new and begins no further send; what is out may come back, and what does not is rescued at the next start. A second call
   * waits for the first.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.#stopped = true;
    const polled = this.#poller.stop();
    await waitAtMost(this.#deps.clock, STOP_WAIT_MS, Promise.all([polled, this.#working.whenIdle()]));
  }

  #pump(): void {
    if (this.#stopped || this.#ready.size === 0) return;
    this.#pumpAgain = this.#pumping;
    if (this.#pumping) return;
    this.#pumping = true;
    void this.#launch().finally(() => {
      this.#pumping = false;
      if (this.#pumpAgain) this.#pump();
    });
  }

  async #launch(): Promise<void> {
    const { holding } = this.#deps;
    let snapshot: Snapshot;
    try {
      snapshot = await this.#deps.relays.current();
    } catch (error) {
      // Nothing can run before the relays are read; the next poll tries again.
      return this.#onTrouble(error);
    }
    const [inBatch, inRelease]: [LiveRelay[], LiveRelay[]] = [[], []];
    for (const relayId of this.#inTurn()) {
      if (this.#stopped) return;
      if (this.#busy.has(relayId) || this.#poller.unsure.has(relayId)) continue;
      const relay = snapshot.findRelay(relayId);
      if (relay === null && holding.holds(HOUSE))
        this.#begin(HOUSE, [relayId], () => this.#failDeleted(relayId));
      else if (relay === null || relay.waiting || !this.#isOpen(relay.environmentId)) {
        this.#ready.delete(relayId);
        this.#arrivals.lose(relayId);
      } else if (relay.releasing) inRelease.push(relay);
      else if (!relay.sends) inBatch.push(relay);
      else {
        this.#arrivals.lose(relayId);
        const slots = this.#slots.freeFor(relayId, snapshot.sendingCount);
        if (slots > 0) this.#begin(relay.environmentId, [relayId], () => this.#claim(relay, slots));
      }
    }
    for (const [environmentId, relays] of Map.groupBy(inRelease, (relay) => relay.environmentId)) {
      if (this.#releases.isRunning(environmentId)) continue;
      for (const { id } of relays) this.#arrivals.lose(id);
      const ids = relays.map(({ id }) => id);
      this.#begin(environmentId, ids, () => this.#runRelease(environmentId, snapshot));
    }
    // One for all that a lease stands for.
    for (const [store, relays] of Map.groupBy(inBatch, (relay) => holding.storeOf(relay.environmentId)))
      if (!this.#batching.has(store)) this.#beginBatch(store, relays.slice(0, BATCH_SIZE));
  }

  #beginBatch(store: FencedStore, relays: readonly LiveRelay[]): void {
    this.#batching.add(store);
    const ids = relays.map(({ id }) => id);
    this.#begin(relays[0]?.environmentId ?? HOUSE, ids, () => this.#runBatch(store, relays));
  }

  /** Ready relays, those with the fewest running events first, so that a free slot goes to the one that waited for its first. */
  #inTurn(): string[] {
    return [...this.#ready].sort((one, other) => this.#slots.takenBy(one) - this.#slots.takenBy(other));
  }

  /** Runs one piece of the relays' work; `work` answers which of them may have more. */
  #begin(environmentId: number, relayIds: readonly string[], work: () => Promise<readonly string[]>): void {
    for (const relayId of relayIds) {
      // Forgotten before looking, so that a wake during the look is not lost.
      this.#ready.delete(relayId);
      this.#busy.add(relayId);
    }
    const ending = work()
      .then(
        (more) => {
          for (const relayId of more) this.#ready.add(relayId);
        },
        (error: unknown) => this.#onTrouble(error, environmentId),
      )
      .finally(() => {
        for (const relayId of relayIds) this.#busy.delete(relayId);
        this.#pump();
      });
    this.#working.follow(environmentId, ending);
  }

  #onTrouble(error: unknown, environmentId = HOUSE): void {
    const { holding } = this.#deps;
    const isLost = !holding.whole && !holding.holds(environmentId);
    if (isLost && error instanceof StoreUnavailable) return;
    this.#poller.noteTrouble();
    if (error instanceof StoreUnavailable) {
      if (!this.#stopped) this.#deps.log.warn("the runner cannot write", { cause: error.message });
    } else this.#deps.log.error("the runner failed", { error });
  }

  async #runBatch(store: FencedStore, relays: readonly LiveRelay[]): Promise<string[]> {
    const arrivals = this.#arrivals;
    const ran = runBatch(relays, { ...this.#deps, store, arrivals });
    const finished = await ran.finally(() => this.#batching.delete(store));
    finished.forEach(this.#onFinished);
    // Whom the time did not suffice for comes first, also where there are more than one batch takes.
    this.#ready = new Set([...arrivals.late, ...this.#ready]);
    return relays.flatMap(({ id }) => (arrivals.mayHold(id) ? [id] : []));
  }

  async #runRelease(environmentId: number, snapshot: Snapshot): Promise<readonly string[]> {
    const { finished, started, more, store } = await this.#releases.run(environmentId, snapshot);
    finished.forEach(this.#onFinished);
    for (const { relay, claimed } of started)
      this.#working.follow(environmentId, this.#runSending(store, relay, claimed));
    return more;
  }

  async #claim(relay: LiveRelay, free: number): Promise<readonly string[]> {
    const alone = this.#undone.delete(relay.id);
    const slots = alone ? 1 : free;
    this.#slots.take(relay.id, slots);
    let claimed: Claimed[] = [];
    let more = false;
    const store = this.#deps.holding.storeOf(relay.environmentId);
    const onUnknown = (events: readonly EventToRun[]) => this.#poller.keepUnsure(relay.id, events);
    try {
      ({ claimed, more } = await claimSending(relay, slots, { alone, onUnknown }, { ...this.#deps, store }));
    } catch (error) {
      if (!alone) this.#undone.add(relay.id);
      throw error;
    } finally {
      this.#slots.giveBack(relay.id, slots - claimed.length);
    }
    for (const one of claimed) this.#working.follow(relay.environmentId, this.#runSending(store, relay, one));
    return more && (!alone || claimed.length === 0) ? [relay.id] : [];
  }

  /** Runs a claimed event in the slot taken for it, as long as its environment stays what it was claimed by. */
  async #runSending(store: FencedStore, relay: LiveRelay, claimed: Claimed): Promise<void> {
    const { holding } = this.#deps;
    const { environmentId } = relay;
    const mayGoOn = (): boolean =>
      !this.#stopped && holding.holds(environmentId) && holding.storeOf(environmentId) === store;
    try {
      const finished = await runSending(relay, claimed, { ...this.#deps, store }, mayGoOn);
      if (finished !== null) this.#onFinished(finished);
      // The lease may only have seemed over: then nobody else takes it up.
      else this.#poller.keepCutOff(claimed.event);
    } catch (error) {
      this.#poller.keepCutOff(claimed.event);
      this.#onTrouble(error, environmentId);
    } finally {
      this.#slots.giveBack(relay.id, 1);
      // Others waited for the one that was taken alone.
      if (claimed.begun === null) this.#ready.add(relay.id);
      for (const relayId of this.#releases.listWaiting()) this.#ready.add(relayId);
      this.#pump();
    }
  }

  async #failDeleted(relayId: string): Promise<readonly string[]> {
    this.#arrivals.forget(relayId);
    const { holding, clock, relays } = this.#deps;
    const finished = await holding
      .storeOf(HOUSE)
      .write("relay", (tx) => failOrphanedEvents(tx, relayId, BATCH_SIZE, clock.now()));
    if (finished === null) {
      // Younger than what memory holds; its events run once it is read.
      relays.invalidate();
      return [relayId];
    }
    finished.forEach(this.#onFinished);
    return finished.length === BATCH_SIZE ? [relayId] : [];
  }

  readonly #onFinished = ({ line, run, told }: Finished): void => {
    this.#deps.printRun(line);
    if (told !== null) this.#deps.teller.tellRun(told);
    for (const watcher of this.#deps.watchers) watcher.noteRun(run);
  };
}
