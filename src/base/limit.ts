/**
 * Defines every limit of the specification as a named constant, with its unit at the end of the name. A configuration can change only the limits in
 * `RaisableLimits`.
 */

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

export const MAX_ACTIONS_PER_RELAY = 10;
/** Relays that follow one receiver. */
export const MAX_FOLLOWERS = 20;
export const MAX_MAP_NAMES = 20;
/** The most alternative texts of one name in `when`. */
export const MAX_WHEN_VALUES = 20;
export const MAX_RECEIVER_BODY_BYTES = 256 * 1024;
/** The most memory of bodies that are still arriving: altogether, and from one address. */
export const MAX_BODIES_BYTES = 64 * 1024 * 1024;
export const MAX_BODIES_PER_ADDRESS_BYTES = 16 * 1024 * 1024;
/** The base time that a body may take to arrive. Its bytes at MIN_BODY_BYTES_PER_SECOND add more time. */
export const BODY_PATIENCE_MS = 30_000;
export const MIN_BODY_BYTES_PER_SECOND = 16 * 1024;
/** The most fields of a form that a receiver reads, because each field takes time. */
export const MAX_FORM_FIELDS = 1_000;
/** Microseconds of work on an unverified request before the cap of its address is checked. */
export const MAX_UNCOUNTED_US = 1_000;
export const MAX_STORED_PAYLOAD_BYTES = 32 * 1024;
export const MAX_PREVIEW_BYTES = 4 * 1024;
/** The largest mapped value that is stored of a payload above MAX_STORED_PAYLOAD_BYTES, and all such values together. */
export const MAX_MAPPED_VALUE_BYTES = 32 * 1024;
export const MAX_MAPPED_BYTES = 64 * 1024;
/** The largest value of a field that is stored of a large record change. */
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
/** The most characters of a response's headers that are stored, names and values together. */
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
/** The time that audit rows of management changes stay, and resolved alerts and problems. */
export const AUDIT_RETENTION_MS = 400 * DAY_MS;
/** The time that audit rows of runs stay. They are most of the audit, so they stay longer than events but less than a year. */
export const RUN_AUDIT_RETENTION_MS = 90 * DAY_MS;
export const EMAIL_RETENTION_MS = 90 * DAY_MS;
export const SIGNATURE_MEMORY_AFTER_DELETE_MS = DAY_MS;
export const CAP_WINDOW_MS = MINUTE_MS;
/** The most changes in one plan that an owner approves or that fills an empty environment, because a plan is one transaction. */
export const MAX_LARGE_PLAN_CHANGES = 300;
/** The most rejected, ignored and duplicate requests that are stored for an environment. New ones replace the oldest. */
export const MAX_RECENT_CALLS = 1_000;
/** The longest overlap period after the rotation of a receiver secret. */
export const MAX_SECRET_OVERLAP_SECONDS = 7 * 86_400;
export const MAX_MANAGEMENT_BODY_BYTES = 1024 * 1024;
/** The smallest body limit of a route. An invalid small body then still gets a message about its fields. */
export const MIN_BODY_LIMIT_BYTES = 4 * 1024;
/** The longest text in a body whose field has no maximum. */
export const MAX_BODY_TEXT_CHARS = 1_000;
/** The most scalars, lists and objects in such a body, so that it is parsed in milliseconds. */
export const MAX_BODY_VALUES = 25_000;
/** The most digits of a number in any body. A longer number takes more than linear time to parse. */
export const MAX_NUMBER_DIGITS = 1_000;
/** The most problems that one response lists. */
export const MAX_PROBLEMS = 20;
/** The size above which only one body is parsed in a turn of the event loop. */
export const HEAVY_BODY_BYTES = 32 * 1024;
/** The most pipelined requests of one connection that are answered in one turn of the event loop. */
export const MAX_PIPELINED_REQUESTS = 32;
/** The largest uploaded file, which is stored in the database. */
export const MAX_FILE_BYTES = 5 * 1024 * 1024;
export const MAX_FILE_NAME_CHARS = 200;
/** The largest data of a record, as JSON in UTF-8. */
export const MAX_RECORD_BYTES = 256 * 1024;
/** The most characters of a text rendered from a template, or of all texts in one rendered value. The rest is cut. */
export const MAX_RENDERED_CHARS = 256 * 1024;
/** The deepest JSON value that is stored, such as an attribute or a record's field. Values that are only read have their own bounds. */
export const MAX_JSON_DEPTH = 32;
export const MAX_COLLECTION_FIELDS = 100;
export const MAX_ACCESS_SLUGS = 1_000;
export const MAX_TITLE_CHARS = 200;
/** The largest ledger entry by API, in either direction. The action grant_credits has its own, smaller bounds. */
export const MAX_CREDIT_LINE = 1_000_000_000;
/** The largest attributes of a person, as JSON in UTF-8. */
export const MAX_ATTRIBUTES_BYTES = 16 * 1024;
export const MAX_ACCOUNT_TOKEN_CHARS = 200;
/** The longest id of a customer at a provider that Relay stores. */
export const MAX_CUSTOMER_ID_CHARS = 200;
/** The longest email address, and its longest part before the @ (RFC 5321, 4.5.3.1). */
export const MAX_EMAIL_CHARS = 254;
export const MAX_EMAIL_LOCAL_CHARS = 64;
export const MAX_ONCE_KEY_CHARS = 200;
/**
 * Limits of sign-ins to the dashboard with a password from unknown devices. A known device or address has its own window, as large as the account's.
 */
export const PASSWORD_WINDOW_MS = 15 * MINUTE_MS;
export const MAX_PASSWORDS_PER_ACCOUNT = 10;
export const MAX_PASSWORDS_PER_ADDRESS = 30;
/** The limit for one IPv6 /48. A caller's own address is its /64. */
export const MAX_PASSWORDS_PER_NETWORK = 60;
export const MAX_LINK_TRIES_PER_ADDRESS = 10;
export const MAX_LINK_TRIES_PER_NETWORK = 30;
/** The life of a sign-in at the OpenID provider, and the most that begin from one address and one network within it. */
export const OIDC_SIGNIN_LIFE_MS = 10 * MINUTE_MS;
export const MAX_OIDC_SIGNINS_PER_ADDRESS = 60;
export const MAX_OIDC_SIGNINS_PER_NETWORK = 180;
/** The most passwords of unknown devices that wait to be hashed. The same number may wait from known devices, sessions and one-time links. */
export const MAX_WAITING_PASSWORDS = 16;
/** The time after an authentication in which a session may do what is sensitive. */
export const RECENT_AUTHENTICATION_MS = 15 * MINUTE_MS;
/** The time that a browser or a network stays known to the account that signed in from it. */
export const KNOWN_DEVICE_LIFE_MS = 400 * DAY_MS;
/** The most known networks of an account. A new one replaces the least recently used. */
export const MAX_NETWORKS_PER_OWNER = 20;
/** The time that a change of production waits for an owner's approval in the browser. Then the most approvals that can be requested in a minute. */
export const APPROVAL_LIFE_MS = 10 * MINUTE_MS;
export const APPROVALS_PER_MINUTE = 10;
/** The time that an approval's page is available after the approval ended. Its audit rows stay longer. */
export const APPROVAL_RETENTION_MS = 7 * DAY_MS;
/** The time that the response of an apply with a key is kept for its caller. Then the most such responses of one caller in an environment. */
export const APPLY_RESPONSE_LIFE_MS = 10 * MINUTE_MS;
export const MAX_APPLY_RESPONSES = 20;
/** The most cases of a relay, the largest body of one, and the most cases that a plan runs for all its relays. */
export const MAX_RELAY_CASES = 20;
export const MAX_CASE_BODY_BYTES = 64 * 1024;
export const MAX_CASES_RUN = 40;
/** The bodies and results of all cases of a relay. */
export const MAX_CASES_BYTES = 256 * 1024;
/**
 * Captures: how long one exists, the most requests of one, the bytes of bodies from which one is full, and the most that are open in an environment.
 */
export const CAPTURE_LIFE_MS = HOUR_MS;
export const MAX_CAPTURED_REQUESTS = 20;
export const MAX_CAPTURED_BYTES = 256 * 1024;
export const MAX_OPEN_CAPTURES = 10;
/** Sign-in of a command through the dashboard (platform/account/login.ts). */
export const LOGIN_LIFE_MS = 10 * MINUTE_MS;
export const LOGIN_POLL_SECONDS = 5;
/**
 * The most logins that wait, on the whole server and from one IPv4 /24 or IPv6 /32. Then the most logins that start within LOGIN_LIFE_MS, from one
 * address and from one IPv6 /48.
 */
export const MAX_WAITING_LOGINS = 1_000;
export const MAX_WAITING_LOGINS_PER_PROVIDER = 250;
export const MAX_LOGINS_PER_ADDRESS = 10;
export const MAX_LOGINS_PER_NETWORK = 30;
/** The most wrong codes that an owner can type within LOGIN_LIFE_MS. */
export const MAX_LOGIN_CODE_TRIES = 20;
export const DEFAULT_LOGIN_KEY_DAYS = 90;
export const MAX_LOGIN_KEY_DAYS = 365;
/** Sign-in to an app with an emailed code. shop/portal/person-code.ts shows what guessing a code costs. */
export const CODE_DIGITS = 6;
export const CODE_LIFE_MS = 10 * MINUTE_MS;
/** The most wrong attempts that a code allows: from the network that requested it, and from all others together. */
export const MAX_CODE_TRIES = 5;
export const MAX_FOREIGN_CODE_TRIES = 3;
export const SIGNIN_WINDOW_MS = HOUR_MS;
/** The most codes in an hour for one email address: from one network, and from all networks from which its person never signed in. */
export const MAX_CODES_PER_EMAIL_AND_NETWORK = 5;
export const MAX_CODES_PER_EMAIL = 10;
export const MAX_CODES_PER_ADDRESS = 30;
export const MAX_CODES_PER_NETWORK = 60;
export const MAX_SIGNINS_PER_ADDRESS = 60;
export const MAX_SIGNINS_PER_NETWORK = 120;
export const PERSON_SESSION_LIFE_MS = 30 * DAY_MS;

/** The limits that a configuration can raise (specification: "Limits are raised on request"). */
export interface RaisableLimits {
  relaysPerEnvironment: number;
  verifiedEventsPerMinute: number;
  /** Verified requests of one relay that create no event: duplicates, requests that `when` ignores, bodies that are not JSON. */
  eventlessCallsPerMinute: number;
  unverifiedCallsPerMinute: number;
  invitesPerDay: number;
  signupsPerDay: number;
  codesPerHour: number;
  strangerCodesPerHour: number;
  emailsPerHour: number;
  eventEmailsPerPersonPerDay: number;
  syncChangesPerMinute: number;
  /** Records that people create, change or delete through the client library. */
  clientWritesPerPersonPerMinute: number;
  clientWritesPerAddressPerMinute: number;
  clientWritesPerAppPerMinute: number;
  /** Events that such writes create if relays watch the collection. */
  clientEventsPerPersonPerMinute: number;
  clientEventsPerAppPerMinute: number;
  /** The size of a person's records, and of all records and files of an environment, in units of 1,048,576 bytes. */
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
