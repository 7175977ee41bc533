/** The tabs of a page, each a link to its own address; the chosen one says so to ears as well. */
import { html, type View } from "../ground/html.ts";

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
  return html`<nav class="tabs" aria-label=${label}>${tabs.map(
    ({ name, title, href }) =>
      html`<a key=${name} class="tab" href=${href} aria-current=${name === chosen ? "page" : null}>${title}</a>`,
  )}</nav>`;
}
