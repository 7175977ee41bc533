/**
 * The registry of codes that are not refusals: an action's result, or the reason why an event ended. Results and reasons use only these codes and
 * those of refusals. The error pages and the tests read it. Source: the specification's "Action-level errors", decisions, sections 3 and 5.
 */

import { MAIL_TROUBLES, TROUBLES } from "./problem-code.ts";
import { REFUSALS, type RefusalCode } from "./refusal-code.ts";
import { WARNINGS } from "./warning-code.ts";

export const RESULTS = {
  person_not_found: {
    when: "The event's person key resolved to nobody, or an action needs a person and the event has none.",
    todo: "Compare the map's person key with what the event carries; file the token (relay people add-token) or add the person (relay people invite), in the dashboard as well, then replay the event with relay events replay.",
  },
  person_erased: {
    when: "The event's person was erased after the event arrived.",
    todo: "Nothing: it never runs again, and an erased address never comes back by itself; a new event makes a new person.",
  },
  collection_missing: {
    when: "A record was to be written into a collection that does not exist here.",
    todo: "Create the collection in the dashboard or with relay catalog set collection, or name one that exists, then replay the event.",
  },
  product_unknown: {
    when: "The action names a product that does not exist here.",
    todo: "Create the product in the dashboard or with relay catalog set product, or name one that exists, then replay the event.",
  },
  plan_unknown: {
    when: "The action names a plan that does not exist here.",
    todo: "Create the plan in the dashboard or with relay catalog set plan, or name one that exists, then replay the event.",
  },
  product_not_sold_here: {
    when: "The product is not sold through the relay that was to fulfil it.",
    todo: "Name that relay in the product's soldThrough, in the dashboard or with relay catalog set product, then replay the event.",
  },
  plan_not_sold_here: {
    when: "The plan is not sold through the relay that was to grant it.",
    todo: "Name that relay in the plan's soldThrough, in the dashboard or with relay catalog set plan, then replay the event.",
  },
  ref_unresolved: {
    when: "The action's ref resolves to no text or number on this event, or to more than 200 characters.",
    todo: "Name a path to the payment's identifier that every such event carries, then replay the event.",
  },
  purchase_missing: {
    when: "Nothing was fulfilled under the ref of this refund yet.",
    todo: "Nothing if the payment's event is still to come: the refund is tried again; else compare the refs of the two relays.",
  },
  other_product: {
    when: "The ref of this refund belongs to the same person's payment for something else, so nothing was taken back here.",
    todo: "Nothing if another relay refunds that product. If none does, let the refund relays match the product as the guide shows, or take it back in the dashboard or with relay receipts refund.",
  },
  purchase_not_by_relay: {
    when: "The purchase under this ref was not fulfilled by a relay, and a relay refunds no other.",
    todo: "Refund it where it was paid, and take back what it gave in the dashboard or with relay receipts refund.",
  },
  billed_by_processor: {
    when: "The person's subscription is billed by the card processor, which a relay never changes.",
    todo: "End it at the processor, and here in the dashboard or with relay people end; to grant another plan, replay the event afterwards.",
  },
  sends_off: {
    when: "The owner's sends switch is off, so no mail leaves.",
    todo: "Turn it on with relay settings set mail.sends on (PUT …/settings); the event is tried again.",
  },
  sender_domain_required: {
    when: "The environment has no verified sender domain, from which alone mail goes.",
    todo: "Set a sender domain with relay domain set and have it verified with relay domain verify (PUT …/sender-domain, POST …/sender-domain/verify); the actions after it ran, and the mail is tried again.",
  },
  email_capped: {
    when: "A cap on mails is reached: of the app in an hour, or of the person in a day.",
    todo: "Wait, the event is tried again; the caps can be raised in the server's configuration.",
  },
  mail_not_sent: {
    when: "The mail could not be handed over to the mail server.",
    todo: "Nothing at once, it is tried again; the message and relay emails list name the class of what went wrong.",
  },
  mail_refused: {
    when: "The mail server refused the mail for good.",
    todo: "Look at the person's address and at what the mail server refuses; replay the event once it is mended.",
  },
  mail_unsubscribed: {
    when: "The person wants no more mails of kind event from this app, so none was sent.",
    todo: "Nothing: it is the person's choice; what they must know goes as kind account. Where they ask for it again, allow it in the dashboard or with relay people allow-mail.",
  },
  mail_empty: {
    when: "Nothing is left of the mail's subject or text on this event.",
    todo: "Name paths that every such event carries, or add words of your own, then replay the event.",
  },
  no_signing_secret: {
    when: "The relay has no signing secret to sign its call with.",
    todo: "Make one with relay relays rotate-secret <name> --signing or on the relay's page, then replay the event.",
  },
  http_error: {
    when: "The called URL answered with another status than 2xx.",
    todo: "Look at the answer on the event; the call is tried again with the same id.",
  },
  redirect: {
    when: "The called URL answered with a redirect, which is never followed.",
    todo: "Name the final address in url.",
  },
  https_only: {
    when: "The called URL is not https.",
    todo: "Write an https address; http to localhost works in local development alone.",
  },
  ip_literal: {
    when: "The called URL names an IP address.",
    todo: "Use a host name.",
  },
  own_host: {
    when: "The called URL is this service's own host.",
    todo: "Call a server of yours instead.",
  },
  unresolvable: {
    when: "The called URL's host has no address, or no name server answered for it; the message says which.",
    todo: "Check its spelling and its DNS records, and where nobody answered the network and name servers of the machine; the call is tried again.",
  },
  private_address: {
    when: "The called URL's host resolves to an address that is not public.",
    todo: "Call a public host, or have the operator allow this one with --allow-private.",
  },
  timeout: {
    when: "The called URL did not answer within 10 seconds.",
    todo: "Answer first and do long work afterwards; the call is tried again with the same id.",
  },
  connection_failed: {
    when: "No connection to the called URL's host came about, or it broke before the answer was whole.",
    todo: "Check that the server runs and answers there, whole and in HTTP; the call is tried again with the same id.",
  },
  tls_failed: {
    when: "No trusted connection to the called URL's host came about.",
    todo: "Check its certificate, its chain and its host name; the call is tried again. Where an authority of your own signed it, start the server with NODE_EXTRA_CA_CERTS=/path/to/authority.pem.",
  },
  other_person: {
    when: "The action did its work for another person than the event is about now, as after its map was corrected, so it was not done again.",
    todo: "Nothing if the earlier person was right; else replay the event and choose this action: its box in the dashboard, or relay events replay --run. A purchase then moves to the new person.",
  },
  same_person: {
    when: "A replay of many done events left this one out, because its work was done for the person whom it is about.",
    todo: "Nothing: of done events, such a replay takes only those whose work was done for another person.",
  },
  edited_after: {
    when: "The action was edited after it had done its work on this event, so it was not done again.",
    todo: "Nothing if the earlier work was right; else replay the event and choose this action: its box in the dashboard, or relay events replay --run.",
  },
  trigger_changed: {
    when: "The relay's trigger became another kind while the event waited.",
    todo: "Handle the event by hand, or give the relay its trigger back and replay the event.",
  },
  relay_deleted: {
    when: "The relay was deleted while the event waited.",
    todo: "Make a relay of that name again, then replay the event.",
  },
  missed: {
    when: "The schedule's tick was missed while the service was down; only the newest missed one runs late.",
    todo: "Replay the event if it is still wanted.",
  },
  interrupted: {
    when: "The service stopped in the middle of an attempt. The event runs again, unless the attempt was its last.",
    todo: "Look at what was done, then replay the event.",
  },
} as const satisfies Record<string, { when: string; todo: string }>;

/** The code of a result, or the reason of an event. */
export type ResultCode = RefusalCode | keyof typeof RESULTS;

/**
 * Explains any code of the service: of a refusal, a result, a problem, an alert, a request, a warning or a mail. Returns null for an unknown code.
 * `status` is null for a code that is not a refusal.
 */
export function explainCode(code: string): { status: number | null; when: string; todo: string } | null {
  const refusal = Object.hasOwn(REFUSALS, code) ? REFUSALS[code as RefusalCode] : null;
  for (const codes of [RESULTS, TROUBLES, WARNINGS, MAIL] as Readonly<Record<string, Explained>>[]) {
    const entry = Object.hasOwn(codes, code) ? codes[code] : undefined;
    if (entry === undefined) continue;
    if (refusal === null) return { status: null, ...entry };
    const as = codes === TROUBLES ? "As an alert" : codes === WARNINGS ? "As a warning" : "Of a mail";
    return {
      status: refusal.status,
      when: `${refusal.when} ${as}: ${entry.when}`,
      todo: `${refusal.todo} ${as}: ${entry.todo}`,
    };
  }
  return refusal;
}

/** Lists every code of the service in alphabetical order. */
export function listCodes(): string[] {
  const all = [REFUSALS, RESULTS, TROUBLES, WARNINGS, MAIL].flatMap((codes) => Object.keys(codes));
  return [...new Set(all)].sort();
}

interface Explained {
  when: string;
  todo: string;
}

const SEE_MAILS =
  "See with relay emails list what became of it: a mail that failed goes with a replay of its event (relay events replay), one whose end is unknown with relay emails resend.";

const MAIL = Object.fromEntries(
  Object.entries(MAIL_TROUBLES).map(([code, when]) => [code, { when, todo: SEE_MAILS }]),
);
