/** Tells whether the service is ready, and reports it as not ready before it stops. */
import { type Clock, sleep, systemClock, waitAtMost } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Runner } from "../engine/runner/runner.ts";
import type { HttpDeps } from "../interfaces/http/deps.ts";
import type { LeaseManager } from "../store/lease/lease-holder.ts";
import { SERVICE_ROWS, type Store } from "../store/port.ts";

const READY_KEPT_MS = 1_000;
/** The limit for an answer. Balancers have their own timeout, often five seconds, and log no reason then. */
const ANSWER_WITHIN_MS = 3_000;
const SILENT =
  "The store has given no answer for three seconds: it is cut off or busy. If this lasts, check the disk or the database server.";
/** A node that ends still serves requests for this time, because balancers check every few seconds. */
export const LEAVE_MS = 4_000;
const LEAVING = "This node is stopping: the other nodes take its requests.";
const TAKEN_OVER =
  "Another server took over this data directory, so this one runs nothing: stop one of the two, and restart the one that stays.";

interface ReadyDeps {
  store: Store;
  leases: LeaseManager;
  runner: Runner;
  clock: Clock;
  log: Log;
}

type Readiness = Awaited<ReturnType<HttpDeps["checkReady"]>>;

interface ReadyCheck {
  /** Checks that a write reaches the disk and that the runner reaches the store. It checks at most once a second, because anyone may ask. */
  ask(): Promise<Readiness>;
  /** Reports this node as not ready if other nodes are live. Resolves after balancers had time to see it. */
  leave(): Promise<void>;
}

export function makeReadyCheck({ store, leases, runner, clock, log }: ReadyDeps): ReadyCheck {
  let last: { at: number; answer: Promise<Readiness>; isOver: () => boolean } | null = null;
  let isLeaving = false;
  const check = async (): Promise<Readiness> => {
    if (leases.lostTo !== null) return { ready: false, problem: TAKEN_OVER };
    try {
      await store.write("app", (tx) => leases.probe(tx), SERVICE_ROWS);
    } catch (error) {
      log.warn("the store cannot be written", { cause: (error as Error).message });
      return { ready: false, problem: "The store cannot be written now: the server's log says why." };
    }
    // The database can accept this write and still have no space for others.
    if (store.trouble !== null) return { ready: false, problem: store.trouble };
    const held = leases.count();
    if (runner.alive && held !== null) {
      const { node, ...holds } = held;
      return { ready: true, node, holds };
    }
    return runner.alive ? { ready: true } : { ready: false, problem: "The runner cannot reach its store." };
  };
  /** Starts a check. Only one runs at a time, however long it takes. */
  const begin = (at: number): NonNullable<typeof last> => {
    const checking = check();
    let isOver = false;
    const end = (): void => {
      isOver = true;
    };
    checking.then(end, end);
    const inTime = async (): Promise<Readiness> => {
      // The limit is real time under any clock.
      await waitAtMost(systemClock, ANSWER_WITHIN_MS, checking);
      return isOver ? await checking : { ready: false, problem: SILENT };
    };
    return { at, answer: inTime(), isOver: () => isOver };
  };
  return {
    async ask() {
      if (isLeaving) return { ready: false, problem: LEAVING };
      const now = clock.monotonicMs();
      if (last === null || (last.isOver() && now - last.at >= READY_KEPT_MS)) last = begin(now);
      return await last.answer;
    },
    async leave() {
      if (leases.holdsAll || leases.nodes.live < 2) return;
      isLeaving = true;
      // The wait is real time under any clock, because balancers use real time.
      await sleep(systemClock, LEAVE_MS);
    },
  };
}
