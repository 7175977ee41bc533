/**
 * Retries a start that lacks its disk or its database, and answers on the port meanwhile. Receivers answer that senders must retry. A start waits only
 * for problems that resolve automatically or with more space on the disk. It never waits for a mistake of the operator.
 */
import { statfsSync } from "node:fs";
import type { ServiceConfig } from "../base/config.ts";
import { fileErrorCode } from "../base/durable-file.ts";
import type { Log } from "../base/log.ts";
import { answerJson } from "../interfaces/http/answer.ts";
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
export async function startWithRetries<Started>(
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
        const missing = findMissing(error, config.dataDir);
        if (missing === null) throw error;
        const port = early.open(() => WAITS[missing]);
        const cause = error instanceof Error ? error.message : String(error);
        if (cause !== reported)
          log.error(`the start waits for the ${missing}; receivers answer 503 until then`, {
            cause,
            ...(missing === "database" ? { todo: adviseOn(error) } : {}),
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
function findMissing(error: unknown, dataDir: string): keyof typeof WAITS | null {
  if (isAway(error)) return "database";
  const code = fileErrorCode(error);
  // A disk without free inodes causes the same error as a file that cannot be opened.
  if (TEMPORARY.test(code) || (code.startsWith("SQLITE_CANTOPEN") && isFull(dataDir))) return "disk";
  const cause = error instanceof Error ? error.cause : undefined;
  return cause === undefined ? null : findMissing(cause, dataDir);
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
