/** The navigation: one link a room by groups, with what needs attention counted. */
import { html, type View } from "../ground/html.ts";
import { type Place, pagePath } from "../ground/place.ts";
import { Icon } from "../part/icon.ts";
import { useAttention } from "../watch/attention-count.ts";
import { GROUPS, ROOMS, type Room } from "./room.ts";

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
