/**
 * What the port says of the service: while a start waits for its disk or its database or migrates that, whether it is ready, and its graceful end.
 * A start that cannot go on for want of either is tried until it succeeds, and senders are told meanwhile to send again; it waits only for what
 * mends by itself or by making room, and never for what a person got wrong.
 */
import { statfsSync } from "node:fs";
import { type Clock, sleep, systemClock, waitAtMost } from "../base/clock.ts";
import type { ServiceConfig } from "../base/config.ts";
import { fileErrorCode } from "../base/durable-file.ts";
import type { Log } from "../base/log.ts";
import type { Runner } from "../engine/runner/runner.ts";
import { answerJson } from "../interfaces/http/answer.ts";
import type { HttpDeps } from "../interfaces/http/deps.ts";
import type { LeaseManager } from "../store/lease/lease-holder.ts";
import type { Store } from "../store/port.ts";
import { adviseOn, LET_GO } from "../store/postgres/connection-advice.ts";
import { isAway } from "../store/postgres/error.ts";

const TRY_EVERY_MS = 2_000;
/** What a start may wait for, and what is said of it meanwhile. */
const WAITS = {
  disk: "The service waits for its disk before it can start: the server's log says what the database failed with.",
  database:
    "The service waits for its database before it can start: the server's log says what stands against it.",
} as const;
/** A start is through in less; a start that is not is told of. */
const SLOW_MS = 5_000;
const SLOW = {
  file: "The service is starting and reads its database: the disk is slow or busy, or the last run left a long log to read.",
  server:
    "The service is starting and waits for an answer of its database: somebody may hold a lock there, or it has much to do.",
} as const;
const NOT_RECORDED =
  "The service cannot use its database yet, so nothing was recorded: send the request again.";

/** Full disks, failing ones, quotas and size limits, and another process's lock on the database. */
const MENDS = /^(SQLITE_(FULL|IOERR|BUSY|LOCKED)|ENOSPC$|EDQUOT$|EFBIG$|EIO$)/;

/** The port while the service cannot listen on it yet: receivers are told to send again. */
export class EarlyPort {
  readonly #host: string;
  #port: number;
  #server: Bun.Server<undefined> | null = null;
  #problem: () => string = () => WAITS.disk;
  #isFreed = false;

  constructor({ host, port }: Pick<ServiceConfig, "host" | "port">) {
    this.#host = host;
    this.#port = port;
  }

  /** Answers from now on, not ready for this `problem`, on the port of this number. Throws where it cannot be listened on. */
  open(problem: () => string): number {
    this.#isFreed = false;
    this.#problem = problem;
    this.#server ??= Bun.serve({
      hostname: this.#host,
      port: this.#port,
      reusePort: false,
      fetch: (request) => answer(request, this.#problem()),
    });
    this.#port = this.#server.port ?? this.#port;
    return this.#port;
  }

  /** The same where nobody answers there yet, and the service does not begin to; null: somebody does. */
  openIfSilent(problem: () => string): number | null {
    return this.#isFreed || this.#server !== null ? null : this.open(problem);
  }

  /** Whether the service answers on the port itself. */
  get isFreed(): boolean {
    return this.#isFreed;
  }

  /** Frees the port, and answers its number. */
  async free(): Promise<number> {
    this.#isFreed = true;
    await this.#server?.stop(true);
    this.#server = null;
    return this.#port;
  }
}

/**
 * Starts with `startOnce`, again and again where only room is wanting or the database is away; the port is answered meanwhile. Throws what the
 * start failed with, also where `stopped` ends the waiting.
 */
export async function startOnceItCan<Started>(
  config: Pick<ServiceConfig, "host" | "port" | "dataDir" | "database" | "clock">,
  log: Log,
  stopped: Promise<unknown> = new Promise(() => undefined),
  startOnce: (port: EarlyPort) => Promise<Started>,
): Promise<Started> {
  const early = new EarlyPort(config);
  let told = "";
  const cancel = config.clock.after(SLOW_MS, () =>
    tellSlow(early, log, config.database === null ? "file" : "server"),
  );
  try {
    for (;;) {
      try {
        return await startOnce(early);
      } catch (error) {
        const wanting = whatIsWanting(error, config.dataDir);
        if (wanting === null) throw error;
        const port = early.open(() => WAITS[wanting]);
        const cause = error instanceof Error ? error.message : String(error);
        if (cause !== told)
          log.error(`the start waits for the ${wanting}; receivers answer 503 until then`, {
            cause,
            ...(wanting === "database" ? { todo: adviseOn(error) } : {}),
            port,
          });
        told = cause;
        if (!(await untilNextTry(config, stopped))) throw error;
      }
    }
  } finally {
    cancel();
    await early.free();
  }
}

function tellSlow(early: EarlyPort, log: Log, place: keyof typeof SLOW): void {
  const advice = place === "server" ? { todo: LET_GO } : {};
  // At its last steps the service itself answers there.
  if (early.isFreed) {
    log.warn("the start takes its time", { cause: SLOW[place], ...advice });
    return;
  }
  try {
    const port = early.openIfSilent(() => SLOW[place]);
    if (port !== null)
      log.warn("the start takes its time; receivers answer 503 until it is through", { port, ...advice });
  } catch {
    // Where the port is taken, the start says so when it comes to that.
  }
}

/** What a start that failed with this may wait for; null: nothing that passes. */
function whatIsWanting(error: unknown, dataDir: string): keyof typeof WAITS | null {
  if (isAway(error)) return "database";
  const code = fileErrorCode(error);
  // A disk that has no entry left for a file looks like one that must not be opened.
  if (MENDS.test(code) || (code.startsWith("SQLITE_CANTOPEN") && isFull(dataDir))) return "disk";
  const cause = error instanceof Error ? error.cause : undefined;
  return cause === undefined ? null : whatIsWanting(cause, dataDir);
}

function isFull(dataDir: string): boolean {
  try {
    const { bavail, files, ffree } = statfsSync(dataDir);
    return bavail === 0 || (files > 0 && ffree === 0);
  } catch {
    return false;
  }
}

/** Resolves when the start is to be tried again; false where it was told to stop instead. */
async function untilNextTry(
  { clock }: Pick<ServiceConfig, "clock">,
  stopped: Promise<unknown>,
): Promise<boolean> {
  let cancel = (): void => undefined;
  const again = new Promise<boolean>((resolve) => {
    cancel = clock.after(TRY_EVERY_MS, () => resolve(true));
  });
  const goesOn = await Promise.race([again, stopped.then(() => false)]);
  cancel();
  return goesOn;
}

function answer(request: Request, problem: string): Response {
  const { pathname } = new URL(request.url);
  if (pathname === "/healthz") return answerJson(200, { ok: true });
  if (pathname === "/readyz") return answerJson(503, { ready: false, problem });
  return answerJson(503, { code: "not_recorded", message: NOT_RECORDED }, { "retry-after": "5" });
}

const READY_KEPT_MS = 1_000;
/** Balancers ask with a time-out of their own, often five seconds, and write down no reason then. */
const ANSWER_WITHIN_MS = 3_000;
const SILENT =
  "The store has given no answer for three seconds: it is cut off, or has much to do. Where that lasts, look at the disk or the database server that it is on.";
/** For so long a node that ends goes on: balancers ask every few seconds. */
export const LEAVE_MS = 4_000;
const LEAVING = "This node ends: the others take its calls.";
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
  /** Whether a write reaches the disk and the runner reaches it; asked at most once a second, since anyone may ask. */
  ask(): Promise<Readiness>;
  /** Where other nodes live: says from now on that this one is not ready, and resolves when a balancer has had the time to hear it. */
  leave(): Promise<void>;
}

export function makeReadyCheck({ store, leases, runner, clock, log }: ReadyDeps): ReadyCheck {
  let last: { at: number; answer: Promise<Readiness>; isOver: () => boolean } | null = null;
  let isLeaving = false;
  const look = async (): Promise<Readiness> => {
    if (leases.lostTo !== null) return { ready: false, problem: TAKEN_OVER };
    try {
      await store.write("app", (tx) => leases.probe(tx));
    } catch (error) {
      log.warn("the store cannot be written", { cause: (error as Error).message });
      return { ready: false, problem: "The store cannot be written now: the server's log says why." };
    }
    // The database may take this write and none that needs new room.
    if (store.trouble !== null) return { ready: false, problem: store.trouble };
    const held = leases.count();
    if (runner.alive && held !== null) {
      const { node, ...holds } = held;
      return { ready: true, node, holds };
    }
    return runner.alive ? { ready: true } : { ready: false, problem: "The runner cannot reach its store." };
  };
  /** At most one at a time, however long it takes. */
  const begin = (at: number): NonNullable<typeof last> => {
    const looking = look();
    let isOver = false;
    const end = (): void => {
      isOver = true;
    };
    looking.then(end, end);
    const inTime = async (): Promise<Readiness> => {
      // Real time under any clock.
      await waitAtMost(systemClock, ANSWER_WITHIN_MS, looking);
      return isOver ? await looking : { ready: false, problem: SILENT };
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
      // Real time under any clock, which is what balancers live by.
      await sleep(systemClock, LEAVE_MS);
    },
  };
}

const STOP_WAIT_MS = 10_000;

/** Takes no new connection and answers what was accepted; what is still open after a while is cut off. */
export async function stopListening(
  server: { stop(now: boolean): Promise<void> } | null,
  clock: Clock,
): Promise<void> {
  if (server === null) return;
  await waitAtMost(clock, STOP_WAIT_MS, server.stop(false));
  await server.stop(true);
}
