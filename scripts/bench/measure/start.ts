/** Measures the start of `relay serve` on a small and on a filled store: the time to its first response, the next responses, and resident memory. */
import { join } from "node:path";
import { compareAmounts, type Figure, median, quantile } from "../figure.ts";
import { fillStore } from "../fill-store.ts";
import type { Measure, Run } from "../measure.ts";
import { launch, type ProductReady, SECRET, type Started, scratch } from "../process.ts";

const SMALL_ROWS = 100;
const LEAST_ROUNDS = 5;
const WATCHED_MS = 10_000;
const IDLE_MS = 3_000;
const CALL_EVERY_MS = 20;
const LIST_EVERY_MS = 500;

/** The command of a server that must listen on the port. */
type Command = (port: number) => string[];

interface Calls extends Pick<ProductReady, "paths" | "key"> {
  watchedMs: number;
}

interface StartTurn {
  firstMs: number;
  /** CPU time of all threads until the first response. */
  cpuMs: number;
  /** Milliseconds of each response in the seconds after the first. */
  responses: number[];
}

/** Starts a server and sends requests from its first response on, without waiting for the responses in between. */
async function startOn(command: Command, { paths, key, watchedMs }: Calls): Promise<StartTurn> {
  const begun = performance.now();
  await using server = launch(command, {
    RELAY_LIMIT_VERIFIED_EVENTS_PER_MINUTE: "1000000",
    RELAY_LIMIT_RELAYS: "1000",
  });
  await firstResponse(server);
  const [firstMs, cpuMs] = [performance.now() - begun, await server.cpuMs()];
  const responses: number[] = [];
  const open: Promise<void>[] = [];
  const send = (path: string, init: RequestInit): void => {
    const sent = performance.now();
    open.push(
      fetch(`http://127.0.0.1:${server.ready}${path}`, init).then(async (response) => {
        await response.arrayBuffer();
        responses.push(performance.now() - sent);
      }),
    );
  };
  const endMs = performance.now() + watchedMs;
  for (let turn = 0; performance.now() < endMs; turn++) {
    const body = JSON.stringify({ id: crypto.randomUUID(), type: "order.paid", amount: 1 });
    const signature = new Bun.CryptoHasher("sha256", SECRET).update(body).digest("hex");
    const headers = { "x-signature": signature, "content-type": "application/json" };
    send(paths[turn % paths.length] ?? "/", { method: "POST", headers, body });
    if ((turn * CALL_EVERY_MS) % LIST_EVERY_MS === 0)
      send("/api/apps/bench/development/events?state=dead", { headers: { authorization: `Bearer ${key}` } });
    await Bun.sleep(CALL_EVERY_MS);
  }
  await Promise.all(open);
  return { firstMs, cpuMs, responses };
}

/** Measures the resident memory of a server that gets no requests. */
async function residentIdle(command: Command, idleMs: number): Promise<number> {
  await using server = launch(command, {});
  await firstResponse(server);
  await Bun.sleep(idleMs);
  return await server.residentMiB();
}

async function firstResponse(server: Started<number>): Promise<void> {
  for (;;) {
    try {
      await fetch(`http://127.0.0.1:${server.ready}/healthz`);
      return;
    } catch {
      server.requireRunning();
      await Bun.sleep(2);
    }
  }
}

/** Starts the bare server and the service on a small store, in turns. */
async function startInTurns(
  bare: Command,
  small: Command,
  calls: Calls,
  rounds: number,
): Promise<{ bares: StartTurn[]; smalls: StartTurn[] }> {
  const [bares, smalls]: [StartTurn[], StartTurn[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    bares.push(await startOn(bare, calls));
    smalls.push(await startOn(small, calls));
  }
  return { bares, smalls };
}

async function measureStart(run: Run): Promise<Figure[]> {
  using folder = scratch();
  const serve = (path: string) => (port: number) => [
    ...run.relay,
    ...["serve", "--data-dir", path, "--host", "127.0.0.1", "--port", String(port)],
  ];
  const bare = (port: number): string[] => [
    ...[process.execPath, join(import.meta.dir, "../bare.ts")],
    ...["E", join(folder.path, "bare.db"), SECRET, String(port)],
  ];
  const small = await fillStore({ stores: folder.path, rows: SMALL_ROWS });
  const filled = await fillStore(run);
  const serveSmall = serve(small.path);
  const rounds = run.tiny ? 1 : Math.max(LEAST_ROUNDS, run.rounds);
  const { bares, smalls } = await startInTurns(bare, serveSmall, { ...small.ready, watchedMs: 0 }, rounds);
  const watchedMs = run.tiny ? 200 : WATCHED_MS;
  const limit = await startOn(bare, { ...small.ready, watchedMs });
  const whole = await startOn(serve(filled.path), { ...filled.ready, watchedMs });
  const idleMs = run.tiny ? 0 : IDLE_MS;
  const idleSmall = { name: "a small store", amount: await residentIdle(serveSmall, idleMs) };
  const idle = await residentIdle(serve(filled.path), idleMs);

  const ms = (what: string, amount: number, limitMs: number, atMost?: number): Figure =>
    compareAmounts(
      what,
      "ms",
      amount,
      { name: "bare server E", amount: limitMs },
      atMost === undefined ? {} : { atMost },
    );
  const first = median(bares.map(({ firstMs }) => firstMs));
  const watched = `in the ${watchedMs / 1_000} s after it`;
  const p99 = ({ responses }: StartTurn): number => quantile(responses, 0.99);
  const longest = ({ responses }: StartTurn): number => Math.max(...responses);
  return [
    ms("start to the first response, small store", median(smalls.map(({ firstMs }) => firstMs)), first, 150),
    ms(
      "CPU of such a start, all threads",
      median(smalls.map(({ cpuMs }) => cpuMs)),
      median(bares.map(({ cpuMs }) => cpuMs)),
    ),
    ms(`start to the first response, ${run.rows} events`, whole.firstMs, first),
    ms(`longest response ${watched}`, longest(whole), longest(limit), 150),
    ms(`p99 of the responses ${watched}`, p99(whole), p99(limit)),
    compareAmounts(`resident memory idle, ${run.rows} events`, "MiB", idle, idleSmall, { atMost: 80 }),
  ];
}

export const start: Measure = {
  name: "start",
  what: "from the start of relay serve to its first response, and what a start costs",
  pinned: true,
  measure: measureStart,
};
