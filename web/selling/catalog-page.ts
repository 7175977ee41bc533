/** Catalog page: the catalog (products, plans, access slugs) and its sales. The address names the tab. */
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import type { PageProps } from "../base/page.ts";
import { pagePath } from "../base/place.ts";
import { PageHead } from "../component/page-head.ts";
import { TabLinks } from "../component/tab-links.ts";
import { ItemList } from "./item-list.ts";
import { ReceiptList } from "./receipt-list.ts";
import { SubscriptionList } from "./subscription-list.ts";

const TABS = [
  ["", "Products"],
  ["plans", "Plans"],
  ["access", "Access slugs"],
  ["receipts", "Receipts"],
  ["subscriptions", "Subscriptions"],
] as const;

export function CatalogPage({ place, query }: PageProps): View {
  const asked = query.get("tab") ?? "";
  const chosen = TABS.find(([name]) => name === asked)?.[0] ?? "";
  const path = pagePath(place, "catalog");
  const tabs = TABS.map(([name, title]) => ({ name, title, href: path + writeQuery({ tab: name }) }));
  const kind = chosen === "" ? "products" : chosen;
  return html`<${PageHead} title="Catalog" />
    <${TabLinks} label="Catalog" tabs=${tabs} chosen=${chosen} />
    ${
      kind === "receipts"
        ? html`<${ReceiptList} place=${place} query=${query} />`
        : kind === "subscriptions"
          ? html`<${SubscriptionList} place=${place} query=${query} />`
          : html`<${ItemList} key=${kind} place=${place} kind=${kind} query=${query} />`
    }`;
}
