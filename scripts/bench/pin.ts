/** Runs servers on one processor and their load on another, so that neither takes time from the other. It works only on Linux, with `taskset`. */
import { existsSync, readFileSync } from "node:fs";

interface Processors {
  server: number;
  load: number;
  /** True if both are threads of one core, so that each slows the other. */
  isOneCore: boolean;
  /** The list of processors that this process may use, in the format of `taskset`. */
  allowed: string;
}

const found = findProcessors();
let isPinned = false;

/** Returns the command that runs a server on the server's processor while processes are pinned. */
export function serverCommand(command: readonly string[]): string[] {
  return found.ok && isPinned ? ["taskset", "-c", String(found.processors.server), ...command] : [...command];
}

/** Runs this process and its children on the load's processor and servers on the other one, until it is disposed. */
export function pinProcesses(): Disposable {
  if (!found.ok) return { [Symbol.dispose]: () => undefined };
  const { load, allowed } = found.processors;
  isPinned = pinSelf(String(load));
  return {
    [Symbol.dispose]: () => {
      isPinned = false;
      pinSelf(allowed);
    },
  };
}

/** Returns one sentence for the head of the figures. */
export function describePinning(): string {
  if (!found.ok) return `not pinned: ${found.why}`;
  const { server, load, isOneCore } = found.processors;
  const core = isOneCore ? ", two threads of one core" : "";
  return `pinned: server on processor ${server}, load on processor ${load}${core}`;
}

function findProcessors(): { ok: true; processors: Processors } | { ok: false; why: string } {
  if (Bun.which("taskset") === null) return { ok: false, why: "this system has no taskset" };
  const status = readText("/proc/self/status");
  const allowed = /^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1] ?? "";
  const [server, ...others] = listNumbers(allowed);
  const [next] = others;
  if (server === undefined || next === undefined)
    return { ok: false, why: "this process may use only one processor" };
  const siblings = listNumbers(
    readText(`/sys/devices/system/cpu/cpu${server}/topology/thread_siblings_list`).trim(),
  );
  const apart = others.find((one) => !siblings.includes(one));
  if (!pinSelf(allowed)) return { ok: false, why: "taskset cannot move this process" };
  return {
    ok: true,
    processors: { server, load: apart ?? next, isOneCore: apart === undefined, allowed },
  };
}

/** Moves all threads of this process. Returns false if the system refuses. */
function pinSelf(processors: string): boolean {
  const { success } = Bun.spawnSync(["taskset", "-a", "-p", "-c", processors, String(process.pid)], {
    stdout: "ignore",
    stderr: "ignore",
  });
  return success;
}

/** Returns the numbers of a list like `0-2,5`. */
function listNumbers(list: string): number[] {
  return list.split(",").flatMap((part) => {
    const [from = "", to = from] = part.split("-");
    if (from === "") return [];
    return Array.from({ length: Number(to) - Number(from) + 1 }, (_, at) => Number(from) + at);
  });
}

function readText(file: string): string {
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}
