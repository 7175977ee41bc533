/**
 * Measures how long the executable takes to start, and its size, next to a compiled hello world of the same Bun. Without `--executable` it builds the
 * executable first. A tiny run starts the sources instead.
 */
import { mkdirSync, mkdtempSync, statSync } from "node:fs";
import { join } from "node:path";
import { compareAmounts, type Figure } from "../figure.ts";
import type { Measure, Run } from "../measure.ts";
import { serverCommand } from "../pin.ts";
import { scratch } from "../process.ts";

const LEAST_ROUNDS = 15;
const PROJECT = join(import.meta.dir, "../../..");
const MIB = 2 ** 20;

/** The time of one start. */
interface Start {
  wallMs: number;
  /** CPU time of all threads. */
  cpuMs: number;
}

/** The starts that take turns. */
interface Starts {
  hello: Start[];
  version: Start[];
  list: Start[];
  serve: Start[];
}

async function runToEnd(command: readonly string[]): Promise<void> {
  const child = Bun.spawn([...command], { cwd: PROJECT, stdout: "ignore", stderr: "pipe" });
  const [told, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${told}`);
}

/** Compiles a program that prints a word. */
async function compileHello(folder: string): Promise<string> {
  const source = join(folder, "hello.ts");
  const file = join(folder, "hello");
  await Bun.write(source, 'console.log("hello");\n');
  await runToEnd([
    process.execPath,
    "build",
    source,
    "--compile",
    "--minify",
    "--bytecode",
    `--outfile=${file}`,
  ]);
  return file;
}

/** Returns the given executable, or one of these sources. A tiny run builds none, because that takes seconds. */
async function readyRelay({ relay, tiny }: Run, folder: string): Promise<readonly string[]> {
  if (relay.length === 1 || tiny) return relay;
  const out = join(folder, "built");
  mkdirSync(out);
  await runToEnd([process.execPath, "scripts/build.ts", "--out", out]);
  return [join(out, "relay")];
}

/** Runs a command until it prints `until`, or to its end, and returns the time. */
async function startOnce(command: readonly string[], cwd: string, until: string | null): Promise<Start> {
  const begun = performance.now();
  const child = Bun.spawn(serverCommand([...command]), {
    cwd,
    env: { PATH: process.env.PATH, HOME: cwd },
    stdout: "pipe",
    stderr: "ignore",
  });
  let text = "";
  const decoder = new TextDecoder();
  for await (const bytes of child.stdout) {
    text += decoder.decode(bytes, { stream: true });
    if (until !== null && text.includes(until)) break;
  }
  if (until === null) await child.exited;
  const wallMs = performance.now() - begun;
  if (until !== null) child.kill("SIGKILL");
  const code = await child.exited;
  if (until === null ? code !== 0 : !text.includes(until))
    throw new Error(`${command.join(" ")} ended with ${code}: ${text}`);
  return { wallMs, cpuMs: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1_000 };
}

async function takeTurns(run: Run, hello: string, relay: readonly string[], folder: string): Promise<Starts> {
  const shop = join(folder, "shop");
  mkdirSync(shop);
  await startOnce([...relay, "apps", "create", "Shop", "--id", "shop"], shop, null);
  const starts: Starts = { hello: [], version: [], list: [], serve: [] };
  const rounds = run.tiny ? 1 : Math.max(LEAST_ROUNDS, run.rounds);
  for (let round = 0; round < rounds; round++) {
    const empty = mkdtempSync(join(folder, "empty-"));
    starts.hello.push(await startOnce([hello], empty, null));
    starts.version.push(await startOnce([...relay, "--version"], empty, null));
    starts.list.push(await startOnce([...relay, "events", "list"], shop, null));
    starts.serve.push(await startOnce([...relay, "serve", "--port", "0"], empty, "Listening"));
  }
  return starts;
}

async function measureStartTime(run: Run): Promise<Figure[]> {
  using folder = scratch();
  const hello = await compileHello(folder.path);
  const relay = await readyRelay(run, folder.path);
  const starts = await takeTurns(run, hello, relay, folder.path);
  // The fastest start, because other work on the machine interrupts a long start more often than a short one, and takes its caches.
  const wall = (of: readonly Start[]): number => Math.min(...of.map(({ wallMs }) => wallMs));
  const cpu = (of: readonly Start[]): number => Math.min(...of.map(({ cpuMs }) => cpuMs));
  const times = (what: string, of: readonly Start[], timesAtMost: number): Figure[] => [
    compareAmounts(
      what,
      "ms",
      wall(of),
      { name: "hello world", amount: wall(starts.hello) },
      { timesAtMost },
    ),
    compareAmounts(`CPU of ${what}`, "ms", cpu(of), { name: "hello world", amount: cpu(starts.hello) }),
  ];
  const size = statSync(relay[0] ?? "").size / MIB;
  const helloSize = statSync(hello).size / MIB;
  return [
    ...times("relay --version", starts.version, 2),
    ...times("relay events list", starts.list, 4),
    ...times("relay serve, ready on an empty folder", starts.serve, 5),
    compareAmounts("share of the executable that is not Bun", "MiB", size - helloSize, null, { atMost: 12 }),
    compareAmounts("the executable", "MiB", size, { name: "hello world", amount: helloSize }),
  ];
}

export const startTime: Measure = {
  name: "start-time",
  what: "how long a command and a server take to start, next to a compiled hello world",
  pinned: true,
  measure: measureStartTime,
};
