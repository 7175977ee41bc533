/**
 * Table of a list: columns by priority, a sticky head and rows that are links. j, k and the arrows move between rows
 * (keyboard.ts), Enter opens, x selects, and shift-x selects a range. The focused row keeps the focus during a refresh.
 * If it disappears, the row at its position takes the focus.
 */
import { useLayoutEffect, useRef } from "preact/hooks";
import { formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import type { Selection } from "./selection.ts";

export interface Column<Item> {
  /** Name of the column. Its cells have the class `cell-<name>`. */
  name: string;
  title: string;
  /** 1: always shown, in the first line of a narrow row; 2: always shown, in its second line; 3: shown from 720 px; 4: shown from 960 px. */
  priority: 1 | 2 | 3 | 4;
  /** Width: the remaining space, an address, a state or time, a name, or a number. */
  size?: "rest" | "address" | "short" | "name" | "number";
  cell: (item: Item) => View;
}

interface TableProps<Item extends { id: string }> {
  /** Name of the list for screen readers. */
  label: string;
  columns: readonly Column<Item>[];
  items: readonly Item[];
  /** Selected rows; absent: rows cannot be selected. */
  selection?: Selection | undefined;
  /** Returns the name of an item in "Select <name>". */
  nameOf?: (item: Item) => string;
  /** Id of the item that is open next to the list. */
  openId?: string | undefined;
  /** Runs when a row gets the focus or a click. A click then does not follow the row's link. */
  onOpen?: ((item: Item) => void) | undefined;
  /** Handles a key that is pressed on a row. Returns whether the key had an effect. */
  onKey?: ((key: string, item: Item) => boolean) | undefined;
}

/** Renders the table. One cell of each row must hold the row's link: `<a data-row href=…>`. */
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
  // A click opens the item next to the list. Enter, which is a click with `detail` 0, opens its page.
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
  const words = isAll ? "Select none" : `Select all ${formatNumber(items.length)} shown`;
  return html`<label><input type="checkbox" aria-label=${words} title=${words} checked=${isAll} indeterminate=${isSome}
    onChange=${() => selection.set(isAll ? [] : items.map(({ id }) => id))} /></label>`;
}

function isRowLink(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("a[data-row]") !== null;
}

/** Keeps the focus in the list when the focused row disappears. */
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
