/** Starts and stops the bench's processes; each measured figure comes from processes of its own. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const here = import.meta.dir;

interface Started<Ready> extends AsyncDisposable {
  ready: Ready;
  pid: number;
  /** Resident memory now, in MiB. */
  residentMiB(): Promise<number>;
  /** CPU time since its start, in ticks of 10 ms. */
  cpuMs(): Promise<number>;
}

/** Starts a script of this folder and waits for its first line, which is JSON. */
export async function start<Ready>(script: string, ...args: string[]): Promise<Started<Ready>> {
  const child = Bun.spawn([process.execPath, join(here, script), ...args], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const ready = JSON.parse(await firstLine(child.stdout)) as Ready;
  return {
    ready,
    pid: child.pid,
    async residentMiB() {
      const status = await Bun.file(`/proc/${child.pid}/status`).text();
      return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
    },
    async cpuMs() {
      const stat = await Bun.file(`/proc/${child.pid}/stat`).text();
      const [user, system] = stat
        .slice(stat.lastIndexOf(")") + 2)
        .split(" ")
        .slice(11, 13);
      return 10 * (Number(user) + Number(system));
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), 15_000);
      await child.exited;
      clearTimeout(timer);
    },
  };
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
  options: { seconds: number; connections?: number; limit?: number },
): Promise<LoadResult> {
  const args = ["--port", String(port), "--secret", secret, "--seconds", String(options.seconds)];
  for (const path of paths) args.push("--path", path);
  if (options.connections !== undefined) args.push("--connections", String(options.connections));
  if (options.limit !== undefined) args.push("--limit", String(options.limit));
  const child = Bun.spawn([process.execPath, join(here, "load.ts"), ...args], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const text = await new Response(child.stdout).text();
  return JSON.parse(text) as LoadResult;
}

/** A folder that is removed afterwards. */
export function scratch(): { path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), "relay-bench-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  const reader = stream.getReader();
  while (!text.includes("\n")) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`The process ended before it was ready: ${text}`);
    text += decoder.decode(value, { stream: true });
  }
  reader.releaseLock();
  void stream.pipeTo(new WritableStream()).catch(() => undefined);
  return text.split("\n")[0] ?? "";
}
