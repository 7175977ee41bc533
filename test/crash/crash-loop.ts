/**
 * Kills a loaded service again and again, restarts it, lets it come to rest, and holds what it did against a model made from the
 * acknowledged events alone.
 */
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compareStore } from "./crash-model.ts";
import { type CrashEvent, makeCrashEvent, signCrashEvent } from "./crash-relay.ts";

const SENDERS = 12;
const REST_WITHIN_MS = 60_000;
/** Past the longest wait between two attempts: what waits for a retry is due. */
const LATER_MS = 17 * 3_600_000;

export interface CrashReport {
  kills: number;
  acknowledged: number;
  /** One sentence each; empty when every promise was kept. */
  broken: string[];
}

interface ServiceProcess {
  port: number;
  kill(signal: "SIGKILL" | "SIGTERM"): Promise<void>;
}

/** Compiles test/crash/service-process.ts, so that what is killed is an executable and starts as fast as one. */
async function compileService(executable: string): Promise<void> {
  const script = join(import.meta.dir, "service-process.ts");
  const command = [process.execPath, "build", "--compile", "--minify", script, "--outfile", executable];
  const build = Bun.spawn(command, { stdout: "ignore", stderr: "pipe" });
  if ((await build.exited) !== 0)
    throw new Error(`The service did not compile: ${await new Response(build.stderr).text()}`);
}

/** Starts it and waits until it listens. */
async function startProcess(
  executable: string,
  dataDir: string,
  sinkUrl: string,
  aheadMs = 0,
): Promise<ServiceProcess> {
  const child = Bun.spawn([executable, dataDir, sinkUrl, String(aheadMs)], {
    stdout: "pipe",
    stderr: "pipe",
  });
  const reader = child.stdout.getReader();
  let text = "";
  while (!text.includes("\n")) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`The service did not start: ${await new Response(child.stderr).text()}`);
    text += new TextDecoder().decode(value);
  }
  const rest = async (): Promise<void> => {
    for (;;) if ((await reader.read()).done) return;
  };
  void rest().catch(() => undefined);
  return {
    port: (JSON.parse(text.split("\n")[0] ?? "{}") as { port: number }).port,
    async kill(signal) {
      child.kill(signal);
      await child.exited;
    },
  };
}

/** Runs `kills` rounds: start, load, SIGKILL at a random moment; then the last start, the rest, the comparison. */
export async function runCrashLoop(kills: number, random: () => number): Promise<CrashReport> {
  const folder = mkdtempSync(join(tmpdir(), "relay-crash-"));
  const dataDir = join(folder, "data");
  const executable = join(folder, "service");
  await compileService(executable);
  const acknowledged = new Map<string, CrashEvent>();
  const delivered = new Map<string, number>();
  let onDelivery: (() => void) | null = null;
  const sink = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const notice = (await request.json()) as { event: { mapped: { event_id: string } } };
      const id = notice.event.mapped.event_id;
      delivered.set(id, (delivered.get(id) ?? 0) + 1);
      onDelivery?.();
      return new Response("ok");
    },
  });
  const sinkUrl = `http://127.0.0.1:${sink.port}/`;
  let number = 0;
  try {
    for (let round = 0; round < kills; round++) {
      const service = await startProcess(executable, dataDir, sinkUrl);
      let killed = false;
      const senders = Array.from({ length: SENDERS }, async () => {
        while (!killed) {
          const event = makeCrashEvent(number++);
          if (await send(service.port, event)) acknowledged.set(event.id, event);
        }
      });
      await chooseMoment(round, random, (work) => {
        onDelivery = work;
      });
      onDelivery = null;
      const dead = service.kill("SIGKILL");
      killed = true;
      await dead;
      await Promise.all(senders);
    }
    // Once as it is, and once so much later that a refund which came before its payment is tried again; then all is replayed.
    for (const aheadMs of [0, LATER_MS]) {
      const service = await startProcess(executable, dataDir, sinkUrl, aheadMs);
      await waitForRest(join(dataDir, "relay.db"), aheadMs);
      await service.kill("SIGTERM");
    }
    using database = new Database(join(dataDir, "relay.db"), { readonly: true });
    return {
      kills,
      acknowledged: acknowledged.size,
      broken: compareStore(database, acknowledged, delivered),
    };
  } finally {
    await sink.stop(true);
    rmSync(folder, { recursive: true, force: true });
  }
}

async function send(port: number, event: CrashEvent): Promise<boolean> {
  try {
    const { headers, body } = signCrashEvent(event);
    const response = await fetch(`http://127.0.0.1:${port}/hooks/local/${event.relay}`, {
      method: "POST",
      headers,
      body,
    });
    return response.status === 200;
  } catch {
    return false;
  }
}

/** Mostly any moment of the first second, early ones more often; every third time the moment a notice is out and its outcome is not recorded. */
async function chooseMoment(
  round: number,
  random: () => number,
  listen: (work: () => void) => void,
): Promise<void> {
  const delayMs = random() ** 2 * 900;
  if (round % 3 !== 2) return Bun.sleep(delayMs);
  let left = Math.floor(random() * 6) + 1;
  const reached = new Promise<void>((resolve) => {
    listen(() => {
      left -= 1;
      if (left === 0) resolve();
    });
  });
  await Promise.race([reached, Bun.sleep(1_000)]);
}

async function waitForRest(file: string, aheadMs: number): Promise<void> {
  using database = new Database(file, { readonly: true });
  const unfinished = database.query<{ count: number }, [number]>(
    `SELECT count(*) AS count FROM event
     WHERE state = 'running' OR (state = 'queued' AND (next_attempt_at IS NULL OR next_attempt_at <= ?1))`,
  );
  const deadline = performance.now() + REST_WITHIN_MS;
  while (performance.now() < deadline) {
    if (unfinished.get(Date.now() + aheadMs)?.count === 0) return;
    await Bun.sleep(50);
  }
}
