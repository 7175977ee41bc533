/**
 * The last common content of files and an environment, for each relay and catalog item: what the last sync brought, or what local
 * development applied or wrote. Different content in the environment means that it was edited since.
 */
import type { Json } from "../../base/json.ts";
import { writeJson } from "../../base/json.ts";
import { relayTarget } from "../../rules/relay/relay.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, orNull, text } from "../../store/table.ts";

const SYNCED = defineTable({
  name: "synced",
  key: ["environmentId", "target"],
  columns: {
    environmentId: integer(),
    target: text(),
    /** JSON, as the files have it. */
    content: text(),
    syncedAt: integer(),
    /** The git commit of the folder that a sync brought it from; null: it is unknown. */
    sourceCommit: orNull(text()),
  },
});

/** The target of a relay or an item in `synced` and in audit rows: `relay:checkout`. */
export function syncTarget({ kind, name }: { kind: string; name: string }): string {
  return kind === "relay" ? relayTarget(name) : `${kind}:${name}`;
}

/** Reports whether this is the content of the last sync; false without a sync. */
export async function matchesSynced(
  tx: Reader,
  environmentId: number,
  target: string,
  content: Json,
): Promise<boolean> {
  const row = await SYNCED.find(tx, { environmentId, target });
  return row !== null && row.content === writeJson(content);
}

/** Finds the content of the last sync, or null. */
export function findSynced(
  tx: Reader,
  environmentId: number,
  target: string,
): Promise<{ content: string; syncedAt: number; sourceCommit: string | null } | null> {
  return SYNCED.find(tx, { environmentId, target });
}

/** Lists all content of an environment, JSON by target. */
export async function listSynced(tx: Reader, environmentId: number): Promise<Map<string, string>> {
  const rows = await SYNCED.all(tx, "WHERE environment_id = $environmentId AND target > ''", {
    environmentId,
  });
  return new Map(rows.map(({ target, content }) => [target, content]));
}

/** The target that records the first run for an environment. It is no item. */
export const FIRST_SYNC_TARGET = "";

/** Records the content of a sync, or equal content that was there already. */
export async function recordSynced(
  tx: Writer,
  environmentId: number,
  target: string,
  content: Json,
  nowMs: number,
  sourceCommit: string | null = null,
): Promise<void> {
  const row = { environmentId, target, content: writeJson(content), syncedAt: nowMs, sourceCommit };
  await SYNCED.delete(tx, { environmentId, target });
  await SYNCED.insert(tx, row);
}

export async function deleteSynced(tx: Writer, environmentId: number, target: string): Promise<void> {
  await SYNCED.delete(tx, { environmentId, target });
}
