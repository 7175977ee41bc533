/** What files and an environment had in common last: what the last sync brought, or local development applied or wrote, of each relay and item of the catalog: where something else stands now, somebody edited it since. */
import type { Json } from "../../base/json.ts";
import { writeJson } from "../../base/json.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, text } from "../../store/table.ts";

const SYNCED = defineTable({
  name: "synced",
  key: ["environmentId", "target"],
  columns: {
    environmentId: integer(),
    target: text(),
    /** JSON, as the files say it. */
    content: text(),
    syncedAt: integer(),
  },
});

/** Whether this is what the last sync brought; never where none brought anything. */
export async function matchesSynced(
  tx: Reader,
  environmentId: number,
  target: string,
  content: Json,
): Promise<boolean> {
  const row = await SYNCED.find(tx, { environmentId, target });
  return row !== null && row.content === writeJson(content);
}

/** What the last sync brought, or null. */
export function findSynced(
  tx: Reader,
  environmentId: number,
  target: string,
): Promise<{ content: string; syncedAt: number } | null> {
  return SYNCED.find(tx, { environmentId, target });
}

/** All that is remembered of an environment, JSON by target. */
export async function listSynced(tx: Reader, environmentId: number): Promise<Map<string, string>> {
  const rows = await SYNCED.all(tx, "WHERE environment_id = $environmentId AND target > ''", {
    environmentId,
  });
  return new Map(rows.map(({ target, content }) => [target, content]));
}

/** The target of what is no thing: that an environment's files were looked at ever. */
export const FIRST_SYNC_TARGET = "";

/** Remembers what a sync brought, or found there as it would have brought it. */
export async function recordSynced(
  tx: Writer,
  environmentId: number,
  target: string,
  content: Json,
  nowMs: number,
): Promise<void> {
  await SYNCED.delete(tx, { environmentId, target });
  await SYNCED.insert(tx, { environmentId, target, content: writeJson(content), syncedAt: nowMs });
}

export async function deleteSynced(tx: Writer, environmentId: number, target: string): Promise<void> {
  await SYNCED.delete(tx, { environmentId, target });
}
