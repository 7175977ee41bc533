/**
 * The address: every page has one, filters stand in its query, and a plain link moves without loading the page again. It never decides
 * what is shown at an address; rooms do.
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

/** Goes to an address of this page; `replace` leaves no way back to the present one. */
export function navigate(to: string, { replace = false } = {}): void {
  if (to === location.pathname + location.search) return;
  const samePath = new URL(to, location.origin).pathname === location.pathname;
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  current.set(read());
  if (!samePath) scrollTo(0, 0);
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
  addEventListener("popstate", () => current.set(read()));
  document.addEventListener("click", (event) => {
    const link = (event.target as Element | null)?.closest?.("a[href]");
    if (!(link instanceof HTMLAnchorElement) || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || link.target !== "") return;
    if (link.origin !== location.origin || link.hash !== "") return;
    event.preventDefault();
    navigate(link.pathname + link.search);
  });
}
