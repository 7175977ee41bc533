/**
 * Keyboard shortcuts: `/` searches, j, k and the arrows move in a list, Enter opens the row's link, Escape goes back, g
 * and a letter opens a page, ⌘K opens the palette, and `?` opens the help. No shortcut applies while the user types.
 */
import { makeCell } from "../base/cell.ts";
import { navigate } from "../base/route.ts";

export const helpShown = makeCell(false);
export const paletteShown = makeCell(false);

/** `pages` returns the address of each page by its letter. */
export function startKeyboard(pages: () => ReadonlyMap<string, string>): void {
  let goes = false;
  document.addEventListener("keydown", (event) => {
    if (isFind(event)) return take(event, () => paletteShown.set(!paletteShown.get()));
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
    if (document.querySelector("dialog[open]") !== null) return;
    const target = event.target as HTMLElement;
    if (isWriting(target)) {
      if (event.key === "Escape") target.blur();
      else if (event.key === "ArrowDown" && target.matches("[data-search]")) take(event, () => walk(1));
      return;
    }
    const wentBefore = goes;
    goes = false;
    const page = wentBefore ? pages().get(event.key) : undefined;
    if (page !== undefined) return take(event, () => navigate(page));
    switch (event.key) {
      case "/":
        return take(event, () => document.querySelector<HTMLInputElement>("[data-search]")?.focus());
      case "j":
      case "ArrowDown":
        return walk(1) ? event.preventDefault() : undefined;
      case "k":
      case "ArrowUp":
        return walk(-1) ? event.preventDefault() : undefined;
      case "g":
        goes = true;
        return;
      case "?":
        return take(event, () => helpShown.set(true));
      case "Escape":
        return document.querySelector<HTMLAnchorElement>("a[data-back]")?.click();
    }
  });
}

const isApple = /Mac|iPhone|iPad/.test(navigator.platform);
/** Shortcut of the palette on this machine. */
export const FIND_KEYS = isApple ? ["⌘", "K"] : ["Ctrl", "K"];

/** Reports whether the event is ⌘K, or Ctrl K elsewhere. The shortcut also works while the user types, but not over another dialog. */
function isFind(event: KeyboardEvent): boolean {
  const isHeld = isApple ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  const isFree = paletteShown.get() || document.querySelector("dialog[open]") === null;
  return isHeld && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k" && isFree;
}

function take(event: KeyboardEvent, act: () => unknown): void {
  event.preventDefault();
  act();
}

function isWriting(target: HTMLElement): boolean {
  return target.matches?.("input, textarea, select, [contenteditable]") ?? false;
}

/** Moves the focus to the next row of the page's list. Returns whether the page has one. */
function walk(step: 1 | -1): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>("main [data-row]")];
  if (rows.length === 0) return false;
  const active = rows.indexOf(document.activeElement as HTMLElement);
  const at = active === -1 ? rows.findIndex((row) => row.closest("[aria-current]") !== null) : active;
  const next =
    at === -1 ? (step === 1 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step));
  rows[next]?.focus();
  rows[next]?.closest("tr")?.scrollIntoView({ block: "nearest" });
  return true;
}
