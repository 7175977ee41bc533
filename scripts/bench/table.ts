/** Formats the bench's figures as text: columns for the terminal, a Markdown table for the page with figures, and the missed goals. */
import type { Figure } from "./figure.ts";

const COLUMNS = ["what", "value", "limit", "ratio", "cpu", "goal"] as const;
const HEADS = {
  what: "what",
  value: "measured",
  limit: "compared with, in the same run",
  ratio: "ratio",
  cpu: "server CPU µs an event / its limit's",
  goal: "goal",
};

type Row = Partial<Record<(typeof COLUMNS)[number], string>>;

/** Formats figures as lines with aligned columns. It omits columns that no figure fills. */
export function formatTable(figures: readonly Figure[]): string {
  const rows = rowsOf(figures);
  const columns = COLUMNS.filter((column) => rows.some((row) => row[column] !== undefined));
  const all: Row[] = [HEADS, ...rows];
  const widths = columns.map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all
    .map((row) =>
      columns
        .map((column, at) => (row[column] ?? "").padEnd(widths[at] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** Formats a Markdown table below the lines that say what it was measured on. */
export function formatMarkdown(
  head: readonly string[],
  measured: readonly { name: string; figures: readonly Figure[] }[],
): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [
    ...head.map((one) => `- ${one}`),
    "",
    line([...COLUMNS.map((column) => HEADS[column]), "printed by"]),
    line([...COLUMNS, ""].map(() => "---")),
    ...measured.flatMap(({ name, figures }) =>
      rowsOf(figures).map((row) =>
        line([
          ...COLUMNS.map((column) => (row[column] ?? "").trim().replaceAll("|", "\\|")),
          `\`--only ${name}\``,
        ]),
      ),
    ),
  ].join("\n");
}

/** Formats the number of goals that are met, and a line for each missed one. */
export function formatGoals(figures: readonly Figure[]): string {
  const missed = figures.filter(({ met }) => met === false);
  const goals = figures.filter(({ met }) => met !== undefined).length;
  const lines = missed.map(
    ({ what, value, ratio, goal }) =>
      `  ${what}: ${value}${ratio === undefined ? "" : `, ratio ${ratio}`}; the goal is ${goal}`,
  );
  return [
    `${goals - missed.length} of ${goals} goals met${missed.length === 0 ? "." : ". Missed:"}`,
    ...lines,
  ].join("\n");
}

function rowsOf(figures: readonly Figure[]): Row[] {
  return figures.map(({ met, goal, ...rest }) =>
    goal === undefined ? rest : { ...rest, goal: `${goal}${judgement(met)}` },
  );
}

function judgement(met: boolean | undefined): string {
  if (met === undefined) return "";
  return met ? " met" : " MISSED";
}
