/**
 * Formats a plan as Markdown for the comment of a pull request. Texts of files and of the server are escaped, because a comment renders links,
 * images and mentions.
 */
import { plain } from "../../../base/text.ts";
import { findRefusal } from "../../../operator/sync/plan.ts";
import type { EntryView, PlanPreview } from "../../../operator/sync/plan-view.ts";
import type { Io } from "../io.ts";
import { count, nameThing, showValue } from "./plan-lines.ts";
import { formatState, listCaseLines, listRenamed, SIGNS, type Sides } from "./plan-text.ts";

interface Shown {
  sides: Sides;
  refusal: EntryView["refusal"];
  replaces: boolean;
}

/** Formats the plan: a heading, a table of the items that differ, the fields, warnings, and why the sync would be refused. */
export function formatPlanMarkdown(plan: PlanPreview, { sides, refusal, replaces }: Shown, io: Io): string {
  const { entries, changes, warnings } = plan;
  const differing = entries.filter(({ state }) => state !== "unchanged");
  const rejection = refusal ?? findRefusal(plan);
  const rows = differing.map((entry) => {
    const refused = entry.refusal === null ? [] : [`refused: ${entry.refusal.message}`];
    const cells = [
      formatState(entry, sides, replaces, io),
      ...refused,
      ...listRenamed(entry, entries, sides),
      ...listCaseLines(entry),
    ];
    return `| ${formatCode(SIGNS[entry.state])} | ${formatCode(nameThing(entry))} | ${cells.map(escapeMarkdown).join("<br>")} |`;
  });
  const notes = [
    ...entries.flatMap((entry) => entry.warnings.map(({ message }) => `${nameThing(entry)}: ${message}`)),
    ...warnings.map(({ message }) => message),
  ];
  const what = rejection !== null ? "refused" : changes === 0 ? "no changes" : count(changes, "change");
  const same = entries.length - differing.length;
  return [
    `### relay sync: ${what}`,
    `Target: ${formatCode(sides.place)}`,
    ...(rejection === null
      ? []
      : [
          `**The sync would be refused:** ${escapeMarkdown(rejection.message)} (${formatCode(rejection.code)})`,
        ]),
    ...(rows.length === 0 ? [] : [["| | Item | Plan |", "|---|---|---|", ...rows].join("\n")]),
    ...formatFields(differing),
    ...(notes.length === 0 ? [] : [notes.map((note) => `- Warning: ${escapeMarkdown(note)}`).join("\n")]),
    ...(same === 0 ? [] : [`${count(same, "item")} unchanged.`]),
  ].join("\n\n");
}

/** Formats the problems of the files, which are found before there is a plan. */
export function formatProblemsMarkdown(problems: readonly { where: string; message: string }[]): string {
  const lines = problems.map(({ where, message }) => `- ${formatCode(where)}: ${escapeMarkdown(message)}`);
  return [
    "### relay sync: refused",
    `**The files have ${count(problems.length, "problem")}:**`,
    lines.join("\n"),
  ].join("\n\n");
}

/** Formats the fields that differ as a block that opens on a click. */
function formatFields(entries: readonly EntryView[]): string[] {
  const lines = entries
    .filter(({ diff }) => diff.length > 0)
    .flatMap((entry) => [
      nameThing(entry),
      ...entry.diff.flatMap(({ field, before, after }) => [
        ...(before === undefined ? [] : [`- ${plain(field)}: ${showValue(before)}`]),
        ...(after === undefined ? [] : [`+ ${plain(field)}: ${showValue(after)}`]),
      ]),
    ]);
  if (lines.length === 0) return [];
  const text = lines.join("\n");
  const fence = "`".repeat(Math.max(3, longestRun(text) + 1));
  return [`<details><summary>Fields that change</summary>\n\n${fence}diff\n${text}\n${fence}\n\n</details>`];
}

/** Formats a text as code, in which nothing is rendered. */
function formatCode(text: string): string {
  const safe = plain(text).replaceAll("|", "\\|");
  const marks = "`".repeat(longestRun(safe) + 1);
  return marks.length === 1 ? `\`${safe}\`` : `${marks} ${safe} ${marks}`;
}

/** The number of backticks in the longest run of them. */
function longestRun(text: string): number {
  return Math.max(0, ...Array.from(text.matchAll(/`+/g), ([run]) => run.length));
}

/** Escapes what Markdown renders. A space of no width after an at sign prevents a mention. */
function escapeMarkdown(text: string): string {
  return plain(text)
    .replaceAll(/[\\`*_{}[\]<>()#|~!&]/g, "\\$&")
    .replaceAll(/(^|[^\w])@/g, "$1@\u200b");
}
