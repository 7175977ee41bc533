/** Shows the plan of a sync, a live sync and a promote. It asks before the change and stores new secrets after it. */
import type { RefusalCode } from "../../../base/code/refusal-code.ts";
import { writeJson } from "../../../base/json.ts";
import { Refusal } from "../../../base/refusal.ts";
import { plain } from "../../../base/text.ts";
import {
  type EntryView,
  findRefusal,
  isUnseen,
  type PlanPreview,
  type PlanResult,
} from "../../../operator/sync/plan.ts";
import { SECRETS_FILE, setServerSecrets } from "../../../platform/secret/local-secrets.ts";
import type { Remote } from "../api/remote.ts";
import { CommandFailure, type Input, type Option } from "../command.ts";
import type { World } from "../io.ts";
import { toRefusalCode, writeCodeLine } from "../refusal-text.ts";
import { sayTimes } from "../terminal/time-text.ts";
import {
  count,
  formatCommit,
  formatWho,
  nameThing,
  type Sign,
  sayDiff,
  sayThing,
  sayUnchanged,
} from "./plan-lines.ts";

export const DRY_RUN: Option = { name: "dry-run", help: "show the plan and change nothing" };
export const REPLACE: Option = {
  name: "yes",
  help: "replace dashboard edits without asking; deletes nothing",
};

/** Returns the name of a key's environment in files and output, such as `https://relay.example.com/shop/development`. */
export function placeOf({ url, place }: Remote): string {
  return `${url}${place.replace("/api/apps", "")}`;
}

/** The plan as shown, and what the user decided. */
export interface Decided {
  plan: PlanPreview;
  /** The request that the server planned. */
  sent: Planned;
  /** The exit code if there is nothing to carry out; null: carry the plan out. */
  code: number | null;
  replaceEdited: boolean;
  /** The items of the server that the user does not want to replace. */
  left: readonly EntryView[];
}

/** The files, or the environment that has the items, and what the folder knows. */
type Planned = Readonly<Record<string, unknown>>;

/** The exit code if the user kept what the server has. */
export const LEFT_EXIT_CODE = 3;

/** Both sides of a plan, in the words of questions and refusals. */
interface Sides {
  /** The content that replaces, such as `the files`. */
  source: string;
  /** The place of the edits, such as ` of production`. It is empty for the target itself. */
  into: string;
  /** The command that brings the edits into the source. */
  pull: string;
  /** Fails if the change cannot be carried out here, for example because no file can take the new secrets. */
  requireReady(plan: PlanPreview): Promise<void>;
}

/**
 * Reads and shows the plan. There is nothing to carry out after a refusal, without a difference, and in a dry run. It refuses to replace what
 * the files do not know, unless it can ask. A dry run refuses the same.
 */
export async function decidePlan(
  remote: Remote,
  given: Planned,
  sides: Sides,
  input: Input,
  world: World,
): Promise<Decided> {
  const isJson = input.on("json");
  const replaces = input.on("yes");
  const { plan, sent } = await requestPlan(remote, given, replaces);
  const end = (code: number, left: Decided["left"], refusal = plan.refusal): Decided => {
    if (isJson) world.say(writeJson({ ...plan, refusal, applied: false }, 2));
    return { plan, sent, code, replaceEdited: replaces, left };
  };
  if (!isJson) printPlan(plan, sides, replaces, world);
  const rejection = plan.refusal ?? findRefusal(plan);
  if (rejection?.resetAt !== undefined && input.on("wait"))
    throw new Refusal(rejection.code, rejection.message, { resetAtMs: Date.parse(rejection.resetAt) });
  if (rejection !== null) {
    const refused = end(1, []);
    world.tell("Nothing was changed: the server would refuse the plan.");
    world.tell(writeCodeLine(toRefusalCode(rejection.code), ["--url", remote.url], world));
    return refused;
  }
  const unseen = replaces ? [] : plan.entries.filter(isUnseen);
  const unasked = rejectUnasked(unseen, sides, world);
  if (unasked !== null) {
    const refused = end(1, [], unasked);
    world.tell(unasked.message);
    world.tell(writeCodeLine(unasked.code, ["--url", remote.url], world));
    return refused;
  }
  if (plan.changes > 0) await sides.requireReady(plan);
  if (input.on("dry-run")) return end(0, []);
  const replacesUnseen = unseen.length > 0 && (await asksToReplace(unseen, sides, world));
  const left = replacesUnseen ? [] : unseen;
  if (plan.changes + (replacesUnseen ? unseen.length : 0) > 0)
    return { plan, sent, code: null, replaceEdited: replaces || replacesUnseen, left };
  const done = end(left.length > 0 ? LEFT_EXIT_CODE : 0, left);
  if (left.length === 0) world.tell("Nothing to do.");
  tellLeft(left, sides.pull, world);
  return done;
}

/** Requests the plan. A server of an earlier version knows no `base` and no `commit`, and compares with its own last sync. */
async function requestPlan(
  remote: Remote,
  given: Planned,
  replaceEdited: boolean,
): Promise<{ plan: PlanPreview; sent: Planned }> {
  const ask = (sent: Planned) =>
    remote.request<PlanPreview>("POST", "/sync/plan", { ...sent, replaceEdited });
  try {
    return { plan: await ask(given), sent: given };
  } catch (error) {
    const problems = error instanceof Refusal ? (error.extra.problems ?? []) : [];
    const isEarlier =
      problems.length > 0 && problems.every(({ field }) => field === "base" || field === "commit");
    if (!isEarlier) throw error;
    const { base: _base, commit: _commit, ...sent } = given;
    return { plan: await ask(sent), sent };
  }
}

/** Reports the items that the user did not want to replace. */
export function tellLeft(left: readonly EntryView[], pull: string, world: World): void {
  if (left.length === 0) return;
  world.tell(
    `Not replaced: ${formatNames(left)}. The server keeps its version: ${pull} writes it to the files.`,
  );
}

/**
 * Rejects a plan that replaces what the files do not know. An unchanged file never replaces a newer version. The command asks about other
 * items, but only at a terminal.
 */
function rejectUnasked(
  unseen: readonly EntryView[],
  { source, into, pull }: Sides,
  world: World,
): { code: RefusalCode; message: string } | null {
  const behind = unseen.filter(({ state }) => state === "behind");
  const code = unseen.some(({ newer }) => newer?.how !== "edited" && newer !== undefined)
    ? "newer_on_server"
    : "edited_in_dashboard";
  if (behind.length > 0) {
    const way = behind.some(isDeleted) ? pull.replace("relay pull", "relay pull --prune") : pull;
    const message = `The server has a newer version${into} of ${formatNames(behind)}, and the file has not changed. Nothing was changed: run ${way} first. To replace the server's version with ${source}, add --yes.`;
    return { code, message };
  }
  if (unseen.length === 0 || world.interactive) return null;
  const what =
    code === "newer_on_server" ? `Changed on both sides${into}` : `Edited or created in the dashboard${into}`;
  return {
    code,
    message: `${what} since the last sync: ${formatNames(unseen)}. Nothing was changed. To keep the edits, run ${pull} first. To replace them with ${source}, add --yes.`,
  };
}

/** Asks at the terminal whether to replace what changed on the server. */
function asksToReplace(
  unseen: readonly EntryView[],
  { source, into }: Sides,
  world: World,
): Promise<boolean> {
  const what = unseen.some(({ newer }) => newer?.how === "synced")
    ? "the server's newer version"
    : "the dashboard edits";
  return world.confirm(`Replace ${what}${into} (${formatNames(unseen)}) with ${source}?`);
}

function formatNames(entries: readonly EntryView[]): string {
  return entries.map(nameThing).join(", ");
}

function isDeleted({ newer }: EntryView): boolean {
  return newer?.how === "deleted";
}

const SIGNS: Readonly<Record<EntryView["state"], Sign>> = {
  created: "+",
  changed: "~",
  edited: "!",
  behind: "!",
  conflict: "!",
  deleted: "-",
  only_there: "?",
  unchanged: "=",
  not_carried: "x",
};
const WORDS: Readonly<Record<EntryView["state"], string>> = {
  created: "created",
  changed: "changed",
  edited: "edited in the dashboard since the last sync",
  behind: "the server has a newer version",
  conflict: "changed in the file and on the server",
  deleted: "deleted, because its file is gone",
  only_there: "only on the server, not changed",
  unchanged: "unchanged",
  not_carried: "not carried",
};

/** Describes the state of an item, and for an item that the files do not know also who changed it on the server. */
function formatState(entry: EntryView, { pull }: Sides, replaces: boolean, world: World): string {
  const { state, newer } = entry;
  const replaced = isUnseen(entry) && replaces ? ", replaced" : "";
  const words = state === "behind" && isDeleted(entry) ? "gone on the server" : WORDS[state];
  if (state === "deleted") return `${words}${formatWaiting(entry)}`;
  if (newer === undefined || state === "edited") return `${words}${replaced}`;
  const said = `${words}, ${formatNewer(newer, world)}`;
  if (state !== "behind") return `${said}${replaced}`;
  const way = isDeleted(entry) ? pull.replace("relay pull", "relay pull --prune") : pull;
  return `${said}; this file has not changed${replaces ? replaced : `: run ${way} first`}`;
}

/** Prints for a renamed relay what the new one has instead, because its provider still calls the earlier one. */
function sayRenamed(
  { renamed, name }: EntryView,
  entries: readonly EntryView[],
  { into }: Sides,
  world: World,
): void {
  if (renamed === undefined) return;
  const { from, receiverUrl, secret, signingSecret } = renamed;
  const earlier = entries.find((one) => one.kind === "relay" && one.name === from);
  const lines = [`renamed from ${from}: ${name} is a new relay, and the events stay with ${from}`];
  if (receiverUrl !== null) lines.push(`new URL: change it at the provider to ${receiverUrl}`);
  if (secret === "new") lines.push("new secret: set it at the provider");
  if (secret === "missing") lines.push(`no secret: paste the provider's secret for ${name}`);
  if (signingSecret) lines.push("new signing secret: store it in the app that the relay calls");
  const isReceiver = receiverUrl !== null;
  if (earlier?.state === "deleted")
    lines.push(`${from} is deleted${isReceiver ? ", and its URL answers 404" : ""}`);
  else
    lines.push(
      `${from} stays active: delete it ${into === "" ? "with --prune" : "in production's dashboard"}${isReceiver ? " after the change at the provider" : ""}`,
    );
  for (const line of lines) world.say(`    ${plain(line)}`);
}

/** Formats the events that wait for a relay that is deleted. A server of an earlier version counts none. */
function formatWaiting({ waitingEvents }: EntryView): string {
  if (waitingEvents === undefined) return "";
  if (waitingEvents === 0) return "; no event waits";
  return `; ${count(waitingEvents, "event")} ${waitingEvents === 1 ? "waits and fails" : "wait and fail"} with it`;
}

/** Formats who changed an item on the server, such as `synced by key CI from commit 1a2b3c4, 2 min ago`. */
function formatNewer({ how, at, commit, ...who }: NonNullable<EntryView["newer"]>, world: World): string {
  const from = commit === null ? "" : ` from ${plain(formatCommit(commit))}`;
  return `${how} by ${formatWho(who)}${from}, ${sayTimes(plain(at), world.clock.now())}`;
}

/** Prints each item that differs, with the fields that differ. A value from a file cannot break its line. */
function printPlan(
  { entries, warnings, refusal }: PlanPreview,
  sides: Sides,
  replaces: boolean,
  world: World,
): void {
  for (const entry of entries) {
    const { state, diff } = entry;
    if (state === "unchanged") continue;
    sayThing(world, SIGNS[state], `${nameThing(entry)}  ${formatState(entry, sides, replaces, world)}`);
    sayDiff(world, diff);
    sayRenamed(entry, entries, sides, world);
    for (const { message } of entry.warnings) world.tell(`  warning: ${nameThing(entry)}: ${plain(message)}`);
    const word = state === "not_carried" ? "not carried" : "refused";
    if (entry.refusal !== null) world.tell(`  ${word}: ${nameThing(entry)}: ${plain(entry.refusal.message)}`);
  }
  sayUnchanged(world, entries.filter(({ state }) => state === "unchanged").length);
  for (const { message } of warnings) world.tell(`  warning: ${plain(message)}`);
  if (refusal !== null) world.tell(`  refused: ${plain(refusal.message)}`);
}

/** Writes new secrets of the server into the local secrets file. It never prints a secret. */
export async function keepSecrets(
  secrets: PlanResult["secrets"],
  serviceDir: string,
  place: string,
  world: World,
): Promise<void> {
  if (secrets.length === 0) return;
  const names = secrets.map(({ relay }) => plain(relay)).join(", ");
  const made = new Map(secrets.map(({ relay, ...values }) => [relay, values]));
  try {
    await setServerSecrets(serviceDir, place, made);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandFailure(
      "file_unusable",
      `The plan was applied, but the new secrets of ${names} could not be written (${why}): rotate them in the dashboard.`,
    );
  }
  world.tell(
    `The new secrets of ${names} are in ${SECRETS_FILE} of the service directory, under ${plain(place)}.`,
  );
}
