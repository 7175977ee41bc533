/** Helpers of the Catalog tabs: how an item is sold, and the relays that name it. */
import type { CatalogUse } from "../../src/rules/relay/catalog-edit.ts";
import type { SoldThrough } from "../../src/shop/selling/catalog-item.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";

/** Texts for what an action does with the item. */
const ACTS: Readonly<Record<string, string>> = {
  fulfil_product: "fulfills it",
  refund_product: "refunds it",
  grant_plan: "grants it",
  revoke_plan: "ends it",
  grant_access: "grants it",
  revoke_access: "revokes it",
};

/** Returns undefined until the uses are loaded. */
export function useCatalogUses(place: Place): readonly CatalogUse[] | undefined {
  return useLoad<{ uses: CatalogUse[] }>(apiPath(place, "catalog-uses")).data?.uses;
}

/** Returns the API paths that are outdated after a change of the catalog. */
export function catalogPaths(place: Place): string[] {
  return ["products", "plans", "access", "catalog-uses", "overview", "problems", "relays"].map((part) =>
    apiPath(place, part),
  );
}

/** Lists the relays that name the item, each with its action. */
export function UsedBy({
  place,
  uses,
  name,
}: {
  place: Place;
  uses: readonly CatalogUse[];
  name: string;
}): View {
  const own = uses.filter((use) => use.name === name);
  if (own.length === 0) return html`<span class="quiet">no relay</span>`;
  return html`<span class="clip">${own.map(
    ({ relay, action }, at) =>
      html`${at > 0 && ", "}<a href=${pagePath(place, "relays", relay)}>${relay}</a> <span class="quiet">${ACTS[action] ?? action}</span>`,
  )}</span>`;
}

/** Shows "relay orders" or "payment link". */
export function SoldBy({ place, sold }: { place: Place; sold: SoldThrough | null }): View {
  if (sold === null) return html`<span class="quiet">not sold</span>`;
  if (sold.kind === "relay")
    return html`<span class="clip" title=${sold.url}>relay <a href=${pagePath(place, "relays", sold.relay)}>${sold.relay}</a></span>`;
  return html`<span class="clip" title=${sold.url}>payment link</span>`;
}
