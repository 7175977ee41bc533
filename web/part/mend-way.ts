/** The way to where what stopped an event or a relay is put right, by the code it is told with; nothing where no page does that. */
import { writeQuery } from "../ground/api.ts";
import { html, type View } from "../ground/html.ts";
import { type Place, pagePath } from "../ground/place.ts";

type Room = "mail" | "people" | "settings" | "definition" | "secrets";

const URL_WORDS = "Correct the URL…";
const WAYS: Readonly<Record<string, readonly [room: Room, tab: string, words: string]>> = {
  sender_domain_required: ["mail", "domain", "Set a sender domain"],
  sends_off: ["mail", "server", "Let relays send mail…"],
  mail_not_sent: ["mail", "server", "Look at the mail server"],
  mail_unsubscribed: ["mail", "stops", "See who stopped mail"],
  email_capped: ["settings", "limits", "See the limits"],
  person_not_found: ["definition", "", "Correct the map…"],
  data_invalid: ["definition", "", "Correct its definition…"],
  ref_unresolved: ["definition", "", "Correct the ref…"],
  no_signing_secret: ["secrets", "", "Make a signing secret…"],
  https_only: ["definition", "", URL_WORDS],
  ip_literal: ["definition", "", URL_WORDS],
  own_host: ["definition", "", URL_WORDS],
  redirect: ["definition", "", URL_WORDS],
  private_address: ["definition", "", URL_WORDS],
};

export function MendWay({ place, code, relay }: { place: Place; code: string; relay: string }): View {
  const way = WAYS[code];
  if (way === undefined) return null;
  const [room, tab, words] = way;
  const to =
    room === "definition" || room === "secrets"
      ? pagePath(place, "relays", relay) + writeQuery({ tab: room })
      : pagePath(place, room) + writeQuery({ tab });
  return html`<a class="button" href=${to}>${words}</a>`;
}
