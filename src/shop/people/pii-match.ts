/**
 * Finds and redacts one person in stored texts: their address in any case, also percent-encoded or JSON-escaped, but not as a part of a longer
 * address; their id, account tokens and customer ids. It knows no table.
 */
import { isJsonObject, type Json, parseJson, scalarText, writeJson } from "../../base/json.ts";
import { toEmailKey, toPunycodeKey } from "./person.ts";
import type { ErasureTarget } from "./person-erase.ts";

const ERASED = "erased";
/** A customer id without a letter can be any number of an event. */
const HAS_LETTER = /\p{L}/u;
/** A hyphen is special only inside brackets; an escaped one is invalid in a `u` pattern. */
const SPECIAL = /[\\^$.*+?()[\]{}|/]/;
const LITERAL = /^[\p{L}\p{N}]$/u;
const ESCAPED = /\\+(?:u([0-9a-fA-F]{4})|(\/))/g;
/** Context that makes the match a part of a longer address. A dot or hyphen counts only if it leads to a last domain label. */
const LONGER_BEFORE = "(?<![\\p{L}\\p{N}._+-](?<!%[0-9a-f]{2}))";
const LONGER_AFTER =
  "(?![\\p{L}\\p{N}]|(?:-[\\p{L}\\p{N}-]*)?(?:\\.[\\p{L}\\p{N}-]+)*\\.(?:\\p{L}{2,}|xn--[\\p{L}\\p{N}-]+)(?![\\p{L}\\p{N}-]))";

/** The way to redact an address. */
interface Redaction {
  /** Redact with the person's id, so that two different texts stay different. */
  unique?: boolean;
  /** The text belongs to the person, so also redact a part of what could be a longer address, such as `order-ada@example.com-7`. */
  own?: boolean;
}

export class PiiMatcher {
  readonly personId: string;
  /** Another person has or had the address too. */
  readonly isShared: boolean;
  readonly #namedSince: number;
  readonly #hadBetween: ErasureTarget["hadBetween"];
  readonly #emailKey: string;
  readonly #tokens: ReadonlySet<string>;
  readonly #customers: NonNullable<ErasureTarget["customers"]>;
  readonly #anywhere: RegExp;
  readonly #standalone: RegExp;
  readonly #everywhere: RegExp;
  readonly #isAscii: boolean;

  constructor({
    personId,
    email,
    namesake = null,
    namedSince,
    hadBetween,
    tokens,
    customers = [],
  }: ErasureTarget) {
    this.personId = personId;
    this.isShared = namesake !== null;
    const since = namedSince === undefined && !this.isShared ? 0 : namedSince;
    this.#namedSince = since ?? Infinity;
    this.#hadBetween = hadBetween;
    this.#emailKey = toEmailKey(email);
    this.#tokens = new Set(tokens);
    this.#customers = customers;
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it asks for exactly these.
    this.#isAscii = /^[\x00-\x7f]*$/.test(this.#emailKey);
    const spellings = [this.#emailKey, toPunycodeKey(email)].filter((one) => one !== null);
    const address = `(?:${spellings.map((one) => Array.from(one, spell).join("")).join("|")})`;
    this.#anywhere = new RegExp(address, "iu");
    this.#everywhere = new RegExp(address, "giu");
    this.#standalone = new RegExp(LONGER_BEFORE + address + LONGER_AFTER, "giu");
  }

  /** Reports whether an event without a person that arrived then and names the address means the erased person. */
  isNamedAt(arrivedAt: number): boolean {
    if (arrivedAt >= this.#namedSince) return true;
    const [from, until] = this.#hadBetween ?? [0, 0];
    return arrivedAt >= from && arrivedAt < until;
  }

  /** Reports whether the text contains the address, possibly within a longer one. */
  holdsAddress(text: string): boolean {
    const plain = this.#plain(text);
    if (this.#anywhere.test(plain)) return true;
    return plain.includes("\\") && this.#anywhere.test(readEscapes(plain));
  }

  /** Reports whether the text contains the id or a token. */
  holdsId(text: string): boolean {
    return text.includes(this.personId) || this.#tokens.values().some((token) => text.includes(token));
  }

  /** Reports whether the text contains a customer id. */
  holdsCustomer(text: string): boolean {
    return this.#customers.some(({ id }) => text.includes(id));
  }

  isCustomer(space: string, value: Json | undefined): boolean {
    const text = scalarText(value)?.trim();
    return this.#customers.some((one) => one.space === space && one.id === text);
  }

  /** Reports whether a text anywhere in the value is a customer id of the space with a letter in it. */
  namesCustomer(space: string, value: Json): boolean {
    if (typeof value === "string") return HAS_LETTER.test(value) && this.isCustomer(space, value);
    if (Array.isArray(value)) return value.some((item) => this.namesCustomer(space, item));
    return isJsonObject(value) && Object.values(value).some((inner) => this.namesCustomer(space, inner));
  }

  isAddress(value: Json | undefined): boolean {
    const text = scalarText(value);
    return text !== null && toEmailKey(text.trim()) === this.#emailKey;
  }

  isToken(value: Json | undefined): boolean {
    return this.#tokens.has(scalarText(value)?.trim() ?? "");
  }

  /** Redacts the address in a text, also behind JSON escapes, which are then decoded. */
  redact(text: string, { unique = false, own = false }: Redaction = {}): string {
    const plain = this.#plain(text);
    const shown = plain.includes("\\") && !this.#anywhere.test(plain) ? readEscapes(plain) : plain;
    const redacted = shown.replace(
      own ? this.#everywhere : this.#standalone,
      unique ? `${ERASED}-${this.personId}` : ERASED,
    );
    return redacted === shown ? text : redacted;
  }

  /** Redacts every text and name of a JSON value. */
  redactJson(value: Json, how: Redaction = {}): Json {
    if (typeof value === "string") return this.redact(value, how);
    if (Array.isArray(value)) return value.map((item) => this.redactJson(item, how));
    if (!isJsonObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [this.redact(name, how), this.redactJson(inner, how)]),
    );
  }

  /** Redacts a stored text that may be JSON. */
  redactStored(text: string, how: Redaction = {}): string {
    if (!/^[[{]/.test(text)) return this.redact(text, how);
    try {
      return writeJson(this.redactJson(parseJson(text), how));
    } catch {
      return this.redact(text, how);
    }
  }

  /**
   * Redacts each text of a JSON value that is a customer id of the space; null: of any space. An id without a letter is redacted only in a value that
   * is known to be the person's.
   */
  redactCustomers(value: Json, where: { space: string | null; isTheirs: boolean }): Json {
    if (typeof value === "string") {
      const { space, isTheirs } = where;
      const ids = this.#customers.filter((one) => one.id === value && (space ?? one.space) === one.space);
      return ids.length > 0 && (isTheirs || HAS_LETTER.test(value)) ? ERASED : value;
    }
    if (Array.isArray(value)) return value.map((item) => this.redactCustomers(item, where));
    if (!isJsonObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [name, this.redactCustomers(inner, where)]),
    );
  }

  #plain(text: string): string {
    return this.#isAscii ? text : text.normalize("NFC");
  }
}

/** Returns the pattern of a character, plain or percent-encoded as in a URL. */
function spell(char: string): string {
  if (LITERAL.test(char)) return char;
  const encoded = Array.from(
    new TextEncoder().encode(char),
    (byte) => `%${byte.toString(16).padStart(2, "0")}`,
  );
  return `(?:${char.replace(SPECIAL, "\\$&")}|${encoded.join("")})`;
}

function readEscapes(text: string): string {
  return text.replace(ESCAPED, (_whole, code: string | undefined, slash: string | undefined) =>
    code === undefined ? (slash ?? "") : String.fromCharCode(Number.parseInt(code, 16)),
  );
}
