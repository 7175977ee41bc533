/** Shows the differences between the files, development and production, one line for each item (`relay status`). It changes nothing. */
import { existsSync } from "node:fs";
import { type Json, writeJson } from "../../../base/json.ts";
import { listDifferences } from "../../../base/json-diff.ts";
import { plain } from "../../../base/text.ts";
import type { DeployedState } from "../../../operator/sync/deployed-state.ts";
import { readMergeBase } from "../../../operator/sync/merge-base.ts";
import { chooseBase, type Folder, planPull, readFolder } from "../../../operator/sync/pull-plan.ts";
import { syncTarget } from "../../../operator/sync/synced.ts";
import { requireServer } from "../api/connect.ts";
import { findProfileOf, requireProfile } from "../api/profile.ts";
import type { Remote } from "../api/remote.ts";
import { remoteOfProfile, TARGET } from "../api/target.ts";
import { type Command, CommandFailure, type Input } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { readServiceDir, SERVICE_DIR } from "../service-option.ts";
import { printList } from "../terminal/terminal.ts";
import { placeOf } from "./plan-decision.ts";
import { count, formatWho } from "./plan-lines.ts";
import { readDeployed } from "./pull.ts";

/** The exit code if something differs. */
const DRIFT = 3;

export const status: Command = {
  words: ["status"],
  summary: "compare files, development and production",
  details:
    "The command prints a line for each item that differs, with its fields, who changed it last and when. It compares the files of the service directory with the environment that --profile, --url or the default profile names. If a profile of the app's other environment exists, or --and names one, it compares that too. A field that a file leaves out is no difference.\nExit codes:\n  0: all the same\n  1: refused or failed\n  2: the command line is wrong\n  3: something differs",
  options: [
    JSON_OUTPUT,
    ...TARGET,
    {
      name: "and",
      value: "<profile>",
      otherwise: "the profile of the app's other environment",
      help: "the profile of a second environment",
      of: "profile",
    },
    SERVICE_DIR,
  ],
  examples: ["relay status", "relay status --profile shop --and shop-production", "relay status --json"],
  async run(input, io) {
    const serviceDir = readServiceDir(input, io);
    const first = await requireServer(input, io);
    const second = findSecond(first, input, io);
    const remotes = second === null ? [first] : [first, second];
    // Development comes before production, which is the direction of a promotion.
    remotes.sort((one, other) => one.environment.localeCompare(other.environment));
    const folder = existsSync(serviceDir) ? await readFolder(serviceDir) : null;
    const sides: Side[] = [];
    for (const remote of remotes) sides.push({ remote, deployed: await readDeployed(remote) });
    const lines = await compareAll(folder, sides);
    const differing = lines.filter(({ differs }) => differs.length > 0);
    const names = [...(folder === null ? [] : ["files"]), ...sides.map(({ remote }) => remote.environment)];
    if (names.length < 2)
      throw new CommandFailure(
        "not_found",
        `There is nothing to compare with: ${serviceDir} does not exist, and ${names.join()} is the only environment.`,
      );
    if (input.on("json")) {
      const environments = sides.map(({ remote }) => ({
        environment: remote.environment,
        app: remote.app,
        server: remote.url,
      }));
      io.print(
        writeJson(
          {
            serviceDir: folder === null ? null : serviceDir,
            environments,
            same: lines.length - differing.length,
            differing,
          },
          2,
        ),
      );
    } else await printTable(differing, lines.length, names, input, io);
    if (second === null) printUnseen(first, io);
    return differing.length > 0 ? DRIFT : 0;
  },
};

interface Side {
  remote: Remote;
  deployed: readonly DeployedState[];
}

/** An item with its state in each place, and the fields that differ between each two places. */
interface Line {
  kind: string;
  name: string;
  places: Record<string, string>;
  differs: { between: [string, string]; fields: string[] }[];
  changed: Record<string, NonNullable<DeployedState["changed"]>>;
}

function findSecond(first: Remote, input: Input, io: Io): Remote | null {
  const named = input.text("and");
  const other = first.environment === "production" ? "development" : "production";
  const profile =
    named === null
      ? findProfileOf(io, { url: first.url, app: first.app, environment: other })
      : requireProfile(io, named);
  if (profile === null) return null;
  const { url, app, environment } = profile;
  if (environment === first.environment && app === first.app && url === first.url)
    throw new CommandFailure(
      "invalid_input",
      `--and names ${plain(app)}/${environment} at ${url}, which is the first environment already: name the profile of another.`,
    );
  return remoteOfProfile(profile);
}

/** Reports the environment that was not compared, because "all the same" does not include it. */
function printUnseen({ url, environment }: Remote, io: Io): void {
  const other = environment === "production" ? "development" : "production";
  const dry = other === "production" ? "; relay promote --dry-run shows its differences too" : "";
  io.inform(
    `${other} was not compared, because there is no profile of it: run relay login --url ${url} and choose ${other}${dry}.`,
  );
}

async function compareAll(folder: Folder | null, sides: readonly Side[]): Promise<Line[]> {
  const lines = new Map<string, Line>();
  const lineOf = (thing: { kind: DeployedState["kind"]; name: string }): Line => {
    const target = syncTarget(thing);
    const line = lines.get(target) ?? {
      kind: thing.kind,
      name: thing.name,
      places: {},
      differs: [],
      changed: {},
    };
    lines.set(target, line);
    return line;
  };
  for (const { remote, deployed } of sides)
    for (const one of deployed) {
      if (one.content === null) continue;
      const line = lineOf(one);
      line.places[remote.environment] = formatOrigin(one);
      if (one.changed !== null) line.changed[remote.environment] = one.changed;
    }
  const [near, far] = sides;
  if (folder !== null && near !== undefined) {
    const known = await readMergeBase(folder.serviceDir, placeOf(near.remote));
    const memory = chooseBase(known, folder, near.deployed);
    for (const entry of planPull(folder, near.deployed, memory)) {
      const line = lineOf(entry);
      const isHere = entry.state !== "created" && entry.state !== "deleted_here";
      if (isHere) line.places.files = FILE_WORDS[entry.state] ?? "";
      if (entry.state !== "unchanged") {
        const fields = entry.diff.map(({ field }) => field);
        line.differs.push({ between: ["files", near.remote.environment], fields });
      }
    }
  }
  if (near !== undefined && far !== undefined) {
    const remote = new Map(far.deployed.map((one) => [syncTarget(one), one.content]));
    const local = new Map(near.deployed.map((one) => [syncTarget(one), one.content]));
    for (const [target, line] of lines) {
      const [one, other] = [local.get(target) ?? null, remote.get(target) ?? null];
      if (writeJson(one) === writeJson(other)) continue;
      const fields =
        one === null || other === null
          ? []
          : listDifferences(one as Json, other as Json).map(({ field }) => field);
      line.differs.push({ between: [near.remote.environment, far.remote.environment], fields });
    }
  }
  return [...lines.values()];
}

const FILE_WORDS: Readonly<Record<string, string>> = {
  changed: "behind",
  changed_here: "edited",
  changed_both: "conflict",
  only_here: "exists",
  deleted_there: "behind",
  unchanged: "same",
};

/** Describes an item by the environment's own record: `as synced`, or edited there since. */
function formatOrigin({ content, brought }: DeployedState): string {
  if (brought === null) return "created there";
  return writeJson(brought.content) === writeJson(content) ? "as synced" : "edited there";
}

const MAX_FIELDS = 4;

async function printTable(
  differing: readonly Line[],
  all: number,
  names: readonly string[],
  input: Input,
  io: Io,
): Promise<void> {
  if (differing.length === 0) {
    io.print(`All the same: ${count(all, "item")} in ${names.join(", ")}.`);
    return;
  }
  await printList(input, io, differing, {
    columns: [
      { heading: "ITEM", value: ({ kind, name }) => `${kind} ${name}` },
      ...names.map((name) => ({
        heading: name.toUpperCase(),
        value: ({ places }: Line) => places[name] ?? "-",
      })),
      {
        heading: "DIFFERS",
        value: (line) => [...line.differs.map(formatDifference), ...formatChanges(line)].join("; "),
        wrap: true,
      },
    ],
    none: "",
  });
  const same = all - differing.length;
  io.inform(
    `${count(differing.length, "item")} differ${differing.length === 1 ? "s" : ""}${same > 0 ? `, ${same} the same` : ""}.`,
  );
}

function formatDifference({ between: [one, other], fields }: Line["differs"][number]): string {
  const shown = fields.slice(0, MAX_FIELDS).map(plain);
  const more = fields.length > MAX_FIELDS ? ` and ${fields.length - MAX_FIELDS} more` : "";
  return `${one}/${other}${shown.length === 0 ? "" : `: ${shown.join(", ")}${more}`}`;
}

function formatChanges({ changed, places }: Line): string[] {
  return Object.entries(changed)
    .filter(([place]) => places[place] !== undefined)
    .map(
      ([place, { at, ...who }]) => `${place} since ${at.slice(0, 16).replace("T", " ")} by ${formatWho(who)}`,
    );
}
