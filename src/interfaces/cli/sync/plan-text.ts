/** Describes a plan in words: each item with its state, who changed it on the server, and what a rename changes. */
import { plain } from "../../../base/text.ts";
import { isUnseen } from "../../../operator/sync/plan.ts";
import type { EntryView, PlanPreview } from "../../../operator/sync/plan-view.ts";
import type { Io } from "../io.ts";
import { formatTimes } from "../terminal/time-text.ts";
import {
  count,
  formatCommit,
  formatWho,
  nameThing,
  printDiff,
  printThing,
  printUnchanged,
  type Sign,
} from "./plan-lines.ts";

/** Both sides of a plan, in the words of questions and refusals. */
export interface Sides {
  /** The environment that changes, such as `https://relay.example.com/shop/development`. */
  place: string;
  /** The content that replaces, such as `the files`. */
  source: string;
  /** The place of the edits, such as ` of production`. It is empty for the target itself. */
  into: string;
  /** The command that brings the edits into the source. */
  pull: string;
  /** Fails if the change cannot be carried out here, for example because no file can take the new secrets. */
  requireReady(plan: PlanPreview): Promise<void>;
}

export function formatNames(entries: readonly EntryView[]): string {
  return entries.map(nameThing).join(", ");
}

export function isDeleted({ newer }: EntryView): boolean {
  return newer?.how === "deleted";
}

/**
 * Formats the command that brings the server's version into the files. A deletion comes only with --prune, and an item that changed on both sides
 * only with --theirs.
 */
export function formatPull(pull: string, entries: readonly EntryView[]): string {
  const prune = entries.some(isDeleted) ? " --prune" : "";
  const theirs = entries.some(({ state }) => state === "conflict") ? " --theirs" : "";
  return pull.replace("relay pull", `relay pull${prune}${theirs}`);
}

export const SIGNS: Readonly<Record<EntryView["state"], Sign>> = {
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
export function formatState(entry: EntryView, { pull }: Sides, replaces: boolean, io: Io): string {
  const { state, newer } = entry;
  const replaced = isUnseen(entry) && replaces ? ", replaced" : "";
  const words = state === "behind" && isDeleted(entry) ? "gone on the server" : WORDS[state];
  if (state === "deleted") return `${words}${formatWaiting(entry)}`;
  if (newer === undefined || state === "edited") return `${words}${replaced}`;
  const sentence = `${words}, ${formatNewer(newer, io)}`;
  if (state !== "behind") return `${sentence}${replaced}`;
  return `${sentence}; this file has not changed${replaces ? replaced : `: run ${formatPull(pull, [entry])} first`}`;
}

/** Lists for a renamed relay what the new one has instead, because its provider still calls the earlier one. */
export function listRenamed(
  { renamed, name }: EntryView,
  entries: readonly EntryView[],
  { into }: Sides,
): string[] {
  if (renamed === undefined) return [];
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
  return lines.map((line) => plain(line));
}

/** Lists what the cases of a relay report, unless a warning reports it. */
export function listCaseLines({ cases, warnings }: EntryView): string[] {
  const isWarned = warnings.some(({ code }) => code === "case_changed");
  return cases === undefined || isWarned ? [] : [plain(cases)];
}

/** Formats the events that wait for a relay that is deleted. A server of an earlier version counts none. */
function formatWaiting({ waitingEvents }: EntryView): string {
  if (waitingEvents === undefined) return "";
  if (waitingEvents === 0) return "; no event waits";
  return `; ${count(waitingEvents, "event")} ${waitingEvents === 1 ? "waits and fails" : "wait and fail"} with it`;
}

/** Formats who changed an item on the server, such as `synced by key CI from commit 1a2b3c4, 2 min ago`. */
function formatNewer({ how, at, commit, ...who }: NonNullable<EntryView["newer"]>, io: Io): string {
  const from = commit === null ? "" : ` from ${plain(formatCommit(commit))}`;
  return `${how} by ${formatWho(who)}${from}, ${formatTimes(plain(at), io.clock.now())}`;
}

/** Prints each item that differs, with the fields that differ. A value from a file cannot break its line. */
export function printPlan(
  { entries, warnings, refusal }: PlanPreview,
  sides: Sides,
  replaces: boolean,
  io: Io,
): void {
  for (const entry of entries) {
    const { state, diff } = entry;
    if (state === "unchanged") continue;
    printThing(io, SIGNS[state], `${nameThing(entry)}  ${formatState(entry, sides, replaces, io)}`);
    printDiff(io, diff);
    for (const line of listRenamed(entry, entries, sides)) io.print(`    ${line}`);
    for (const line of listCaseLines(entry)) io.print(`    ${line}`);
    for (const { message } of entry.warnings) io.inform(`  warning: ${nameThing(entry)}: ${plain(message)}`);
    const word = state === "not_carried" ? "not carried" : "refused";
    if (entry.refusal !== null) io.inform(`  ${word}: ${nameThing(entry)}: ${plain(entry.refusal.message)}`);
  }
  printUnchanged(io, entries.filter(({ state }) => state === "unchanged").length);
  for (const { message } of warnings) io.inform(`  warning: ${plain(message)}`);
  if (refusal !== null) io.inform(`  refused: ${plain(refusal.message)}`);
}
