/**
 * The schedule trigger: what its definition may contain and when its periods begin, in UTC. engine/schedule makes it tick.
 * A weekly schedule without `on` begins on Monday, as ISO weeks do. A daily or weekly one without `at` begins at 00:00.
 * Source: the specification's "Triggers".
 */
import type { CronExpression } from "cron-parser";
import { Type } from "typebox";
import type { Problem } from "../../base/refusal.ts";
import type { TriggerType } from "./contract.ts";

const EVERY = ["15m", "30m", "1h", "6h", "12h", "1d", "1w"] as const;
type Every = (typeof EVERY)[number];

/** Cron expressions of the periods that use neither `at` nor `on`. */
const CRON: Readonly<Record<Exclude<Every, "1d" | "1w">, string>> = {
  "15m": "0 */15 * * * *",
  "30m": "0 */30 * * * *",
  "1h": "0 0 * * * *",
  "6h": "0 0 */6 * * *",
  "12h": "0 0 */12 * * *",
};

/** Weekdays in the order of `Date.prototype.getUTCDay`, which cron shares. */
const WEEKDAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"] as const;
type Weekday = (typeof WEEKDAYS)[number];

export type ScheduleTrigger = {
  kind: "schedule";
  every: Every;
  /** UTC, `HH:MM`. */
  at?: string;
  on?: Weekday;
};

const expectsEvery = "one of 15m, 30m, 1h, 6h, 12h, 1d and 1w (nothing shorter than 15 minutes)";

const shape = Type.Object(
  {
    kind: Type.Literal("schedule", { description: "A schedule, in UTC.", expects: '"schedule"' }),
    every: Type.Union(
      EVERY.map((every) => Type.Literal(every)),
      { description: "The length of a period.", expects: expectsEvery },
    ),
    at: Type.Optional(
      Type.String({
        pattern: "^([01][0-9]|2[0-3]):[0-5][0-9]$",
        description: "The UTC time of day when a period begins, for 1d and 1w; 00:00 when absent.",
        expects: 'a UTC time of day as HH:MM, such as "09:00"',
      }),
    ),
    on: Type.Optional(
      Type.Union(
        WEEKDAYS.map((day) => Type.Literal(day)),
        {
          description: "The weekday when a period begins, for 1w; monday when absent.",
          expects: "a lowercase weekday name such as monday",
        },
      ),
    ),
  },
  {
    additionalProperties: false,
    description: "A schedule, in UTC.",
    expects: "a trigger object",
    strangers: {
      cron: 'remove it and write `every`, such as "1h" or "1d"; there are no cron expressions',
      timezone: "remove it, because schedules are in UTC",
      tz: "remove it, because schedules are in UTC",
      map: 'remove it, or make the trigger\'s kind "receiver"',
      when: "remove it, because a tick has nothing to match",
    },
  },
);

export const scheduleTrigger: TriggerType<ScheduleTrigger> = {
  kind: "schedule",
  title: "A schedule",
  shape,
  check: (trigger) => checkPairs(trigger),
  canHavePerson: false,
  templateRoots: ["tick"],
  inWords: (trigger) => describeSchedule(trigger),
  examples: [
    { kind: "schedule", every: "1h" },
    { kind: "schedule", every: "1d", at: "06:30" },
    { kind: "schedule", every: "1w", on: "monday", at: "09:00" },
  ],
};

function checkPairs({ every, at, on }: Partial<ScheduleTrigger>): Problem[] {
  const problems: Problem[] = [];
  if (every === undefined) return problems;
  if (at !== undefined && every !== "1d" && every !== "1w") {
    const message = `\`at\` works only with 1d and 1w, and every is ${every}: remove \`at\`, or make every 1d or 1w.`;
    problems.push({ field: "at", message });
  }
  if (on !== undefined && every !== "1w") {
    const message = `\`on\` works only with 1w, and every is ${every}: remove \`on\`, or make every 1w.`;
    problems.push({ field: "on", message });
  }
  return problems;
}

/** Formats when periods begin as a cron expression in UTC: second, minute, hour, day of month, month, weekday. */
export function cronOf({ every, at = "00:00", on = "monday" }: ScheduleTrigger): string {
  const [hour, minute] = at.split(":").map(Number);
  if (every === "1d") return `0 ${minute} ${hour} * * *`;
  if (every === "1w") return `0 ${minute} ${hour} * * ${WEEKDAYS.indexOf(on)}`;
  return CRON[every];
}

/** Periods by cron expression, because parsing one is slow. Definitions can name about 11,000 expressions. */
const periods = new Map<string, Period>();

export function periodOf(trigger: ScheduleTrigger): Period {
  const cron = cronOf(trigger);
  const period = periods.get(cron) ?? new Period(cron);
  periods.set(cron, period);
  return period;
}

/** The periods of a schedule. The cron expression gives every beginning, in milliseconds since the epoch. */
class Period {
  readonly #cron: CronExpression;
  /** The period that was looked up last: the scheduler asks for the current one again and again. */
  #startMs = 0;
  #nextMs = 0;

  constructor(cron: string) {
    // The library takes 5 ms to load, so only the first schedule loads it.
    const { CronExpressionParser } = require("cron-parser") as typeof import("cron-parser");
    this.#cron = CronExpressionParser.parse(cron, { tz: "UTC" });
  }

  /** Finds the beginning of the period that contains `ms`. */
  startAt(ms: number): number {
    this.#lookUp(ms);
    return this.#startMs;
  }

  /** Finds the first beginning after `ms`. */
  nextAfter(ms: number): number {
    this.#lookUp(ms);
    return this.#nextMs;
  }

  /** Lists the beginnings after `afterMs` and not after `untilMs`, the first `limit` of them, in order. */
  list(afterMs: number, untilMs: number, limit: number): number[] {
    const starts: number[] = [];
    this.#cron.reset(new Date(afterMs));
    while (starts.length < limit) {
      const start = this.#cron.next().getTime();
      if (start > untilMs) break;
      starts.push(start);
    }
    return starts;
  }

  #lookUp(ms: number): void {
    if (ms >= this.#startMs && ms < this.#nextMs) return;
    this.#cron.reset(new Date(ms));
    const nextMs = this.#cron.next().getTime();
    this.#startMs = this.#cron.prev().getTime();
    this.#nextMs = nextMs;
  }
}

const IN_WORDS: Readonly<Record<Exclude<Every, "1d" | "1w">, string>> = {
  "15m": "every 15 minutes",
  "30m": "every 30 minutes",
  "1h": "every hour",
  "6h": "every 6 hours, from 00:00 UTC",
  "12h": "every 12 hours, at 00:00 and 12:00 UTC",
};

function describeSchedule({ every, at = "00:00", on = "monday" }: ScheduleTrigger): string {
  if (every === "1d") return `every day at ${at} UTC`;
  if (every !== "1w") return IN_WORDS[every];
  return `every ${on.slice(0, 1).toUpperCase()}${on.slice(1)} at ${at} UTC`;
}
