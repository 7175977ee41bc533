/** Question whether a new relay sells the products and plans that its actions name and that nothing sells yet. */
import { useMemo } from "preact/hooks";
import type { Page } from "../base/answer.ts";
import { isObject, type Json, parseExact } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";

interface Item {
  name: string;
  soldThrough: unknown;
}

const NAMES = { fulfil_product: "product", grant_plan: "plan" } as const;

/** Returns the names of products and plans in the draft that exist and that nothing sells. */
export function useUnsold(place: Place, text: string): readonly string[] {
  const named = useMemo(() => namesIn(text), [text]);
  const read = (kind: "products" | "plans", names: readonly string[]) => {
    const path = names.length === 0 ? null : `${apiPath(place, kind)}?limit=200`;
    return useLoad<Page<Item>>(path).data?.items ?? [];
  };
  const products = read("products", named.product);
  const plans = read("plans", named.plan);
  const unsold = (items: readonly Item[], names: readonly string[]): string[] =>
    items.flatMap(({ name, soldThrough }) => (soldThrough === null && names.includes(name) ? [name] : []));
  return [...unsold(products, named.product), ...unsold(plans, named.plan)];
}

function namesIn(text: string): { product: string[]; plan: string[] } {
  const found: { product: string[]; plan: string[] } = { product: [], plan: [] };
  let root: Json;
  try {
    root = parseExact(text);
  } catch {
    return found;
  }
  const actions = isObject(root) && Array.isArray(root.actions) ? root.actions : [];
  for (const action of actions.filter(isObject)) {
    const field = NAMES[action.type as keyof typeof NAMES];
    const name = field === undefined ? undefined : action[field];
    if (field !== undefined && typeof name === "string") found[field].push(name);
  }
  return found;
}

export function SellChoice({
  names,
  isOn,
  onChange,
}: {
  /** Names of the items that nothing sells. */
  names: readonly string[];
  isOn: boolean;
  onChange: (isOn: boolean) => void;
}): View {
  if (names.length === 0) return null;
  return html`<label class="switch"><input type="checkbox" checked=${isOn} onChange=${() => onChange(!isOn)} />
    <span>Sell ${names.map((name, at) => html`${at > 0 && ", "}<code>${name}</code>`)} through this relay. Only a relay that sells an item can fulfill it.</span></label>`;
}
