/**
 * The content of an environment, item by item as files write it, with the last synced content and the last change. It also records what a
 * laptop pulled, so that the next sync does not treat it as an edit.
 */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { type Json, type JsonObject, parseJson, writeJson } from "../../base/json.ts";
import { makeCursor, type Page, type PageRequest } from "../../base/page.ts";
import { json, oneOf, orNull, textOrNull, time } from "../../base/schema.ts";
import { ACTOR_NAME } from "../../platform/audit/audit.ts";
import { findRelay } from "../../rules/relay/relay.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { findItem, ITEM_KINDS } from "./catalog-item.ts";
import { markOf } from "./side-comparison.ts";
import { deleteSynced, findSynced, recordSynced, syncTarget } from "./synced.ts";

export const SYNC_ITEM_KINDS = ["relay", ...ITEM_KINDS] as const;
type SyncItemKind = (typeof SYNC_ITEM_KINDS)[number];

export interface SyncItem {
  kind: SyncItemKind;
  name: string;
}

export const deployedStateView = Type.Object({
  kind: oneOf(SYNC_ITEM_KINDS),
  name: Type.String(),
  content: orNull(Type.Unsafe<Json>({ ...json, description: "as a file says it; null: it is gone" })),
  mark: orNull(Type.String({ description: "names this content; null: it is gone" })),
  brought: orNull(
    Type.Object(
      { content: Type.Unsafe<Json>(json), at: time },
      { description: "what the last sync brought, or a pull took; null: none did" },
    ),
  ),
  changed: orNull(
    Type.Object(
      { at: time, by: Type.String(), byName: textOrNull },
      { description: "its last change; byName is the name of the key or the address of the person" },
    ),
  ),
});
export type DeployedState = Static<typeof deployedStateView>;

/** A page is small in items and in bytes, because definitions may be large. */
const MAX_PAGE_ITEMS = 20;
const MAX_PAGE_CHARS = 64 * 1024;

/** The queries of each kind's names. The last one finds synced items that may be deleted. */
const NAME_QUERIES: readonly (readonly [kind: string, sql: string])[] = [
  ["relay", "SELECT name FROM relay WHERE environment_id = $environmentId AND name > $after ORDER BY name"],
  [
    "collection",
    "SELECT name FROM collection WHERE environment_id = $environmentId AND name > $after ORDER BY name",
  ],
  [
    "access",
    "SELECT slug AS name FROM access_slug WHERE environment_id = $environmentId AND slug > $after ORDER BY slug",
  ],
  [
    "product",
    "SELECT name FROM product WHERE environment_id = $environmentId AND name > $after ORDER BY name",
  ],
  ["plan", "SELECT name FROM plan WHERE environment_id = $environmentId AND name > $after ORDER BY name"],
  [
    "gone",
    "SELECT target AS name FROM synced WHERE environment_id = $environmentId AND target > $after ORDER BY target",
  ],
];

/** Lists a page of all items by kind and name, then of synced items that were deleted. */
export async function listDeployedState(
  tx: Reader,
  environmentId: number,
  { limit, after }: PageRequest,
): Promise<Page<DeployedState>> {
  const most = Math.min(limit, MAX_PAGE_ITEMS);
  const places = await listTargets(tx, environmentId, after, most + 1);
  const items: DeployedState[] = [];
  let chars = 0;
  let taken = 0;
  for (const place of places.slice(0, most)) {
    if (chars >= MAX_PAGE_CHARS) break;
    taken += 1;
    const isGone = place.startsWith("gone:");
    const item = await readDeployedState(tx, environmentId, isGone ? place.slice(5) : place);
    if (isGone && item.content !== null) continue;
    items.push(item);
    chars += writeJson(item).length;
  }
  const last = places[taken - 1];
  return { items, next: taken < places.length && last !== undefined ? makeCursor(last) : null };
}

/** Reports whether the environment has no item that files can define, and never had one that a sync remembers. */
export async function isEmptyEnvironment(tx: Reader, environmentId: number): Promise<boolean> {
  return (await listTargets(tx, environmentId, null, 1)).length === 0;
}

/** Lists `relay:checkout`, … `gone:relay:invoice`, after the cursor. */
async function listTargets(
  tx: Reader,
  environmentId: number,
  cursor: string | null,
  limit: number,
): Promise<string[]> {
  const { kind: from, name } = parseTarget(cursor ?? `${NAME_QUERIES[0]?.[0]}:`);
  const places: string[] = [];
  let after: string | null = null;
  for (const [kind, sql] of NAME_QUERIES) {
    if (after === null && kind !== from) continue;
    after = after === null ? name : "";
    const values = { environmentId, after, limit: limit - places.length };
    const rows = await tx.all<{ name: string }>(`${sql} LIMIT $limit`, values);
    places.push(...rows.map((row) => `${kind}:${row.name}`));
    if (places.length === limit) break;
  }
  return places;
}

async function readDeployedState(tx: Reader, environmentId: number, target: string): Promise<DeployedState> {
  const thing = parseTarget(target);
  const content = await findContent(tx, environmentId, thing);
  const brought = await findSynced(tx, environmentId, target);
  return {
    ...thing,
    content,
    mark: content === null ? null : markOf(content),
    brought: brought === null ? null : { content: parseJson(brought.content), at: toIso(brought.syncedAt) },
    changed: await findLastChange(tx, environmentId, target),
  };
}

async function findContent(
  tx: Reader,
  environmentId: number,
  { kind, name }: SyncItem,
): Promise<JsonObject | null> {
  if (kind !== "relay") return await findItem(tx, environmentId, kind, name);
  return ((await findRelay(tx, environmentId, name))?.definition ?? null) as JsonObject | null;
}

/** Parses the target of an item, such as `relay:checkout`. */
export function parseTarget(target: string): SyncItem {
  const at = target.indexOf(":");
  return { kind: target.slice(0, at) as SyncItemKind, name: target.slice(at + 1) };
}

/** A pause or a rotation of a secret changes nothing that a file has. */
const CHANGES =
  "action LIKE '%.created' OR action LIKE '%.updated' OR action LIKE '%.changed' OR action LIKE '%.deleted'";
const MAX_AUDIT_ROWS = 50;

export async function findLastChange(
  tx: Reader,
  environmentId: number,
  target: string,
): Promise<DeployedState["changed"]> {
  const sql = `SELECT at, actor, ${ACTOR_NAME} AS actorName
    FROM (SELECT environment_id, seq, at, actor, action FROM audit INDEXED BY audit_by_target
      WHERE environment_id = $environmentId AND target = $target AND event_id IS NULL ORDER BY seq DESC LIMIT ${MAX_AUDIT_ROWS}) AS audit
    WHERE ${CHANGES} ORDER BY seq DESC LIMIT 1`;
  const row = await tx.get<{ at: number; actor: string; actorName: string | null }>(sql, {
    environmentId,
    target,
  });
  return row === null ? null : { at: toIso(row.at), by: row.actor, byName: row.actorName };
}

/** Lists every item of the catalog. */
export async function listItemTargets(tx: Reader, environmentId: number): Promise<string[]> {
  const places = await listTargets(tx, environmentId, `${ITEM_KINDS[0]}:`, Number.MAX_SAFE_INTEGER);
  return places.filter((place) => !place.startsWith("gone:"));
}

/** An item as a laptop's files currently have it; null if they no longer have it. */
export interface Pulled extends SyncItem {
  mark: string | null;
}

/** Records the files' content of each item that the environment has unchanged. Returns the number of these items. */
export async function recordPulled(
  tx: Writer,
  environmentId: number,
  pulled: readonly Pulled[],
  nowMs: number,
): Promise<number> {
  let known = 0;
  for (const { kind, name, mark } of pulled) {
    const content = await findContent(tx, environmentId, { kind, name });
    if ((content === null ? null : markOf(content)) !== mark) continue;
    const target = syncTarget({ kind, name });
    if (content === null) await deleteSynced(tx, environmentId, target);
    else await recordSynced(tx, environmentId, target, content, nowMs);
    known += 1;
  }
  return known;
}
