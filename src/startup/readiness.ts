/**
 * What the port says of the service: while a start waits for room, whether it is ready, and its graceful end. A start that cannot go on for
 * want of room is tried until it succeeds, and senders are told meanwhile to send again; it waits only for what mends by itself or by making
 * room, and never for what a person got wrong.
 */
import { statfsSync } from "node:fs";
import type { ServiceConfig } from "../config.ts";
import { type Clock, waitAtMost } from "../ground/clock.ts";
import { fileErrorCode } from "../ground/durable-file.ts";
import type { Log } from "../ground/log.ts";
import { answerJson } from "../http/answer.ts";
import type { HttpDeps } from "../http/deps.ts";
import type { Runner } from "../runner/runner.ts";
import type { RunnerLease } from "../store/lease.ts";
import type { Store } from "../store/port.ts";

const TRY_EVERY_MS = 2_000;
const NOT_READY =
  "The service waits for its disk before it can start: the server's log says what the database failed with.";
const NOT_RECORDED = "The service cannot use its disk yet, so nothing was recorded: send the request again.";

/** Full disks, failing ones, quotas and size limits, and another process's lock on the database. */
const MENDS = /^(SQLITE_(FULL|IOERR|BUSY|LOCKED)|ENOSPC$|EDQUOT$|EFBIG$|EIO$)/;

/**
 * Starts with `startOnce`, again and again where only room is wanting; it is given the port that is answered meanwhile and frees it with
 * `beforeListening`. Throws what the start failed with, also where `stopped` ends the waiting.
 */
export async function startWithRoom<Started>(
  config: ServiceConfig,
  log: Log,
  stopped: Promise<unknown> = new Promise(() => undefined),
  startOnce: (config: ServiceConfig, beforeListening: () => Promise<void>) => Promise<Started>,
): Promise<Started> {
  let waiting: ReturnType<typeof Bun.serve> | null = null;
  const beforeListening = async (): Promise<void> => {
    await waiting?.stop(true);
    waiting = null;
  };
  try {
    for (;;) {
      try {
        const port: number = waiting?.port ?? config.port;
        return await startOnce({ ...config, port }, beforeListening);
      } catch (error) {
        if (!mayMend(error, config.dataDir)) throw error;
        waiting ??= answerMeanwhile(config, log, error);
        if (!(await untilNextTry(config, stopped))) throw error;
      }
    }
  } finally {
    await beforeListening();
  }
}

/** Throws where the port cannot be listened on. */
function answerMeanwhile({ host, port }: ServiceConfig, log: Log, error: unknown) {
  const server = Bun.serve({ hostname: host, port, reusePort: false, fetch: answer });
  log.error("the start waits for the disk; receivers answer 503 until then", {
    cause: error instanceof Error ? error.message : String(error),
    port: server.port,
  });
  return server;
}

/** Whether what a start failed with can pass, itself or what caused it. */
function mayMend(error: unknown, dataDir: string): boolean {
  const code = fileErrorCode(error);
  // A disk that has no entry left for a file looks like one that must not be opened.
  if (MENDS.test(code) || (code.startsWith("SQLITE_CANTOPEN") && isFull(dataDir))) return true;
  const cause = error instanceof Error ? error.cause : undefined;
  return cause !== undefined && mayMend(cause, dataDir);
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
async function untilNextTry({ clock }: ServiceConfig, stopped: Promise<unknown>): Promise<boolean> {
  let cancel = (): void => undefined;
  const again = new Promise<boolean>((resolve) => {
    cancel = clock.after(TRY_EVERY_MS, () => resolve(true));
  });
  const goesOn = await Promise.race([again, stopped.then(() => false)]);
  cancel();
  return goesOn;
}

function answer(request: Request): Response {
  const { pathname } = new URL(request.url);
  if (pathname === "/healthz") return answerJson(200, { ok: true });
  if (pathname === "/readyz") return answerJson(503, { ready: false, problem: NOT_READY });
  return answerJson(503, { code: "not_recorded", message: NOT_RECORDED }, { "retry-after": "5" });
}

const READY_KEPT_MS = 1_000;
const TAKEN_OVER =
  "Another server took over this data directory, so this one runs nothing: stop one of the two, and restart the one that stays.";

interface ReadyDeps {
  store: Store;
  lease: RunnerLease;
  runner: Runner;
  clock: Clock;
  log: Log;
}

type Readiness = Awaited<ReturnType<HttpDeps["checkReady"]>>;

/** Whether a write reaches the disk and the runner reaches it; asked at most once a second, since anyone may ask. */
export function makeReadyCheck({ store, lease, runner, clock, log }: ReadyDeps): () => Promise<Readiness> {
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
