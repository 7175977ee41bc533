/** Page for an email address without a person. It shows the events that mention the address, and how to create the person. */
import type { EventItem, Page } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { EmptyState } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { EventLine } from "./event-line.ts";
import { InviteButton } from "./invite.ts";

const SHOWN = 5;
const MAX_SEARCHED_CHARS = 200;

export function PersonNotFound({ place, name }: { place: Place; name: string }): View {
  const isAddress = name.includes("@");
  return html`<${EmptyState} icon="person" title=${isAddress ? "No person has this address" : "No person found"}>
      <p><b><${SafeText} text=${name} limit=${100} /></b> is not a person of this environment. ${
        isAddress
          ? html`Relay creates a person when an event’s <code>person_email</code> has the address for the first time, or when the person signs in to your app.`
          : html`Search by email address, by id (<code>per_…</code>) or by a store account token.`
      }</p>
      ${isAddress && html`<${InviteButton} place=${place} email=${name} isPrimary />`}
    <//>
    <${Mentions} place=${place} text=${name} none=${html`No event of the last 30 days contains it. If you expect one, look for a rejected request under <a href=${pagePath(place, "requests")}>Requests</a>. Relay does not store its body.`} />`;
}

/** Shows events that contain the text, newest first. */
function Mentions({ place, text, none }: { place: Place; text: string; none: View }): View {
  const q = text.slice(0, MAX_SEARCHED_CHARS);
  const { data } = useLoad<Page<EventItem>>(apiPath(place, "events") + writeQuery({ q, limit: SHOWN }));
  if (data === undefined) return null;
  if (data.items.length === 0 && data.next === null) return html`<p class="quiet nobody-none">${none}</p>`;
  return html`<section class="block" aria-label="Events that contain it"><div class="block-head"><h2>Events that contain it</h2>
      <a href=${pagePath(place, "events") + writeQuery({ q })}>${data.items.length === 0 ? "Search older ones" : "Show all"}</a></div>
    <ul class="event-lines framed">${data.items.map((event) => html`<${EventLine} key=${event.id} place=${place} event=${event} />`)}</ul>
  </section>`;
}
