/** Data for completions: the schema of definitions and the names in the environment's catalog. */
import { useMemo } from "preact/hooks";
import type { CollectionView } from "../../src/shop/records/collection.ts";
import type { Page } from "../base/answer.ts";
import { apiPath, type Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import type { Known, Schema } from "./schema.ts";

/** Query of a list of names. It loads the newest 100. */
export const NAMES_QUERY = "?limit=100";

/** Returns null while the schema is loading. */
export function useKnown(place: Place): Omit<Known, "root"> | null {
  const schema = useLoad<Schema>("/docs/definition.schema.json").data;
  const collections = useNames<CollectionView>(place, "collections");
  const products = useNames<{ name: string }>(place, "products");
  const plans = useNames<{ name: string }>(place, "plans");
  const access = useNames<{ slug: string }>(place, "access");
  const relays = useNames<{ name: string }>(place, "relays");
  return useMemo(() => {
    if (schema === undefined) return null;
    const catalog = {
      collections: (collections ?? []).map(({ name, fields }) => ({ name, fields: Object.keys(fields) })),
      products: (products ?? []).map(({ name }) => name),
      plans: (plans ?? []).map(({ name }) => name),
      access: (access ?? []).map(({ slug }) => slug),
      relays: (relays ?? []).map(({ name }) => name),
    };
    return { schema, catalog };
  }, [schema, collections, products, plans, access, relays]);
}

function useNames<Item>(place: Place, what: string): readonly Item[] | undefined {
  return useLoad<Page<Item>>(apiPath(place, what) + NAMES_QUERY).data?.items;
}
