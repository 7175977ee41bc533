/**
 * The registry of warnings: a save, a check of files or a change of the catalog accepts it, but it is probably not intended. A warning's own
 * message names the affected object and what to do about it.
 */
import type { CodeEntry } from "./code-entry.ts";

export const WARNINGS = {
  unsigned_events: {
    what: "The relay acts on events that its sender does not sign.",
    why: "The definition sets `trustUnsignedEvents`.",
    todo: "Use a recipe that signs the body if the sender has one, or accept the risk.",
  },
  case_changed: {
    what: "A case of the relay now has a different result than when it was kept.",
    why: "The definition, the catalog or the person changed since.",
    todo: "Compare both results (`relay relays cases <name> --run`). Keep the case again if the new result is right.",
  },
  person_never_found: {
    what: "An action acts on the event's person, but no event of this relay has one.",
    todo: "Map `person_email`, `person_id` or `person_token`, or add `trigger.customer`.",
  },
  path_names_nothing: {
    what: "A template has a path that exists in no event of this relay, so it renders an empty text.",
    todo: "Write a path that the trigger offers. For a record, write a field of its collection.",
  },
  ref_not_unique: {
    what: "The `ref` of an action is the same for every event, or for two sales or refunds of one event.",
    todo: "Write the provider's payment identifier, such as {{mapped.payment_id}}.",
  },
  ref_of_nothing: {
    what: "A refund has no `ref`, so it can match no payment.",
    why: "Without a `ref`, the refund uses the id of its event, and no payment has that id.",
    todo: "Write the `ref` that the payment was fulfilled under.",
  },
  expiry_past: {
    what: "A grant would end before it begins.",
    todo: "Write a later date, or a duration such as 30d.",
  },
  url_local: {
    what: "Only local development can call this URL.",
    todo: "Name a public https address before you move the relay to a server.",
  },
  own_host: {
    what: "The URL is the host of this service itself.",
    todo: "Call another server.",
  },
  secret_missing: {
    what: "The relay has no secret or key yet to verify requests with.",
    todo: "Store the sender's secret or key (`relay relays set-secret`).",
  },
  secret_replaced: {
    what: "The stored secret did not fit the new recipe, so Relay deleted it.",
    todo: "Give the new secret to the sender, or store the sender's own.",
  },
  receiver_url_ended: {
    what: "The relay now follows another receiver, so its own URL answers no requests any more.",
    why: "A relay that follows a receiver has no URL and no secret. A provider that still sends to the old URL gets 404.",
    todo: "Register the URL of the receiver at the provider, and remove the old one there.",
    next: "Requests lists the requests that still go to the old URL. Ask the provider to send them again.",
  },
  signing_secret_removed: {
    what: "The relay has no `call_url` action any more, so Relay deleted its signing secret.",
    todo: "Do nothing. A later `call_url` action gets a new signing secret.",
  },
  reference_missing: {
    what: "The definition names a collection, entitlement, product, plan or relay that does not exist.",
    todo: "Create it, or name one that exists.",
  },
  not_sold_here: {
    what: "The relay sells a product or plan whose `soldThrough` names something else.",
    todo: "Name this relay in its `soldThrough`.",
  },
  sales_overlap: {
    what: "Two relays sell different things for one provider, and one payment can match both.",
    todo: "Map the field that identifies the product, and match it in the `when` of both relays.",
  },
  record_does_not_fit: {
    what: "A record that the relay writes breaks the rules of its collection.",
    todo: "Change the action's `data` or `to`, or the collection's fields.",
  },
  where_never_matches: {
    what: "The `where` of the relay can match no record of the collection.",
    why: "It names a field that the collection does not have, or a value of another type.",
    todo: "Name a field of the collection and a value of its type. The number 4 is not the text of 4.",
  },
  relay_write_unseen: {
    what: "A relay writes the collection that another relay watches, but a write of a relay starts no relay.",
    todo: "Move the watching relay's actions into the relay that writes, unless the app writes there too.",
  },
  key_names_nothing: {
    what: "The `key` of a product is the name of no access slug, product or plan, so no check of access can name it.",
    todo: "Create one with this name.",
  },
  payment_link_goes_live: {
    what: "A product or plan moves to production with a payment link that production does not have yet.",
    why: "With a test link of the provider, buyers get the product without paying.",
    todo: "Check the link before you approve. Save production's own link in its dashboard: a later sync keeps it unless you replace edits.",
  },
  default_plan_moves: {
    what: "A plan that moves to production replaces the default plan there.",
    todo: "Remove `default` from the plan if production must keep its own default plan.",
  },
  field_holds_values: {
    what: "The files remove a field from a collection, but records of it have values in that field.",
    why: "The records keep these values until they are saved again. A save that sends the field is rejected.",
    todo: "Keep the field if you still need its values.",
  },
  origin_of_no_page: {
    what: "An app key names an origin that no page can have, because a star is not a wildcard.",
    todo: "Name each origin as a browser sends it, such as https://shop.example.com.",
  },
  relays_not_told: {
    what: "A change of the catalog affects more relays than one response can check or list.",
    todo: "Read the problems of the relays, and save each other relay again: its save reports what does not fit.",
  },
  file_not_written: {
    what: "Local development saved a change but could not write it to its file.",
    todo: "Make the folder writable, or put it back.",
    next: "The change is in effect. Relay writes the file as soon as it can.",
  },
  ran_with_warnings: {
    what: "The event is done, but with a result that you probably did not intend.",
    why: "A path resolved to nothing, or a text was cut.",
    todo: "Read its warnings (`relay events show`), and correct the relay's map or templates.",
  },
} as const satisfies Record<string, CodeEntry>;

export type WarningCode = keyof typeof WARNINGS;
