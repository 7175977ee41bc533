/**
 * Composes one mail and delivers it to an SMTP server, whose settings the caller gives. A server's own words are only logged, without secrets and
 * addresses. Source: RFC 3834 (Auto-Submitted), RFC 8058 (List-Unsubscribe-Post).
 */

import { domainToASCII } from "node:url";
import type MailComposer from "nodemailer/lib/mail-composer";
import type { Clock } from "../../base/clock.ts";
import { formatMailFailure, type MailFailureCode } from "../../base/code/mail-code.ts";
import type { Log } from "../../base/log.ts";
import { cutToLine, PLAIN_ADDRESS } from "../../base/text.ts";
import { parseAllowList } from "../outbound/address.ts";
import { type AddressLookup, makeLookup } from "../outbound/address-lookup.ts";
import type { SmtpSettings } from "./mail-settings.ts";
import { type MailOutcome, makeHtml, type OutgoingMail } from "./mailer.ts";
import { loadSmtp, SmtpDelivery, type SmtpDeliveryDeps, type SmtpDeliveryResult } from "./smtp-delivery.ts";

const MAX_DETAIL_CHARS = 300;

export interface SmtpSenderDeps {
  clock: Clock;
  log: Log;
  /** Private mail servers that the operator allows: exact host names, or ranges such as `10.1.0.0/16`. */
  allowPrivate: readonly string[];
  /** Looks up all addresses of a host name; `makeLookup` by default. */
  lookup?: AddressLookup | undefined;
  /** Certificate authorities to trust instead of the system's (PEM). */
  authorities?: string[] | undefined;
}

/** The SMTP server with its open password, for one delivery. */
interface OpenServer extends Pick<SmtpSettings, "host" | "port" | "security" | "username"> {
  clearPassword: string | null;
}

/** The mail to compose; `environmentId` is only for the log. */
type Letter = Omit<OutgoingMail, "environmentId" | "stopFor"> & { environmentId: number | null };

/** Headers that the environment and the service add to each mail. */
interface Envelope {
  fromName: string | null;
  replyTo: string | null;
  /** The one-click URL that stops such mail to this person. */
  stopUrl: string | null;
}

interface Order {
  server: OpenServer;
  mail: Letter;
  envelope: Envelope;
  withinMs: number;
  /** Marks durably that the transmission of the text starts; false: the mail must not be sent. */
  markTextLeft(): Promise<boolean>;
}

export class SmtpSender {
  readonly #deps: SmtpSenderDeps;
  readonly #delivery: SmtpDeliveryDeps;
  readonly #running = new Set<SmtpDelivery>();
  #isStopping = false;

  /** Throws for a malformed range in `allowPrivate`. */
  constructor(deps: SmtpSenderDeps) {
    const { clock, authorities } = deps;
    const allow = parseAllowList(deps.allowPrivate);
    this.#deps = deps;
    this.#delivery = { clock, lookup: deps.lookup ?? makeLookup(allow), allow, authorities };
  }

  /** Sends one mail. Never throws; `findOrder` may. */
  async send(emailId: string, findOrder: () => Promise<Order | null>): Promise<MailOutcome> {
    if (this.#isStopping) return failed("stopped");
    try {
      const order = await findOrder();
      return order === null ? failed("no_server") : await this.#deliver(order);
    } catch (error) {
      this.#deps.log.error("a mail could not be handed over", { email: emailId, error });
      return failed("not_composed");
    }
  }

  /** Loads what the first mail needs. */
  async warmUp(): Promise<void> {
    await loadComposer();
    await loadSmtp();
  }

  /** Ends unsent mails at once. Mails in transmission get some seconds. */
  stop(): void {
    this.#isStopping = true;
    for (const delivery of this.#running) delivery.stop();
  }

  async #deliver({ server, mail, envelope, withinMs, markTextLeft }: Order): Promise<MailOutcome> {
    const message = await compose(mail, envelope, this.#deps.clock.now());
    if (this.#isStopping) return failed("stopped");
    const to = toAsciiDomain(mail.to);
    const delivery = new SmtpDelivery(this.#delivery, {
      server,
      from: mail.from,
      to,
      message,
      withinMs,
      markTextLeft,
    });
    this.#running.add(delivery);
    const end = await delivery.run();
    this.#running.delete(delivery);
    if (end.kind !== "sent") this.#logFailure(mail, server, end);
    return toOutcome(end);
  }

  #logFailure(
    mail: Letter,
    server: OpenServer,
    { kind, reason, retry, code, detail }: SmtpDeliveryResult,
  ): void {
    const { environmentId, emailId: email } = mail;
    this.#deps.log.warn("a mail server rejected a mail", {
      environmentId,
      email,
      end: kind,
      reason,
      retry,
      code,
      said: redactDetail(detail, mail, server),
    });
  }
}

function failed(reason: MailFailureCode): MailOutcome {
  return { kind: "failed", reason, message: formatMailFailure(reason), retry: true };
}

function toOutcome({ kind, reason, retry, code }: SmtpDeliveryResult): MailOutcome {
  if (kind === "sent") return { kind };
  const message = formatMailFailure(reason, code);
  return kind === "unknown" ? { kind, reason, message } : { kind, reason, message, retry };
}

/** Redacts the password and the addresses, which a server may repeat in its reply, before it is logged. */
function redactDetail(words: string, mail: Letter, { username, clearPassword }: OpenServer): string {
  const hidden = new Map([
    [mail.to, "[recipient]"],
    [toAsciiDomain(mail.to), "[recipient]"],
    [mail.from, "[sender]"],
  ]);
  if (clearPassword !== null && clearPassword !== "") {
    const signedIn = `\u0000${username ?? ""}\u0000${clearPassword}`;
    const spellings = [signedIn, clearPassword].map((text) => Buffer.from(text).toString("base64"));
    for (const spelling of [...spellings, clearPassword]) hidden.set(spelling, "[password]");
  }
  const clean = [...hidden].reduce((text, [said, instead]) => text.replaceAll(said, instead), words);
  return cutToLine(clean, MAX_DETAIL_CHARS);
}

/** Returns the address with its domain in ASCII (RFC 5890), for servers that know only ASCII. */
function toAsciiDomain(address: string): string {
  const at = address.lastIndexOf("@") + 1;
  const domain = address.slice(at);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII.
  return /^[\x00-\x7f]*$/.test(domain) ? address : address.slice(0, at) + (domainToASCII(domain) || domain);
}

async function loadComposer(): Promise<typeof MailComposer> {
  return (await import("nodemailer/lib/mail-composer")).default;
}

/** Composes the bytes of the message. Throws for a malformed address. */
async function compose(
  mail: Letter,
  { fromName, replyTo, stopUrl }: Envelope,
  nowMs: number,
): Promise<Buffer> {
  for (const address of [mail.from, mail.to, ...(replyTo === null ? [] : [replyTo])]) {
    if (!PLAIN_ADDRESS.test(address))
      throw new Error("An address of this mail is not valid, so it was not sent.");
  }
  const stop = { "List-Unsubscribe": `<${stopUrl}>`, "List-Unsubscribe-Post": "List-Unsubscribe=One-Click" };
  const Composer = await loadComposer();
  const composer = new Composer({
    from: { name: fromName ?? "", address: mail.from },
    to: { name: "", address: mail.to },
    ...(replyTo === null ? {} : { replyTo: { name: "", address: replyTo } }),
    subject: cutToLine(mail.subject, mail.subject.length),
    text: mail.text,
    html: makeHtml(mail.text),
    messageId: `<${mail.emailId}@${mail.from.slice(mail.from.indexOf("@") + 1)}>`,
    date: new Date(nowMs),
    headers: { "Auto-Submitted": "auto-generated", ...(stopUrl === null ? {} : stop) },
    disableFileAccess: true,
    disableUrlAccess: true,
    newline: "win",
  });
  return await composer.compile().build();
}
