/** Shows the plan of a sync, a live sync and a promote. It asks before the change and stores new secrets after it. */
import { writeJson } from "../../../base/json.ts";
import { plain } from "../../../base/text.ts";
import {
  type EntryView,
  findRefusal,
  type PlanPreview,
  type PlanResult,
} from "../../../operator/sync/plan.ts";
import { SECRETS_FILE, setServerSecrets } from "../../../platform/secret/local-secrets.ts";
import type { Remote } from "../api/remote.ts";
import { CommandFailure, type Input, type Option } from "../command.ts";
import type { World } from "../io.ts";
import { toRefusalCode, writeCodeLine } from "../refusal-text.ts";
import { nameThing, type Sign, sayDiff, sayThing, sayUnchanged } from "./plan-lines.ts";

export const DRY_RUN: Option = { name: "dry-run", help: "show the plan and change nothing" };
export const REPLACE: Option = {
  name: "yes",
  help: "replace dashboard edits without asking; deletes nothing",
};

/** Returns the name of a key's environment in files and output, such as `https://relay.example.com/shop/development`. */
export function placeOf({ url, place }: Remote): string {
  return `${url}${place.replace("/api/apps", "")}`;
}

/** The plan to carry out, as shown. */
export interface Decided {
  plan: PlanPreview;
  replaceEdited: boolean;
}

/** Both sides of a plan, in the words of questions and refusals. */
interface Sides {
  /** The content that replaces, such as `the files`. */
  source: string;
  /** The place of the edits, such as ` of production`. It is empty for the target itself. */
  into: string;
  /** The command that brings the edits into the source. */
  pull: string;
}

/**
 * Reads and shows the plan. Returns the exit code if there is nothing to carry out: a refusal, no difference, or a dry run. Fails if it
 * would replace something edited and there is no terminal to ask at.
 */
export async function decidePlan(
  remote: Remote,
  sent: object,
  sides: Sides,
  input: Input,
  world: World,
): Promise<Decided | number> {
  const plan = await remote.request<PlanPreview>("POST", "/sync/plan", {
    ...sent,
    replaceEdited: input.on("yes"),
  });
  const isJson = input.on("json");
  const end = (code: number): number => {
    if (isJson) world.say(writeJson({ ...plan, applied: false }, 2));
    return code;
  };
  if (!isJson) printPlan(plan, input.on("yes"), world);
  const refusal = plan.refusal ?? findRefusal(plan);
  if (refusal !== null) {
    const code = end(1);
    world.tell("Nothing was changed: the server would refuse the plan.");
    world.tell(writeCodeLine(toRefusalCode(refusal.code), ["--url", remote.url], world));
    return code;
  }
  if (input.on("dry-run")) return end(0);
  const edited = plan.entries.filter(({ state }) => state === "edited");
  const replaceEdited = input.on("yes") || (await asksToReplace(edited, sides, world));
  if (plan.changes + (replaceEdited && !input.on("yes") ? edited.length : 0) > 0)
    return { plan, replaceEdited };
  world.tell("Nothing to do.");
  return end(0);
}

/** Asks whether to replace what was edited in the dashboard. It asks only at a terminal. */
async function asksToReplace(
  edited: readonly EntryView[],
  { source, into, pull }: Sides,
  world: World,
): Promise<boolean> {
  if (edited.length === 0) return false;
  const names = edited.map(nameThing).join(", ");
  if (world.interactive)
    return await world.confirm(`Replace the dashboard edits${into} (${names}) with ${source}?`);
  throw new CommandFailure(
    "edited_in_dashboard",
    `Edited or created in the dashboard${into} since the last sync: ${names}. Nothing was changed. To keep the edits, run ${pull} first. To replace them with ${source}, add --yes.`,
  );
}

const SIGNS: Readonly<Record<EntryView["state"], Sign>> = {
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
  deleted: "deleted, because its file is gone",
  only_there: "only on the server, not changed",
  unchanged: "unchanged",
  not_carried: "not carried",
};

/** Prints each item that differs, with the fields that differ. A value from a file cannot break its line. */
function printPlan({ entries, warnings, refusal }: PlanPreview, replaces: boolean, world: World): void {
  for (const entry of entries) {
    const { state, diff } = entry;
    if (state === "unchanged") continue;
    const replaced = state === "edited" && replaces ? ", replaced" : "";
    sayThing(world, SIGNS[state], `${nameThing(entry)}  ${WORDS[state]}${replaced}`);
    sayDiff(world, diff);
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
