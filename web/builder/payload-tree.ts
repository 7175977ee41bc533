/**
 * Payload as a tree. The arrow keys move between its rows, Enter and a click open the uses of a value, and the search lists matching values. Names
 * that the map gives to a value are next to it.
 */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatCount, formatNumber } from "../base/count-words.ts";
import { ExactNumber, formatValue, type Json } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import { Icon } from "../component/icon.ts";
import { escapeTricky } from "../component/safe-text.ts";
import { findRows, isBranch, listParts, listRows, type PayloadRow } from "./payload-row.ts";

const VALUE_CHARS = 120;
const MORE_FACTOR = 4;
/** Deepest level with its own indent in the style sheet. */
const MAX_INDENT = 10;
/** Number of values from which the tree offers its search. */
const SEARCH_FROM = 12;

export function PayloadTree({
  value,
  label,
  mapped,
  menuFor,
}: {
  value: Json;
  label: string;
  /** Names of the map by path. */
  mapped: ReadonlyMap<string, readonly string[]>;
  /** Returns the menu of a row. `close` closes it. It returns the focus to the row, unless the user moved it elsewhere. */
  menuFor: (row: PayloadRow, close: (isLeft?: boolean) => void) => View;
}): View {
  const [open, setOpen] = useState<ReadonlyMap<string, boolean>>(new Map());
  const [shown, setShown] = useState<ReadonlyMap<string, number>>(new Map());
  const [words, setWords] = useState("");
  const [active, setActive] = useState("");
  const [menu, setMenu] = useState<string | null>(null);
  const tree = useRef<HTMLDivElement>(null);
  const wantsFocus = useRef(false);
  const found = useMemo(() => (words === "" ? null : findRows(value, words)), [value, words]);
  const rows = useMemo(() => found?.rows ?? listRows(value, { open, shown }), [value, open, shown, found]);
  const at = Math.max(
    0,
    rows.findIndex(({ key }) => key === active),
  );
  useLayoutEffect(() => {
    if (!wantsFocus.current) return;
    wantsFocus.current = false;
    tree.current?.querySelectorAll<HTMLElement>("[role=treeitem]")[at]?.focus();
  });
  const go = (index: number): void => {
    const row = rows[Math.min(Math.max(index, 0), rows.length - 1)];
    if (row === undefined) return;
    wantsFocus.current = true;
    setActive(row.key);
  };
  const fold = (row: PayloadRow, isOpen: boolean): void => setOpen(new Map(open).set(row.key, isOpen));
  const act = (row: PayloadRow): void => {
    setActive(row.key);
    if (row.isMore) {
      const key = row.key.replace(/ more$/, "");
      const count = rows.filter(({ steps, level }) => level === row.level && isBelow(row, steps)).length;
      setShown(new Map(shown).set(key, count * MORE_FACTOR));
    } else if (row.isOpen !== null) fold(row, !row.isOpen);
    else setMenu(menu === row.key ? null : row.key);
  };
  const close = (isLeft = false): void => {
    setMenu(null);
    wantsFocus.current = !isLeft;
  };
  useLayoutEffect(() => {
    if (menu === null) return;
    const point = (event: PointerEvent): void => {
      if (!(event.target instanceof Element && event.target.closest(".payload-menu-place, dialog")))
        setMenu(null);
    };
    document.addEventListener("pointerdown", point);
    return () => document.removeEventListener("pointerdown", point);
  }, [menu]);
  const press = (event: KeyboardEvent): void => {
    const row = rows[at];
    if (row === undefined || event.metaKey || event.ctrlKey || event.altKey) return;
    // A menu handles its own keys.
    if ((event.target as HTMLElement).getAttribute("role") !== "treeitem") return;
    const keys: Readonly<Record<string, () => void>> = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at - 1),
      Home: () => go(0),
      End: () => go(rows.length - 1),
      ArrowRight: () => (row.isOpen === false ? fold(row, true) : row.isOpen === true && go(at + 1)),
      ArrowLeft: () => (row.isOpen === true ? fold(row, false) : go(parentOf(rows, at))),
      Enter: () => act(row),
      " ": () => act(row),
    };
    const run = keys[event.key];
    if (run === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    run();
  };
  const isLarge =
    words !== "" ||
    rows.length >= SEARCH_FROM ||
    rows.some((row) => row.isOpen === false && sizeOf(row.value) >= SEARCH_FROM);
  return html`<div class="payload">
    ${
      isLarge &&
      html`<label class="search"><${Icon} name="search" size=${14} /><input type="search" aria-label="Find in the payload" placeholder="Find a name or a value" value=${words} autocomplete="off" spellcheck=${false}
        onInput=${(event: InputEvent) => setWords((event.target as HTMLInputElement).value)} /></label>`
    }
    ${found !== null && html`<p class="quiet" role="status">${found.rows.length === 0 ? "Nothing found." : `${formatNumber(found.rows.length)}${found.isMore ? " and more" : ""} found.`}</p>`}
    ${
      rows.length > 0 &&
      html`<div ref=${tree} class="payload-tree" role="tree" aria-label=${label} onKeyDown=${press}>
      ${rows.map(
        (
          row,
          index,
        ) => html`<${Row} key=${row.key} row=${row} isFound=${found !== null} isActive=${index === at} names=${mapped.get(row.steps.join("."))}
          onAct=${() => act(row)} menu=${menu === row.key && menuFor(row, close)} />`,
      )}</div>`
    }
  </div>`;
}

/** Reports whether the steps are those of a part of the row's branch. */
function isBelow({ steps: branch }: PayloadRow, steps: readonly unknown[]): boolean {
  return steps.length === branch.length + 1 && branch.every((step, at) => step === steps[at]);
}

/** Returns the index of the row that contains the row at the index, or the same index. */
function parentOf(rows: readonly PayloadRow[], at: number): number {
  const level = rows[at]?.level ?? 1;
  for (let above = at - 1; above >= 0; above--) if ((rows[above]?.level ?? 0) < level) return above;
  return at;
}

function Row({
  row,
  isFound,
  isActive,
  names = [],
  onAct,
  menu,
}: {
  row: PayloadRow;
  /** True for a result of the search, which shows its whole path. */
  isFound: boolean;
  isActive: boolean;
  names?: readonly string[] | undefined;
  onAct: () => void;
  menu: View;
}): View {
  const { steps, value, level, position, siblings, isOpen, isMore } = row;
  // The content of the row is its accessible name.
  const name = isFound ? steps.join(".") : String(steps.at(-1) ?? "body");
  const text = isMore ? `Show more of ${formatNumber(sizeOf(value))}` : formatRow(value);
  const indent = `payload-level-${Math.min(level, MAX_INDENT)}`;
  return html`<div role="treeitem" class="payload-row ${indent}" aria-level=${level} aria-posinset=${position} aria-setsize=${siblings}
    aria-expanded=${isOpen === null ? undefined : String(isOpen)} aria-haspopup=${isOpen === null && !isMore ? "menu" : undefined}
    tabindex=${isActive ? 0 : -1} onClick=${onAct}>
    <div class="payload-line"><span class="json-turn" aria-hidden="true">${isOpen === null ? "" : isOpen ? "▾" : "▸"}</span>
      <span class="payload-text">${
        isMore
          ? html`<span class="link">${text}</span>`
          : html`<span class=${typeof steps.at(-1) === "number" && !isFound ? "json-index" : "json-name"}>${escapeTricky(cut(name))}</span><span class="json-mark">: </span><span class=${classOf(value)}>${escapeTricky(text)}</span>${names.map((one) => html`<span key=${one}><span class="off-screen">mapped as</span> <span class="payload-name">${one}</span></span>`)}`
      }</span></div>
    ${menu !== false && html`<div class="payload-menu-place" onClick=${(event: MouseEvent) => event.stopPropagation()}>${menu}</div>`}
  </div>`;
}

function sizeOf(value: Json): number {
  return isBranch(value) ? listParts(value).length : 0;
}

function formatRow(value: Json): string {
  if (isBranch(value)) {
    const isList = Array.isArray(value);
    const count = formatCount(listParts(value).length, isList ? "item" : "field");
    return isList ? `[${count}]` : `{${count}}`;
  }
  const text = cut(formatValue(value));
  return typeof value === "string" ? `"${text}"` : text;
}

function classOf(value: Json): string {
  if (isBranch(value)) return "json-mark";
  if (typeof value === "string") return "json-text";
  return typeof value === "number" || value instanceof ExactNumber ? "json-number" : "json-word";
}

function cut(text: string): string {
  return text.length > VALUE_CHARS ? `${text.slice(0, VALUE_CHARS)}…` : text;
}
