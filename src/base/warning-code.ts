/**
 * The registry of warnings: what a save, a check of files or a change of the catalog accepts, but is probably not intended. `relay help` describes
 * each one. A warning's own sentence names the affected object and what to do about it.
 */

export const WARNINGS = {
  unsigned_events: {
    when: "The relay acts on events that its sender does not sign, by trustUnsignedEvents.",
    todo: "Use a recipe that signs the body where the sender has one, or accept the risk.",
  },
  person_never_found: {
    when: "An action acts on the event's person, but no event of this relay has one.",
    todo: "Map person_email, person_id or person_token.",
  },
  path_names_nothing: {
    when: "A template names a path that no event of this relay holds, so that it renders empty.",
    todo: "Write a path that the trigger offers; of a record, a field of its collection.",
  },
  ref_not_unique: {
    when: "An action's ref is the same for every event, or for two sales or refunds of one event.",
    todo: "Write the provider's payment identifier, such as {{mapped.payment_id}}.",
  },
  ref_of_nothing: {
    when: "A refund has no ref, and nothing is ever fulfilled under its own event's id.",
    todo: "Write the ref that the payment was fulfilled under.",
  },
  expiry_past: {
    when: "A grant would end before it begins.",
    todo: "Write a later date, or a duration such as 30d.",
  },
  url_local: {
    when: "The called URL is one that local development alone calls.",
    todo: "Name a public https address before the relay goes to a server.",
  },
  own_host: {
    when: "The called URL is this service's own host.",
    todo: "Call a server of yours instead.",
  },
  secret_missing: {
    when: "The relay has nothing to verify its sender's calls with yet.",
    todo: "Store the sender's secret or key with relay relays set-secret or on the relay's page.",
  },
  secret_replaced: {
    when: "The stored secret did not fit the new recipe and was cleared.",
    todo: "Give the new one to the sender, or store the sender's own.",
  },
  signing_secret_removed: {
    when: "The relay calls no URL any more, so its signing secret was removed.",
    todo: "Nothing; a later call_url gets a new one.",
  },
  reference_missing: {
    when: "The relay names a collection, entitlement, product or plan that is not there, receipts are to be records of such a collection, or something is sold through a relay that is not there.",
    todo: "Create it, or name one that exists.",
  },
  not_sold_here: {
    when: "The relay sells a product or plan whose soldThrough names another way.",
    todo: "Let its soldThrough name this relay.",
  },
  sales_overlap: {
    when: "Two relays sell different things, verify one provider's calls, and may both match one payment.",
    todo: "Map the field that distinguishes products and match it in `when` of both relays.",
  },
  record_does_not_fit: {
    when: "A record that the relay writes breaks its collection's rules.",
    todo: "Change the action's data or to, or the collection's fields.",
  },
  where_never_matches: {
    when: "`where` asks for what no record of the collection can hold: a field it has not, or a value of another type.",
    todo: "Name a field of the collection and a value of its type: 4 is not the text of it.",
  },
  relay_write_unseen: {
    when: "A relay writes the collection that another one watches, and what a relay writes never starts a relay.",
    todo: "Put the watching relay's actions into the one that writes, unless the app writes there too.",
  },
  key_names_nothing: {
    when: "A product's key names no access slug, product or plan.",
    todo: "Create it, or nothing can ask for what a purchase grants.",
  },
  payment_link_goes_live: {
    when: "A product or plan is carried into production with a payment link that production does not have yet.",
    todo: "Look at the link before you approve: a provider's test link sells for no money. Save production's own in its dashboard; it is kept unless you replace what was edited there.",
  },
  default_plan_moves: {
    when: "A plan that is carried into production becomes the default there, in the place of another.",
    todo: "Take default from it where production keeps its own default plan.",
  },
  field_holds_values: {
    when: "Files take a field from a collection, and records of it hold values there.",
    todo: "Leave the field in where its values are still wanted. Nothing of a record is deleted: it keeps the value until it is saved anew, and a save that sends it is refused.",
  },
  origin_of_no_page: {
    when: "An app key names an origin that no page has, because a star stands for nothing.",
    todo: "Name each origin as a browser sends it, such as https://shop.example.com.",
  },
  relays_not_told: {
    when: "A change of the catalog concerns more relays than one answer looks at or tells of.",
    todo: "See the relays' problems, and save each of the others again: its save warns of what it does not fit.",
  },
  file_not_written: {
    when: "Local development saved something and could not write it to its file.",
    todo: "Make the folder writable, or put it back; the file is written as soon as it can be, and what was saved is in force meanwhile.",
  },
  ran_with_warnings: {
    when: "An event was done, but something of it was probably not meant: a path that named nothing, a text that was cut.",
    todo: "Read its warnings with relay events show, and correct the relay's map or templates.",
  },
} as const satisfies Record<string, { when: string; todo: string }>;

export type WarningCode = keyof typeof WARNINGS;
