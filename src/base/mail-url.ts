/** Parses the URL of the server's own mail server, and hides its password as text, as JSON and in inspection. */
import { PLAIN_ADDRESS } from "./text.ts";

const MASK = "••••";
const EXAMPLE = "smtps://relay:<password>@smtp.example.com?from=relay@example.com";
const DEFAULT_PORT = { tls: 465, starttls: 587, none: 25 };
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/i;

interface Parts {
  host: string;
  port: number;
  /** `smtps:` is TLS from the first byte. `smtp:` is STARTTLS, and unencrypted on this machine. */
  security: keyof typeof DEFAULT_PORT;
  /** Null: the mail server needs no sign-in. */
  username: string | null;
  /** The sender's address. */
  from: string;
}

export class MailUrl implements Parts {
  readonly host: string;
  readonly port: number;
  readonly security: Parts["security"];
  readonly username: string | null;
  readonly from: string;
  readonly #password: string | null;

  constructor({ host, port, security, username, from }: Parts, password: string | null) {
    this.host = host;
    this.port = port;
    this.security = security;
    this.username = username;
    this.from = from;
    this.#password = password;
  }

  /** The password, only for the connection. Null without one. */
  get password(): string | null {
    return this.#password;
  }

  /** Returns the URL with the password masked. */
  toString(): string {
    const host = this.host.includes(":") ? `[${this.host}]` : this.host;
    const user = this.username === null ? "" : `${encodeURIComponent(this.username)}:${MASK}@`;
    return `${this.security === "tls" ? "smtps" : "smtp"}://${user}${host}:${this.port}?from=${this.from}`;
  }

  toJSON(): string {
    return this.toString();
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }
}

/**
 * Returns the URL, or a text that says what is wrong with it. The text follows the name of the URL's source in a sentence. Neither shows the
 * password.
 */
export function readMailUrl(text: string): MailUrl | string {
  const url = URL.parse(text);
  if (!/^smtps?:\/\//i.test(text)) return `is no URL of a mail server: write it as ${EXAMPLE}.`;
  const parts = url === null ? [] : [url.username, url.password, url.hostname].map(decode);
  const [username = null, password = null, host = null] = parts;
  if (url === null || url.hash !== "" || username === null || password === null || host === null)
    return `cannot be read: write it as ${EXAMPLE}, with every : / ? # % and @ of the password as %3A %2F %3F %23 %25 and %40.`;
  if (host === "") return `names no host: write it as ${EXAMPLE}.`;
  if (!/^\/?$/.test(url.pathname)) return `has a path behind the host: write it as ${EXAMPLE}.`;
  if ((username === "") !== (password === ""))
    return `has only one of user and password: write both, or neither: ${EXAMPLE}.`;
  const unknown = [...url.searchParams.keys()].find((name) => name !== "from");
  if (unknown !== undefined)
    return `has ${JSON.stringify(unknown)} after its question mark: leave it out, because only from is allowed there.`;
  const from = url.searchParams.get("from")?.trim() ?? "";
  if (!PLAIN_ADDRESS.test(from)) return `names no sender: write its address behind ?from=, as in ${EXAMPLE}.`;
  const name = host.replace(/^\[|\]$/g, "").toLowerCase();
  const isHere = LOOPBACK.test(name);
  const security = url.protocol === "smtps:" ? "tls" : isHere ? "none" : "starttls";
  const port = url.port === "" ? DEFAULT_PORT[security] : Number(url.port);
  return new MailUrl({ host: name, port, security, username: username || null, from }, password || null);
}

function decode(part: string): string | null {
  try {
    const text = decodeURIComponent(part);
    // A control character would end a line of the protocol.
    return /\p{Cc}/u.test(text) ? null : text;
  } catch {
    return null;
  }
}
