/** The title in the browser's tab: how many things need somebody anywhere, and the page. */
import { makeCell } from "./cell.ts";

export const pageTitle = makeCell("");
export const needCount = makeCell(0);

function show(): void {
  const count = needCount.get();
  document.title = `${count > 0 ? `(${count}) ` : ""}${pageTitle.get()} · Relays`;
}

pageTitle.watch(show);
needCount.watch(show);
