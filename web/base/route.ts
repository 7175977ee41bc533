/**
 * The address: every page has one, filters and panels stand in its query, and a plain link moves without loading the page again. Whoever
 * comes back, by the browser or by a page's own way back, finds the filter and the place that were left. It never decides what is shown at
 * an address; rooms do.
 */
import { makeCell, useCell } from "./cell.ts";

interface Route {
  path: string;
  query: URLSearchParams;
}

const current = makeCell<Route>(read());

function read(): Route {
  return { path: location.pathname, query: new URLSearchParams(location.search) };
}

export function useRoute(): Route {
  return useCell(current);
}

/** What was left: the query of each path, and how far down each address was. */
const queryLeft = new Map<string, string>();
const scrollLeft = new Map<string, number>();
/** How long what was left is waited for, while the page it was on is loaded. */
const RETURN_MS = 5_000;
/** Where the page stands; the browser has gone on already when it tells of going back. */
let at = here();

function here(): string {
  return location.pathname + location.search;
}

/** What had the focus when another page was gone to, such as the link that led there; null: the page has taken the focus since. */
let leftFrom: Element | null = null;

/** Whether the focus is where it was left when the page was gone to, so that the page may take it; not again until the next one. */
export function mayTakeFocus(): boolean {
  const { activeElement, body } = document;
  const isLeft = activeElement === null || activeElement === body || activeElement === leftFrom;
  leftFrom = null;
  return isLeft;
}

function leave(): void {
  const [path = "", query = ""] = at.split("?", 2);
  queryLeft.set(path, query);
  scrollLeft.set(at, scrollY);
}

/** The address of a list as it was left, with its filter. */
export function asLeft(path: string): string {
  const query = queryLeft.get(path) ?? "";
  return query === "" ? path : `${path}?${query}`;
}

/** Goes to an address of this page; `replace` leaves no way back to the present one, `back` returns to where one was in it. */
export function navigate(to: string, { replace = false, back = false } = {}): void {
  if (to === here()) return;
  const samePath = new URL(to, location.origin).pathname === location.pathname;
  leave();
  if (!samePath) leftFrom = document.activeElement;
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  show();
  if (back) scrollBack();
  else if (!samePath) scrollTo(0, 0);
}

function show(): void {
  at = here();
  current.set(read());
}

/** Scrolls to where the address was left, as soon as what is loaded reaches that far; whoever does something meanwhile stays where they are. */
function scrollBack(): void {
  const [address, y] = [at, scrollLeft.get(at) ?? 0];
  let until = Number.POSITIVE_INFINITY;
  const over = new AbortController();
  const move = (): void => {
    const isWanted = at === address && !over.signal.aborted;
    if (isWanted) scrollTo(0, y);
    if (isWanted && Math.abs(scrollY - y) > 1 && performance.now() < until) requestAnimationFrame(move);
    else over.abort();
  };
  requestAnimationFrame(() => {
    until = performance.now() + RETURN_MS;
    for (const act of ["wheel", "touchstart", "pointerdown", "keydown"])
      addEventListener(act, () => over.abort(), { passive: true, signal: over.signal });
    move();
  });
}

/** Changes the query of the present address; an empty value leaves the address. */
export function setQuery(changes: Readonly<Record<string, string>>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  navigate(location.pathname + (text === "" ? "" : `?${text}`), { replace: true });
}

/** Takes plain clicks on links within the page. */
export function startRouting(): void {
  history.scrollRestoration = "manual";
  addEventListener("popstate", () => {
    leave();
    leftFrom = document.activeElement;
    show();
    scrollBack();
  });
  document.addEventListener("click", (event) => {
    const link = (event.target as Element | null)?.closest?.("a[href]");
    if (!(link instanceof HTMLAnchorElement) || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || link.target !== "") return;
    if (link.hasAttribute("download")) return;
    if (link.origin !== location.origin || link.hash !== "") return;
    event.preventDefault();
    navigate(link.pathname + link.search, { back: link.dataset.back !== undefined });
  });
}
