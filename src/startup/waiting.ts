/**
 * A start that cannot go on for want of room: the port answers meanwhile, senders are told to send again, and the start is tried until it
 * succeeds. It waits only for what mends by itself or by making room, and never for what a person got wrong.
 */
import { statfsSync } from "node:fs";
import type { ServiceConfig } from "../config.ts";
import { fileErrorCode } from "../ground/durable-file.ts";
import type { Log } from "../ground/log.ts";
import { answerJson } from "../http/answer.ts";

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
