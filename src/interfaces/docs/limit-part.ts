/** Documents every limit with its number: the fixed ones with their texts, and those that environment variables raise. */
import * as LIMITS from "../../base/limit.ts";
import { LIMIT_WORDS } from "../../base/limit-text.ts";
import { formatCount } from "../../base/text.ts";
import { writeTable } from "./markdown.ts";

const { DEFAULT_LIMITS, RETRY_DELAYS_MS } = LIMITS;

/** Units, and limits that another part documents. */
type HiddenLimit =
  | "MINUTE_MS"
  | "HOUR_MS"
  | "DAY_MS"
  | "DEFAULT_LIMITS"
  | "RETRY_DELAYS_MS"
  | "MAX_UNCOUNTED_US"
  | "MIN_BODY_LIMIT_BYTES"
  | "MAX_BODY_TEXT_CHARS"
  | "HEAVY_BODY_BYTES"
  | "CAP_WINDOW_MS";

type ShownLimit = Exclude<keyof typeof LIMITS, HiddenLimit>;

/** The texts, grouped by what they limit, in the order of the page. The type requires a text for every new constant of base/limit.ts. */
const WORDS: Readonly<Record<string, Partial<Record<ShownLimit, string>>>> = {
  Definitions: {
    MAX_ACTIONS_PER_RELAY: "Actions of a relay.",
    MAX_FOLLOWERS: "Relays that follow one receiver.",
    MAX_MAP_NAMES: "Names of a map.",
    MAX_WHEN_VALUES: "Texts of which one name in `when` takes any.",
    MIN_CREDITS: "The least that `grant_credits` adds.",
    MAX_CREDITS: "The most that `grant_credits` adds.",
    MAX_REASON_CHARS: "A reason, written and filled in.",
    MAX_REF_CHARS: "A ref.",
    MAX_SUBJECT_CHARS: "A mail's subject.",
    MAX_EMAIL_TEXT_CHARS: "A mail's text.",
    MAX_RENDERED_CHARS: "What the templates of one value render to; the rest is cut.",
    MAX_SIGNED_PAYLOAD_LITERAL_CHARS: "Characters around the placeholders of `signedPayload`.",
  },
  "A request to a receiver": {
    MAX_RECEIVER_BODY_BYTES: "A body.",
    MAX_FORM_FIELDS: "Fields of a form.",
    MAX_NUMBER_DIGITS: "Digits of one number in a body, also in the API.",
    MAX_SIGNATURES: "Signatures in a header.",
    MAX_TIMESTAMP_DIGITS: "Digits of a timestamp.",
    MAX_TOLERANCE_SECONDS: "How old or new a timestamp may be; the default too.",
    MAX_BODIES_BYTES: "Bodies that are arriving, altogether.",
    MAX_BODIES_PER_ADDRESS_BYTES: "Bodies that are arriving, from one address.",
    BODY_PATIENCE_MS: "The time that a body may take, in addition to its bytes at the rate of the next line.",
    MIN_BODY_BYTES_PER_SECOND: "The pace of a body, a second.",
    MIN_PASTED_SECRET_CHARS: "A pasted secret, at least.",
    MIN_MIXED_PASTED_SECRET_CHARS: "A pasted secret that mixes upper case, lower case and digits, at least.",
    MAX_SECRET_OVERLAP_SECONDS: "How long an earlier secret may verify after a rotation.",
    SIGNATURE_MEMORY_AFTER_DELETE_MS:
      "How long a signature that works once is known after its relay is deleted.",
    MAX_RECENT_CALLS: "Kept requests of an environment that created no event; new ones replace the oldest.",
  },
  "An event": {
    MAX_STORED_PAYLOAD_BYTES: "A stored payload; of a larger one the mapped values are kept.",
    MAX_PREVIEW_BYTES: "What is shown of a larger payload.",
    MAX_MAPPED_VALUE_BYTES: "A mapped value of a larger payload.",
    MAX_MAPPED_BYTES: "All mapped values of a larger payload.",
    MAX_CHANGED_VALUE_BYTES: "A field's value of a larger record change.",
    MAX_ATTEMPTS: "Attempts.",
    EVENT_RETENTION_MS: "How long an event is kept, and how long one that waits is held.",
  },
  "A called URL": {
    CALL_TIMEOUT_MS: "How long it may take.",
    MAX_KEPT_ANSWER_BYTES: "What is kept of its answer.",
    MAX_KEPT_HEADER_CHARS: "What is kept of its answer's headers.",
  },
  "Records, people and the catalog": {
    MAX_RECORD_BYTES: "A record's data.",
    MAX_COLLECTION_FIELDS: "Fields of a collection.",
    MAX_JSON_DEPTH: "Levels of a JSON value that is kept.",
    MAX_FILE_BYTES: "A file.",
    MAX_FILE_NAME_CHARS: "A file's name.",
    MAX_ACCESS_SLUGS: "Access slugs of an environment.",
    MAX_TITLE_CHARS: "A title.",
    MAX_CREDIT_LINE: "One line of credits by API, either way.",
    MAX_ATTRIBUTES_BYTES: "A person's attributes.",
    MAX_ACCOUNT_TOKEN_CHARS: "A store account token.",
    MAX_CUSTOMER_ID_CHARS: "A provider's id of a customer.",
    MAX_EMAIL_CHARS: "An email address.",
    MAX_EMAIL_LOCAL_CHARS: "The part before its @.",
    MAX_ONCE_KEY_CHARS: "A key under which something applies once.",
  },
  "The API": {
    MAX_MANAGEMENT_BODY_BYTES: "A body; less where the fields of the route cannot hold as much.",
    MAX_BODY_VALUES: "Values in a body.",
    MAX_PROBLEMS: "Problems that an answer lists.",
    MAX_PIPELINED_REQUESTS:
      "Requests that arrive together on one connection and are answered; then the service closes the connection.",
    MAX_LARGE_PLAN_CHANGES: "Changes of one plan that an owner approves, or that fills an empty environment.",
    APPROVALS_PER_MINUTE: "Approvals asked for in a minute, of an environment.",
    APPROVAL_LIFE_MS: "How long an approval waits.",
    APPROVAL_RETENTION_MS: "How long an approval's page can be looked at.",
    MAX_RELAY_CASES: "Cases of one relay.",
    MAX_CASE_BODY_BYTES: "The body of a case.",
    MAX_CASES_BYTES: "The bodies and results of all cases of one relay.",
    MAX_CASES_RUN: "Cases that one plan runs.",
    APPLY_RESPONSE_LIFE_MS: "How long the response of an apply with a key can be requested again.",
    CAPTURE_LIFE_MS: "How long a capture exists. Then it is deleted with its requests.",
    MAX_CAPTURED_REQUESTS: "Requests of one capture.",
    MAX_CAPTURED_BYTES: "The bodies of a capture together, from which it stores no further request.",
    MAX_OPEN_CAPTURES: "Open captures of an environment. A new one replaces the oldest.",
    MAX_APPLY_RESPONSES: "Kept responses of applies, of one caller in an environment.",
  },
  "What is kept": {
    AUDIT_RETENTION_MS: "The audit of changes, and alerts and problems that are over.",
    RUN_AUDIT_RETENTION_MS: "The audit of runs.",
    EMAIL_RETENTION_MS: "Mails.",
  },
  "Signing in to the dashboard": {
    PASSWORD_WINDOW_MS: "The time in which wrong passwords are counted.",
    MAX_PASSWORDS_PER_ACCOUNT: "Wrong passwords for an account from strangers to it.",
    MAX_PASSWORDS_PER_ADDRESS: "Wrong passwords from an address.",
    MAX_PASSWORDS_PER_NETWORK: "Wrong passwords from an IPv6 /48.",
    MAX_LINK_TRIES_PER_ADDRESS: "One-time links tried from an address.",
    MAX_LINK_TRIES_PER_NETWORK: "One-time links tried from an IPv6 /48.",
    OIDC_SIGNIN_LIFE_MS: "How long a sign-in at the OpenID provider can take.",
    MAX_OIDC_SIGNINS_PER_ADDRESS: "Sign-ins at the OpenID provider that begin from an address.",
    MAX_OIDC_SIGNINS_PER_NETWORK: "Sign-ins at the OpenID provider that begin from an IPv6 /48.",
    MAX_WAITING_PASSWORDS: "Passwords that wait to be checked.",
    RECENT_AUTHENTICATION_MS: "How long after an authentication a session may do what is sensitive.",
    KNOWN_DEVICE_LIFE_MS: "How long a browser or a network stays known.",
    MAX_NETWORKS_PER_OWNER: "Networks that stay known to an account.",
    LOGIN_LIFE_MS: "How long `relay login` waits for an owner.",
    LOGIN_POLL_SECONDS: "How often `relay login` asks.",
    MAX_WAITING_LOGINS: "Logins of the command line that wait.",
    MAX_WAITING_LOGINS_PER_PROVIDER: "Logins of the command line that wait in one IPv4 /24 or IPv6 /32.",
    MAX_LOGINS_PER_ADDRESS: "Logins begun from an address.",
    MAX_LOGINS_PER_NETWORK: "Logins begun from an IPv6 /48.",
    MAX_LOGIN_CODE_TRIES: "Wrong codes that an owner types.",
    DEFAULT_LOGIN_KEY_DAYS: "How long a login's key works, in days.",
    MAX_LOGIN_KEY_DAYS: "The same at most.",
  },
  "Signing in to your app": {
    CODE_DIGITS: "Digits of a code.",
    CODE_LIFE_MS: "How long a code works.",
    MAX_CODE_TRIES: "Wrong tries from the network that asked for it.",
    MAX_FOREIGN_CODE_TRIES: "Wrong tries from all other networks together.",
    SIGNIN_WINDOW_MS: "The time in which the next lines are counted.",
    MAX_CODES_PER_EMAIL_AND_NETWORK: "Codes for an address, asked for from one network.",
    MAX_CODES_PER_EMAIL: "Codes for an address, from networks that its person never signed in from.",
    MAX_CODES_PER_ADDRESS: "Codes asked for from one network address.",
    MAX_CODES_PER_NETWORK: "Codes asked for from an IPv6 /48.",
    MAX_SIGNINS_PER_ADDRESS: "Sign-ins from one network address.",
    MAX_SIGNINS_PER_NETWORK: "Sign-ins from an IPv6 /48.",
    PERSON_SESSION_LIFE_MS: "How long a person stays signed in.",
  } satisfies Partial<Record<ShownLimit, string>>,
};

export function writeFixedLimits(): string {
  return Object.entries(WORDS)
    .map(([heading, words]) => {
      const rows = Object.entries(words).map(([name, sentence]) => [
        sentence,
        formatLimit(name, Number(VALUES.get(name))),
      ]);
      return `### ${heading}\n\n${writeTable(["what", "limit"], rows)}`;
    })
    .join("\n\n");
}

const VALUES: ReadonlyMap<string, unknown> = new Map(Object.entries(LIMITS));

const KIB = 1024;

/** Formats the number with the unit that its name ends with. */
function formatLimit(name: string, value: number): string {
  if (name.endsWith("_MS")) return formatTime(value);
  if (name.includes("SECONDS") && !name.includes("BYTES")) return formatTime(value * 1_000);
  if (name.includes("BYTES"))
    return value % (KIB * KIB) === 0 ? `${value / KIB / KIB} MB` : `${value / KIB} KB`;
  return `${formatCount(value)}${name.includes("CHARS") ? " characters" : ""}`;
}

function formatTime(ms: number): string {
  const { MINUTE_MS, HOUR_MS, DAY_MS } = LIMITS;
  const units: readonly [number, string][] = [
    [DAY_MS, "day"],
    [HOUR_MS, "hour"],
    [MINUTE_MS, "minute"],
    [1_000, "second"],
  ];
  const [size, unit] = units.find(([size]) => ms >= size && ms % size === 0) ?? [1, "millisecond"];
  return `${formatCount(ms / size)} ${unit}${ms === size ? "" : "s"}`;
}

/** Documents the waits between delivery attempts. */
export function writeRetries(): string {
  return `The waits between attempts are ${RETRY_DELAYS_MS.map(formatTime).join(", ")}.`;
}

export function writeRaisableLimits(): string {
  const rows = Object.entries(LIMIT_WORDS).map(([name, { variable, counts, hit }]) => [
    `\`${variable}\``,
    formatCount(DEFAULT_LIMITS[name as keyof typeof DEFAULT_LIMITS]),
    `${counts} ${hit}`,
  ]);
  return writeTable(["variable", "default", "what it counts, and what is over it"], rows);
}

/** Every constant that has a text, so that a test can check that none is missing. */
export const SHOWN_LIMITS: readonly string[] = Object.values(WORDS).flatMap((words) => Object.keys(words));
