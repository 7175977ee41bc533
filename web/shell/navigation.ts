/** The navigation: one link a room, with what needs attention counted. */
import { html, type View } from "../ground/html.ts";
import { type Place, pagePath } from "../ground/place.ts";
import { Icon } from "../part/icon.ts";
import { useAttention } from "../watch/attention-count.ts";
import { ROOMS, type Room } from "./room.ts";

export function Navigation({ place, room }: { place: Place; room: Room | undefined }): View {
  const attention = useAttention(place);
  return html`<nav aria-label="Rooms"><ul>
    ${ROOMS.map(
      ({
        path,
        title,
        icon,
      }) => html`<li key=${path}><a href=${pagePath(place, path)} aria-current=${path === room?.path ? "page" : null}>
        <${Icon} name=${icon} /><span>${title}</span>
        ${
          path === "attention" &&
          attention > 0 &&
          html`<span class="count" aria-label="${attention} standing">
          ${attention}</span>`
        }
      </a></li>`,
    )}
  </ul></nav>`;
}
