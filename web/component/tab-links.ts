/** The tabs of a page, each a link to its own address; the chosen one says so to ears as well. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { html, type View } from "../base/html.ts";

export interface Tab {
  name: string;
  title: string;
  href: string;
}

export function TabLinks({
  label,
  tabs,
  chosen,
}: {
  label: string;
  tabs: readonly Tab[];
  /** A tab's name. */
  chosen: string;
}): View {
  const row = useRef<HTMLElement>(null);
  // On a narrow screen the row is longer than it, and the chosen one may be out of sight. Before it is seen: no tab moves from under a finger.
  useLayoutEffect(() => {
    const link = row.current?.querySelector<HTMLElement>("[aria-current]");
    if (row.current !== null && link != null)
      row.current.scrollLeft = link.offsetLeft - row.current.offsetLeft - 24;
  }, [chosen]);
  return html`<nav class="tabs" aria-label=${label} ref=${row}>${tabs.map(
    ({ name, title, href }) =>
      html`<a key=${name} class="tab" href=${href} aria-current=${name === chosen ? "page" : null}>${title}</a>`,
  )}</nav>`;
}
