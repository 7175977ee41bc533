/** Navigation: links by group, with the number of open attention items. */

import { useAttention } from "../alert/attention-count.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import { Icon } from "../component/icon.ts";
import { GROUPS, ROOMS, type Room } from "./navigation-pages.ts";

export function Navigation({ place, room }: { place: Place; room: Room | undefined }): View {
  const attention = useAttention(place);
  const link = ({ path, title, icon }: Room): View => html`<li key=${path}>
    <a href=${pagePath(place, path)} aria-current=${path === room?.path ? "page" : null}>
      <${Icon} name=${icon} /><span>${title}</span>
      ${path === "attention" && attention > 0 && html`<span class="count" aria-label="${attention} standing">${attention}</span>`}
    </a></li>`;
  return html`<nav class="rooms" aria-label="Rooms">
    <ul>${ROOMS.filter(({ group }) => group === null).map(link)}</ul>
    ${Object.entries(GROUPS).map(
      ([key, words]) => html`<div key=${key} class="nav-group"><h2 id="rooms-${key}">${words}</h2>
        <ul aria-labelledby="rooms-${key}">${ROOMS.filter(({ group }) => group === key).map(link)}</ul></div>`,
    )}
  </nav>`;
}
