/** The lines of the bench's table: a figure beside its limit of the same run, their ratio, and whether the goal is met. */

export interface Figure {
  name: string;
  value: string;
  /** What was measured beside it, by name. */
  limit?: string;
  ratio?: string;
  /** CPU of the server process for one event, the figure's and the limit's, µs. */
  cpu?: string;
  goal?: string;
  met?: boolean;
}

/** What a server did in one round. */
export interface Round {
  perSecond: number;
  /** CPU of the server process for one event. */
  cpuMicros: number;
}

export const median = (numbers: readonly number[]): number => at(numbers, 0.5);

/** The number below which so great a share of them lies. */
export function at(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** Of rounds that took turns, each beside its neighbour; `atLeast` is the goal of the ratio. */
export function compareRates(
  name: string,
  rounds: readonly Round[],
  limitName: string,
  limits: readonly Round[],
  atLeast?: number,
): Figure {
  const rate = (of: readonly Round[]): number => Math.round(median(of.map(({ perSecond }) => perSecond)));
  const ratio = median(rounds.map(({ perSecond }, index) => perSecond / (limits[index]?.perSecond ?? 1)));
  return {
    name,
    value: `${rate(rounds)}/s`,
    limit: `${limitName} ${rate(limits)}/s`,
    ratio: ratio.toFixed(2),
    cpu: `${cpuOf(rounds)} / ${cpuOf(limits)}`,
    ...(atLeast === undefined ? {} : { goal: `≥ ${atLeast.toFixed(2)}`, met: ratio >= atLeast }),
  };
}

/** A time or a size beside its limit; the goal is of the figure itself (`atMost`) or of its ratio (`timesAtMost`). */
export function compareAmounts(
  name: string,
  unit: "ms" | "MiB" | "µs",
  amount: number,
  limit: { name: string; amount: number } | null,
  goal: { atMost?: number; timesAtMost?: number } = {},
): Figure {
  const show = (of: number): string =>
    `${unit === "ms" ? of.toFixed(of < 20 ? 2 : 0) : Math.round(of)} ${unit}`;
  const times = limit === null ? null : amount / limit.amount;
  const figure: Figure = { name, value: show(amount) };
  if (limit !== null && times !== null) {
    figure.limit = `${limit.name} ${show(limit.amount)}`;
    figure.ratio = `${times.toFixed(2)} ×`;
  }
  if (goal.atMost !== undefined) {
    figure.goal = `≤ ${goal.atMost} ${unit}`;
    figure.met = amount <= goal.atMost;
  }
  if (goal.timesAtMost !== undefined && times !== null) {
    figure.goal = `≤ ${goal.timesAtMost} ×`;
    figure.met = times <= goal.timesAtMost;
  }
  return figure;
}

const COLUMNS = ["name", "value", "limit", "ratio", "cpu", "goal"] as const;
const HEADS = {
  name: "figure",
  value: "measured",
  limit: "limit",
  ratio: "ratio",
  cpu: "CPU µs, limit's",
  goal: "goal",
};

export function printFigures(figures: readonly Figure[]): void {
  const rows = figures.map((figure) => ({
    ...figure,
    goal: figure.goal === undefined ? "" : `${figure.goal}${figure.met === true ? "  met" : "  MISSED"}`,
  }));
  const widths = COLUMNS.map((column) =>
    Math.max(...[HEADS, ...rows].map((row) => (row[column] ?? "").length)),
  );
  for (const row of [HEADS, ...rows])
    console.log(
      COLUMNS.map((column, index) => (row[column] ?? "").padEnd(widths[index] ?? 0))
        .join("  ")
        .trimEnd(),
    );
}

/** How many of the goals that were measured are met, and by how much the others are not. */
export function tellGoals(figures: readonly Figure[]): string {
  const missed = figures.filter(({ met }) => met === false);
  const goals = figures.filter(({ met }) => met !== undefined).length;
  const told = missed.map(
    ({ name, value, ratio, goal }) =>
      `  ${name.trim()}: ${value}${ratio === undefined ? "" : ` (${ratio})`}, goal ${goal}`,
  );
  const end = told.length === 0 ? "." : "; not met:";
  return [`${goals - missed.length} of ${goals} goals met${end}`, ...told].join("\n");
}

function cpuOf(rounds: readonly Round[]): string {
  return median(rounds.map(({ cpuMicros }) => cpuMicros)).toFixed(1);
}
