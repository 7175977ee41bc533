/** Whether the service can do its work now: /readyz asks, and anyone may ask often. */
import type { Clock } from "../ground/clock.ts";
import type { Log } from "../ground/log.ts";
import type { HttpRooms } from "../http/rooms.ts";
import type { Runner } from "../runner/runner.ts";
import type { Store } from "../store/port.ts";

const READY_KEPT_MS = 1_000;

export interface ReadyRooms {
  store: Store;
  runner: Runner;
  clock: Clock;
  log: Log;
}

type Readiness = Awaited<ReturnType<HttpRooms["checkReady"]>>;

/** Whether the store takes a write and the runner reaches it; asked at most once a second, since anyone may ask. */
export function makeReadyCheck({ store, runner, clock, log }: ReadyRooms): () => Promise<Readiness> {
  let last: { at: number; answer: Promise<Readiness> } | null = null;
  const look = async (): Promise<Readiness> => {
    try {
      await store.write("app", (tx) => tx.run("UPDATE capture_switch SET captured = captured"));
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
