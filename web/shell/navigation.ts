/** Navigation: links by group, with the number of open attention items. */
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import { Icon } from "../component/icon.ts";
import { GROUPS, SECTIONS, type Section } from "./navigation-pages.ts";
import { usePlaces } from "./use-places.ts";

export function Navigation({ place, section }: { place: Place; section: Section | undefined }): View {
  const { places } = usePlaces();
  const attention =
    places?.find(({ app, environment }) => app === place.app && environment === place.environment)?.needs ??
    0;
  const link = ({ path, title, icon }: Section): View => html`<li key=${path}>
    <a href=${pagePath(place, path)} aria-current=${path === section?.path ? "page" : null}>
      <${Icon} name=${icon} /><span>${title}</span>
      ${path === "alerts" && attention > 0 && html`<span class="count" aria-label="${attention} open">${attention}</span>`}
    </a></li>`;
  return html`<nav class="navigation" aria-label="Pages">
    <ul>${SECTIONS.filter(({ group }) => group === null).map(link)}</ul>
    ${Object.entries(GROUPS).map(
      ([key, words]) => html`<div key=${key} class="nav-group"><h2 id="pages-${key}">${words}</h2>
        <ul aria-labelledby="pages-${key}">${SECTIONS.filter(({ group }) => group === key).map(link)}</ul></div>`,
    )}
  </nav>`;
}
