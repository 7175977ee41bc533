/** The title and the icon in the browser's tab: how many things need somebody anywhere, and the page. */
import { makeCell } from "./cell.ts";

export const pageTitle = makeCell("");
export const needCount = makeCell(0);

const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
const plainIcon = icon?.getAttribute("href") ?? "";
/** From here on the icon says "9+". */
const MANY = 10;

function show(): void {
  const count = needCount.get();
  const shown = count > 0 ? `/icon-${Math.min(count, MANY)}.svg` : plainIcon;
  if (icon !== null && icon.getAttribute("href") !== shown) icon.href = shown;
  document.title = `${count > 0 ? `(${count}) ` : ""}${pageTitle.get()} · Relays`;
}

pageTitle.watch(show);
needCount.watch(show);
