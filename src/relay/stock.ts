/**
 * What a definition may name: an environment's catalog and relays. What a relay fits is judged of any stock alike; a set of files is one too
 * (sync/file-set.ts), so that `relay validate` finds without a database what a save finds with one.
 */
import { findEntitlement } from "../people/entitlement.ts";
import { findCollection, listFields } from "../records/collection.ts";
import type { CollectionDefinition } from "../records/collection-definition.ts";
import { plans } from "../selling/plan.ts";
import { products } from "../selling/product.ts";
import type { Reader } from "../store/port.ts";
import type { Definition } from "./definition-shape.ts";
import { RELAY } from "./relay.ts";

export interface Stock {
  /** Where something is missing, in words. */
  place: string;
  /** What to do about what is missing, in words: "create it". */
  make: string;
  findCollection(name: string): Promise<CollectionDefinition | null>;
  listCollections(): Promise<string[]>;
  /** `access:<slug>`, a product or a plan. */
  hasEntitlement(name: string): Promise<boolean>;
  /** The relay that it is sold through, if any; null where there is no such item. */
  findItem(kind: "product" | "plan", name: string): Promise<{ relay: string | null } | null>;
  /** Relays whose definitions hold the text `"name"`, and maybe others; null: every one. */
  listRelaysNaming(name: string | null): Promise<Definition[]>;
}

const NAMED = RELAY.pick("definition");

/** Enough to find the nearest name in. */
const MAX_NAMES = 200;

/** An environment's. */
export function stockOf(tx: Reader, environmentId: number): Stock {
  return {
    place: "in this environment",
    make: "create it",
    async findCollection(name) {
      const row = await findCollection(tx, environmentId, name);
      return row === null ? null : { name, kind: row.kind, fields: listFields(row) };
    },
    async listCollections() {
      const sql = "SELECT name FROM collection WHERE environment_id = ?1 LIMIT ?2";
      return (await tx.all<{ name: string }>(sql, environmentId, MAX_NAMES)).map(({ name }) => name);
    },
    hasEntitlement: async (name) => (await findEntitlement(tx, environmentId, name)) !== null,
    async findItem(kind, name) {
      const item = await (kind === "product" ? products : plans).find(tx, environmentId, name);
      if (item === null) return null;
      return { relay: item.soldThrough?.kind === "relay" ? item.soldThrough.relay : null };
    },
    async listRelaysNaming(name) {
      const rest = "WHERE environment_id = $environmentId AND instr(definition, $text) > 0 ORDER BY name";
      const rows = await NAMED.all(tx, rest, {
        environmentId,
        text: name === null ? "" : JSON.stringify(name),
      });
      return rows.map(({ definition }) => definition);
    },
  };
}
