/**
 * Answers on the port before the service does, says whether the service is ready, and ends it gracefully. A start that lacks its disk or its
 * database retries until it succeeds, and receivers answer that senders must retry. It waits only for problems that resolve automatically or with
 * more space on the disk. It never waits for a mistake of the operator.
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
import { SERVICE_ROWS, type Store } from "../store/port.ts";
import { adviseOn, LET_GO } from "../store/postgres/connection-advice.ts";
import { isAway } from "../store/postgres/error.ts";

const TRY_EVERY_MS = 2_000;
/** The resources that a start can wait for, each with the sentence for callers. */
const WAITS = {
  disk: "The service waits for its disk before it can start: the server's log shows the error of the database.",
  database: "The service waits for its database before it can start: the server's log shows the reason.",
} as const;
/** A start normally takes less time. After it, the log and the port say that the start is slow. */
const SLOW_MS = 5_000;
const SLOW = {
  file: "The service is starting and reads its database: the disk is slow or busy, or the last run left a long log to read.",
  server:
    "The service is starting and waits for an answer of its database: another session may hold a lock, or the database is busy.",
} as const;
const NOT_RECORDED =
  "The service cannot use its database yet, so nothing was recorded: send the request again.";

/** Errors of full or failing disks, quotas, size limits and another process's lock on the database. A start retries after them. */
const TEMPORARY = /^(SQLITE_(FULL|IOERR|BUSY|LOCKED)|ENOSPC$|EDQUOT$|EFBIG$|EIO$)/;

/** Holds the port until the service listens on it. Receivers answer that senders must retry. */
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

  /** Starts to answer that the service is not ready because of `problem`. Returns the port. Throws if it cannot listen. */
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

  /** Opens the port like `open`, unless it is open or was freed for the service. Returns null then. */
  openIfSilent(problem: () => string): number | null {
    return this.#isFreed || this.#server !== null ? null : this.open(problem);
  }

  /** True if the port was freed, so that the service itself answers on it. */
  get isFreed(): boolean {
    return this.#isFreed;
  }

  /** Frees the port and returns its number. */
  async free(): Promise<number> {
    this.#isFreed = true;
    await this.#server?.stop(true);
    this.#server = null;
    return this.#port;
  }
}

/**
 * Starts with `startOnce`, and retries while the disk or the database is missing. The port answers in that time. Throws the failure of the start
 * if no retry can help, or when `stopped` resolves.
 */
export async function startOnceItCan<Started>(
  config: Pick<ServiceConfig, "host" | "port" | "dataDir" | "database" | "clock">,
  log: Log,
  stopped: Promise<unknown> = new Promise(() => undefined),
  startOnce: (port: EarlyPort) => Promise<Started>,
): Promise<Started> {
  const early = new EarlyPort(config);
  let reported = "";
  const cancel = config.clock.after(SLOW_MS, () =>
    logSlowStart(early, log, config.database === null ? "file" : "server"),
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
        if (cause !== reported)
          log.error(`the start waits for the ${wanting}; receivers answer 503 until then`, {
            cause,
            ...(wanting === "database" ? { todo: adviseOn(error) } : {}),
            port,
          });
        reported = cause;
        if (!(await untilNextTry(config, stopped))) throw error;
      }
    }
  } finally {
    cancel();
    await early.free();
  }
}

function logSlowStart(early: EarlyPort, log: Log, place: keyof typeof SLOW): void {
  const advice = place === "server" ? { todo: LET_GO } : {};
  // The service itself answers on the port during the last steps of a start.
  if (early.isFreed) {
    log.warn("the start takes its time", { cause: SLOW[place], ...advice });
    return;
  }
  try {
    const port = early.openIfSilent(() => SLOW[place]);
    if (port !== null)
      log.warn("the start takes its time; receivers answer 503 until it is through", { port, ...advice });
  } catch {
    // If the port is taken, the start reports it when it needs the port.
  }
}

/** Returns the resource that a start can wait for after this failure, or null if the failure is not temporary. */
function whatIsWanting(error: unknown, dataDir: string): keyof typeof WAITS | null {
  if (isAway(error)) return "database";
  const code = fileErrorCode(error);
  // A disk without free inodes causes the same error as a file that cannot be opened.
  if (TEMPORARY.test(code) || (code.startsWith("SQLITE_CANTOPEN") && isFull(dataDir))) return "disk";
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

/** Resolves with true when the next try is due, and with false when the start must stop. */
async function untilNextTry(
  { clock }: Pick<ServiceConfig, "clock">,
  stopped: Promise<unknown>,
): Promise<boolean> {
  let cancel = (): void => undefined;
  const nextTry = new Promise<boolean>((resolve) => {
    cancel = clock.after(TRY_EVERY_MS, () => resolve(true));
  });
  const goesOn = await Promise.race([nextTry, stopped.then(() => false)]);
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

const STOP_WAIT_MS = 10_000;

/** Stops new connections and completes accepted requests. It closes connections that are still open after a while. */
export async function stopListening(
  server: { stop(now: boolean): Promise<void> } | null,
  clock: Clock,
): Promise<void> {
  if (server === null) return;
  await waitAtMost(clock, STOP_WAIT_MS, server.stop(false));
  await server.stop(true);
}
