/**
 * How many events a span of numbers holds, by how they stand now, through the indexes that are led to them. More than a share are not counted
 * one by one but in slices of the span; what failed or waits is rarer and has indexes of its own, so it is mostly exact.
 */
import type { Reader } from "../../store/port.ts";
import type { EventState } from "./event.ts";
import { leadOfTrigger } from "./list.ts";

/** Rows that are counted one by one: in their index alone, or looked up. */
const SHARE = 1_000;
const DEAR_SHARE = 80;
const SLICES = 10;
/** More than are counted of a slice. */
const PACKED = 1_000_000;

/** `waiting`: queued, running, or waiting for a retry. */
export type Counts = Record<"done" | "waiting" | "failed" | "dead", number>;

export interface Asked {
  environmentId: number;
  nameKey: number | null;
  trigger: string | null;
  state: EventState | null;
}

/** Numbers from `from` to before `to`. */
interface Span {
  from: number;
  to: number;
}

export function outcomeOf(state: EventState): keyof Counts {
  return state === "queued" || state === "running" ? "waiting" : state;
}

/** `exact`: all was counted one by one. */
export async function countSpan(
  tx: Reader,
  asked: Asked,
  span: Span,
): Promise<{ counts: Counts; exact: boolean }> {
  const counts: Counts = { done: 0, waiting: 0, failed: 0, dead: 0 };
  if (span.from >= span.to) return { counts, exact: true };
  let exact = true;
  const count = async (road: Road): Promise<number> => {
    const counted = await countRoad(tx, asked, road, span);
    exact &&= counted.exact;
    return counted.count;
  };
  // What was done is what is left of all.
  const { state } = asked;
  const wantsDone = state === null || state === "done";
  const counting = Object.entries(ROADS).map(async ([one, road]) => {
    const counted = wantsDone || state === one ? await count(road) : 0;
    counts[outcomeOf(one as EventState)] += counted;
  });
  const rare = leadOfTrigger(asked.trigger);
  const whole = asked.nameKey !== null ? OF_RELAY : rare === null ? ALL : ofTrigger(rare);
  const [all] = await Promise.all([wantsDone ? count(whole) : 0, ...counting]);
  if (!wantsDone) return { counts, exact };
  const done = Math.max(0, all - counts.waiting - counts.failed - counts.dead);
  return { counts: state === null ? { ...counts, done } : { done, waiting: 0, failed: 0, dead: 0 }, exact };
}

/** An index and what it is led by; `holds`: what is asked of a row and stands in the index itself. */
interface Road {
  from: string;
  led: string;
  holds: readonly ("nameKey" | "trigger")[];
}

const unhappy = (state: "failed" | "dead"): Road => ({
  from: "event INDEXED BY event_unhappy",
  led: `environment_id = $environmentId AND state IN ('failed', 'dead') AND state = '${state}'`,
  holds: ["nameKey", "trigger"],
});
const unfinished = (state: "queued" | "running"): Road => ({
  from: "event INDEXED BY event_unfinished",
  led: `environment_id = $environmentId AND state IN ('queued', 'running') AND state = '${state}'`,
  holds: [],
});
const ROADS = {
  dead: unhappy("dead"),
  failed: unhappy("failed"),
  queued: unfinished("queued"),
  running: unfinished("running"),
};
/** By way of the environment's names, so that a quiet one's are counted beside everybody else's. */
const ALL: Road = {
  from: "relay_name CROSS JOIN event INDEXED BY event_of_relay ON event.name_key = relay_name.key",
  led: "relay_name.environment_id = $environmentId",
  holds: [],
};
const OF_RELAY: Road = {
  from: "event INDEXED BY event_of_relay",
  led: "name_key = $nameKey",
  holds: ["nameKey"],
};
const ofTrigger = (lead: string): Road => ({
  from: "event INDEXED BY event_of_trigger",
  led: `environment_id = $environmentId AND ${lead}`,
  holds: ["trigger"],
});

/** One by one as far as a share; else in slices of the span, wider ones where the first held few. */
async function countRoad(
  tx: Reader,
  { environmentId, nameKey, trigger }: Asked,
  { from, led, holds }: Road,
  span: Span,
): Promise<{ count: number; exact: boolean }> {
  const fits = [
    ...(nameKey === null || led.includes("$nameKey") ? [] : ["name_key = $nameKey"]),
    ...(trigger === null ? [] : ['"trigger" = $trigger']),
  ];
  const isDear =
    (trigger !== null && !holds.includes("trigger")) || (nameKey !== null && !holds.includes("nameKey"));
  const share = isDear ? DEAR_SHARE : SHARE;
  const fit = fits.length === 0 ? "TRUE" : `(${fits.join(" AND ")})`;
  const given = { environmentId, nameKey, trigger };
  const sum = `SELECT count(*) AS looked, count(*) FILTER (WHERE fits) AS found FROM`;
  // The order that the index has; of an environment's there is none.
  const order = led === ALL.led ? "" : "ORDER BY seq";
  const within = (low: string, high: string): string =>
    `(SELECT ${fit} AS fits FROM ${from} WHERE ${led} AND seq >= ${low} AND seq < ${high} ${order} LIMIT $most)`;
  const whole = `${sum} ${within("$from", "$to")}`;
  const first = await tx.get<Looked>(
    whole,
    namesIn(whole, { ...given, from: span.from, to: span.to, most: share + 1 }),
  );
  if (first === null || first.looked <= share) return { count: first?.found ?? 0, exact: true };
  // One by one, and each from the index: a join might be made the other way round. Both counts are one number.
  const start = "CAST(slice.value AS INTEGER)";
  const slices = `SELECT (SELECT count(*) * ${PACKED} + count(*) FILTER (WHERE fits) FROM ${within(start, `${start} + $width`)}) AS packed
    FROM json_each($starts) AS slice`;
  const wide = span.to - span.from;
  let width = Math.max(1, Math.floor(share / SLICES));
  for (;;) {
    const step = wide / SLICES;
    const isWhole = width >= step;
    const starts = Array.from({ length: SLICES }, (_, at) => Math.floor(span.from + at * step));
    const each = Math.min(width, Math.floor(step));
    const some = await tx.all<{ packed: number }>(
      slices,
      namesIn(slices, { ...given, starts: JSON.stringify(starts), width: each, most: share * 2 }),
    );
    const looked = some.reduce((all, { packed }) => all + Math.floor(packed / PACKED), 0);
    const found = some.reduce((all, { packed }) => all + (packed % PACKED), 0);
    if (looked >= share / 2 || isWhole)
      return { count: Math.round((found * wide) / (each * SLICES)), exact: false };
    width = Math.ceil(Math.min(step, width * Math.max(2, share / Math.max(1, looked))));
  }
}

interface Looked {
  looked: number;
  found: number;
}

/** A statement is given the values that it names. */
function namesIn(
  sql: string,
  values: Record<string, string | number | null>,
): Record<string, string | number | null> {
  return Object.fromEntries(Object.entries(values).filter(([name]) => new RegExp(`\\$${name}\\b`).test(sql)));
}
