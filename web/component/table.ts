/**
 * A list as a real table: columns by priority, a head that stays, rows that are links. j, k or the arrows move from row to row (keyboard.ts
 * walks the links), Enter opens, x chooses and shift-x as far as here. The row that has the focus keeps it while the list is refreshed; where
 * it goes, the one in its place takes it.
 */
import { useLayoutEffect, useRef } from "preact/hooks";
import { sayNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import type { Selection } from "./selection.ts";

export interface Column<Item> {
  /** Its cells have the class `cell-<name>`. */
  name: string;
  title: string;
  /** 1: always, on the first line of a narrow row; 2: always, on its second line; 3: where there are 720 px; 4: where there are 960. */
  priority: 1 | 2 | 3 | 4;
  /** How wide beside the others: as wide as is left, an address, a state or time, a name, a number. */
  size?: "rest" | "address" | "short" | "name" | "number";
  cell: (item: Item) => View;
}

interface TableProps<Item extends { id: string }> {
  /** What it lists, for those who hear it. */
  label: string;
  columns: readonly Column<Item>[];
  items: readonly Item[];
  /** What is chosen of it; absent: nothing can be. */
  selection?: Selection | undefined;
  /** What an item is called where it is chosen: "Select <name>". */
  nameOf?: (item: Item) => string;
  /** The item that is open beside the list. */
  openId?: string | undefined;
  /** Told when a row has the focus, and when it is clicked: then its link is not followed. */
  onOpen?: ((item: Item) => void) | undefined;
  /** A key pressed on a row; answers whether it meant something. */
  onKey?: ((key: string, item: Item) => boolean) | undefined;
}

/** A cell of one column holds the row's link: `<a data-row href=…>`. */
export function Table<Item extends { id: string }>(props: TableProps<Item>): View {
  const { label, columns, items, selection } = props;
  const body = useRef<HTMLTableSectionElement>(null);
  const { reach } = useKeptFocus(body, items);
  return html`<div class="table-box"><table class="table" role="table" aria-label=${label}>
    <thead role="rowgroup"><tr role="row">
      ${selection !== undefined && html`<th class="cell-choose" scope="col" role="columnheader"><${ChooseAll} items=${items} selection=${selection} /></th>`}
      ${columns.map(
        ({ name, title, priority, size = "rest" }) =>
          html`<th key=${name} scope="col" role="columnheader" class="priority-${priority} size-${size} head-${name}">${title === "" ? html`<span class="off-screen">${name}</span>` : title}</th>`,
      )}</tr></thead>
    <tbody role="rowgroup" ref=${body}>${items.map((item) => html`<${Row} key=${item.id} ...${props} item=${item} onReach=${reach} />`)}</tbody>
  </table></div>`;
}

function Row<Item extends { id: string }>({
  columns,
  selection,
  nameOf = ({ id }) => id,
  openId,
  onOpen,
  onKey,
  item,
  onReach,
}: TableProps<Item> & { item: Item; onReach: (id: string) => void }): View {
  const isChosen = selection?.chosen.has(item.id) ?? false;
  const press = (event: KeyboardEvent): void => {
    if (event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented) return;
    const isChoice = event.key.toLowerCase() === "x" && selection !== undefined;
    if (isChoice) selection?.choose(item.id, event.shiftKey);
    if (isChoice || onKey?.(event.key, item)) event.preventDefault();
  };
  // A click opens beside the list, Enter (a click without a button's count) goes to the page.
  const click = (event: MouseEvent): void => {
    const isPlain = event.detail > 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (onOpen === undefined || !isPlain || !isRowLink(event.target)) return;
    event.preventDefault();
    onOpen(item);
  };
  const focus = (event: FocusEvent): void => {
    onReach(item.id);
    if (isRowLink(event.target) && (event.target as Element).matches(":focus-visible")) onOpen?.(item);
  };
  return html`<tr role="row" class=${isChosen ? "chosen" : ""} aria-current=${openId === item.id ? "true" : null}
    onKeyDown=${press} onClick=${click} onFocusIn=${focus}>
    ${
      selection !== undefined &&
      html`<td role="cell" class="cell-choose"><label><input type="checkbox" aria-label="Select ${nameOf(item)}" checked=${isChosen}
        onClick=${(event: MouseEvent) => selection.choose(item.id, event.shiftKey)} /></label></td>`
    }
    ${columns.map(
      ({ name, priority, cell }) =>
        html`<td key=${name} role="cell" class="priority-${priority} cell-${name}">${cell(item)}</td>`,
    )}
  </tr>`;
}

function ChooseAll({ items, selection }: { items: readonly { id: string }[]; selection: Selection }): View {
  const isAll = items.length > 0 && selection.chosen.size === items.length;
  const isSome = selection.chosen.size > 0 && !isAll;
  const words = isAll ? "Select none" : `Select all ${sayNumber(items.length)} shown`;
  return html`<label><input type="checkbox" aria-label=${words} title=${words} checked=${isAll} indeterminate=${isSome}
    onChange=${() => selection.set(isAll ? [] : items.map(({ id }) => id))} /></label>`;
}

function isRowLink(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("a[data-row]") !== null;
}

/** Keeps the focus in the list when the row that had it is there no more. */
function useKeptFocus(
  body: { readonly current: HTMLTableSectionElement | null },
  items: readonly { id: string }[],
): { reach: (id: string) => void } {
  const last = useRef<{ id: string; at: number } | null>(null);
  const listed = useRef(items);
  listed.current = items;
  useLayoutEffect(() => {
    if (last.current === null) return;
    const at = items.findIndex(({ id }) => id === last.current?.id);
    if (at >= 0) {
      last.current.at = at;
      return;
    }
    const links = body.current?.querySelectorAll<HTMLElement>("a[data-row]") ?? [];
    const next = links[Math.min(last.current.at, links.length - 1)];
    last.current = null;
    if (document.activeElement === document.body) next?.focus({ preventScroll: true });
  }, [items]);
  return {
    reach: (id) => {
      last.current = { id, at: listed.current.findIndex((item) => item.id === id) };
    },
  };
}
