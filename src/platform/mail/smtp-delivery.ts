/**
 * Delivers one mail over one connection to an SMTP server at a checked and pinned address. It durably marks the start of the transmission
 * before the first byte of the text, so a delivery ends as sent, certainly not sent, or unknown. It reads no settings and writes no rows.
 * Source: RFC 5321 (replies).
 */

import { isIP, type Socket } from "node:net";
import { Readable } from "node:stream";
import type SMTPConnection from "nodemailer/lib/smtp-connection";
import type { Clock } from "../../base/clock.ts";
import type { MailFailureCode } from "../../base/code/mail-code.ts";
import { type AllowList, evaluateAddress } from "../outbound/address.ts";
import { type AddressLookup, isUnanswered } from "../outbound/address-lookup.ts";
import { connectPinned } from "../outbound/connect.ts";
import { errorCode, isTlsError } from "../outbound/error-code.ts";
import type { SmtpSettings } from "./mail-settings.ts";

const CONNECT_TIMEOUT_MS = 10_000;
const SILENCE_TIMEOUT_MS = 30_000;
const QUIT_WAIT_MS = 2_000;
/** The time that a stopping service waits for the answer to a transmitted text; less than the runner waits. */
const STOP_GRACE_MS = 6_000;
/** Replies about authentication, whichever command they answer. The owner can fix these (RFC 4954, section 6). */
const SIGN_IN_REPLIES: ReadonlySet<number> = new Set([530, 534, 535, 538]);

export interface SmtpDeliveryDeps {
  clock: Clock;
  lookup: AddressLookup;
  /** Private hosts that the operator allows. */
  allow: AllowList;
  /** Certificate authorities to trust instead of the system's (PEM). */
  authorities?: string[] | undefined;
}

interface SmtpDeliveryOrder {
  server: Pick<SmtpSettings, "host" | "port" | "security" | "username"> & { clearPassword: string | null };
  from: string;
  to: string;
  /** The bytes to transmit. */
  message: Buffer;
  withinMs: number;
  /** Resolves once the mark is durable; false: the mail must not be sent. */
  markTextLeft(): Promise<boolean>;
}

export interface SmtpDeliveryResult {
  kind: "sent" | "failed" | "unknown";
  reason: MailFailureCode;
  retry: boolean;
  /** The codes of the reply, `550 5.1.1`; null: there was no reply. */
  code: string | null;
  /** The words of the server or the system, only for the log. */
  detail: string;
}

interface SmtpError extends Error {
  code?: string;
  command?: string;
  response?: string;
  responseCode?: number;
  permanent?: boolean;
  originalCode?: string;
}

/** Loads the SMTP library with the first mail or soon after the start, because it and TLS take longer than the rest of the start. */
export async function loadSmtp(): Promise<typeof SMTPConnection> {
  return (await import("nodemailer/lib/smtp-connection")).default;
}

/** A failure with a class that is known where it happens. */
class DeliveryFailure extends Error {
  readonly reason: MailFailureCode;
  constructor(reason: MailFailureCode, detail: string) {
    super(detail);
    this.reason = reason;
  }
}

export class SmtpDelivery {
  readonly #deps: SmtpDeliveryDeps;
  readonly #order: SmtpDeliveryOrder;
  readonly #abort = new AbortController();
  readonly #cancels: (() => void)[] = [];
  #connection: SMTPConnection | null = null;
  #textLeft = false;
  #ended = false;
  #resolve: (end: SmtpDeliveryResult) => void = () => undefined;

  constructor(deps: SmtpDeliveryDeps, order: SmtpDeliveryOrder) {
    this.#deps = deps;
    this.#order = order;
  }

  /** Resolves with the result and never rejects. Must be called once. */
  run(): Promise<SmtpDeliveryResult> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#failAfter(this.#order.withinMs, "timed_out");
      this.#connect().catch((error: Error) => this.#fail(error));
    });
  }

  /** Stops the delivery: before the text is transmitted it ends now, afterwards the server has some seconds to answer. */
  stop(): void {
    if (this.#textLeft) this.#failAfter(STOP_GRACE_MS, "stopped");
    else this.#fail(new DeliveryFailure("stopped", "the service stops"));
  }

  async #connect(): Promise<void> {
    const { clock, authorities } = this.#deps;
    const { server, from } = this.#order;
    const { host, port } = server;
    const cancelConnect = this.#failAfter(CONNECT_TIMEOUT_MS, "timed_out");
    const Connection = await loadSmtp();
    const addresses = await this.#findAddresses();
    if (this.#ended) return;
    const socket: Socket = await connectPinned({ host, port }, addresses, {
      clock,
      // The SMTP library starts TLS on the open connection, under the host's own name.
      trust: null,
      signal: this.#abort.signal,
    });
    cancelConnect();
    if (this.#ended) {
      socket.destroy();
      return;
    }
    const connection = new Connection({
      connection: socket,
      host,
      port,
      secure: server.security === "tls",
      requireTLS: server.security === "starttls",
      ignoreTLS: server.security === "none",
      name: from.slice(from.indexOf("@") + 1),
      connectionTimeout: CONNECT_TIMEOUT_MS,
      greetingTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: SILENCE_TIMEOUT_MS,
      ...(authorities === undefined ? {} : { tls: { ca: authorities } }),
    });
    this.#connection = connection;
    connection.on("error", (error: SmtpError) => this.#fail(error));
    connection.once("end", () =>
      this.#fail(new DeliveryFailure("connection_lost", "the connection was closed")),
    );
    connection.connect(
      this.#step(() => {
        if (server.username === null) this.#send(connection);
        else {
          const credentials = { user: server.username, pass: server.clearPassword ?? "" };
          connection.login(
            credentials,
            this.#step(() => this.#send(connection)),
          );
        }
      }),
    );
  }

  /** Looks up all addresses of the server, checked at each connection. One forbidden address rejects them all. */
  async #findAddresses(): Promise<readonly string[]> {
    const { lookup, allow } = this.#deps;
    const { host } = this.#order.server;
    const addresses =
      isIP(host) === 0
        ? await lookup(host).catch((error: unknown) => throwLookupFailure(host, error))
        : [host];
    if (addresses.length === 0) throw new DeliveryFailure("name_not_found", `${host} has no address`);
    for (const address of addresses) {
      const verdict = evaluateAddress(address, host, allow);
      if (!verdict.allowed)
        throw new DeliveryFailure("address_refused", `${host} resolves to ${address}, ${verdict.kind}`);
    }
    return [...new Set(addresses)];
  }

  #send(connection: SMTPConnection): void {
    const { from, to, message } = this.#order;
    const envelope = { from, to: [to], size: message.length };
    connection.send(
      envelope,
      this.#makeText(),
      this.#step(() => this.#end({ kind: "sent", reason: "stopped", retry: false, code: null, detail: "" })),
    );
  }

  /**
   * Returns the text as a stream. The library reads it only after the server asked for the text, and it yields no byte before the mark is
   * durable.
   */
  #makeText(): Readable {
    const text = new Readable({ read: () => undefined });
    const begin = (): void => {
      text._read = () => undefined;
      this.#order.markTextLeft().then(
        (may) => {
          if (this.#ended) return;
          if (!may) {
            this.#fail(new DeliveryFailure("stopped", "the mail's row was deleted, so it was not sent"));
            return;
          }
          this.#textLeft = true;
          text.push(this.#order.message);
          text.push(null);
        },
        (error: Error) => this.#fail(new DeliveryFailure("not_composed", error.message)),
      );
    };
    text._read = begin;
    return text;
  }

  #step(next: () => void): (error?: Error | null) => void {
    return (error) => {
      if (this.#ended) return;
      if (error) this.#fail(error);
      else next();
    };
  }

  #failAfter(delayMs: number, reason: MailFailureCode): () => void {
    const cancel = this.#deps.clock.after(delayMs, () =>
      this.#fail(new DeliveryFailure(reason, "no answer in time")),
    );
    this.#cancels.push(cancel);
    return cancel;
  }

  /** A server's reply is certain. Any other failure after the transmission began leaves the result unknown. */
  #fail(error: SmtpError): void {
    const { reason, retry } = classify(error);
    const answered = error.responseCode !== undefined;
    const kind = this.#textLeft && !answered ? "unknown" : "failed";
    this.#end({ kind, reason, retry, code: replyNumbers(error), detail: error.message });
  }

  #end(end: SmtpDeliveryResult): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const cancel of this.#cancels) cancel();
    this.#abort.abort(new Error("the mail has ended"));
    const connection = this.#connection;
    if (connection !== null && end.kind === "sent") {
      connection.quit();
      const cancel = this.#deps.clock.after(QUIT_WAIT_MS, () => connection.close());
      connection.once("end", cancel);
    } else connection?.close();
    this.#resolve(end);
  }
}

/** Throws `name_not_found` if DNS answered that, otherwise `not_connected`: a lookup without an answer proves nothing about the name. */
function throwLookupFailure(host: string, error: unknown): never {
  const reason = isUnanswered(error) ? "not_connected" : "name_not_found";
  throw new DeliveryFailure(reason, `${host} could not be looked up (${errorCode(error)})`);
}

/** Returns the class of an error, and whether the server may accept the mail later. A 5xx reply about sender, recipient or text is permanent. */
function classify(error: SmtpError): { reason: MailFailureCode; retry: boolean } {
  if (error instanceof DeliveryFailure) return { reason: error.reason, retry: true };
  const { responseCode } = error;
  if (error.code === "EAUTH" || (responseCode !== undefined && SIGN_IN_REPLIES.has(responseCode)))
    return { reason: "auth_refused", retry: true };
  const retry = !(error.permanent === true && (error.code === "EENVELOPE" || error.code === "EMESSAGE"));
  if (error.code === "EENVELOPE") return { reason: rejectionOf(error.command), retry };
  if (error.code === "EMESSAGE" && responseCode !== undefined) return { reason: "text_refused", retry };
  if (error.code === "EMESSAGE") return { reason: "server_trouble", retry };
  return { reason: classifyConnectionError(error), retry: true };
}

function rejectionOf(command: string | undefined): MailFailureCode {
  if (command === "MAIL FROM") return "sender_refused";
  return command === "RCPT TO" ? "recipient_refused" : "text_refused";
}

function classifyConnectionError(error: SmtpError): MailFailureCode {
  const system = error.originalCode ?? errorCode(error);
  // The library's EPROTOCOL is an unexpected reply, also without TLS; the system's EPROTO is a TLS error.
  const isAnswer = system === "EPROTOCOL";
  if (error.code === "ETLS" || (!isAnswer && isTlsError(Object.assign(new Error(), { code: system }))))
    return "tls_failed";
  if (/ETIMEDOUT|took too long/.test(`${system} ${error.message}`)) return "timed_out";
  if (system === "ECONNREFUSED") return "connection_refused";
  if (isAnswer || error.responseCode !== undefined) return "server_trouble";
  if (/^E(HOSTUNREACH|NETUNREACH|ADDRNOTAVAIL|ACCES|PERM)$/.test(system)) return "not_connected";
  return "connection_lost";
}

/** Extracts the codes of a reply (RFC 5321 and 3463), never its words. */
function replyNumbers({ response }: SmtpError): string | null {
  const found = /^([45]\d\d)(?:[ -]([45]\.\d{1,3}\.\d{1,3})\b)?/.exec(response ?? "");
  if (found === null) return null;
  return found[2] === undefined ? (found[1] ?? null) : `${found[1]} ${found[2]}`;
}
