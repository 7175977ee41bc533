/** Shows the plan of a sync, a live sync and a promote. It asks before the change and stores new secrets after it. */
import { type RefusalCode, toRefusalCode } from "../../../base/code/refusal-code.ts";
import { writeJson } from "../../../base/json.ts";
import { Refusal } from "../../../base/refusal.ts";
import { plain } from "../../../base/text.ts";
import { findRefusal, isUnseen } from "../../../operator/sync/plan.ts";
import type { EntryView, PlanPreview, PlanResult } from "../../../operator/sync/plan-view.ts";
import { SECRETS_FILE, setServerSecrets } from "../../../platform/secret/local-secrets.ts";
import type { Remote } from "../api/remote.ts";
import { CommandFailure, type Input, type Option } from "../command.ts";
import type { Io } from "../io.ts";
import { writeCodeLine } from "../refusal-text.ts";
import { formatPlanMarkdown } from "./plan-markdown.ts";
import { formatNames, formatPull, isDeleted, printPlan, type Sides } from "./plan-text.ts";

export const DRY_RUN: Option = { name: "dry-run", help: "show the plan and change nothing" };
export const REPLACE: Option = {
  name: "yes",
  help: "replace dashboard edits and newer versions of the server without asking; deletes nothing",
};

export const CHECK: Option = {
  name: "check",
  help: "change nothing and print the plan as Markdown; exit with 3 for changes and 1 for a refusal",
};
const CHANGES_EXIT_CODE = 3;

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
const LEFT_EXIT_CODE = 3;

/**
 * Reads and shows the plan. There is nothing to carry out after a refusal, without a difference, and in a dry run. It refuses to replace what
 * the files do not know, unless it can ask. A dry run refuses the same.
 */
export async function decidePlan(
  remote: Remote,
  given: Planned,
  sides: Sides,
  input: Input,
  io: Io,
): Promise<Decided> {
  const isJson = input.on("json");
  const isCheck = input.given("check");
  const replaces = input.on("yes");
  const { plan, sent } = await requestPlan(remote, given, replaces);
  const end = (code: number, left: Decided["left"], refusal = plan.refusal): Decided => {
    if (isJson) io.print(writeJson({ ...plan, refusal, applied: false }, 2));
    else if (isCheck) io.print(formatPlanMarkdown(plan, { sides, refusal, replaces }, io));
    return { plan, sent, code, replaceEdited: replaces, left };
  };
  if (!isJson && !isCheck) printPlan(plan, sides, replaces, io);
  const rejection = plan.refusal ?? findRefusal(plan);
  if (rejection?.resetAt !== undefined && input.on("wait"))
    throw new Refusal(rejection.code, rejection.message, { resetAtMs: Date.parse(rejection.resetAt) });
  if (rejection !== null) {
    const refused = end(1, []);
    io.inform("Nothing was changed: the server would refuse the plan.");
    io.inform(writeCodeLine(toRefusalCode(rejection.code), ["--url", remote.url], io));
    return refused;
  }
  const unseen = replaces ? [] : plan.entries.filter(isUnseen);
  const unasked = rejectUnasked(unseen, sides, io.interactive && !isCheck);
  if (unasked !== null) {
    const refused = end(1, [], unasked);
    io.inform(unasked.message);
    io.inform(writeCodeLine(unasked.code, ["--url", remote.url], io));
    return refused;
  }
  if (plan.changes + unseen.length > 0) await sides.requireReady(plan);
  if (isCheck) return end(plan.changes > 0 ? CHANGES_EXIT_CODE : 0, []);
  if (input.on("dry-run")) return end(0, []);
  const replacesUnseen = unseen.length > 0 && (await asksToReplace(unseen, sides, io));
  const left = replacesUnseen ? [] : unseen;
  if (plan.changes + (replacesUnseen ? unseen.length : 0) > 0)
    return { plan, sent, code: null, replaceEdited: replaces || replacesUnseen, left };
  if (left.length === 0) io.inform("Nothing to do.");
  return end(printLeft(left, sides.pull, io), left);
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

/** Reports the items that the user did not want to replace. Returns the exit code. */
export function printLeft(left: readonly EntryView[], pull: string, io: Io): number {
  if (left.length === 0) return 0;
  const deleted = left.filter(isDeleted);
  const kept = left.filter((entry) => !isDeleted(entry));
  if (kept.length > 0)
    io.inform(
      `Not replaced: ${formatNames(kept)}. The server keeps its version: ${formatPull(pull, kept)} writes it to the files.`,
    );
  if (deleted.length > 0) {
    const pronoun = deleted.length === 1 ? "it" : "them";
    io.inform(
      `Not created: ${formatNames(deleted)}. The server does not have ${pronoun}: ${formatPull(pull, deleted)} deletes ${pronoun} from the files.`,
    );
  }
  return LEFT_EXIT_CODE;
}

/**
 * Rejects a plan that replaces what the files do not know. An unchanged file never replaces a newer version. The command asks about other
 * items, but only at a terminal.
 */
function rejectUnasked(
  unseen: readonly EntryView[],
  { source, into, pull }: Sides,
  mayAsk: boolean,
): { code: RefusalCode; message: string } | null {
  const behind = unseen.filter(({ state }) => state === "behind");
  const code = unseen.some(({ newer }) => newer?.how !== "edited" && newer !== undefined)
    ? "newer_on_server"
    : "edited_in_dashboard";
  if (behind.length > 0) {
    const message = `The server has a newer version${into} of ${formatNames(behind)}, and the file has not changed. Nothing was changed: run ${formatPull(pull, behind)} first. To replace the server's version with ${source}, add --yes.`;
    return { code, message };
  }
  if (unseen.length === 0 || mayAsk) return null;
  const what =
    code === "newer_on_server" ? `Changed on both sides${into}` : `Edited or created in the dashboard${into}`;
  return {
    code,
    message: `${what} since the last sync: ${formatNames(unseen)}. Nothing was changed. To keep the edits, run ${pull} first. To replace them with ${source}, add --yes.`,
  };
}

/** Asks at the terminal whether to replace what changed on the server. */
function asksToReplace(unseen: readonly EntryView[], { source, into }: Sides, io: Io): Promise<boolean> {
  const what = unseen.some(({ newer }) => newer?.how === "synced")
    ? "the server's newer version"
    : "the dashboard edits";
  return io.confirm(`Replace ${what}${into} (${formatNames(unseen)}) with ${source}?`);
}

/** Writes new secrets of the server into the local secrets file. It never prints a secret. */
export async function keepSecrets(
  secrets: PlanResult["secrets"],
  serviceDir: string,
  place: string,
  io: Io,
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
  io.inform(
    `The new secrets of ${names} are in ${SECRETS_FILE} of the service directory, under ${plain(place)}.`,
  );
}
