/**
 * Limits the processor time of a process by a control group of Linux. Nodes with a small quota each find a free processor, so the number of shared
 * processors does not decide how much several nodes do. It needs root, or a writable control group.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The period that containers have. A process that used its quota stands still until the period ends, possibly with a lock. */
const PERIOD_MICROS = 100_000;

interface Quota extends Disposable {
  /** Moves a process and its threads into the group. */
  add(pid: number): void;
}

/** Creates a group that gets `share` of one processor. Returns null if this system does not allow it. Dispose it after its processes ended. */
export function openQuota(share: number): Quota | null {
  const micros = Math.round(share * PERIOD_MICROS);
  for (const { parent, limits } of listPlaces(micros)) {
    const path = join(parent, `relay-bench-${crypto.randomUUID().slice(0, 8)}`);
    try {
      mkdirSync(path);
    } catch {
      continue;
    }
    const group = {
      add: (pid: number) => writeFileSync(join(path, "cgroup.procs"), String(pid)),
      [Symbol.dispose]: () => rmdirSync(path),
    };
    try {
      for (const [name, value] of limits) writeFileSync(join(path, name), value);
      return group;
    } catch {
      group[Symbol.dispose]();
    }
  }
  return null;
}

interface Place {
  /** The folder of the group in which the new one is created. */
  parent: string;
  limits: readonly (readonly [file: string, value: string])[];
}

/** Lists where a group may be created: in version 1 below the group of this process, in version 2 below the root. */
function listPlaces(micros: number): Place[] {
  const own = existsSync("/proc/self/cgroup") ? readFileSync("/proc/self/cgroup", "utf8") : "";
  const [, first = "/"] = /^\d+:[^:\n]*\bcpu\b[^:\n]*:(.*)$/m.exec(own) ?? [];
  return [
    {
      parent: join("/sys/fs/cgroup/cpu", first),
      limits: [
        ["cpu.cfs_period_us", String(PERIOD_MICROS)],
        ["cpu.cfs_quota_us", String(micros)],
      ],
    },
    { parent: "/sys/fs/cgroup", limits: [["cpu.max", `${micros} ${PERIOD_MICROS}`]] },
  ];
}
