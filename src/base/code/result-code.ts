/**
 * The registry of codes that are not refusals: the result of an action, or the reason why an event ended. Results and reasons use only these codes
 * and those of refusals. Source: the specification's "Action-level errors", decisions, sections 3 and 5.
 */
import type { CodeEntry } from "./code-entry.ts";
import type { RefusalCode } from "./refusal-code.ts";

const RETRIED = "Relay retries the event automatically.";
const CALLED_AGAIN = "Relay retries the call automatically, with the same id.";

export const RESULTS = {
  person_not_found: {
    what: "Relay found no person for the event.",
    why: "No person matches the person key of the map, or an action needs a person and the event has none.",
    todo: "Compare the map's person key with the values in the event. Correct the map, file the token (`relay people add-token`) or add the person (`relay people invite`). Then replay the event (`relay events replay`).",
  },
  person_erased: {
    what: "The event's person was erased after the event arrived, so the event never runs.",
    todo: "Do nothing. A new event of this address creates a new person.",
  },
  customer_unknown: {
    what: "Relay does not know yet which person has the event's customer ID.",
    why: "The event that has both the person and this customer ID has not arrived yet, or the two relays use different spaces.",
    todo: "Do nothing if that event is still to come. Otherwise link the ID by hand (`relay people link`), or compare `trigger.customer` of the two relays.",
    next: RETRIED,
  },
  collection_missing: {
    what: "The action writes a record into a collection that does not exist.",
    todo: "Create the collection (`relay catalog set collection`), or name one that exists. Then replay the event.",
  },
  product_unknown: {
    what: "The action names a product that does not exist.",
    todo: "Create the product (`relay catalog set product`), or name one that exists. Then replay the event.",
  },
  plan_unknown: {
    what: "The action names a plan that does not exist.",
    todo: "Create the plan (`relay catalog set plan`), or name one that exists. Then replay the event.",
  },
  product_not_sold_here: {
    what: "The product is not sold through this relay.",
    todo: "Name the relay in the product's `soldThrough` (`relay catalog set product`). Then replay the event.",
  },
  plan_not_sold_here: {
    what: "The plan is not sold through this relay.",
    todo: "Name the relay in the plan's `soldThrough` (`relay catalog set plan`). Then replay the event.",
  },
  ref_unresolved: {
    what: "The action's `ref` resolves to no text or number in this event, or to more than 200 characters.",
    todo: "Name a path to the payment's identifier that every such event has. Then replay the event.",
  },
  purchase_missing: {
    what: "Relay knows no payment with the ref of this refund.",
    why: "The event of the payment has not arrived yet, or the two relays use different refs.",
    todo: "Compare the refs of the two relays. Do nothing if the event of the payment is still to come.",
    next: RETRIED,
  },
  other_product: {
    what: "The ref of this refund belongs to the person's payment for another product, so Relay refunded nothing.",
    todo: "Do nothing if another relay refunds that product. Otherwise match the product in `when` of the refund relays, or refund it by hand (`relay receipts refund`).",
  },
  purchase_not_by_relay: {
    what: "No relay fulfilled the purchase under this ref, so a relay cannot refund it.",
    todo: "Refund the payment where it was paid, and record the refund (`relay receipts refund`).",
  },
  billed_by_processor: {
    what: "The card processor bills the person's subscription, and a relay never changes such a subscription.",
    todo: "End it at the processor and in Relay (`relay people end`). To grant another plan, replay the event afterwards.",
  },
  sends_off: {
    what: "Relays may not send mail in this environment, because its switch for mail is off.",
    todo: "Switch mail on (`relay settings set mail.sends on`).",
    next: RETRIED,
  },
  sender_domain_required: {
    title: "Mail needs a sender domain",
    kinds: ["result", "alert"],
    what: "The environment has no verified sender domain, so Relay cannot send the mail.",
    todo: "Set a sender domain (`relay domain set`) and verify it (`relay domain verify`).",
    next: "The event's other actions run. Relay retries the mail automatically. The alert resolves when no event waits for this any more.",
  },
  email_capped: {
    what: "A limit for mail is reached: of the app in an hour, or of the person in a day.",
    todo: "Wait. You can raise the limits in the server's configuration.",
    next: RETRIED,
  },
  mail_not_sent: {
    what: "Relay could not hand the mail over to the mail server.",
    todo: "Read the reason in the message or with `relay emails list`, and fix it.",
    next: RETRIED,
  },
  mail_refused: {
    what: "The mail server permanently rejected the mail.",
    todo: "Check the person's address and the mail server's reply, and fix the cause. Then replay the event.",
  },
  mail_unsubscribed: {
    what: "The person unsubscribed from mail of the kind `event`, so Relay sent none.",
    todo: "Do nothing: this is the person's choice. Send mail that they must get with the kind `account`. If they ask for event mail again, allow it (`relay people allow-mail`).",
  },
  mail_empty: {
    what: "The subject or text of the mail is empty for this event.",
    why: "Its template has only paths that resolve to nothing in this event.",
    todo: "Name paths that every such event has, or add fixed words. Then replay the event.",
  },
  no_signing_secret: {
    what: "The relay has no signing secret, or not the one that the action needs, so it cannot sign the request.",
    why: "An action with `standardWebhooks` needs a secret of the form `whsec_` and base64.",
    todo: "Create one with `relay relays rotate-secret <name> --signing`, and give it to your server.",
    next: RETRIED,
  },
  http_error: {
    what: "The called URL answered with a status other than 2xx.",
    todo: "Read the response on the event's page, and fix the cause at the receiver.",
    next: CALLED_AGAIN,
  },
  redirect: {
    what: "The called URL answered with a redirect, and Relay never follows one.",
    todo: "Name the final address in `url`.",
    next: CALLED_AGAIN,
  },
  https_only: {
    what: "The called URL does not use https.",
    todo: "Write an https address. Only local development can call localhost with http.",
  },
  ip_literal: {
    what: "The called URL contains an IP address.",
    todo: "Use a host name.",
  },
  own_host: {
    what: "The called URL is the host of this service itself.",
    todo: "Call another server.",
  },
  unresolvable: {
    what: "Relay found no address for the host of the called URL.",
    why: "The host has no DNS record, or no name server answered. The message says which.",
    todo: "Check the spelling of the host and its DNS records. If no name server answered, check the network and name servers of the machine.",
    next: CALLED_AGAIN,
  },
  private_address: {
    what: "The host of the called URL resolves to an address that is not public.",
    todo: "Call a public host, or have the operator allow this one with `--allow-private`.",
  },
  timeout: {
    what: "The called URL did not answer within 10 seconds.",
    todo: "Answer first at the receiver, and do slow work afterwards.",
    next: CALLED_AGAIN,
  },
  connection_failed: {
    what: "Relay could not connect to the host of the called URL, or the connection broke before the response was complete.",
    todo: "Check that the server runs there and sends a complete HTTP response.",
    next: CALLED_AGAIN,
  },
  tls_failed: {
    what: "Relay could not make a trusted TLS connection to the host of the called URL.",
    todo: "Check its certificate, the chain and the host name. If your own authority signed it, start the server with NODE_EXTRA_CA_CERTS=/path/to/authority.pem.",
    next: CALLED_AGAIN,
  },
  other_person: {
    what: "The action already ran for another person than the event has now, so Relay skipped it.",
    why: "For example, the relay's map was corrected after the first run.",
    todo: "Do nothing if the first person was right. Otherwise replay the event and select this action (`relay events replay --run`). A purchase then moves to the new person.",
  },
  same_person: {
    what: "The bulk replay skipped this done event, because its work was already done for the right person.",
    todo: "Do nothing. A bulk replay takes only those done events whose work was done for another person.",
  },
  edited_after: {
    what: "The action was edited after it ran for this event, so Relay did not run it again.",
    todo: "Do nothing if the earlier result was right. Otherwise replay the event and select this action (`relay events replay --run`).",
  },
  trigger_changed: {
    what: "The relay's trigger changed to another kind while the event waited.",
    todo: "Do the work of the event by hand, or change the trigger back and replay the event.",
  },
  relay_deleted: {
    what: "The relay was deleted while the event waited.",
    todo: "Create a relay with the same name. Then replay the event.",
  },
  missed: {
    what: "The service was down at this time of the schedule. Only the newest missed time runs late.",
    todo: "Replay the event if you still want it.",
  },
  interrupted: {
    what: "The service stopped during an attempt.",
    todo: "Check what the event did.",
    next: "Relay runs the event again automatically, unless this attempt was its last.",
  },
} as const satisfies Record<string, CodeEntry>;

/** The code of a result, or the reason of an event. */
export type ResultCode = RefusalCode | keyof typeof RESULTS;
