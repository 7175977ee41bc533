/** What a store that years have filled changes: ingestion, the list of events, memory, and a start on it. */
import { dirname, join } from "node:path";
import { ingestBeside } from "./beside.ts";
import { at, compareAmounts, compareRates, type Figure, median } from "./figure.ts";
import type { Turns } from "./ingest.ts";
import { launch, type ProductReady, SECRET, type Started, scratch, start } from "./process.ts";

const RELAYS = "4";
const LISTED = 20;
const IDLE_MS = 3_000;

/** Fills the folder's store up to so many events, unless it is. */
async function fill(path: string, rows: number): Promise<ProductReady> {
  console.error(`filling a store with ${rows} events`);
  await using server = await start<ProductReady>("product.ts", path, RELAYS, SECRET, "paused", String(rows));
  return server.ready;
}

export async function measureGrowth(
  path: string,
  rows: number,
  { seconds, rounds }: Turns,
): Promise<Figure[]> {
  await fill(path, rows);
  const lists = await compareLists(path);
  using folder = scratch(dirname(path));
  const [empty, filled] = await ingestBeside(folder.path, path, Math.round(seconds * rounds));
  const begunEmpty = `begun empty, ${(empty.stored / 1e6).toFixed(1)} M in the end,`;
  const limit = { name: "begun empty", amount: empty.residentMiB };
  return [
    compareRates(`ingestion with ${rows} stored events`, filled.rounds, begunEmpty, empty.rounds, 0.9),
    compareAmounts("  resident meanwhile, most", "MiB", filled.residentMiB, limit, { atMost: 200 }),
    ...lists,
  ];
}

/** The list of events by every filter, page after page, filled and empty. One that nothing fits is walked to the end of its steps. */
async function compareLists(path: string): Promise<Figure[]> {
  using folder = scratch();
  const [empty, filled] = [await list(folder.path), await list(path)];
  const all = (of: readonly Listed[]): number[] => of.flatMap(({ ms }) => ms);
  const limit = { name: "empty", amount: Math.max(...all(empty)) };
  const worst = (kind: string, of: readonly Listed[]): Figure => {
    const [first] = of.map(({ name, ms }) => ({ name, ms: Math.max(...ms) })).toSorted((a, b) => b.ms - a.ms);
    return compareAmounts(`${kind}, worst (${first?.name})`, "ms", first?.ms ?? 0, limit, { atMost: 20 });
  };
  return [
    compareAmounts("event filters, p50", "ms", median(all(filled)), {
      name: "empty",
      amount: median(all(empty)),
    }),
    worst(
      "event filters that find some",
      filled.filter(({ items }) => items > 0),
    ),
    worst(
      "event filters that find none",
      filled.filter(({ items }) => items === 0),
    ),
  ];
}

interface Listed {
  name: string;
  /** Of each page. */
  ms: number[];
  items: number;
}

async function list(path: string): Promise<Listed[]> {
  await using server = await start<ProductReady>("product.ts", path, RELAYS, SECRET, "paused");
  const { base, key } = server.ready;
  const ask = async (query: string): Promise<{ ms: number; next: string | null; items: number }> => {
    const begun = performance.now();
    const answer = await fetch(`${base}/events?${query}`, { headers: { authorization: `Bearer ${key}` } });
    const page = (await answer.json()) as { next: string | null; items: unknown[] };
    if (!answer.ok) throw new Error(`events?${query} was refused: ${JSON.stringify(page)}`);
    return { ms: performance.now() - begun, next: page.next, items: page.items.length };
  };
  // Somebody without events: an unknown id is refused.
  const invited = await fetch(`${base}/persons`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ email: "nobody@example.com" }),
  });
  const { person: nobody } = (await invited.json()) as { person: { id: string } };
  const day = (ago: number): string => new Date(Date.now() - ago * 86_400_000).toISOString();
  const queries = [
    "",
    ...["queued", "done", "failed", "dead"].map((state) => `state=${state}`),
    "relay=orders-1",
    "relay=orders-1&state=dead",
    "relay=none",
    "trigger=schedule",
    `since=${day(20)}&until=${day(15)}`,
    `until=${day(25)}&state=failed`,
    "q=no+such+text",
    `person=${nobody.id}`,
  ];
  for (const query of queries) await ask(query);
  const took: Listed[] = [];
  for (const query of queries) {
    const ms: number[] = [];
    let [next, items]: [string | null, number] = [null, 0];
    for (let page = 0; page < LISTED; page++) {
      const answer: Awaited<ReturnType<typeof ask>> = await ask(
        next === null ? query : `${query}&cursor=${next}`,
      );
      ms.push(answer.ms);
      next = answer.next;
      items += answer.items;
    }
    took.push({ name: query === "" ? "all" : query.replace(/=(20|per_)[^&]*/g, ""), ms, items });
  }
  return took;
}

const WATCHED_MS = 10_000;
const CALL_EVERY_MS = 20;
const LIST_EVERY_MS = 500;

interface StartTurn {
  firstMs: number;
  /** CPU of all threads until then. */
  cpuMs: number;
  /** Of every answer in the seconds after the first. */
  answers: number[];
}

/** Starts on the folder, `relay serve` or the bare server, and calls it from the first answer on, whatever is not answered yet. */
async function startOn(
  command: (port: number) => string[],
  { paths, key, watchedMs }: { paths: readonly string[]; key: string; watchedMs: number },
): Promise<StartTurn> {
  const begun = performance.now();
  await using server = launch(command, {
    RELAY_LIMIT_VERIFIED_EVENTS_PER_MINUTE: "1000000",
    RELAY_LIMIT_RELAYS: "1000",
  });
  await firstAnswer(server);
  const [firstMs, cpuMs] = [performance.now() - begun, await server.cpuMs()];
  const answers: number[] = [];
  const open: Promise<void>[] = [];
  const send = (path: string, init: RequestInit): void => {
    const sent = performance.now();
    open.push(
      fetch(`http://127.0.0.1:${server.ready}${path}`, init).then(async (answer) => {
        await answer.arrayBuffer();
        answers.push(performance.now() - sent);
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
  return { firstMs, cpuMs, answers };
}

/** Resident memory of a server that nobody calls. */
async function residentIdle(command: (port: number) => string[]): Promise<number> {
  await using server = launch(command, {});
  await firstAnswer(server);
  await Bun.sleep(IDLE_MS);
  return await server.residentMiB();
}

async function firstAnswer(server: Started<number>): Promise<void> {
  for (;;) {
    try {
      await fetch(`http://127.0.0.1:${server.ready}/healthz`);
      return;
    } catch {
      await Bun.sleep(2);
    }
  }
}

/** `service`: how `relay` is called, the executable or the source. */
export async function measureStart(
  path: string,
  rows: number,
  { rounds, service }: { rounds: number; service: readonly string[] },
): Promise<Figure[]> {
  using folder = scratch();
  const serve = (dataDir: string) => (port: number) => [
    ...service,
    ...["serve", "--data-dir", dataDir, "--host", "127.0.0.1", "--port", String(port)],
  ];
  const bareFile = join(folder.path, "bare.db");
  const bare = (port: number): string[] => [
    ...[process.execPath, join(import.meta.dir, "bare.ts")],
    ...["E", bareFile, SECRET, String(port)],
  ];
  const small = await fill(join(folder.path, "small"), 100);
  const filled = await fill(path, rows);
  const quick = { ...small, watchedMs: 0 };
  const [limits, smalls]: [StartTurn[], StartTurn[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    limits.push(await startOn(bare, quick));
    smalls.push(await startOn(serve(join(folder.path, "small")), quick));
  }
  const first = (turns: readonly StartTurn[]): number => median(turns.map(({ firstMs }) => firstMs));
  const cpu = (turns: readonly StartTurn[]): number => median(turns.map(({ cpuMs }) => cpuMs));
  const limitFirst = { name: "E (bare, Elysia)", amount: first(limits) };
  const limit = await startOn(bare, { ...small, watchedMs: WATCHED_MS });
  const whole = await startOn(serve(path), { ...filled, watchedMs: WATCHED_MS });
  const idleLimit = { name: "small", amount: await residentIdle(serve(join(folder.path, "small"))) };
  const longest = ({ answers }: StartTurn): number => Math.max(...answers);
  const after = (name: string, of: (turn: StartTurn) => number, atMost?: number): Figure =>
    compareAmounts(
      name,
      "ms",
      of(whole),
      { name: "E", amount: of(limit) },
      atMost === undefined ? {} : { atMost },
    );
  return [
    compareAmounts("start to the first answer, small directory", "ms", first(smalls), limitFirst, {
      atMost: 150,
    }),
    compareAmounts("  CPU until then, all threads", "ms", cpu(smalls), { name: "E", amount: cpu(limits) }),
    compareAmounts(`start to the first answer, ${rows} events`, "ms", whole.firstMs, limitFirst),
    after("  longest answer in the ten seconds after", longest, 150),
    after("  p99 of the answers", ({ answers }) => at(answers, 0.99)),
    compareAmounts("resident idle, filled", "MiB", await residentIdle(serve(path)), idleLimit, {
      atMost: 80,
    }),
  ];
}
