/**
 * Every limit of the specification, one named constant each, units last in the name.
 * The ones in `RaisableLimits` can be raised in the server's configuration; nothing else is a knob.
 */

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

export const MAX_ACTIONS_PER_RELAY = 10;
export const MAX_MAP_NAMES = 20;
/** Texts of which one name in `when` takes any. */
export const MAX_WHEN_VALUES = 20;
export const MAX_RECEIVER_BODY_BYTES = 256 * 1024;
/** Bodies that are still arriving hold at most this much memory, altogether and from one address. */
export const MAX_BODIES_BYTES = 64 * 1024 * 1024;
export const MAX_BODIES_PER_ADDRESS_BYTES = 16 * 1024 * 1024;
/** How long a body may take: this, and its bytes at this pace. */
export const BODY_PATIENCE_MS = 30_000;
export const MIN_BODY_BYTES_PER_SECOND = 16 * 1024;
/** Fields of a form that a receiver reads; each one costs, read or not signed. */
export const MAX_FORM_FIELDS = 1_000;
/** Work on a call that has not verified, before the cap of its address is looked at. */
export const MAX_UNCOUNTED_US = 1_000;
export const MAX_STORED_PAYLOAD_BYTES = 32 * 1024;
export const MAX_PREVIEW_BYTES = 4 * 1024;
/** A mapped value of a payload that is larger, and all of them together. */
export const MAX_MAPPED_VALUE_BYTES = 32 * 1024;
export const MAX_MAPPED_BYTES = 64 * 1024;
/** A field's value of a record change that is larger. */
export const MAX_CHANGED_VALUE_BYTES = 2 * 1024;
export const MAX_SIGNATURES = 8;
export const MAX_TIMESTAMP_DIGITS = 13;
export const MAX_TOLERANCE_SECONDS = 300;
export const MAX_SIGNED_PAYLOAD_LITERAL_CHARS = 40;
export const MIN_PASTED_SECRET_CHARS = 24;
export const MIN_MIXED_PASTED_SECRET_CHARS = 22;
export const MIN_CREDITS = 1;
export const MAX_CREDITS = 10_000;
export const MAX_REASON_CHARS = 200;
export const MAX_REF_CHARS = 200;
export const MAX_SUBJECT_CHARS = 300;
export const MAX_EMAIL_TEXT_CHARS = 10_000;
export const CALL_TIMEOUT_MS = 10_000;
export const MAX_KEPT_ANSWER_BYTES = 4 * 1024;
/** Of an answer's headers, names and values together. */
export const MAX_KEPT_HEADER_CHARS = 1_024;
/** Waits between the seven attempts of an event. */
export const RETRY_DELAYS_MS: readonly number[] = [
  MINUTE_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  8 * HOUR_MS,
  16 * HOUR_MS,
];
export const MAX_ATTEMPTS = RETRY_DELAYS_MS.length + 1;
export const EVENT_RETENTION_MS = 30 * DAY_MS;
/** Audit rows of management changes, and alerts and problems that are over. */
export const AUDIT_RETENTION_MS = 400 * DAY_MS;
/** Audit rows of runs, one each: they are most of the audit, so they stay past their events but not for a year. */
export const RUN_AUDIT_RETENTION_MS = 90 * DAY_MS;
export const EMAIL_RETENTION_MS = 90 * DAY_MS;
export const SIGNATURE_MEMORY_AFTER_DELETE_MS = DAY_MS;
export const CAP_WINDOW_MS = MINUTE_MS;
/** Of one plan that an owner approves; all of it is one transaction. */
export const MAX_APPROVED_CHANGES = 300;
/** Refused, ignored and duplicate calls kept an environment; the oldest make room. */
export const MAX_RECENT_CALLS = 1_000;
/** How long an earlier receiver secret may go on verifying after a rotation. */
export const MAX_SECRET_OVERLAP_SECONDS = 7 * 86_400;
export const MAX_MANAGEMENT_BODY_BYTES = 1024 * 1024;
/** The least that a route's own limit for its body can be: enough for a wrong body to get a sentence about its fields. */
export const MIN_BODY_LIMIT_BYTES = 4 * 1024;
/** A text of a body whose field names no length of its own. */
export const MAX_BODY_TEXT_CHARS = 1_000;
/** Scalars, lists and objects of such a body together: reading it then takes milliseconds. */
export const MAX_BODY_VALUES = 25_000;
/** Digits of one number in a body of any kind: reading a longer one costs more than its bytes. */
export const MAX_NUMBER_DIGITS = 1_000;
/** Problems that one answer lists. */
export const MAX_PROBLEMS = 20;
/** A body of more bytes is read in a turn of the event loop in which no other such body is read. */
export const HEAVY_BODY_BYTES = 32 * 1024;
/** Requests that came together on one connection and are answered in one turn of the event loop. */
export const MAX_PIPELINED_REQUESTS = 32;
/** An uploaded file, kept in the database. */
export const MAX_FILE_BYTES = 5 * 1024 * 1024;
export const MAX_FILE_NAME_CHARS = 200;
/** A record's data as JSON in UTF-8. */
export const MAX_RECORD_BYTES = 256 * 1024;
/** A text rendered from a template, or all texts of one rendered value together; the rest is cut. */
export const MAX_RENDERED_CHARS = 256 * 1024;
/** A JSON value that is kept: an attribute, a record's field. What is read and let go has bounds of its own, where it is read. */
export const MAX_JSON_DEPTH = 32;
export const MAX_COLLECTION_FIELDS = 100;
export const MAX_ACCESS_SLUGS = 1_000;
export const MAX_TITLE_CHARS = 200;
/** One line of the ledger by API, either way; a relay's grant_credits has its own, smaller bounds. */
export const MAX_CREDIT_LINE = 1_000_000_000;
/** A person's attributes as JSON in UTF-8. */
export const MAX_ATTRIBUTES_BYTES = 16 * 1024;
export const MAX_ACCOUNT_TOKEN_CHARS = 200;
/** An e-mail address (RFC 5321, 4.5.3.1): the whole, and what stands before the @. */
export const MAX_EMAIL_CHARS = 254;
export const MAX_EMAIL_LOCAL_CHARS = 64;
export const MAX_ONCE_KEY_CHARS = 200;
/** Signing in to the dashboard: passwords of strangers to the account; a known device or address has a window of the account's size. */
export const PASSWORD_WINDOW_MS = 15 * MINUTE_MS;
export const MAX_PASSWORDS_PER_ACCOUNT = 10;
export const MAX_PASSWORDS_PER_ADDRESS = 30;
/** From one IPv6 /48; a caller's own address is its /64. */
export const MAX_PASSWORDS_PER_NETWORK = 60;
export const MAX_LINK_TRIES_PER_ADDRESS = 10;
export const MAX_LINK_TRIES_PER_NETWORK = 30;
/** Passwords that wait to be hashed: strangers', and beside them as many of known devices, sessions and one-time links. */
export const MAX_WAITING_PASSWORDS = 16;
/** How long a browser, and a network, stays known to the account that signed in from it. */
export const KNOWN_DEVICE_LIFE_MS = 400 * DAY_MS;
/** Networks that stay known to an account; the one that was used least recently makes room. */
export const MAX_NETWORKS_PER_OWNER = 20;
/** How long a change of production waits for an owner's approval in the browser, and how many may be asked for in a minute. */
export const APPROVAL_LIFE_MS = 10 * MINUTE_MS;
export const APPROVALS_PER_MINUTE = 10;
/** How long an approval's page can be looked at after it is over; the audit of it stays. */
export const APPROVAL_RETENTION_MS = 7 * DAY_MS;
/** Signing a command in through the dashboard; `account/login.ts`. */
export const LOGIN_LIFE_MS = 10 * MINUTE_MS;
export const LOGIN_POLL_SECONDS = 5;
/** Logins that wait: of the whole server, and of one IPv4 /24 or IPv6 /32; and those begun from one address or IPv6 /48 within their life. */
export const MAX_WAITING_LOGINS = 1_000;
export const MAX_WAITING_LOGINS_PER_PROVIDER = 250;
export const MAX_LOGINS_PER_ADDRESS = 10;
export const MAX_LOGINS_PER_NETWORK = 30;
/** Wrong codes that an owner types within a login's life. */
export const MAX_LOGIN_CODE_TRIES = 20;
export const DEFAULT_LOGIN_KEY_DAYS = 90;
export const MAX_LOGIN_KEY_DAYS = 365;
/** Signing in to an app with an e-mailed code; `portal/person-code.ts` shows what guessing costs. */
export const CODE_DIGITS = 6;
export const CODE_LIFE_MS = 10 * MINUTE_MS;
/** Wrong tries that a code takes from the network that asked for it, and from all others together. */
export const MAX_CODE_TRIES = 5;
export const MAX_FOREIGN_CODE_TRIES = 3;
export const SIGNIN_WINDOW_MS = HOUR_MS;
/** Codes an hour for one e-mail address: from one network, and from all that its person never signed in from. */
export const MAX_CODES_PER_EMAIL_AND_NETWORK = 5;
export const MAX_CODES_PER_EMAIL = 10;
export const MAX_CODES_PER_ADDRESS = 30;
export const MAX_CODES_PER_NETWORK = 60;
export const MAX_SIGNINS_PER_ADDRESS = 60;
export const MAX_SIGNINS_PER_NETWORK = 120;
export const PERSON_SESSION_LIFE_MS = 30 * DAY_MS;

/** The limits a configuration may raise ("Limits are raised on request"). */
export interface RaisableLimits {
  relaysPerEnvironment: number;
  verifiedEventsPerMinute: number;
  /** Verified calls of one relay that become no event: duplicates, those that `when` ignores, bodies that are not JSON. */
  eventlessCallsPerMinute: number;
  unverifiedCallsPerMinute: number;
  invitesPerDay: number;
  signupsPerDay: number;
  codesPerHour: number;
  strangerCodesPerHour: number;
  emailsPerHour: number;
  eventEmailsPerPersonPerDay: number;
  syncChangesPerMinute: number;
  /** Records that people write, change or delete through the client library. */
  clientWritesPerPersonPerMinute: number;
  clientWritesPerAddressPerMinute: number;
  clientWritesPerAppPerMinute: number;
  /** Events that such writes make, where relays watch the collection. */
  clientEventsPerPersonPerMinute: number;
  clientEventsPerAppPerMinute: number;
  /** What a person's records take, and all records and files of an environment; in units of 1,048,576 bytes. */
  storedPerPersonMb: number;
  storedPerEnvironmentMb: number;
}

export const DEFAULT_LIMITS: RaisableLimits = {
  relaysPerEnvironment: 20,
  verifiedEventsPerMinute: 120,
  eventlessCallsPerMinute: 600,
  unverifiedCallsPerMinute: 60,
  invitesPerDay: 200,
  signupsPerDay: 200,
  codesPerHour: 100,
  strangerCodesPerHour: 50,
  emailsPerHour: 200,
  eventEmailsPerPersonPerDay: 5,
  syncChangesPerMinute: 30,
  clientWritesPerPersonPerMinute: 60,
  clientWritesPerAddressPerMinute: 300,
  clientWritesPerAppPerMinute: 3_000,
  clientEventsPerPersonPerMinute: 60,
  clientEventsPerAppPerMinute: 600,
  storedPerPersonMb: 50,
  storedPerEnvironmentMb: 10_000,
};
