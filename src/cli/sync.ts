/** `relay sync`: the definition files and the catalog carried to a server's development environment; the plan first, then exactly that. */
import { existsSync } from "node:fs";
import { isJsonObject, type Json, writeJson } from "../ground/json.ts";
import { Refusal } from "../ground/refusal.ts";
import { plain } from "../ground/text.ts";
import { readLocalSecrets, SECRETS_FILE, setServerSecrets } from "../secret/local-file.ts";
import { listItems } from "../sync/catalog-edit.ts";
import { catalogPath } from "../sync/catalog-file.ts";
import { listDefinitionFiles, relaysFolder } from "../sync/definition-file.ts";
import { checkFiles } from "../sync/file-set.ts";
import { readMemory, writeMemory } from "../sync/folder-memory.ts";
import { readJsonFile } from "../sync/json-file.ts";
import type { Carried, EntryView, Planned } from "../sync/plan.ts";
import { type Command, CommandFailure, type Input } from "./command.ts";
import { JSON_OUTPUT } from "./data-directory.ts";
import { findTarget, SERVER_URL } from "./place.ts";
import { PROFILE } from "./profile.ts";
import { toRefusalCode, writeCodeLine } from "./refusal-words.ts";
import { postRemote, type Remote } from "./remote.ts";
import { readServiceDir, SERVICE_DIR } from "./service-option.ts";
import type { World } from "./world.ts";

export const sync: Command = {
  words: ["sync"],
  summary: "carry the definition files and the catalog to a server's development environment",
  details:
    "The plan is shown first, and exactly that is carried out, in one transaction: where a file or the environment moved meanwhile, nothing is. Definitions alone are carried, never data or secrets, and nothing is deleted without --prune. What was edited in the dashboard since the last sync is replaced when you say so in the terminal, or with --yes; elsewhere the command refuses and changes nothing. Secrets that the server makes are written to .secrets.json of the service directory. Exit codes: 0 done, nothing to do, or a plan that could be carried out (--dry-run; with --json its `changes` says how many there are); 1 refused or failed; 2 wrongly written.",
  options: [
    { name: "dry-run", help: "show the plan and change nothing" },
    { name: "yes", help: "replace what was edited in the dashboard without asking; deletes nothing" },
    {
      name: "prune",
      help: "delete relays that a sync brought, that nobody edited since, and whose file is gone",
    },
    JSON_OUTPUT,
    { ...PROFILE, otherwise: "the default one" },
    { ...SERVER_URL, otherwise: "none", help: "the server; its secret key is read from RELAY_KEY" },
    { name: "key-stdin", help: "read the secret key from standard input instead of RELAY_KEY" },
    SERVICE_DIR,
  ],
  examples: [
    "relay sync --profile shop",
    "RELAY_KEY=… relay sync --url https://relay.example.com",
    "relay sync --dry-run --json",
    "relay sync --prune --yes",
  ],
  async run(input, world) {
    const serviceDir = readServiceDir(input, world);
    const remote = await findTarget(input, world, { writes: !input.on("dry-run") });
    const files = await readFiles(serviceDir, remote, input, world);
    const set = { ...files, prune: input.on("prune") };
    const plan = await postRemote<Planned>(remote, "/sync/plan", { ...set, replaceEdited: input.on("yes") });
    if (!input.on("json")) sayPlan(plan, input, world);
    const refusal = plan.refusal ?? plan.entries.find((entry) => entry.refusal !== null)?.refusal ?? null;
    if (refusal !== null || input.on("dry-run")) {
      if (input.on("json")) world.say(writeJson({ ...plan, applied: false }, 2));
      if (refusal === null) return 0;
      world.tell("Nothing was changed: the server would refuse the plan.");
      world.tell(writeCodeLine(toRefusalCode(refusal.code), [], world));
      return 1;
    }
    const replaceEdited = input.on("yes") || (await asksToReplace(plan.entries, world));
    const edited = plan.entries.filter(({ state }) => state === "edited").length;
    if (plan.changes + (replaceEdited && !input.on("yes") ? edited : 0) === 0) {
      if (input.on("json")) world.say(writeJson({ ...plan, applied: false }, 2));
      world.tell("Nothing to do.");
      return 0;
    }
    // A file that could not take the secrets is found before any is made.
    await readLocalSecrets(serviceDir);
    await requireSameFiles(files, serviceDir);
    const { secrets, ...done } = await postRemote<Carried>(remote, "/sync/apply", {
      ...set,
      replaceEdited,
      plan: plan.plan,
    }).catch((error: unknown) => {
      if (error instanceof CommandFailure)
        world.tell(
          "Whether the plan was carried out is not known: relay sync --dry-run shows what is left; secrets that were made can be rotated in the dashboard.",
        );
      throw error;
    });
    await keepSecrets(secrets, serviceDir, remote, world);
    await rememberSynced(done.entries, files, serviceDir, remote, replaceEdited);
    if (input.on("json")) {
      const made = secrets.map(({ relay }) => relay);
      world.say(writeJson({ ...done, refusal: null, applied: true, secretsOf: made }, 2));
    }
    world.tell(`${count(done.changes, "change")} made in ${plain(placeOf(remote))}.`);
    return 0;
  },
};
/** `https://relay.example.com/shop/development`: what the environment is called in files and lines. */
export function placeOf({ url, place }: Remote): string {
  return `${url}${place.replace("/api/apps", "")}`;
}

interface Sent {
  relays: Json[];
  catalog: Json;
}

/** The files as they are sent. Refuses with `invalid_definition` files that a save would refuse, having told each problem. */
async function readFiles(serviceDir: string, remote: Remote, input: Input, world: World): Promise<Sent> {
  const paths = await listDefinitionFiles(serviceDir);
  const catalog = catalogPath(serviceDir);
  const all = existsSync(catalog) ? [...paths, catalog] : paths;
  if (all.length === 0 || (input.on("prune") && !existsSync(relaysFolder(serviceDir)))) {
    throw new CommandFailure(
      "not_found",
      `There is nothing to sync in ${serviceDir}: name the folder that holds relays/ with --service-dir, or make it first.`,
    );
  }
  const checked = await checkFiles(all, { nowMs: world.clock.now(), baseUrl: remote.url });
  const problems = checked.flatMap(({ path, problems }) => problems.map((problem) => ({ path, ...problem })));
  for (const { path, place, message } of problems) {
    world.tell(`${plain(path)}${place === null ? "" : `:${place.line}:${place.column}`}  ${plain(message)}`);
  }
  if (problems.length > 0) {
    throw new Refusal(
      "invalid_definition",
      "The files have problems, so nothing was sent: mend them first.",
      {
        problems: problems.map(({ field, message }) => ({ field, message })),
      },
    );
  }
  return await readSent(serviceDir);
}

async function readSent(serviceDir: string): Promise<Sent> {
  const read = async (path: string): Promise<Json> => {
    const file = await readJsonFile(path);
    if (file.ok) return file.value;
    throw new CommandFailure("version_conflict", `${path} changed while it was read: run the command again.`);
  };
  const relays: Json[] = [];
  for (const path of await listDefinitionFiles(serviceDir)) relays.push(await read(path));
  const catalog = catalogPath(serviceDir);
  return { relays, catalog: existsSync(catalog) ? await read(catalog) : null };
}

/** The plan that was shown is of these files: others are not sent under its name, and neither are the old ones. */
async function requireSameFiles(sent: Sent, serviceDir: string): Promise<void> {
  if (writeJson(await readSent(serviceDir)) === writeJson(sent)) return;
  throw new CommandFailure(
    "version_conflict",
    "The files changed since the plan was shown, and nothing was applied: run relay sync again.",
  );
}

/** Whether what was edited in the dashboard is replaced; only a person at a terminal is asked. */
async function asksToReplace(entries: readonly EntryView[], world: World): Promise<boolean> {
  const edited = entries.filter(({ state }) => state === "edited");
  if (edited.length === 0) return false;
  const names = edited.map(words).join(", ");
  if (world.interactive)
    return await world.confirm(`Replace with the files what was edited in the dashboard (${names})?`);
  throw new CommandFailure(
    "edited_in_dashboard",
    `Edited or made in the dashboard since the last sync: ${names}. Nothing was changed: bring the edits into the files, or replace them with --yes.`,
  );
}

/** The files and the server have this in common now: `relay pull` knows by it which side moved. */
async function rememberSynced(
  entries: readonly EntryView[],
  { relays, catalog }: Sent,
  serviceDir: string,
  remote: Remote,
  replacedEdited: boolean,
): Promise<void> {
  const memory = await readMemory(serviceDir, placeOf(remote));
  const definitions = new Map(relays.map((one) => [isJsonObject(one) ? one.name : "", one]));
  const items = new Map(listItems(catalog).map((item) => [`${item.kind}:${item.name}`, item]));
  for (const { kind, name, state } of entries) {
    const target = `${kind}:${name}`;
    if (state === "deleted") memory.delete(target);
    if (state === "deleted" || state === "only_there" || (state === "edited" && !replacedEdited)) continue;
    const content = kind === "relay" ? definitions.get(name) : items.get(target)?.want(null);
    if (content !== undefined) memory.set(target, content);
  }
  await writeMemory(serviceDir, placeOf(remote), memory);
}

const SIGNS: Readonly<Record<EntryView["state"], string>> = {
  created: "+",
  changed: "~",
  edited: "!",
  deleted: "-",
  only_there: "?",
  unchanged: "=",
  not_carried: "x",
};
const WORDS: Readonly<Record<EntryView["state"], string>> = {
  created: "created",
  changed: "changed",
  edited: "edited in the dashboard since the last sync",
  deleted: "deleted, its file is gone",
  only_there: "only there, kept",
  unchanged: "unchanged",
  not_carried: "not carried",
};
const MAX_VALUE_CHARS = 160;

/** One line each thing that differs, with the fields that do; whatever stands in a file stays on its line. */
function sayPlan({ entries, warnings, refusal }: Planned, input: Input, world: World): void {
  for (const entry of entries) {
    const { state, diff } = entry;
    if (state === "unchanged") continue;
    const replaced = state === "edited" && input.on("yes") ? ", replaced" : "";
    world.say(`${SIGNS[state]} ${words(entry)}  ${WORDS[state]}${replaced}`);
    for (const { field, before, after } of diff) {
      if (before !== undefined) world.say(`    - ${plain(field)}: ${show(before)}`);
      if (after !== undefined) world.say(`    + ${plain(field)}: ${show(after)}`);
    }
    for (const { message } of entry.warnings) world.tell(`  warning: ${words(entry)}: ${plain(message)}`);
    if (entry.refusal !== null) world.tell(`  refused: ${words(entry)}: ${plain(entry.refusal.message)}`);
  }
  const same = entries.filter(({ state }) => state === "unchanged").length;
  if (same > 0) world.say(`= ${count(same, "thing")} unchanged`);
  for (const { message } of warnings) world.tell(`  warning: ${plain(message)}`);
  if (refusal !== null) world.tell(`  refused: ${plain(refusal.message)}`);
}

function words({ kind, name }: Pick<EntryView, "kind" | "name">): string {
  return `${plain(kind)} ${plain(name)}`;
}

function show(value: unknown): string {
  const text = plain(writeJson(value));
  return text.length > MAX_VALUE_CHARS ? `${text.slice(0, MAX_VALUE_CHARS)}…` : text;
}

function count(many: number, what: string): string {
  return `${many} ${what}${many === 1 ? "" : "s"}`;
}

/** Writes what the server made into the local secrets file; the secrets themselves are never printed. */
async function keepSecrets(
  secrets: Carried["secrets"],
  serviceDir: string,
  remote: Remote,
  world: World,
): Promise<void> {
  if (secrets.length === 0) return;
  const names = secrets.map(({ relay }) => plain(relay)).join(", ");
  const made = new Map(secrets.map(({ relay, ...values }) => [relay, values]));
  try {
    await setServerSecrets(serviceDir, placeOf(remote), made);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandFailure(
      "file_unusable",
      `The plan was applied, and the secrets that the server made for ${names} could not be written (${why}): rotate them in the dashboard.`,
    );
  }
  world.tell(
    `The secrets made for ${names} are in ${SECRETS_FILE} of the service directory, under ${plain(placeOf(remote))}.`,
  );
}
