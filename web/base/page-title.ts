/** Title and icon of the browser's tab: the page and the number of open attention items in all environments. */
import { makeCell } from "./cell.ts";

export const pageTitle = makeCell("");
export const needCount = makeCell(0);

const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
const plainIcon = icon?.getAttribute("href") ?? "";
/** Count from which the icon shows "9+". */
const MANY = 10;

function show(): void {
  const count = needCount.get();
  const shown = count > 0 ? `/icon-${Math.min(count, MANY)}.svg` : plainIcon;
  if (icon !== null && icon.getAttribute("href") !== shown) icon.href = shown;
  document.title = `${count > 0 ? `(${count}) ` : ""}${pageTitle.get()} · Relays`;
}

pageTitle.watch(show);
needCount.watch(show);
