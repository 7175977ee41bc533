/**
 * Link to the page that fixes the cause of a failed event or relay, by error code. Errors without such a page, such as
 * an unreachable receiver, show nothing.
 */
import type { Permission } from "../../src/platform/account/permission.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";

/** Failure with its error code. */
interface Failed {
  code: string;
  /** Status of the receiver's response. */
  status?: number | null | undefined;
  /** Id of the event's person. */
  person?: string | null | undefined;
}

type Target = "mail" | "people" | "settings" | "catalog" | "definition" | "secrets";
type Way = readonly [target: Target, tab: string, words: string];

const DEFINITION: Way = ["definition", "", "Edit the definition…"];
const URL: Way = ["definition", "", "Edit the URL…"];
const REF: Way = ["definition", "", "Edit the ref…"];
const SIGNING: Way = ["secrets", "", "Open the signing secret"];

/** A test checks that every code exists in the service. */
export const FIX_WAYS: Readonly<Record<string, Way>> = {
  sender_domain_required: ["mail", "domain", "Set a sender domain"],
  sends_off: ["mail", "server", "Turn on mail from relays…"],
  mail_not_sent: ["mail", "server", "Open the mail server"],
  mail_refused: ["people", "", "Open person"],
  mail_unsubscribed: ["mail", "stops", "See who stopped mail"],
  mail_empty: DEFINITION,
  email_capped: ["settings", "limits", "See the limits"],
  person_not_found: ["definition", "", "Edit the map…"],
  person_suspended: ["people", "", "Open person"],
  data_invalid: DEFINITION,
  unsigned_event: DEFINITION,
  trigger_changed: DEFINITION,
  ref_unresolved: REF,
  ref_used: REF,
  entitlement_unknown: ["catalog", "access", "See the access slugs"],
  product_not_sold_here: ["catalog", "", "Change what sells it…"],
  plan_not_sold_here: ["catalog", "plans", "Change what sells it…"],
  no_signing_secret: ["secrets", "", "Create a signing secret…"],
  https_only: URL,
  ip_literal: URL,
  own_host: URL,
  redirect: URL,
  unresolvable: URL,
  private_address: URL,
};

/** Fixes by the receiver's status. These statuses are permanent, so a retry fails too. */
const BY_STATUS: Readonly<Record<number, Way>> = { 401: SIGNING, 403: SIGNING, 404: URL, 405: URL, 410: URL };

function wayOf({ code, status }: Failed): Way | undefined {
  return code === "http_error" ? BY_STATUS[status ?? 0] : FIX_WAYS[code];
}

/** Returns the permission without which the page does not help, or undefined for a page that shows the cause. */
function needsOf(target: Target, tab: string): Permission | undefined {
  if (target === "secrets" || tab === "domain" || tab === "server") return "edit_settings";
  return target === "definition" || (target === "catalog" && tab !== "access")
    ? "edit_definitions"
    : undefined;
}

/** Link that opens the dialog for the receiver secret of a relay. */
export function PasteSecretLink({ place, relay }: { place: Place; relay: string }): View {
  const to = pagePath(place, "relays", relay) + writeQuery({ tab: "secrets", change: "paste" });
  return html`<a data-needs="edit_settings" class="button" href=${to}>Paste its secret…</a>`;
}

export function FixWay({
  place,
  relay,
  ...failed
}: Failed & {
  place: Place;
  relay: string;
}): View {
  const way = wayOf(failed);
  if (way === undefined) return null;
  const [target, tab, words] = way;
  const { person = null } = failed;
  if (target === "people" && person === null) return null;
  const to =
    target === "definition" || target === "secrets"
      ? pagePath(place, "relays", relay) + writeQuery({ tab: target })
      : target === "people"
        ? pagePath(place, "people", person ?? "")
        : pagePath(place, target) + writeQuery({ tab });
  return html`<a data-needs=${needsOf(target, tab)} class="button" href=${to}>${words}</a>`;
}
