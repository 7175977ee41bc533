/** One figure of the bench: a measured value next to a limit from the same run, because machines differ. */

export interface Figure {
  /** The measured quantity, in words that need no context. */
  what: string;
  value: string;
  /** The limit that the value is compared with, measured in the same run. */
  limit?: string;
  ratio?: string;
  /** CPU time in µs of the server process for one event: the value's, then the limit's. */
  cpu?: string;
  goal?: string;
  met?: boolean;
}

/** One round of a server. */
export interface Round {
  perSecond: number;
  /** CPU time of the server process for one event; 0 if not measured. */
  cpuMicros: number;
}

export const median = (numbers: readonly number[]): number => quantile(numbers, 0.5);

/** Returns the number below which this share of the numbers is; 0 for an empty list. */
export function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** Compares rounds of the product with rounds of its limit that took turns. The ratio is the median of neighbors' ratios. `atLeast` is its goal. */
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

/** Compares a time or a size with its limit. The goal is for the figure itself (`atMost`) or for its ratio (`timesAtMost`). */
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

/** Compares a time with a bar that `slowness` scales. calibration.ts measures the slowness in the same run. */
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

/** Compares a number with its maximum, for example of pages or requests. */
export function compareCount(what: string, count: number, atMost: number): Figure {
  return { what, value: String(count), goal: `≤ ${atMost}`, met: count <= atMost };
}

function format(amount: number, unit: Unit): string {
  return `${unit === "ms" ? amount.toFixed(amount < 20 ? 2 : 0) : Math.round(amount)} ${unit}`;
}

/** Returns an empty list if the CPU of a server was not measured. */
function cpuOf(rounds: readonly Round[]): string[] {
  const micros = median(rounds.map(({ cpuMicros }) => cpuMicros));
  return micros === 0 ? [] : [micros.toFixed(1)];
}
