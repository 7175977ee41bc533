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

export function Nobody({ place, name }: { place: Place; name: string }): View {
  const isAddress = name.includes("@");
  return html`<${EmptyState} icon="person" title=${isAddress ? "Nobody has this address" : "Nobody is named by this"}>
      <p><b><${SafeText} text=${name} limit=${100} /></b> is no person of this environment. ${
        isAddress
          ? html`A person is made when an event’s <code>person_email</code> names the address for the first time, or when they sign in to your app.`
          : html`People are found by address, by id (<code>per_…</code>) and by the store account token that your app files.`
      }</p>
      ${isAddress && html`<${InviteButton} place=${place} email=${name} isPrimary />`}
    <//>
    <${Mentions} place=${place} text=${name} none=${html`No event of the last 30 days mentions it. If something should have come: a call that was refused is in <a href=${pagePath(place, "requests")}>Requests</a>, without its body.`} />`;
}

/** Shows events that contain the text, newest first. */
function Mentions({ place, text, none }: { place: Place; text: string; none: View }): View {
  const q = text.slice(0, MAX_SEARCHED_CHARS);
  const { data } = useLoad<Page<EventItem>>(apiPath(place, "events") + writeQuery({ q, limit: SHOWN }));
  if (data === undefined) return null;
  if (data.items.length === 0 && data.next === null) return html`<p class="quiet nobody-none">${none}</p>`;
  return html`<section class="block" aria-label="Events that mention it"><div class="block-head"><h2>Events that mention it</h2>
      <a href=${pagePath(place, "events") + writeQuery({ q })}>${data.items.length === 0 ? "Look further back" : "All of them"}</a></div>
    <ul class="event-lines framed">${data.items.map((event) => html`<${EventLine} key=${event.id} place=${place} event=${event} />`)}</ul>
  </section>`;
}
