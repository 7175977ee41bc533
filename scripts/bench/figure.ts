/** One figure of the bench: what was measured, next to a limit of the same run, since machines differ. */

export interface Figure {
  /** What was measured, in words that need no context. */
  what: string;
  value: string;
  /** What it is compared with, measured in the same run. */
  limit?: string;
  ratio?: string;
  /** CPU of the server process for one event in µs: the figure's, then the limit's. */
  cpu?: string;
  goal?: string;
  met?: boolean;
}

/** One round of a server. */
export interface Round {
  perSecond: number;
  /** CPU of the server process for one event; 0: not measured. */
  cpuMicros: number;
}

export const median = (numbers: readonly number[]): number => quantile(numbers, 0.5);

/** The number below which this share of the numbers lies; 0 without any. */
export function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** Rounds of the product and of its limit took turns: the ratio is the median of neighbors' ratios. `atLeast` is its goal. */
export function compareRates(
  what: string,
  rounds: readonly Round[],
  limitName: string,
  limits: readonly Round[],
  atLeast?: number,
): Figure {
  const rate = (of: readonly Round[]): number => Math.round(median(of.map(({ perSecond }) => perSecond)));
  const ratio = median(rounds.map(({ perSecond }, index) => perSecond / (limits[index]?.perSecond ?? 1)));
  return {
    what,
    value: `${rate(rounds)}/s`,
    limit: `${limitName}: ${rate(limits)}/s`,
    ratio: ratio.toFixed(2),
    cpu: [rounds, limits].flatMap(cpuOf).join(" / "),
    ...(atLeast === undefined ? {} : { goal: `ratio ≥ ${atLeast.toFixed(2)}`, met: ratio >= atLeast }),
  };
}

type Unit = "ms" | "MiB" | "µs";

/** A time or a size next to its limit. The goal is for the figure itself (`atMost`) or for its ratio (`timesAtMost`). */
export function compareAmounts(
  what: string,
  unit: Unit,
  amount: number,
  limit: { name: string; amount: number } | null,
  goal: { atMost?: number; timesAtMost?: number } = {},
): Figure {
  const times = limit === null ? null : amount / limit.amount;
  const figure: Figure = { what, value: format(amount, unit) };
  if (limit !== null && times !== null) {
    figure.limit = `${limit.name}: ${format(limit.amount, unit)}`;
    figure.ratio = times.toFixed(2);
  }
  if (goal.atMost !== undefined) {
    figure.goal = `≤ ${goal.atMost} ${unit}`;
    figure.met = amount <= goal.atMost;
  }
  if (goal.timesAtMost !== undefined && times !== null) {
    figure.goal = `ratio ≤ ${goal.timesAtMost}`;
    figure.met = times <= goal.timesAtMost;
  }
  return figure;
}

/** A time next to a bar that a slower machine gets more of: `slowness` as calibration.ts measures it in the same run. */
export function compareWithBar(what: string, ms: number, barMs: number, slowness: number): Figure {
  const ratio = ms / (barMs * slowness);
  return {
    what,
    value: format(ms, "ms"),
    limit:
      slowness === 1
        ? `bar: ${barMs} ms`
        : `bar: ${barMs} ms × ${slowness.toFixed(2)}, the slowness of this machine: ${format(barMs * slowness, "ms")}`,
    ratio: ratio.toFixed(2),
    goal: "ratio ≤ 1",
    met: ratio <= 1,
  };
}

/** A number that must not be above another, such as pages or requests. */
export function compareCount(what: string, count: number, atMost: number): Figure {
  return { what, value: String(count), goal: `≤ ${atMost}`, met: count <= atMost };
}

function format(amount: number, unit: Unit): string {
  return `${unit === "ms" ? amount.toFixed(amount < 20 ? 2 : 0) : Math.round(amount)} ${unit}`;
}

/** Nothing where the CPU of a server was not measured. */
function cpuOf(rounds: readonly Round[]): string[] {
  const micros = median(rounds.map(({ cpuMicros }) => cpuMicros));
  return micros === 0 ? [] : [micros.toFixed(1)];
}
