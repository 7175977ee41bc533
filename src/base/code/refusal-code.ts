/**
 * The registry of refusal codes. The error pages, `relay help`, the OpenAPI document and the tests read it.
 * Source: the specification's "Errors", decisions section 6.
 */
import type { RefusalEntry } from "./code-entry.ts";
import { COMMAND_REFUSALS } from "./command-refusal-code.ts";

export const REFUSALS = {
  // Receiver
  unknown_receiver: {
    status: 404,
    what: "The app has no receiver relay with this name.",
    why: "The URL at the provider has a typing error, or the relay was deleted.",
    todo: "Compare the URL at the provider with the receiver URL on the relay's page (`relay relays show`).",
  },
  bad_signature: {
    status: 401,
    what: "The signature or token of the request does not match the receiver's secret or key.",
    why: "The relay has an old secret, its recipe differs from how the provider signs, or something is appended to the URL.",
    todo: "Store the provider's current secret, and compare the recipe with the provider's documentation.",
  },
  handshake_refused: {
    status: 403,
    what: "A provider asked the receiver URL to confirm itself, and Relay rejected the handshake.",
    why: "The verify token, challenge or token differs from what this sender sends.",
    todo: "Compare the verify token at the provider with the one on the relay's page (`relay relays show`). `relay requests list` shows what the handshake lacked.",
  },
  scheme_renamed: {
    status: 401,
    what: "The relay still has the old scheme name `hmac_sha256_header`.",
    todo: 'Save its definition again with `"scheme": "signature"`.',
  },
  body_too_large: {
    status: 413,
    what: "The request body is larger than the limit.",
    why: "A receiver accepts 256 KB. Another route accepts what its fields can contain; the message says how much.",
    todo: "Send less in one request. Choose a thinner event at the provider if it offers one.",
  },
  body_incomplete: {
    status: 400,
    what: "The connection ended before the request body did.",
    todo: "Send the complete request again.",
  },
  body_capped: {
    status: 429,
    what: "Too many request bodies arrived at the same time, from one address or in total.",
    todo: "Send the request again after `resetAt`. If the server is behind a proxy, name the proxy with `--trusted-proxy`, so that Relay can tell addresses apart.",
  },
  body_slow: {
    status: 408,
    what: "The request body arrived too slowly.",
    why: "It took longer than allowed, or other requests needed its memory.",
    todo: "Send the complete request again, without pauses.",
  },
  invalid_json: {
    status: 400,
    what: "Relay cannot parse the request body.",
    why: "The body is not JSON, or not a form where the receiver reads a form. Or it is nested too deeply, or has a number of more than 1,000 digits.",
    todo: "Send valid JSON in UTF-8.",
  },
  too_many_signatures: {
    status: 400,
    what: "The signature header lists more than 8 signatures.",
    todo: "Send at most 8 signatures. Remove old signing secrets at the provider.",
  },
  receiver_capped: {
    status: 429,
    what: "The app received more verified events in a minute than its limit.",
    todo: "Wait until `resetAt`; most providers send the event again. The limit is RELAY_LIMIT_VERIFIED_EVENTS_PER_MINUTE in the server's configuration.",
  },
  source_capped: {
    status: 429,
    what: "One address sent more unverified requests in a minute than the limit.",
    todo: "Wait until `resetAt`, and fix the sender's signature. If the server is behind a proxy, name the proxy with `--trusted-proxy`, so that Relay can tell addresses apart.",
  },
  not_recorded: {
    status: 503,
    what: "Relay could not store the event, so no action ran.",
    todo: "Check the server's disk and log. The provider sends the event again.",
  },
  // Definition and management
  invalid_definition: {
    status: 400,
    what: "The relay's definition breaks a rule.",
    todo: "Read `problems` in the response: each names the field, the reason and what to do.",
  },
  relay_capped: {
    status: 400,
    what: "The environment already has as many relays as its limit.",
    todo: "Delete a relay that you no longer use (`relay relays delete`), or raise the limit in the server's configuration.",
  },
  relay_missing: {
    status: 400,
    what: "A relay action, a `soldThrough` or the scheme `receiver` names a relay that does not exist in this environment or that cannot be followed.",
    todo: "Create that relay first, or name one that exists.",
  },
  receiver_followed: {
    status: 409,
    what: "Other relays follow this receiver, so it cannot be deleted or lose its scheme. `details.followers` has their names.",
    todo: "Delete those relays first, or change their `trigger.verify`.",
  },
  name_taken: {
    status: 409,
    what: "Something else already has this name.",
    todo: "Choose another name, or change the existing one.",
  },
  version_conflict: {
    status: 409,
    what: "The thing that you save has changed since you read it.",
    todo: "Read it again, apply your change to the current version, and save.",
  },
  product_not_sellable: {
    status: 409,
    what: "The product is sold through a relay, so Relay cannot start a payment for it.",
    todo: "Send the buyer to the `url` in the response, or to the provider that sells the product.",
  },
  plan_not_sellable: {
    status: 409,
    what: "The plan is sold through a relay, so Relay has no checkout for it.",
    todo: "Send the buyer to the `url` in the response, or to the provider that sells the plan.",
  },
  provider_secret_required: {
    status: 400,
    what: "The relay verifies with the provider's own secret or public key, which Relay cannot create.",
    todo: "Paste the value that the provider shows.",
  },
  invalid_input: {
    status: 400,
    what: "A field of the request is not valid.",
    todo: "Read the message: it names the field, the reason and what to do.",
  },
  trigger_kind_fixed: {
    status: 409,
    what: "A sync cannot change the trigger kind of a relay.",
    todo: "Rename the relay. In development you can also remove its file, run `relay sync --prune`, put the file back and sync again.",
  },
  no_call_url: {
    status: 400,
    what: "The relay has no `call_url` action, so it needs no signing secret.",
    todo: "Add a `call_url` action first. Relay creates its signing secret when you save it.",
  },
  // Any caller
  ambiguous_request: {
    status: 400,
    what: "The request names two hosts, or its path can be read in two ways.",
    todo: "Send one Host header, and a path without backslashes, dot segments, double slashes, or encoded dots and slashes.",
  },
  base_url_needed: {
    status: 403,
    what: "The server listens on the network without a base URL, so sign-in is not safe and is switched off.",
    todo: "Start the server with `--base-url` and the https origin that browsers open.",
  },
  unauthenticated: {
    status: 401,
    what: "The request has no valid key or session.",
    todo: "Send the header `Authorization: Bearer` with a secret key, or sign in to the dashboard.",
  },
  forbidden: {
    status: 403,
    what: "The key or session does not permit this action.",
    todo: "Use a secret key of this environment, or sign in as an owner.",
  },
  reauthentication_required: {
    status: 403,
    what: "The action is sensitive, and the person of this session last proved who they are 15 minutes ago or more.",
    todo: "Confirm who you are in the dashboard, which then sends the request again. `methods` lists how the account can confirm. A key needs no confirmation.",
  },
  second_factor_required: {
    status: 403,
    what: "The server requires a second factor, and the person of the session or key has none.",
    todo: "Sign in to the dashboard, which then shows how to add an authenticator app or a passkey. Keys of `relay login` work again after that.",
  },
  wrong_environment: {
    status: 403,
    what: "The key belongs to another app or environment than the path names.",
    todo: "Use a key of the environment in the path, or name the key's environment in the path.",
  },
  not_found: {
    status: 404,
    what: "Nothing exists under this address.",
    todo: "Check the name or id. The lists show what exists.",
  },
  method_not_allowed: {
    status: 405,
    what: "The address exists, but not for this HTTP method.",
    todo: "Use one of the methods in the Allow header. /openapi.json lists every route.",
  },
  wrong_origin: {
    status: 403,
    what: "A web page made the request, and its origin has no permission for it.",
    todo: "Open the dashboard at its own address. Use an app key on a page whose origin the key names.",
  },
  signin_capped: {
    status: 429,
    what: "Too many sign-in attempts failed.",
    todo: "Wait until `resetAt`, or sign in from a browser or network that signed in before. An owner can also reset the password with `relay admin reset`.",
  },
  signin_busy: {
    status: 503,
    what: "More passwords wait to be checked than the server checks at a time.",
    why: "An attacker may be guessing passwords. Relay limits them by address and checks an owner's known device first.",
    todo: "Sign in again in a few seconds.",
  },
  password_signin_off: {
    status: 403,
    what: "Members sign in to this server only at its OpenID provider.",
    todo: "Sign in at the provider. If it is not available, run `relay oidc passwords on` on the server, then sign in with your password.",
  },
  oidc_not_set: {
    status: 409,
    what: "This server has no OpenID provider.",
    todo: "Sign in with a password. To use a provider, set one under Settings › Members or with `relay oidc provider`.",
  },
  oidc_failed: {
    status: 401,
    what: "The sign-in at the OpenID provider did not succeed, and Relay changed nothing.",
    why: "The provider refused it, cannot be reached, or sent a response that does not belong to this sign-in.",
    todo: "Sign in again. If that fails too, test the provider under Settings › Members or with `relay oidc provider --test`.",
  },
  oidc_refused: {
    status: 403,
    what: "The provider knows the person, but the person may not sign in to this server.",
    why: "Their groups give no role, their email address is not verified, or its domain is not allowed.",
    todo: "Ask an owner of the server for a role. Owners give roles to groups and domains under Settings › Members.",
  },
  in_use: {
    status: 409,
    what: "Relay cannot delete it, because something else still uses it.",
    todo: "Remove what the message names first.",
  },
  key_in_use: {
    status: 409,
    what: "The key of a product cannot change while people have grants of that product.",
    todo: "Revoke those grants first (`relay people end`), or create another product with the new key and sell that one.",
  },
  data_invalid: {
    kinds: ["refusal", "result"],
    status: 400,
    what: "The record's data breaks the field rules of its collection.",
    todo: "Correct the field that the message names. If a relay writes the record, correct the action's `data` or the collection's fields, then replay the event.",
  },
  credits_short: {
    status: 409,
    what: "The person has fewer credits than the amount to spend.",
    todo: "Spend less, or add credits first (`relay people credits`).",
  },
  invite_capped: {
    title: "Invites over the limit",
    kinds: ["refusal", "result", "alert"],
    status: 429,
    what: "The environment created as many people by address today as its limit.",
    todo: "Wait until `resetAt`, or raise the limit in the server's configuration.",
    next: "Relay retries an event that needs a new person. An alert resolves when no event waits for this any more.",
  },
  signup_capped: {
    status: 429,
    what: "As many people signed up in the environment today as its limit.",
    todo: "Wait until `resetAt`, or raise the limit in the server's configuration. People who were invited or bought something can still sign in.",
  },
  ref_used: {
    kinds: ["refusal", "result"],
    status: 409,
    what: "This `ref` already belongs to another purchase, perhaps of another person.",
    todo: "Use the provider's unique payment identifier as `ref`. `relay receipts list` shows the purchase of each ref. To refund another person's purchase, run `relay receipts refund`.",
  },
  person_suspended: {
    kinds: ["refusal", "result"],
    status: 403,
    what: "The person is suspended.",
    todo: "Activate the person first (`relay people activate`). If an event is dead because of this, replay it then.",
  },
  entitlement_unknown: {
    kinds: ["refusal", "result"],
    status: 400,
    what: "The environment has no access slug, product or plan with the name of this entitlement.",
    todo: "Create it first (`relay catalog set access <slug> '{}'`, or a product or plan), or name one that `relay catalog list` shows.",
  },
  token_taken: {
    status: 409,
    what: "The store account token belongs to another person.",
    todo: "File a token for one person only. If the account moved, remove the token from the other person first (`relay people remove-token`).",
  },
  writes_capped: {
    status: 429,
    what: "The client library wrote more records in a minute, or caused more events, than the limit.",
    why: "The limits apply to one person, one network address and all people of the app.",
    todo: "Wait until `resetAt`, and write less often. You can raise the limits in the server's configuration.",
  },
  streams_capped: {
    status: 429,
    what: "Too many streams of changes are open, for one session or key or for the environment.",
    todo: "Close a page or a program that follows the environment, or request the data every few seconds instead.",
  },
  storage_capped: {
    status: 429,
    what: "A person's records, or all records and files of the environment, would take more space than the limit.",
    todo: "Delete records or files that you no longer need (`relay records delete`, `relay files delete`), or raise the limit in the server's configuration. Waiting does not help.",
  },
  code_capped: {
    status: 429,
    what: "More sign-in codes were requested than the limit, for one email address, one network or the environment.",
    todo: "Wait until `resetAt`. A code that was sent is valid for ten minutes.",
  },
  code_invalid: {
    status: 401,
    what: "The sign-in code is wrong, used, older than ten minutes, or was tried too often.",
    todo: "Type the newest code again, or request another one.",
  },
  code_not_sent: {
    status: 503,
    what: "Relay could not send the mail with the sign-in code.",
    todo: "Check the SMTP server (`relay settings set mail.smtp`), the sender domain (`relay domain set`) and the switch for mail (`relay settings set mail.sends on`). `relay emails list` shows the mail server's response.",
  },
  mail_settled: {
    status: 409,
    what: "The state of the mail is known, so Relay does not send it again by hand.",
    todo: "Send again only mail of a relay with the state `unknown`. For a failed mail, replay its event.",
  },
  mail_not_possible: {
    status: 409,
    what: "The environment cannot send this mail now.",
    why: "The switch for mail is off, no sender domain is verified, a limit is reached, or the person unsubscribed.",
    todo: "Fix what the message names, with `relay settings set mail.smtp` or on the Mail page. After a limit, retry later.",
  },
  signed_out: {
    status: 401,
    what: "The person's session ended or never existed.",
    todo: "Sign in again with a code by email.",
  },
  internal: {
    kinds: ["refusal", "result"],
    status: 500,
    what: "Relay itself failed: this is a bug.",
    todo: "Read the server's log at this time, and report it.",
  },
  // Actions on an event, such as replays and expunging
  not_replayable: {
    status: 409,
    what: "The event is queued or running, so you cannot replay it.",
    todo: "Wait until it is done, failed or dead.",
  },
  not_waiting: {
    status: 409,
    what: "The event does not wait for a retry, so Relay cannot retry it now.",
    why: "It ended, is due or runs already, its relay is paused, or its environment is on hold.",
    todo: "Replay an event that ended. Resume a paused relay or release the hold first. Do nothing for an event that is due or running.",
  },
  replay_running: {
    status: 409,
    what: "A bulk replay of this environment is running, and only one can run at a time.",
    todo: "Wait until it ends, or stop it (`relay replays stop`, or the Events page).",
  },
  payload_expunged: {
    kinds: ["refusal", "result"],
    status: 409,
    what: "The event's payload is deleted, so the event cannot run again.",
    why: "A user expunged it, or its person was erased.",
    todo: "Do the work of the event by hand, or have the provider send a new event.",
  },
  not_expungeable: {
    status: 409,
    what: "The event is running and needs its payload.",
    todo: "Wait until the attempt ends, then expunge it.",
  },
  unsigned_event: {
    kinds: ["refusal", "result"],
    status: 409,
    what: "The event arrived unsigned, and its relay no longer accepts unsigned events.",
    why: "The relay's definition acts on people and does not set `trigger.trustUnsignedEvents`.",
    todo: "Do the work of the event by hand. If the sender still signs no event and you accept the risk, set `trigger.trustUnsignedEvents`.",
  },
  // Syncs and changes of production
  sync_capped: {
    status: 429,
    what: "The sync would make more changes in a minute than the environment's limit.",
    todo: "Wait until `resetAt` and apply the plan again. For a plan that is larger than the limit, raise RELAY_LIMIT_SYNC_CHANGES_PER_MINUTE on the server.",
  },
  approval_needed: {
    status: 403,
    what: "A change of production needs the approval of an owner.",
    todo: "Run `relay sync --live` or `relay promote`, which request one, and approve it in the dashboard.",
  },
  approval_pending: {
    status: 409,
    what: "No owner has approved the change of production yet.",
    todo: "Open the approval's address in a browser, sign in as an owner and approve it.",
  },
  approval_denied: {
    status: 409,
    what: "An owner rejected the change of production.",
    todo: "Talk to the owner. `relay sync --live` and `relay promote` request a new approval.",
  },
  approval_expired: {
    status: 409,
    what: "The change of production was not approved and applied within ten minutes.",
    todo: "Request a new approval with `relay sync --live` or `relay promote`.",
  },
  approval_void: {
    status: 409,
    what: "The approval is no longer valid.",
    why: "The files, development or production changed after the request, the request was withdrawn, or its approver is no longer an owner.",
    todo: "Request a new approval with `relay sync --live` or `relay promote`.",
  },
  approval_used: {
    status: 409,
    what: "The approval was already given or applied. An approval is valid once.",
    todo: "Request a new approval for another change.",
  },
  approval_capped: {
    status: 429,
    what: "Too many approvals were requested in a minute, or too many wait.",
    todo: "Wait until `resetAt`, or have an owner reject the approvals that are not needed.",
  },
  // Sign-in of the command line: the codes that RFC 8628 names, and a few more
  login_capped: {
    status: 429,
    what: "Too many sign-ins of the command line were started from one address, wait for an answer, or had a wrong code.",
    todo: "Wait until `resetAt`, or set RELAY_URL and RELAY_KEY with a key from Settings in the dashboard.",
  },
  login_used: {
    status: 409,
    what: "An owner already answered this sign-in, or its key was already fetched.",
    todo: "Run `relay login` again for a new code.",
  },
  authorization_pending: {
    status: 400,
    what: "No owner has allowed or denied the sign-in yet.",
    todo: "Open the address that the command shows, type its code, and allow it. The command then continues by itself.",
  },
  slow_down: {
    status: 400,
    what: "The client asked about a sign-in before the interval ended.",
    todo: "Ask again after the interval in the response, which is five seconds longer.",
  },
  access_denied: {
    status: 400,
    what: "An owner denied the sign-in in the dashboard.",
    todo: "Run `relay login` again if the owner denied it by mistake.",
  },
  expired_token: {
    status: 400,
    what: "The sign-in expired or never existed.",
    why: "The codes of a sign-in are valid for ten minutes.",
    todo: "Run `relay login` again for a new code.",
  },
  ...COMMAND_REFUSALS,
  // Lines of an import, which are never the status of a response
  event_id_missing: {
    status: 400,
    what: "An imported event has no id, so Relay cannot compare it with the events that it received.",
    todo: "Name `event_id` in the relay's map, or import the original delivery with its headers.",
  },
  event_too_old: {
    status: 400,
    what: "An imported event was signed 30 days ago or more, and Relay no longer knows whether it received it.",
    todo: "Check whether the work of the event was done, and do it by hand if not.",
  },
} as const satisfies Record<string, RefusalEntry>;

export type RefusalCode = keyof typeof REFUSALS;

/** Returns the registered code in a text, or `internal` for any other text. */
export function toRefusalCode(text: unknown): RefusalCode {
  return typeof text === "string" && Object.hasOwn(REFUSALS, text) ? (text as RefusalCode) : "internal";
}
