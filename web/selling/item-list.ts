/**
 * List of the catalog's products, plans or access slugs: what each gives, how it is sold, and which relays name it. A
 * link can open the form for an item that a relay needs: `?new=premium&relay=checkout`, `?open=premium&relay=checkout`.
 */
import { useRef, useState } from "preact/hooks";
import type { CatalogUse } from "../../src/rules/relay/catalog-edit.ts";
import { writeQuery } from "../base/api.ts";
import { formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { navigate, setQuery } from "../base/route.ts";
import { useList } from "../base/use-list.ts";
import { afterMaking } from "../component/create-item.ts";
import { Icon } from "../component/icon.ts";
import { EmptyState, LoadingState } from "../component/notice.ts";
import { OlderButton } from "../component/older-button.ts";
import { SafeText } from "../component/safe-text.ts";
import { type Column, Table } from "../component/table.ts";
import { SoldBy, UsedBy, useCatalogUses } from "./catalog.ts";
import { type Item, ItemForm, type Kind } from "./item-form.ts";
import { SellingSteps } from "./selling-steps.ts";

type Listed = Item & { id: string; slug?: string };

const LEADS: Readonly<Record<Kind, string>> = {
  products: "A one-time purchase that grants an entitlement, credits, or both.",
  plans: "A person has one plan at a time. The plan grants the entitlement of its name.",
  access: "Entitlements that a relay or an owner grants without a product or plan.",
};
const BUTTONS: Readonly<Record<Kind, string>> = {
  products: "New product",
  plans: "New plan",
  access: "New access slug",
};

export function ItemList({ place, kind, query }: { place: Place; kind: Kind; query: URLSearchParams }): View {
  const list = useList<Listed>(`${apiPath(place, kind)}?limit=200`, 30_000);
  const loadedUses = useCatalogUses(place);
  const uses = loadedUses ?? [];
  const { items: loaded, error, reload } = list;
  // An access slug has its slug as its name.
  const items = loaded?.map((item) => ({
    ...item,
    name: item.slug ?? item.name,
    id: item.slug ?? item.name,
  }));
  const open = query.get("open") ?? "";
  const opened = items?.find(({ name }) => name === open) ?? null;
  const relay = query.get("relay");
  const wanted = useWanted(query.get("new"), items);
  const [isMaking, setMaking] = useState(false);
  const close = (): void => {
    setMaking(false);
    setQuery({ open: "", new: "", relay: "", back: "" });
  };
  // A user who came from a relay continues with what waits for the item.
  const saved = (): void => {
    const next = afterMaking(place, query);
    if (next === null) close();
    else navigate(next);
  };
  return html`<p class="tab-lead">${LEADS[kind]}</p>
    <div class="tab-actions"><button data-needs="edit_definitions" type="button" class="primary" onClick=${() => setMaking(true)}><${Icon} name="plus" size=${14} />${BUTTONS[kind]}</button></div>
    ${
      kind === "products" &&
      items !== undefined &&
      loadedUses !== undefined &&
      html`<${SellingSteps} place=${place} products=${items} uses=${loadedUses} />`
    }
    ${
      items === undefined
        ? html`<${LoadingState} error=${error} onRetry=${reload} />`
        : items.length === 0
          ? kind !== "products" && html`<${FirstWords} kind=${kind} />`
          : html`<${Table} label=${BUTTONS[kind].slice("New ".length)} columns=${columnsOf(place, kind, uses)} items=${items} />
            ${list.next !== null && html`<${OlderButton} list=${list} none="" />`}`
    }
    ${(isMaking || wanted !== null || opened !== null) && html`<${ItemForm} key=${open} place=${place} kind=${kind} item=${opened} wanted=${{ name: wanted ?? "", relay }} uses=${uses} onClose=${close} onSaved=${saved} />`}`;
}

/** Returns the requested item if it was missing at first. It stays until the form closes, although the list contains the item after it was made. */
function useWanted(asked: string | null, items: readonly Item[] | undefined): string | null {
  const seen = useRef<{ asked: string; isMissing: boolean } | null>(null);
  if (asked === null || items === undefined) return null;
  if (seen.current?.asked !== asked)
    seen.current = { asked, isMissing: items.every(({ name }) => name !== asked) };
  return seen.current.isMissing ? asked : null;
}

function columnsOf(place: Place, kind: Kind, uses: readonly CatalogUse[]): Column<Listed>[] {
  const address = (open: string): string =>
    pagePath(place, "catalog") + writeQuery({ tab: kind === "products" ? "" : kind, open });
  const named = (item: Item): string => (kind === "access" ? `access:${item.name}` : item.name);
  const columns: (Column<Listed> | null)[] = [
    {
      name: "item",
      title: kind === "access" ? "Slug" : "Name",
      priority: 1,
      cell: (item) => html`<span class="clip"><a data-row href=${address(item.name)}>${named(item)}</a>
        ${item.title !== item.name && html` <span class="quiet"><${SafeText} text=${item.title} limit=${80} /></span>`}
        ${item.default === true && html` <span class="chip">default</span>`}</span>`,
    },
    kind === "products"
      ? {
          name: "gives",
          title: "Gives",
          priority: 2,
          cell: ({ key, credits = 0 }) =>
            html`<span class="clip">${key}${credits > 0 && html` + ${formatNumber(credits)} credits`}</span>`,
        }
      : null,
    kind === "access"
      ? null
      : {
          name: "sold",
          title: "Sold by",
          priority: 2,
          size: "name",
          cell: ({ soldThrough = null }) => html`<${SoldBy} place=${place} sold=${soldThrough} />`,
        },
    {
      name: "used",
      title: "Named by",
      priority: 3,
      cell: (item) => html`<${UsedBy} place=${place} uses=${uses} name=${named(item)} />`,
    },
  ];
  return columns.filter((column) => column !== null);
}

/** Explains the first plan or access slug. */
function FirstWords({ kind }: { kind: Kind }): View {
  return html`<${EmptyState} icon="selling" title=${kind === "plans" ? "No plans yet" : "No access slugs yet"}><p>${
    kind === "plans"
      ? html`The first plan is the default plan for all people. A relay moves a person to another plan with <code>grant_plan</code>.`
      : html`Your app asks if a person has <code>access:beta</code>; a relay grants it with <code>grant_access</code>.`
  }</p><//>`;
}
