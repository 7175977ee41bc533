/** Describes what the figures were measured on: version, date, machine, and whether it was busy with other work. Figures mean nothing without it. */
import { readFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, release, totalmem, type } from "node:os";
import { join } from "node:path";
import type { Measure } from "./measure.ts";
import { describePinning } from "./pin.ts";

/** Returns one line for each fact, in the order in which a reader needs them. */
export function describeMachine(begun: Date, measures: readonly Measure[]): string[] {
  const root = join(import.meta.dir, "../..");
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  const commit = Bun.spawnSync(["git", "rev-parse", "--short", "HEAD"], { cwd: root, stderr: "ignore" });
  const at = commit.success ? ` (commit ${commit.stdout.toString().trim()})` : "";
  const unpinned = measures.filter(({ pinned }) => !pinned).map(({ name }) => name);
  const processors = availableParallelism();
  const model = cpus()[0]?.model.trim() ?? "unknown processor";
  const busy = loadavg()[0] ?? 0;
  return [
    `Relay Service ${version}${at}, ${begun.toISOString().slice(0, 16).replace("T", " ")} UTC`,
    `${processors} × ${model}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()} ${release()}, Bun ${Bun.version}`,
    `${describePinning()}${unpinned.length === 0 ? "" : `; without pinning: ${unpinned.join(", ")}`}`,
    `load of the machine before the bench: ${busy.toFixed(1)} of ${processors}${busy > processors / 4 ? ", so it was busy with other work: only ratios mean something" : ""}`,
  ];
}
