/**
 * Compares a file with an environment by what the folder last saw of that environment, item by item. The folder sends a mark of that content
 * instead of the content.
 */
import { type Json, type JsonObject, writeJson } from "../../base/json.ts";
import { relayOf } from "../../rules/relay/relay.ts";
import { isEqual } from "./catalog-item.ts";
import type { MergeBase } from "./merge-base.ts";

/** The folder's last knowledge of an item. */
export interface SeenItem {
  /** The mark of the environment's content, as the folder last saw it. */
  mark: string;
  /** True if the file differs from that content, or is gone. */
  changed: boolean;
}

/** The most items that a request describes. A folder with more sends none. */
export const MAX_SEEN_ITEMS = 2_000;

/** The folder's knowledge by target. */
export type SeenItems = ReadonlyMap<string, SeenItem>;

/** Names a content. Equal contents have equal marks. */
export function markOf(content: Json): string {
  return new Bun.CryptoHasher("sha256").update(writeJson(content)).digest("hex").slice(0, 40);
}

/** Makes the content of a file, completed from the last common content where the file leaves a field out. */
export type ReadFileItem = (base: JsonObject | null) => Json;

/** Lists what the folder knows of the items in its files, and of relays that it knew and whose file is gone. */
export function listSeen(memory: MergeBase, files: ReadonlyMap<string, ReadFileItem>): Map<string, SeenItem> {
  const seen = new Map<string, SeenItem>();
  for (const [target, base] of memory) {
    const read = files.get(target);
    if (read === undefined && relayOf(target) === null) continue;
    const changed = read === undefined || !isEqual(read(base as JsonObject | null), base);
    seen.set(target, { mark: markOf(base), changed });
  }
  return seen;
}

/**
 * The outcome for an item. `behind`: only the environment changed. `conflict`: both sides changed, or both created the item.
 * `unknown`: the folder knows nothing of this environment, so only the environment's record of its last sync can tell.
 */
type Comparison = "created" | "unchanged" | "changed" | "behind" | "conflict" | "unknown";

/**
 * Compares the environment's content with the file's. Null is no content. `wasDeleted`: the environment records that the item was deleted
 * there. Without that record the environment never had it, and the folder saw another one under this address.
 */
export function compareSides(
  before: Json,
  after: Json,
  seen: SeenItems | null,
  target: string,
  wasDeleted: boolean,
): Comparison {
  if (before !== null && isEqual(before, after)) return "unchanged";
  const base = seen?.get(target);
  if (before === null) {
    if (base === undefined || !wasDeleted) return "created";
    return base.changed ? "conflict" : "behind";
  }
  if (seen === null) return "unknown";
  if (base === undefined) return "conflict";
  if (base.mark === markOf(before)) return "changed";
  return base.changed ? "conflict" : "behind";
}
