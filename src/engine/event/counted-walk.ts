/**
 * Counts events through the index that holds them, a bounded number of rows at a time. The counts by state (count.ts) and the histogram share
 * these walks.
 */
import type { Page } from "../../base/page.ts";
import { readPage } from "../../store/index-scan.ts";
import type { SqlNames, Store } from "../../store/port.ts";
import type { EventState } from "./event.ts";
import { ANY_REASON, type EventFilter, leadOfTrigger, listEvents } from "./list.ts";
import type { ListedEvent } from "./view.ts";

/** The columns of a filter; null for any value. */
export interface CountFilter {
  environmentId: number;
  nameKey: number | null;
  trigger: string | null;
  reason: string | null;
}

/** An index, the condition on its first columns, and the filter's columns that it holds. */
export interface IndexPath {
  from: string;
  lead: string;
  holds: readonly ("nameKey" | "trigger")[];
}

/** Returns the path through the partial index of events that are not done. It repeats the condition of the index word for word. */
export function pathOfState(state: Exclude<EventState, "done">): IndexPath {
  if (state === "failed" || state === "dead")
    return {
      from: "event INDEXED BY event_unhappy",
      lead: `environment_id = $environmentId AND state IN ('failed', 'dead') AND state = '${state}'`,
      holds: ["nameKey", "trigger"],
    };
  return {
    from: "event INDEXED BY event_unfinished",
    lead: `environment_id = $environmentId AND state IN ('queued', 'running') AND state = '${state}'`,
    holds: [],
  };
}

/** Leads through the environment's relay names. Its rows have no order. */
const PATH_OF_ENVIRONMENT: IndexPath = {
  from: "relay_name CROSS JOIN event INDEXED BY event_of_relay ON event.name_key = relay_name.key",
  lead: "relay_name.environment_id = $environmentId",
  holds: [],
};

/** Returns the path to events of every state: of a relay name, of a rare trigger, or of the environment. */
export function pathOfAll({ nameKey, trigger }: Pick<CountFilter, "nameKey" | "trigger">): IndexPath {
  if (nameKey !== null)
    return { from: "event INDEXED BY event_of_relay", lead: "name_key = $nameKey", holds: ["nameKey"] };
  const rare = leadOfTrigger(trigger);
  if (rare === null) return PATH_OF_ENVIRONMENT;
  return {
    from: "event INDEXED BY event_of_trigger",
    lead: `environment_id = $environmentId AND ${rare}`,
    holds: ["trigger"],
  };
}

/** Returns the filter's conditions on a row. A column without a filter is left out, so that an index can answer by itself. */
export function conditionsOf({ nameKey, trigger, reason }: Omit<CountFilter, "environmentId">): string[] {
  return [
    ...(nameKey === null ? [] : ["name_key = $nameKey"]),
    ...(trigger === null ? [] : ['"trigger" = $trigger']),
    ...(reason === null ? [] : [reason === ANY_REASON ? "reason IS NOT NULL" : "reason = $reason"]),
  ];
}

/** Selects up to `$limit` rows of a path with numbers from `low` to before `high`, and whether each meets the conditions. */
export function walkSql(
  { from, lead }: IndexPath,
  conditions: readonly string[],
  { low, high, order = "" }: { low: string; high: string; order?: "DESC" | "" },
): string {
  const fits = conditions.length === 0 ? "TRUE" : `(${conditions.join(" AND ")})`;
  const sort = lead === PATH_OF_ENVIRONMENT.lead ? "" : `ORDER BY seq ${order}`;
  return `SELECT seq, ${fits} AS fits FROM ${from} WHERE ${lead} AND seq >= ${low} AND seq < ${high} ${sort} LIMIT $limit`;
}

/** Returns the values that a statement names. */
export function valuesOf(sql: string, values: SqlNames): SqlNames {
  return Object.fromEntries(Object.entries(values).filter(([name]) => new RegExp(`\\$${name}\\b`).test(sql)));
}

/** Finds the first matches of a filter that must read payloads. `next` is not null if there are more. */
export function findFirstMatches(
  store: Store,
  environmentId: number,
  filter: EventFilter,
): Promise<Page<ListedEvent>> {
  return readPage(
    store,
    { limit: 200, after: null },
    (tx, part) => listEvents(tx, environmentId, filter, part),
    { steps: 2, look: 1_000 },
  );
}
