/** Reads the streak of a relay's problem: how often it occurred without a success between, when it began and when it last grew. */
import type { Reader } from "../../store/port.ts";
import { relayOf } from "./relay.ts";

interface StoredStreak {
  count: number | null;
  since: number | null;
  at: number | null;
}

const STREAK = `SELECT ${selectField("count")}, ${selectField("since")}, ${selectField("at")}
  FROM relay WHERE environment_id = $environmentId AND name = $relay`;

/** Returns the SQL that reads a field of the streak. The row has columns for rejected requests, and one JSON value for the other streaks. */
function selectField(field: "count" | "since" | "at"): string {
  return `CASE WHEN $code IN ('relay_refusing', 'never_verified', 'secret_missing') THEN refused_${field}
    ELSE CAST(streaks ->> ('$.runs.' || $code || '.${field}') AS INTEGER) END AS ${field}`;
}

/** Finds the streak of a problem of a relay. Returns null for another target and for a deleted relay. Fields are null without a streak. */
export async function findStreak(
  tx: Reader,
  environmentId: number,
  code: string,
  target: string,
): Promise<StoredStreak | null> {
  const relay = relayOf(target);
  return relay === null ? null : await tx.get<StoredStreak>(STREAK, { environmentId, code, relay });
}
