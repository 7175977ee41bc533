/** Starts and stops the bench's processes. Each measured figure has its own processes. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tellTrouble } from "./child-log.ts";
import { serverCommand } from "./pin.ts";

const here = import.meta.dir;

export const SECRET = "bench-secret-of-thirty-two-chars";

/** The line that product.ts prints when it is ready. */
export interface ProductReady {
  port: number;
  paths: string[];
  base: string;
  key: string;
}

export interface Started<Ready> extends AsyncDisposable {
  ready: Ready;
  pid: number;
  /** Resident memory now, in MiB. */
  residentMiB(): Promise<number>;
  /** CPU time in milliseconds since its start, measured in ticks of 10 ms. */
  cpuMs(): Promise<number>;
  /** Throws if the process has ended, because waiting for its work would never end. */
  requireRunning(): void;
}

/** Starts a script of this folder and waits for its first line, which is JSON. */
export function start<Ready>(script: string, ...args: string[]): Promise<Started<Ready>> {
  return startWith({}, script, ...args);
}

/** Starts a script like `start`, with additional environment variables. */
export async function startWith<Ready>(
  env: Record<string, string>,
  script: string,
  ...args: string[]
): Promise<Started<Ready>> {
  const child = Bun.spawn(serverCommand([process.execPath, join(here, script), ...args]), {
    env: { ...process.env, ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const told = tellTrouble(child);
  try {
    return { ready: JSON.parse(await firstLine(child.stdout)) as Ready, ...controlsOf(child) };
  } catch (error) {
    await told;
    throw error;
  }
}

/** Starts a server without reading its output, and returns at once. `command` must listen on the port, which becomes `ready`. */
export function launch(command: (port: number) => string[], env: Record<string, string>): Started<number> {
  const port = freePort();
  const child = Bun.spawn(serverCommand(command(port)), {
    env: { ...process.env, ...env },
    stdout: "ignore",
    stderr: "ignore",
  });
  return { ready: port, ...controlsOf(child) };
}

function controlsOf(child: Bun.Subprocess): Omit<Started<never>, "ready"> {
  const read = (name: string): Promise<string> => Bun.file(`/proc/${child.pid}/${name}`).text();
  return {
    pid: child.pid,
    async residentMiB() {
      return Math.round(Number(/VmRSS:\s+(\d+)/.exec(await read("status"))?.[1] ?? 0) / 1024);
    },
    async cpuMs() {
      const stat = await read("stat");
      const [user, system] = stat
        .slice(stat.lastIndexOf(")") + 2)
        .split(" ")
        .slice(11, 13);
      return 10 * (Number(user) + Number(system));
    },
    requireRunning() {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error("The server ended while its work was waited for.");
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), 15_000);
      await child.exited;
      clearTimeout(timer);
    },
  };
}

function freePort(): number {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const port = server.port ?? 0;
  void server.stop(true);
  return port;
}

export interface LoadResult {
  calls: number;
  ok: number;
  seconds: number;
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
  statuses: Record<string, number>;
}

/** Runs a load to its end. */
export async function load(
  port: number,
  paths: readonly string[],
  secret: string,
  options: { seconds: number; connections?: number; limit?: number; rate?: number },
): Promise<LoadResult> {
  const args = ["--port", String(port), "--secret", secret, "--seconds", String(options.seconds)];
  for (const path of paths) args.push("--path", path);
  if (options.connections !== undefined) args.push("--connections", String(options.connections));
  if (options.limit !== undefined) args.push("--limit", String(options.limit));
  if (options.rate !== undefined) args.push("--rate", String(options.rate));
  const child = Bun.spawn([process.execPath, join(here, "load.ts"), ...args], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const text = await new Response(child.stdout).text();
  if (text === "") throw new Error(`The load ended without a result (exit code ${await child.exited}).`);
  return requireAccepted(JSON.parse(text) as LoadResult);
}

/** Throws if no request of the load was accepted, because such a load has no figure. */
function requireAccepted(result: LoadResult): LoadResult {
  if (result.ok === 0)
    throw new Error(`No request of the load was accepted: ${JSON.stringify(result.statuses)}`);
  return result;
}

/** A client process for several loads. Each load is of one server or of several at once. */
export interface Client extends AsyncDisposable {
  load(
    servers: readonly Pick<ProductReady, "port" | "paths">[],
    turn: { seconds: number; connections?: number; limit?: number },
  ): Promise<LoadResult>;
}

export function startClient(secret: string): Client {
  const child = Bun.spawn([process.execPath, join(here, "load.ts"), "--secret", secret, "--turns"], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = child.stdout.getReader();
  return {
    async load(servers, turn) {
      const called = servers.map(({ port, paths }) => ({ port, paths }));
      child.stdin.write(`${JSON.stringify({ servers: called, ...turn })}\n`);
      await child.stdin.flush();
      return requireAccepted(JSON.parse(await readLine(reader)) as LoadResult);
    },
    async [Symbol.asyncDispose]() {
      await child.stdin.end();
      await child.exited;
    },
  };
}

const folders = new Set<string>();

function remove(path: string): void {
  rmSync(path, { recursive: true, force: true });
  folders.delete(path);
}

/** Creates a folder that is removed afterwards, also when the bench is interrupted (endOnSignals). */
export function scratch(within = tmpdir()): { path: string } & Disposable {
  const path = mkdtempSync(join(within, "relay-bench-"));
  folders.add(path);
  return { path, [Symbol.dispose]: () => remove(path) };
}

/** Removes the folders when Ctrl+C or SIGTERM ends the bench. Its processes end with it (`--no-orphans`). */
export function endOnSignals(): void {
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)
    process.on(signal, () => {
      for (const path of folders) remove(path);
      process.exit(code);
    });
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  const reader = stream.getReader();
  const line = await readLine(reader);
  reader.releaseLock();
  void stream.pipeTo(new WritableStream()).catch(() => undefined);
  return line;
}

/** Reads a line. The sender must send nothing after it until it was read. */
async function readLine(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  while (!text.includes("\n")) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`The process ended before it was ready: ${text}`);
    text += decoder.decode(value, { stream: true });
  }
  return text.split("\n")[0] ?? "";
}
