/** Tabs of a page. Each is a link, and the current one is marked for screen readers. */
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
  /** Name of the current tab. */
  chosen: string;
}): View {
  const row = useRef<HTMLElement>(null);
  // Scrolls the current tab into view, because the row can be wider than a narrow screen. It runs before painting, so
  // that no tab moves under a finger.
  useLayoutEffect(() => {
    const show = (): void => {
      const link = row.current?.querySelector<HTMLElement>("[aria-current]");
      if (row.current !== null && link != null)
        row.current.scrollLeft = link.offsetLeft - row.current.offsetLeft - 24;
    };
    show();
    addEventListener("resize", show);
    return () => removeEventListener("resize", show);
  }, [chosen]);
  return html`<nav class="tabs" aria-label=${label} ref=${row}>${tabs.map(
    ({ name, title, href }) =>
      html`<a key=${name} class="tab" href=${href} aria-current=${name === chosen ? "page" : null}>${title}</a>`,
  )}</nav>`;
}
