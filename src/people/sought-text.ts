/**
 * Finding one person in stored texts: their address in any letters' case, also percent-encoded and behind JSON's escapes, never as a part of
 * a longer address; their id and their account tokens. It reads and rewrites text and knows no table.
 */
import { isJsonObject, type Json, parseJson, scalarText, writeJson } from "../ground/json.ts";
import { toEmailKey } from "./email-address.ts";
import type { Sought } from "./person-erase.ts";

const ERASED = "erased";
const SPECIAL = /[\\^$.*+?()[\]{}|/-]/g;
const ESCAPED = /\\(?:u([0-9a-fA-F]{4})|(\/))/g;

export class SoughtText {
  readonly personId: string;
  readonly #emailKey: string;
  readonly #tokens: ReadonlySet<string>;
  readonly #anywhere: RegExp;
  readonly #whole: RegExp;
  readonly #isAscii: boolean;

  constructor({ personId, email, tokens }: Sought) {
    this.personId = personId;
    this.#emailKey = toEmailKey(email);
    this.#tokens = new Set(tokens);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it asks for exactly these.
    this.#isAscii = /^[\x00-\x7f]*$/.test(this.#emailKey);
    const address = this.#emailKey.replace(SPECIAL, "\\$&").replace("@", "(?:@|%40)");
    this.#anywhere = new RegExp(address, "iu");
    this.#whole = new RegExp(
      `(?<![\\p{L}\\p{N}._+-](?<!%[0-9a-f]{2}))${address}(?![\\p{L}\\p{N}-]|\\.[\\p{L}\\p{N}])`,
      "giu",
    );
  }

  /** Whether the text holds the address, perhaps within a longer one. */
  holdsAddress(text: string): boolean {
    const plain = this.#plain(text);
    if (this.#anywhere.test(plain)) return true;
    return plain.includes("\\") && this.#anywhere.test(readEscapes(plain));
  }

  /** Whether the text holds their id or one of their tokens. */
  holdsId(text: string): boolean {
    return text.includes(this.personId) || this.#tokens.values().some((token) => text.includes(token));
  }

  isAddress(value: Json | undefined): boolean {
    const text = scalarText(value);
    return text !== null && toEmailKey(text.trim()) === this.#emailKey;
  }

  isToken(value: Json | undefined): boolean {
    return this.#tokens.has(scalarText(value)?.trim() ?? "");
  }

  /** The text with the address written over; `unique` where two texts must not become one. */
  redact(text: string, unique = false): string {
    return this.#plain(text).replace(this.#whole, unique ? `${ERASED}-${this.personId}` : ERASED);
  }

  /** As `redact`, in every text and name of a JSON value. */
  redactJson(value: Json): Json {
    if (typeof value === "string") return this.redact(value);
    if (Array.isArray(value)) return value.map((item) => this.redactJson(item));
    if (!isJsonObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [this.redact(name), this.redactJson(inner)]),
    );
  }

  /** As `redact`, of a stored text that may be JSON. */
  redactStored(text: string, unique = false): string {
    if (!/^[[{]/.test(text)) return this.redact(text, unique);
    try {
      return writeJson(this.redactJson(parseJson(text)));
    } catch {
      return this.redact(text, unique);
    }
  }

  #plain(text: string): string {
    return this.#isAscii ? text : text.normalize("NFC");
  }
}

function readEscapes(text: string): string {
  return text.replace(ESCAPED, (_whole, code: string | undefined, slash: string | undefined) =>
    code === undefined ? (slash ?? "") : String.fromCharCode(Number.parseInt(code, 16)),
  );
}
