/**
 * The registry of refusal codes: the status of each, what it means and what to do. The error pages, the OpenAPI document and the tests read it.
 * Source: the specification's "Errors", decisions section 6.
 */
import { COMMAND_REFUSALS, type RefusalEntry } from "./command-refusal.ts";
import { EVENT_REFUSALS } from "./event-refusal.ts";
import { LINE_REFUSALS } from "./line-refusal.ts";
import { LOGIN_REFUSALS } from "./login-refusal.ts";
import { SYNC_REFUSALS } from "./sync-refusal.ts";

export const REFUSALS = {
  // Receiver
  unknown_receiver: {
    status: 404,
    when: "No receiver relay with this name exists on this app, or it was deleted.",
    todo: "Compare the URL at the provider with the receiver URL that relay relays show and the relay's page show.",
  },
  bad_signature: {
    status: 401,
    when: "The call's signature or token did not verify against the receiver's secret or key.",
    todo: "Check that the relay holds the provider's current secret and that its recipe matches how the provider signs; a URL with anything appended never verifies.",
  },
  handshake_refused: {
    status: 403,
    when: "A sender's question to a receiver URL, as when it is registered there, was not answered: its verify token, its challenge or its token is not what that sender sends.",
    todo: "Compare the verify token at the sender with the one that relay relays show and the relay's page show; relay requests list says what the question lacked.",
  },
  scheme_renamed: {
    status: 401,
    when: "The relay is stored under the old scheme name hmac_sha256_header.",
    todo: 'Save its definition again with "scheme": "signature".',
  },
  body_too_large: {
    status: 413,
    when: "The request body is over the limit: 256 KB at a receiver, and elsewhere what the fields of the route can hold, which the message says.",
    todo: "Send less at once; ask the provider for a thinner event if it offers one.",
  },
  body_incomplete: {
    status: 400,
    when: "The connection ended before the request body did.",
    todo: "Send the request again, whole.",
  },
  body_capped: {
    status: 429,
    when: "More request bodies were arriving at once, from one address or altogether, than the service holds.",
    todo: "Send the request again after resetAt. Behind a proxy, name it with --trusted-proxy so that addresses are told apart.",
  },
  body_slow: {
    status: 408,
    when: "The request body did not arrive in time, or so slowly that others needed its room.",
    todo: "Send the request again, whole and without pauses.",
  },
  invalid_json: {
    status: 400,
    when: "The request body is not JSON (nor a form post where a form is read), is nested too deep, or holds a number of more than 1,000 digits.",
    todo: "Send valid JSON in UTF-8.",
  },
  too_many_signatures: {
    status: 400,
    when: "The signature header lists more than 8 signatures.",
    todo: "Send at most 8 signatures; retire old signing secrets at the provider.",
  },
  receiver_capped: {
    status: 429,
    when: "The app received more verified events in a minute than its limit.",
    todo: "Wait until resetAt; the provider will send the event again. The limit can be raised in the server's configuration.",
  },
  source_capped: {
    status: 429,
    when: "One address sent more unverified calls in a minute than the limit.",
    todo: "Wait until resetAt and fix the sender's signature. Behind a proxy, name it with --trusted-proxy so that addresses are told apart.",
  },
  not_recorded: {
    status: 503,
    when: "The event could not be stored, so nothing ran.",
    todo: "Nothing to do at the provider, it sends the event again; check the server's disk and log.",
  },
  // Definition and management
  invalid_definition: {
    status: 400,
    when: "The relay definition breaks a rule.",
    todo: "Read problems: each names the field, why it is refused and what to do.",
  },
  relay_capped: {
    status: 400,
    when: "The environment already holds as many relays as its limit.",
    todo: "Delete a relay that is no longer used, in the dashboard or with relay relays delete, or raise the limit in the server's configuration.",
  },
  relay_missing: {
    status: 400,
    when: "A relay action or a sold-through setting names a relay that does not exist in this environment.",
    todo: "Create that relay first, or name one that exists.",
  },
  name_taken: {
    status: 409,
    when: "Something with this name exists already.",
    todo: "Choose another name, or change the one that exists.",
  },
  version_conflict: {
    status: 409,
    when: "What you are saving has changed since you read it.",
    todo: "Read it again, apply your change to the current version, and save.",
  },
  product_not_sellable: {
    status: 409,
    when: "The product is sold through a relay, so it has no payment to start here.",
    todo: "Send the buyer to the refusal's url, or to the provider that sells it.",
  },
  plan_not_sellable: {
    status: 409,
    when: "The plan is sold through a relay, so it has no checkout here.",
    todo: "Send the buyer to the refusal's url, or to the provider that sells it.",
  },
  provider_secret_required: {
    status: 400,
    when: "The relay verifies with the sender's own secret or public key, which the service never makes.",
    todo: "Paste the value the provider shows.",
  },
  invalid_input: {
    status: 400,
    when: "A field of the request is not valid.",
    todo: "The message names the field, why, and what to do.",
  },
  trigger_kind_fixed: {
    status: 409,
    when: "A synced relay's trigger kind cannot change.",
    todo: "Rename the relay; or, in development, take its file away, run relay sync --prune, put the file back and sync again.",
  },
  no_call_url: {
    status: 400,
    when: "A signing secret was asked for on a relay that has no call_url action.",
    todo: "Add a call_url action first; it gets its signing secret when saved.",
  },
  // Everyone
  ambiguous_request: {
    status: 400,
    when: "The request names two hosts, or writes its path so that it could be read in two ways.",
    todo: "Send one Host, and a path without backslashes, dot segments, two slashes in a row, or encoded dots and slashes.",
  },
  base_url_needed: {
    status: 403,
    when: "The server listens on the network without a base URL, so nobody can sign in to it safely.",
    todo: "Start it with --base-url and the https origin that browsers open.",
  },
  unauthenticated: {
    status: 401,
    when: "The request carries no valid key or session.",
    todo: "Send Authorization: Bearer with a secret key, or sign in to the dashboard.",
  },
  forbidden: {
    status: 403,
    when: "The key or session may not do this.",
    todo: "Use a secret key of this environment, or sign in as the owner.",
  },
  wrong_environment: {
    status: 403,
    when: "The key belongs to another app or environment than the one in the path.",
    todo: "Use a key of the environment you name, or name the key's environment.",
  },
  not_found: {
    status: 404,
    when: "Nothing exists under this address.",
    todo: "Check the name or id; lists show what exists.",
  },
  method_not_allowed: {
    status: 405,
    when: "The address exists, but not for this HTTP method.",
    todo: "Use one of the methods in the Allow header; /openapi.json lists every route.",
  },
  wrong_origin: {
    status: 403,
    when: "The request came from a web page that may not make it.",
    todo: "Open the dashboard at its own address; app keys work from their verified origins only.",
  },
  signin_capped: {
    status: 429,
    when: "Too many sign-in attempts failed.",
    todo: "Wait until resetAt, sign in from a browser or a network that signed in before, or reset the password on the command line.",
  },
  signin_busy: {
    status: 503,
    when: "More passwords wait to be checked than the server checks at once.",
    todo: "Try again in a few seconds; a flood of guesses is refused by its address, an owner's own device goes first.",
  },
  in_use: {
    status: 409,
    when: "Something else still needs what you are deleting.",
    todo: "Remove what the message names first.",
  },
  key_in_use: {
    status: 409,
    when: "A product's key cannot change while live grants of it hang on the product.",
    todo: "Revoke those grants first, in the dashboard or with relay people end, or make another product with the new key and sell that one.",
  },
  data_invalid: {
    status: 400,
    when: "A record's data breaks its collection's field rules.",
    todo: "Correct the field that the message names; where a relay writes it, correct its action's data or the collection's fields, then replay the event.",
  },
  credits_short: {
    status: 409,
    when: "The person has fewer credits than the amount to spend.",
    todo: "Spend less, or add credits first, in the dashboard or with relay people credits.",
  },
  invite_capped: {
    status: 429,
    when: "The environment created as many people by address today as its limit.",
    todo: "Wait until resetAt, or raise the limit in the server's configuration.",
  },
  signup_capped: {
    status: 429,
    when: "As many people signed up in the environment today as its limit.",
    todo: "Wait until resetAt, or raise the limit in the server's configuration; people who were invited or bought sign in all the same.",
  },
  ref_used: {
    status: 409,
    when: "This ref already belongs to another purchase, which may be another person's.",
    todo: "Use the provider's unique payment identifier as ref; relay receipts list shows the purchase of each ref. For a refund of another person's purchase, take that back in the dashboard or with relay receipts refund.",
  },
  person_suspended: {
    status: 403,
    when: "The person is suspended.",
    todo: "Make them active again first, in the dashboard or with relay people activate; an event that died of it is replayed then.",
  },
  entitlement_unknown: {
    status: 400,
    when: "The entitlement is no access slug, product or plan of this environment.",
    todo: "Create it first (relay catalog set access <slug> '{}', or a product or plan), or name one that exists: relay catalog list shows them.",
  },
  token_taken: {
    status: 409,
    when: "The store account token is filed for another person.",
    todo: "File each token for one person only; if the account moved, take it from the other person first, in the dashboard or with relay people remove-token.",
  },
  writes_capped: {
    status: 429,
    when: "A person, a network address or all people of the app wrote more records through the client library within a minute, or made more events by that, than the limit.",
    todo: "Wait until resetAt; write less often. The limits can be raised in the server's configuration.",
  },
  streams_capped: {
    status: 429,
    when: "As many streams of changes are open as one session or key, or the environment, may have.",
    todo: "Close a page or a program that follows the environment, or ask for what you need every few seconds instead.",
  },
  storage_capped: {
    status: 429,
    when: "A person's records, or all records and files of the environment, would take more room than the limit.",
    todo: "No time resets it: delete records or files that are no longer needed, in the dashboard or with relay records delete and relay files delete, or raise the limit in the server's configuration.",
  },
  code_capped: {
    status: 429,
    when: "More sign-in codes were asked for, for one e-mail address, from one network or in the whole environment, than the limit.",
    todo: "Wait until resetAt; a code that was sent works for ten minutes.",
  },
  code_invalid: {
    status: 401,
    when: "The sign-in code is wrong, used, older than ten minutes, or was tried too often.",
    todo: "Type the newest code again, or ask for another one.",
  },
  code_not_sent: {
    status: 503,
    when: "The mail with the sign-in code could not be sent.",
    todo: "Set the SMTP server (relay settings set mail.smtp), the sender domain (relay domain set) and the sends switch (relay settings set mail.sends on); relay emails list says what the mail server answered.",
  },
  mail_settled: {
    status: 409,
    when: "A mail was to be sent again by hand whose end is known.",
    todo: "Send again only mail of a relay whose state is unknown; replay the event of a mail that failed.",
  },
  mail_not_possible: {
    status: 409,
    when: "This environment may not send mail now: the owner's switch is off, no sender domain is verified, a cap is reached, or the person stopped such mail.",
    todo: "Set right what the message names, with relay settings set mail.smtp or on the dashboard's Mail page, or try again later.",
  },
  signed_out: {
    status: 401,
    when: "The person's session has ended or was never there.",
    todo: "Sign in again with an e-mailed code.",
  },
  internal: {
    status: 500,
    when: "Something went wrong in the service itself.",
    todo: "Look at the server's log for this time; please report it.",
  },
  ...EVENT_REFUSALS,
  ...SYNC_REFUSALS,
  ...LOGIN_REFUSALS,
  ...COMMAND_REFUSALS,
  ...LINE_REFUSALS,
} as const satisfies Record<string, RefusalEntry>;

export type RefusalCode = keyof typeof REFUSALS;
