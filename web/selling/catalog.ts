/** What the selling room's tabs share: how an item is sold in words, and which relays name it. */
import type { CatalogUse } from "../../src/rules/relay/catalog-edit.ts";
import type { SoldThrough } from "../../src/shop/selling/catalog-item.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";

/** What an action does with what it names. */
const ACTS: Readonly<Record<string, string>> = {
  fulfil_product: "fulfils it",
  refund_product: "refunds it",
  grant_plan: "grants it",
  revoke_plan: "ends it",
  grant_access: "grants it",
  revoke_access: "takes it away",
};

export function useCatalogUses(place: Place): readonly CatalogUse[] {
  return useLoad<{ uses: CatalogUse[] }>(apiPath(place, "catalog-uses")).data?.uses ?? [];
}

/** Everything that is out of date once the catalog was changed. */
export function catalogPaths(place: Place): string[] {
  return ["products", "plans", "access", "catalog-uses", "overview", "problems", "relays"].map((part) =>
    apiPath(place, part),
  );
}

/** The relays that name it, each with what it does. */
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

/** "by relay orders", "by a payment link". */
export function SoldBy({ place, sold }: { place: Place; sold: SoldThrough | null }): View {
  if (sold === null) return html`<span class="quiet">not sold</span>`;
  if (sold.kind === "relay")
    return html`<span class="clip" title=${sold.url}>relay <a href=${pagePath(place, "relays", sold.relay)}>${sold.relay}</a></span>`;
  return html`<span class="clip" title=${sold.url}>payment link</span>`;
}
