/**
 * Router of the page. Every page has an address, the query holds filters and panels, and a plain link loads nothing
 * again. Going back restores the filter and the scroll position. Modules decide what an address shows.
 */
import { useLayoutEffect } from "preact/hooks";
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

/** State of left pages: the query of each path and the scroll position of each address. */
const queryLeft = new Map<string, string>();
const scrollLeft = new Map<string, number>();
/** Longest wait for a left scroll position while its page loads. */
const RETURN_MS = 5_000;
/** Address of the shown page. During `popstate` the browser's address is already the next one. */
let at = currentAddress();

function currentAddress(): string {
  return location.pathname + location.search;
}

/** Element that had the focus when the user left the page, such as the link; null once the new page took the focus. */
let leftFrom: Element | null = null;

/** Reports whether the focus has not moved since the navigation, so that the new page may take it. Forgets the element that the user left. */
export function mayTakeFocus(): boolean {
  const { activeElement, body } = document;
  const isLeft = activeElement === null || activeElement === body || activeElement === leftFrom;
  leftFrom = null;
  return isLeft;
}

const LEAVE_QUESTION =
  "Relay shows this value only once, and you did not copy it. If you leave, the value is lost. Leave the page?";

/** Handlers of `beforeunload`, one for each open guard. */
const guards = new Set<(event: BeforeUnloadEvent) => void>();

/** Makes the dashboard ask before the user leaves the page, for example by a link, by Back or by closing the tab. */
export function useLeaveGuard(isOn: boolean): void {
  useLayoutEffect(() => {
    if (!isOn) return;
    const guard = (event: BeforeUnloadEvent): void => {
      if (guards.has(guard)) event.preventDefault();
    };
    guards.add(guard);
    addEventListener("beforeunload", guard);
    return () => {
      guards.delete(guard);
      removeEventListener("beforeunload", guard);
    };
  }, [isOn]);
}

/** Asks the user if a guard is on. After consent no guard asks again. */
export function mayLeave(): boolean {
  if (guards.size > 0 && !confirm(LEAVE_QUESTION)) return false;
  guards.clear();
  return true;
}

function leave(): void {
  const [path = "", query = ""] = at.split("?", 2);
  queryLeft.set(path, query);
  scrollLeft.set(at, scrollY);
}

/** Returns the address of a list with the filter that the user left. */
export function asLeft(path: string): string {
  const query = queryLeft.get(path) ?? "";
  return query === "" ? path : `${path}?${query}`;
}

/**
 * Opens an address of the dashboard, unless the user decides to stay. `replace` adds no history entry. `back` restores the scroll position.
 * `isConfirmed`: the page does not ask, because the user confirmed or stays on the page.
 */
export function navigate(to: string, { replace = false, back = false, isConfirmed = false } = {}): void {
  if (to === currentAddress() || (!isConfirmed && !mayLeave())) return;
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
  at = currentAddress();
  current.set(read());
}

/** Restores the scroll position once the loaded content is long enough. Any input of the user cancels it. */
function scrollBack(): void {
  const [address, y] = [at, scrollLeft.get(at) ?? 0];
  let until = Number.POSITIVE_INFINITY;
  const ended = new AbortController();
  const move = (): void => {
    const isWanted = at === address && !ended.signal.aborted;
    if (isWanted) scrollTo(0, y);
    if (isWanted && Math.abs(scrollY - y) > 1 && performance.now() < until) requestAnimationFrame(move);
    else ended.abort();
  };
  requestAnimationFrame(() => {
    until = performance.now() + RETURN_MS;
    for (const act of ["wheel", "touchstart", "pointerdown", "keydown"])
      addEventListener(act, () => ended.abort(), { passive: true, signal: ended.signal });
    move();
  });
}

/** Changes the query of the current address. An empty value removes its field. */
export function setQuery(changes: Readonly<Record<string, string>>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  navigate(location.pathname + (text === "" ? "" : `?${text}`), { replace: true, isConfirmed: true });
}

/** Handles plain clicks on links of the dashboard. */
export function startRouting(): void {
  history.scrollRestoration = "manual";
  addEventListener("popstate", () => {
    if (currentAddress() !== at && !mayLeave()) return history.pushState(null, "", at);
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
    const { back, confirmed } = link.dataset;
    navigate(link.pathname + link.search, { back: back !== undefined, isConfirmed: confirmed !== undefined });
  });
}
