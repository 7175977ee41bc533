/** What release 0.2.0 changed. It is never edited. */
import type { Release } from "./release.ts";

export const RELEASE_0_2: Release = {
  version: "0.2.0",
  changes: [
    {
      subject: "Mails in flight at a crash",
      was: "A crash could leave an event done and its mail unsent.",
      now: "What had not begun to leave is sent by the event's next attempt; what may have left is unknown, told by the alert mail_unknown, and sent again by hand: the mail room, relay emails send-again.",
    },
    {
      subject: "A mail server on a private address (action needed)",
      was: "mail.smtp.host could be any address.",
      now: "It is judged like a called URL: private and loopback addresses need the operator's --allow-private, metadata and link-local are never connected to.",
    },
    {
      subject: "Refused mail",
      was: "A permanent refusal was tried seven times, and answers quoted the mail server.",
      now: "It is final: mail_refused. Answers give a class of failure; the server's words stand in the log.",
    },
    {
      subject: "What a mail looks like",
      was: null,
      now: "mail.fromName and mail.replyTo, an HTML part made from the text, one-click stop of event mail, a test mail; an empty mail is mail_empty and never leaves.",
    },
    {
      subject: "Fix and replay",
      was: "Editing actions before a retry or a replay could lose work or do it twice.",
      now: "Work is known by its action's text: unchanged actions are found wherever they stand, mended ones run, and one edited after its work is skipped with a warning and offered by the replay's plan; so it is for events that 0.1.0 ran half.",
    },
    {
      subject: "The plan of a replay",
      was: null,
      now: "GET …/events/{id}/replay, the dashboard's dialog and relay events replay --plan say what each action will do; run: [index] runs one that was edited after its work.",
    },
    {
      subject: "A corrected map",
      was: "Events kept the values mapped at their arrival.",
      now: "They are mapped again at the next attempt when the relay's version moved and the body is whole; the event shows it.",
    },
    {
      subject: "Mapped values",
      was: "Each was cut at 2 KB without a word.",
      now: "Each is whole up to 32 KB, 64 KB together; every cut is a warning.",
    },
    {
      subject: "What cannot heal",
      was: "A used or empty ref, a URL that breaks a rule by itself and a refused mail were tried for 26 hours.",
      now: "They end the event at the first attempt with its alert; sender_domain_required refuses its own action alone; it and invite_capped are told at the first failure.",
    },
    {
      subject: "when",
      was: "A value was one text.",
      now: "It is a text or a list of up to 20, any of which matches; the store templates cover renewals, cancellations and expiries.",
    },
    {
      subject: "Erasing a person",
      was: "Waiting events, retries and replays could bring the address back, and it stayed in stored payloads.",
      now: "Events received before the erasure end person_erased, payloads, calls and mails are expunged, and the address is nowhere in the database afterwards. One event's payload can be expunged by hand.",
    },
    {
      subject: "A product's key",
      was: "It could change while people held it.",
      now: "It cannot while live grants hang on the product: 409 key_in_use.",
    },
    {
      subject: "Warnings at a save",
      was: null,
      now: "Refs that tell no payments apart, an end that is past, a called URL that no server calls, a key that names nothing, an origin with a star; the unsigned rule warns of every widening.",
    },
    {
      subject: "A suspended person",
      was: "Access answered their grants; some actions ran.",
      now: "Access says suspended and grants nothing; an event ends at its first attempt whatever its actions.",
    },
    {
      subject: "A body's kind",
      was: "The unsigned Content-Type decided between JSON and form.",
      now: "The bytes decide; processor and hooks read JSON alone; a form has at most 1,000 fields; a literal dotted name stands for a path in forms alone.",
    },
    {
      subject: "One secret in two environments",
      was: "Some ways in were not compared.",
      now: "A secret that verifies the same relay name in another environment is refused on every way in; relay doctor names those from before.",
    },
    {
      subject: "Verified events a minute",
      was: "Duplicates and ignored calls spent them.",
      now: "Only what becomes an event does; the others have RELAY_LIMIT_EVENTLESS_CALLS_PER_MINUTE (600) a relay.",
    },
    {
      subject: "Bodies that arrive",
      was: null,
      now: "They have bounded room, by address and altogether (429 body_capped), and a time (408 body_slow).",
    },
    {
      subject: "Odd requests and proxies",
      was: null,
      now: "Two Host headers, backslashes, dot segments and two slashes in a row are 400 ambiguous_request; a slash at the end of an API path is 404; X-Forwarded-For may carry ports; a --trusted-proxy that means everyone is refused at the start.",
    },
    {
      subject: "A server on the network without a base URL",
      was: "It served cookies over plain http.",
      now: "Nobody can sign in before --base-url is given: base_url_needed.",
    },
    {
      subject: "Signing in to the dashboard",
      was: "Strangers could guess on, or lock the owner out.",
      now: "Attempts are counted by address, IPv6 network and account; a browser that signed in before has attempts of its own; passwords wait in a bounded queue.",
    },
    {
      subject: "Sign-in codes of an app",
      was: "A stranger could keep a person signed out and spend the invites and mails of relays.",
      now: "Several codes are good at once; sign-ups and codes have budgets of their own; sign-in can be for invited people only.",
    },
    {
      subject: "Keys and links",
      was: "A secret key could mint keys; the set-up link outlived the first owner.",
      now: "Keys are minted and revoked by owners and on the command line; the set-up link ends with the first owner; a link that has ended says so before the form.",
    },
    {
      subject: "Fingerprints of secrets",
      was: "Plain hashes.",
      now: "Keyed by the master key (hmac:…); public keys' stay. Store tokens can be sent in the body.",
    },
    {
      subject: "Settings",
      was: "An unknown alert code was kept.",
      now: "Unknown names anywhere are refused by name.",
    },
    {
      subject: "What signed-up people write",
      was: null,
      now: "Writes, the events they make and stored bytes are capped by person, address and app: writes_capped, storage_capped.",
    },
    {
      subject: "Long requests",
      was: "A search or a large body could stop every receiver.",
      now: "No request holds the service for more than 25 ms; lists with a filter may answer a short page that has a next.",
    },
    {
      subject: "A data directory that is gone",
      was: "The server went on answering 200.",
      now: "It answers 503 and says why; a start beside a key without its database refuses.",
    },
    {
      subject: "A second server",
      was: "Removing runner.lock let one in, and effects doubled.",
      now: "It is refused, and what it does is fenced by a lease in the database; a command of a newer version is refused beside an older server instead of migrating under it.",
    },
    {
      subject: "Starts and full disks",
      was: "A start scanned every event; a full disk ended it.",
      now: "The port opens when the start has succeeded; on a full disk it answers 503 and goes on when there is room. /readyz writes and syncs.",
    },
    {
      subject: "Logs",
      was: null,
      now: "Lines that repeat are one a minute with a count; a log that cannot be written never ends the server; control characters of any kind never reach it.",
    },
    {
      subject: "Schedules and clocks",
      was: "A clock that was a day ahead for a moment cost a day of ticks.",
      now: "A clock that was set is waited out for a minute, and ticks that were stored as missed run when their time comes.",
    },
    {
      subject: "Commands",
      was: "A refusal was a sentence.",
      now: "It says its code and where that is explained, with --json as an object; relay help <code> explains one.",
    },
    {
      subject: "Refusals of the API",
      was: "Bodies and definitions were refused in two kinds of sentences.",
      now: "One kind: which field, why, what to do. Results of events carry docs too.",
    },
  ],
  codesAdded: [
    "body_capped",
    "body_slow",
    "payload_expunged",
    "not_expungeable",
    "ambiguous_request",
    "base_url_needed",
    "signin_busy",
    "key_in_use",
    "signup_capped",
    "writes_capped",
    "storage_capped",
    "mail_settled",
    "mail_not_possible",
  ],
  codesRemoved: [],
};
