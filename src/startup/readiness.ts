/** Whether the service can do its work now: /readyz asks, and anyone may ask often. */
import type { Clock } from "../ground/clock.ts";
import type { Log } from "../ground/log.ts";
import type { HttpDeps } from "../http/deps.ts";
import type { Runner } from "../runner/runner.ts";
import type { RunnerLease } from "../store/lease.ts";
import type { Store } from "../store/port.ts";

const READY_KEPT_MS = 1_000;
const TAKEN_OVER =
  "Another server took over this data directory, so this one runs nothing: stop one of the two, and restart the one that stays.";

interface ReadyRooms {
  store: Store;
  lease: RunnerLease;
  runner: Runner;
  clock: Clock;
  log: Log;
}

type Readiness = Awaited<ReturnType<HttpDeps["checkReady"]>>;

/** Whether a write reaches the disk and the runner reaches it; asked at most once a second, since anyone may ask. */
export function makeReadyCheck({ store, lease, runner, clock, log }: ReadyRooms): () => Promise<Readiness> {
  let last: { at: number; answer: Promise<Readiness> } | null = null;
  const look = async (): Promise<Readiness> => {
    if (lease.lostTo !== null) return { ready: false, problem: TAKEN_OVER };
    try {
      // A new value, because SQLite writes no page that stays as it is.
      await store.write("app", (tx) => tx.run("UPDATE runner_lease SET probes = probes + 1"));
    } catch (error) {
      log.warn("the store cannot be written", { cause: (error as Error).message });
      return { ready: false, problem: "The store cannot be written now: the server's log says why." };
    }
    return runner.alive ? { ready: true } : { ready: false, problem: "The runner cannot reach its store." };
  };
  return () => {
    const now = clock.monotonicMs();
    if (last === null || now - last.at >= READY_KEPT_MS) last = { at: now, answer: look() };
    return last.answer;
  };
}
