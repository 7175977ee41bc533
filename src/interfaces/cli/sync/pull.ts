/** Writes dashboard edits of a server's environment to the files (`relay pull`). It shows the plan first, then carries out exactly that. */
import { isJsonObject, type Json, writeJson } from "../../../base/json.ts";
import { CATALOG_NAME, RELAY_NAME } from "../../../base/shape.ts";
import { plain } from "../../../base/text.ts";
import { type DeployedState, type Pulled, SYNC_ITEM_KINDS } from "../../../operator/sync/deployed-state.ts";
import { type MergeBase, readMergeBase, writeMergeBase } from "../../../operator/sync/merge-base.ts";
import {
  chooseBase,
  type Folder,
  type PullEntry,
  planPull,
  readFolder,
} from "../../../operator/sync/pull-plan.ts";
import {
  formatPath,
  type PullOptions,
  type PullSide,
  pullActionOf,
  writePull,
} from "../../../operator/sync/pull-write.ts";
import { syncTarget } from "../../../operator/sync/synced.ts";
import { requireServer } from "../api/connect.ts";
import type { Remote } from "../api/remote.ts";
import { TARGET } from "../api/target.ts";
import { type Command, CommandFailure, type Input, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { readServiceDir, SERVICE_DIR } from "../service-option.ts";
import { placeOf } from "./plan-decision.ts";
import {
  count,
  nameThing,
  printDiff,
  printThing,
  printUnchanged,
  type Sign,
  showValue,
} from "./plan-lines.ts";

/** The exit code if a person must decide something. */
const UNDECIDED = 3;

export const pull: Command = {
  words: ["pull"],
  summary: "write dashboard edits to the files",
  details: [
    "The command writes dashboard edits of a server into the definition files and the catalog. It shows the plan first. It compares both sides with the last common state, from .synced.json or from the server's last sync.",
    "An item that changed only on the server is written to its file. An item that changed only in the file stays. An item that changed on both sides is shown and not written, unless you choose a side.",
    "  --theirs: write the server's version to the file",
    "  --ours: keep the file, and let the next sync replace the server's version",
    "Each file is replaced atomically with its own indentation, and only if it did not change since the plan. Nothing is deleted without --prune, and secrets are never pulled.",
    "Exit codes:",
    "  0: done or nothing to do",
    "  1: refused or failed",
    "  2: the command line is wrong",
    "  3: an item changed on both sides and was not written",
  ].join("\n"),
  arguments: [
    {
      name: "names",
      help: "the items to pull, such as checkout or product:book; by default all",
      many: true,
      optional: true,
    },
  ],
  options: [
    { name: "dry-run", help: "show the plan and write nothing" },
    { name: "yes", help: "write without asking" },
    {
      name: "theirs",
      help: "write the server's version of items that changed on both sides or lost their file",
    },
    {
      name: "ours",
      help: "keep the files of items that changed on both sides; the next sync replaces the server's",
    },
    {
      name: "prune",
      help: "delete the files and catalog items that are gone on the server and unchanged here",
    },
    JSON_OUTPUT,
    ...TARGET,
    SERVICE_DIR,
  ],
  examples: [
    "relay pull --profile shop",
    "relay pull --dry-run",
    "relay pull checkout --theirs",
    "relay pull --prune --yes",
  ],
  async run(input, io) {
    const options = readOptions(input);
    const serviceDir = readServiceDir(input, io);
    const remote = await requireServer(input, io);
    const server = placeOf(remote);
    const deployed = await readDeployed(remote);
    const folder = await readFolder(serviceDir);
    const memory = chooseBase(await readMergeBase(serviceDir, server), folder, deployed);
    const entries = selectEntries(planPull(folder, deployed, memory), input.positionals);
    if (!input.on("json")) printPlan(entries, options, io);
    const deeds = entries.map((entry) => pullActionOf(entry, options));
    const left = deeds.filter((deed) => deed === "leave").length;
    const files = deeds.filter((deed) => deed === "write" || deed === "remove").length;
    const say = (applied: boolean, failed: ReadonlyMap<PullEntry, string> = new Map()): void => {
      if (!input.on("json")) return;
      const shown = entries.map((entry) => view(entry, options, failed.get(entry) ?? null, io));
      io.print(writeJson({ server, entries: shown, left, applied }, 2));
    };
    if (input.on("dry-run")) {
      say(false);
      return left > 0 ? UNDECIDED : 0;
    }
    if (
      files > 0 &&
      io.interactive &&
      !input.on("yes") &&
      !(await io.confirm(`Write ${count(files, "item")} to ${serviceDir}?`))
    ) {
      say(false);
      io.inform("Nothing was written.");
      return 1;
    }
    const failed = writePull(folder, entries, options);
    const held = entries.filter((entry) => !failed.has(entry) && holds(entry, options));
    await remember(folder, server, memory, held);
    say(true, failed);
    for (const [entry, why] of failed) io.inform(`${nameThing(entry)}: not written: ${plain(why)}`);
    await recordPulled(remote, deployed, held, io);
    if (failed.size > 0)
      throw new CommandFailure(
        "file_unusable",
        `${count(failed.size, "item")} could not be written, and all others were: run relay pull again.`,
      );
    io.inform(
      files === 0 && left === 0
        ? "Nothing to do."
        : `${count(files, "item")} written to ${plain(serviceDir)}.`,
    );
    if (left > 0)
      io.inform(
        `${count(left, "item")} changed on both sides and not written: --theirs takes the server's version, --ours keeps the file.`,
      );
    return left > 0 ? UNDECIDED : 0;
  },
};

function readOptions(input: Input): PullOptions {
  if (input.on("theirs") && input.on("ours"))
    throw new UsageError("--theirs and --ours contradict each other: write one of them.");
  const side: PullSide = input.on("theirs") ? "theirs" : input.on("ours") ? "ours" : "neither";
  return { side, prune: input.on("prune") };
}

/** Reads everything in the environment, page by page. */
export async function readDeployed(remote: Remote): Promise<DeployedState[]> {
  const { items } = await remote.list<DeployedState>("/sync/items");
  return items.map(checkDeployed);
}

/** Checks an item of the server. Its name becomes a file's name here, so the name must be valid. */
function checkDeployed(one: DeployedState): DeployedState {
  if (!isJsonObject(one as Json)) throw rejectStateName(one);
  const pattern = one.kind === "relay" ? RELAY_NAME : CATALOG_NAME;
  const isOurs = SYNC_ITEM_KINDS.includes(one.kind) && (one.content === null || isJsonObject(one.content));
  if (isOurs && typeof one.name === "string" && pattern.test(one.name)) return one;
  throw rejectStateName(one);
}

function rejectStateName(one: Partial<DeployedState> | null): CommandFailure {
  const name = plain(writeJson(one?.name ?? null).slice(0, 80));
  return new CommandFailure(
    "invalid_input",
    `The server names a ${plain(String(one?.kind))} ${name}, which is not a valid name: nothing was written.`,
  );
}

function selectEntries(entries: readonly PullEntry[], names: readonly string[]): PullEntry[] {
  if (names.length === 0) return [...entries];
  const chosen = new Set<PullEntry>();
  for (const name of names) {
    const found = entries.filter((entry) =>
      name.includes(":") ? syncTarget(entry) === name : entry.name === name,
    );
    if (found.length === 0)
      throw new CommandFailure(
        "not_found",
        `Neither the files nor the server have ${plain(name)}: relay pull --dry-run lists the items.`,
      );
    for (const entry of found) chosen.add(entry);
  }
  return [...chosen];
}

/** Reports whether both sides are the same now, or count as the same. */
function holds(entry: PullEntry, options: PullOptions): boolean {
  const deed = pullActionOf(entry, options);
  return entry.state === "unchanged" || deed === "write" || deed === "remove" || deed === "settle";
}

async function remember(
  { serviceDir }: Folder,
  server: string,
  memory: MergeBase,
  held: readonly PullEntry[],
): Promise<void> {
  for (const entry of held) {
    if (entry.there === null) memory.delete(syncTarget(entry));
    else memory.set(syncTarget(entry), entry.there);
  }
  await writeMergeBase(serviceDir, server, memory);
}

const MAX_RECORDED = 100;

/** Informs the server which items the files now contain, so that a sync does not ask about them as edits. */
async function recordPulled(
  remote: Remote,
  deployed: readonly DeployedState[],
  held: readonly PullEntry[],
  io: Io,
): Promise<void> {
  if (!remote.place.endsWith("/development")) return;
  const brought = new Map(deployed.map((one) => [syncTarget(one), one.brought]));
  const items = held
    .filter((entry) => writeJson(brought.get(syncTarget(entry))?.content ?? null) !== writeJson(entry.there))
    .map(({ kind, name, mark }): Pulled => ({ kind, name, mark }));
  try {
    for (let at = 0; at < items.length; at += MAX_RECORDED)
      await remote.request("POST", "/sync/pulled", { items: items.slice(at, at + MAX_RECORDED) });
  } catch (error) {
    io.inform(
      "The files are written, but the server does not know it: the next sync may ask about the pulled edits.",
    );
    throw error;
  }
}

const SIGNS: Readonly<Record<PullEntry["state"], Sign>> = {
  created: "+",
  changed: "~",
  changed_both: "!",
  deleted_there: "-",
  deleted_here: "?",
  changed_here: "?",
  only_here: "?",
  unchanged: "=",
};

function printPlan(entries: readonly PullEntry[], options: PullOptions, io: Io): void {
  for (const entry of entries) {
    const { state, path, diff, threeWay } = entry;
    if (state === "unchanged") continue;
    const where = plain(formatPath(io.cwd, path));
    printThing(io, SIGNS[state], `${nameThing(entry)}  ${formatState(entry, options)}  ${where}`);
    if (state === "changed") printDiff(io, diff);
    for (const { field, was, here, there } of threeWay) {
      io.print(`    ${plain(field) || "all of it"}`);
      io.print(`      was     ${was === undefined ? "(absent or unknown)" : showValue(was)}`);
      io.print(`      file    ${here === undefined ? "(absent)" : showValue(here)}`);
      io.print(`      server  ${there === undefined ? "(absent)" : showValue(there)}`);
    }
  }
  printUnchanged(io, entries.filter(({ state }) => state === "unchanged").length);
}

function formatState(entry: PullEntry, options: PullOptions): string {
  const deed = pullActionOf(entry, options);
  if (deed === "refuse") return `not valid here, never written: ${plain(entry.problem ?? "")}`;
  switch (entry.state) {
    case "created":
      return "created";
    case "changed":
      return "changed on the server";
    case "changed_here":
      return "changed only in the file, not written";
    case "only_here":
      return "only in the files, not changed";
    case "deleted_here":
      return deed === "write"
        ? "its file is gone, written again"
        : "its file is gone, written only with --theirs";
    case "deleted_there":
      return deed === "remove"
        ? "gone on the server, deleted"
        : "gone on the server, deleted only with --prune";
    case "changed_both":
      if (deed === "write") return "changed on both sides, the server's version is written";
      if (deed === "settle") return "changed on both sides, the file stays";
      if (deed === "remove") return "gone on the server and changed in the file, deleted";
      return entry.there === null
        ? "gone on the server and changed in the file, not deleted"
        : "changed on both sides, not written";
    default:
      return "unchanged";
  }
}

function view(entry: PullEntry, options: PullOptions, failure: string | null, io: Io) {
  const { kind, name, state, path, diff, threeWay } = entry;
  const deed = failure === null ? pullActionOf(entry, options) : "failed";
  return { kind, name, state, deed, path: formatPath(io.cwd, path), diff, threeWay, failure };
}
