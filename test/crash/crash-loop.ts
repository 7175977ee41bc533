/**
 * Kills a loaded service again and again, restarts it, waits until it is idle, and compares its work with a model made only from the acknowledged
 * events. It removes the lock file at random, and starts second servers on the same directory. A second server is refused, or it takes over from one
 * that is dead or stopped. The old server then changes nothing more.
 */
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { MailServer } from "../kit/mail-server.ts";
import { PATIENCE_MS, untilNoneLeft } from "../kit/patience.ts";
import { compareStore } from "./crash-model.ts";
import { type CrashEvent, makeCrashEvent, signCrashEvent } from "./crash-relay.ts";
import { addCut, cutPower, makeCuttableDisk, type PowerCuts } from "./power-cut.ts";

const SENDERS = 8;
/** More than the longest wait between two attempts, so every retry is due. */
const LATER_MS = 17 * 3_600_000;
/** A second server starts in one round of RIVAL_EVERY. In one of STOPPED_EVERY such rounds, the first server is stopped and continued. */
const RIVAL_EVERY = 9;
const STOPPED_EVERY = 3;
/** A time longer than a server waits for the answer of the lock's holder. */
const STOPPED_MS = 4_000;

interface CrashReport {
  kills: number;
  acknowledged: number;
  mails: { taken: number; unknown: number };
  locksRemoved: number;
  rivals: { refused: number; tookOver: number };
  cuts: PowerCuts;
  /** Violations, each as one sentence; empty if the service met every guarantee. */
  broken: string[];
}

interface ServiceProcess {
  pid: number;
  port: number;
  signal(signal: "SIGSTOP" | "SIGCONT"): void;
  kill(signal: "SIGKILL" | "SIGTERM"): Promise<void>;
}

/** The place where the services of one loop run, and what they can reach. */
interface Place {
  executable: string;
  dataDir: string;
  sinkUrl: string;
  mailPort: number;
}

/** Processes to end if a loop fails. */
const running = new Set<Bun.Subprocess>();

/** Compiles test/crash/service-process.ts, because an executable starts faster. */
async function compileService(executable: string): Promise<void> {
  const script = join(import.meta.dir, "service-process.ts");
  const command = [process.execPath, "build", "--compile", "--minify", script, "--outfile", executable];
  const build = Bun.spawn(command, { cwd: dirname(executable), stdout: "ignore", stderr: "pipe" });
  if ((await build.exited) !== 0) throw new Error(`The service did not compile: ${await new Response(build.stderr).text()}`);
}

/** Starts the service and waits until it listens. Returns null if it is refused because another server uses the directory or its database. */
async function startProcess(place: Place, aheadMs = 0): Promise<ServiceProcess | null> {
  const { executable, dataDir, sinkUrl, mailPort } = place;
  const child = Bun.spawn([executable, dataDir, sinkUrl, String(mailPort), String(aheadMs)], {
    env: process.env,
    stdout: "pipe",
    stderr: "pipe",
  });
  const reader = child.stdout.getReader();
  let text = "";
  while (!text.includes("\n")) {
    const { value, done } = await reader.read();
    if (done) {
      const said = await new Response(child.stderr).text();
      // A server that is stopped in the middle of a transaction holds a lock of the database.
      if (/is in use by|database is locked/.test(said)) return null;
      throw new Error(`The service did not start: ${said}`);
    }
    text += new TextDecoder().decode(value);
  }
  const rest = async (): Promise<void> => {
    for (;;) if ((await reader.read()).done) return;
  };
  void rest().catch(() => undefined);
  running.add(child);
  void child.exited.then(() => running.delete(child));
  return {
    pid: child.pid,
    port: (JSON.parse(text.split("\n")[0] ?? "{}") as { port: number }).port,
    signal: (signal) => child.kill(signal),
    async kill(signal) {
      child.kill(signal);
      await child.exited;
    },
  };
}

async function requireProcess(place: Place, aheadMs = 0): Promise<ServiceProcess> {
  const service = await startProcess(place, aheadMs);
  if (service === null) throw new Error("The service was refused, and nobody else uses its directory.");
  return service;
}

/**
 * Runs `kills` rounds of start, load and SIGKILL at a random moment. Then it starts the service again, waits until it is idle, and compares the
 * results. With `power` the data is on a separate disk, and each round without a second server ends with a power cut. Half of the cuts tear the
 * writes in progress.
 */
export async function runCrashLoop(
  kills: number,
  power: boolean,
  random: () => number,
  mailServer: MailServer,
  mailHooks: { onText: () => void },
): Promise<CrashReport> {
  const folder = mkdtempSync(join(tmpdir(), "relay-crash-"));
  // The stack is declared before the disk, because the database must be closed first.
  using opened = new DisposableStack();
  const disk = power ? await makeCuttableDisk(folder) : null;
  const dataDir = disk?.dataDir ?? join(folder, "data");
  const executable = join(folder, "service");
  await compileService(executable);
  const acknowledged = new Map<string, CrashEvent>();
  const delivered = new Map<string, number>();
  let onDelivery: () => void = () => undefined;
  const sink = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const notice = (await request.json()) as { event: { mapped: { event_id: string } } };
      const id = notice.event.mapped.event_id;
      delivered.set(id, (delivered.get(id) ?? 0) + 1);
      onDelivery();
      return new Response("ok");
    },
  });
  const place = {
    executable,
    dataDir,
    sinkUrl: `http://127.0.0.1:${sink.port}/`,
    mailPort: mailServer.port,
  };
  const rivals = { refused: 0, tookOver: 0 };
  const cuts: PowerCuts = { power: 0, torn: 0, arrived: 0, lost: 0 };
  let locksRemoved = 0;
  let number = 0;
  /** Sends events until the returned function is called, which resolves once no request is pending. */
  const load = (service: ServiceProcess): (() => Promise<unknown>) => {
    let over = false;
    const senders = Array.from({ length: SENDERS }, async () => {
      while (!over) {
        const event = makeCrashEvent(number++);
        if (await send(service.port, event)) acknowledged.set(event.id, event);
      }
    });
    return () => {
      over = true;
      return Promise.all(senders);
    };
  };
  const removeLock = (): void => {
    rmSync(join(dataDir, "runner.lock"), { force: true });
    locksRemoved += 1;
  };
  try {
    for (let round = 0; round < kills; round++) {
      if (random() < 0.3) removeLock();
      const service = await requireProcess(place);
      const endLoad = load(service);
      await chooseMoment(round, random, {
        delivery: (work) => {
          onDelivery = work;
        },
        text: (work) => {
          mailHooks.onText = work;
        },
      });
      onDelivery = () => undefined;
      mailHooks.onText = () => undefined;
      if (random() < 0.3) removeLock();
      let rival: ServiceProcess | null = null;
      let endRivalLoad: () => Promise<unknown> = async () => undefined;
      const hasRival = round % RIVAL_EVERY === RIVAL_EVERY - 1;
      if (hasRival) {
        removeLock();
        const started = startProcess(place);
        if (Math.floor(round / RIVAL_EVERY) % STOPPED_EVERY === 1) {
          // A server that does not answer counts as dead. When it continues, none of the work that it had begun may take effect.
          service.signal("SIGSTOP");
          rival = await Promise.race([started, Bun.sleep(STOPPED_MS).then(() => null)]);
          service.signal("SIGCONT");
        } else await Bun.sleep(random() * 1_500);
        if (rival !== null) {
          endRivalLoad = load(rival);
          await Bun.sleep(random() * 800);
        }
        const dead = service.kill("SIGKILL");
        rival = await started;
        if (rival === null) rivals.refused += 1;
        else {
          rivals.tookOver += 1;
          await Bun.sleep(random() * 300);
        }
        await dead;
      }
      const restore = disk === null || hasRival ? null : await cutPower(disk, service.pid, random() < 0.5);
      await Promise.all([service.kill("SIGKILL"), rival?.kill("SIGKILL")]);
      await Promise.all([endLoad(), endRivalLoad()]);
      if (restore !== null) addCut(cuts, await restore(random));
    }
    // The first start runs at the real time. The second one runs so much later that a refund from before its payment is retried, and then replays
    // everything.
    for (const aheadMs of [0, LATER_MS]) {
      const service = await requireProcess(place, aheadMs);
      await waitForRest(join(dataDir, "relay.db"), aheadMs);
      await service.kill("SIGTERM");
    }
    const database = opened.use(new Database(join(dataDir, "relay.db"), { readonly: true }));
    const taken = countTaken(mailServer);
    const unknown = database.query<{ count: number }, []>("SELECT count(*) AS count FROM email WHERE state = 'unknown'").get();
    return {
      kills,
      acknowledged: acknowledged.size,
      mails: { taken: taken.size, unknown: unknown?.count ?? 0 },
      locksRemoved,
      rivals,
      cuts,
      broken: compareStore(database, acknowledged, delivered, taken),
    };
  } finally {
    const ended = [...running].map((child) => child.exited);
    for (const child of running) child.kill("SIGKILL");
    await Promise.all(ended);
    opened.dispose();
    await sink.stop(true);
    await disk?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Address that receives alerts. A server that takes more than a minute to become idle emails them. */
const OWNER = "owner@localhost";

/** Counts how often the mail server accepted the email of each event. */
function countTaken({ taken }: MailServer): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { raw, to } of taken) {
    if (to.includes(OWNER)) continue;
    const id = /^Subject: (\S+)/m.exec(raw)?.[1] ?? "?";
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
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

/**
 * Waits until the moment of a kill. A third of the rounds choose any moment of the first second, early ones more often. A third choose a moment at
 * which a notice was sent and its outcome is not recorded. A third choose a moment at which an email's text has begun.
 */
async function chooseMoment(
  round: number,
  random: () => number,
  listen: { delivery: (work: () => void) => void; text: (work: () => void) => void },
): Promise<void> {
  const delayMs = random() ** 2 * 900;
  if (round % 3 === 0) return Bun.sleep(delayMs);
  let left = Math.floor(random() * (round % 3 === 1 ? 3 : 6)) + 1;
  const reached = new Promise<void>((resolve) => {
    (round % 3 === 1 ? listen.text : listen.delivery)(() => {
      left -= 1;
      if (left === 0) resolve();
    });
  });
  await Promise.race([reached, Bun.sleep(PATIENCE_MS)]);
  await Bun.sleep(random() * 20);
}

async function waitForRest(file: string, aheadMs: number): Promise<void> {
  using database = new Database(file, { readonly: true });
  const unfinished = database.query<{ count: number }, [number]>(
    `SELECT count(*) AS count FROM event
     WHERE state = 'running' OR (state = 'queued' AND (next_attempt_at IS NULL OR next_attempt_at <= ?1))`,
  );
  await untilNoneLeft(() => unfinished.get(Date.now() + aheadMs)?.count ?? 0);
}
