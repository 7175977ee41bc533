/**
 * The mailer of a server: delivers mails to the environment's SMTP server and returns the outcome. A server's own words are only logged,
 * without secrets and addresses. Source: RFC 3834 (Auto-Submitted), RFC 8058 (List-Unsubscribe-Post).
 */

import { domainToASCII } from "node:url";
import type MailComposer from "nodemailer/lib/mail-composer";
import type { Clock } from "../../base/clock.ts";
import { formatMailFailure, type MailFailureCode } from "../../base/code/mail-code.ts";
import type { Log } from "../../base/log.ts";
import { cutToLine } from "../../base/text.ts";
import type { Store } from "../../store/port.ts";
import { findEnvironmentById, listEnvironments } from "../account/environment.ts";
import { parseAllowList } from "../outbound/address.ts";
import { type AddressLookup, makeLookup } from "../outbound/address-lookup.ts";
import type { Sealer } from "../secret/seal.ts";
import { markTextLeft } from "./email.ts";
import { PLAIN_ADDRESS, readMailSettings, type SmtpSettings, unsealSmtpPassword } from "./mail-settings.ts";
import { makeStopUrl } from "./mail-stop.ts";
import {
  type MailOutcome,
  mailboxMailer,
  makeHtml,
  type OutgoingMail,
  type StoppableMailer,
} from "./mailer.ts";
import { loadSmtp, SmtpDelivery, type SmtpDeliveryDeps, type SmtpDeliveryResult } from "./smtp-delivery.ts";

const SEND_TIMEOUT_MS = 60_000;
const MAX_DETAIL_CHARS = 300;
interface SmtpDeps {
  store: Store;
  sealer: Sealer;
  clock: Clock;
  log: Log;
  /** Private mail servers that the operator allows: exact host names, or ranges such as `10.1.0.0/16`. */
  allowPrivate: readonly string[];
  /** The public origin without a trailing slash; null: unknown. */
  baseUrl: () => string | null;
  /** Looks up all addresses of a host name; `makeLookup` by default. */
  lookup?: AddressLookup;
  /** Certificate authorities to trust instead of the system's (PEM). */
  authorities?: string[];
}

/** The SMTP server with its open password, for one delivery. */
interface OpenServer extends SmtpSettings {
  clearPassword: string | null;
  fromName: string | null;
  replyTo: string | null;
}

/** Creates the mailer. Throws for a malformed range in `allowPrivate`. */
export function makeSmtpMailer(deps: SmtpDeps): StoppableMailer {
  const { store, clock, log, authorities } = deps;
  const allow = parseAllowList(deps.allowPrivate);
  const { lookup = makeLookup(allow) } = deps;
  const deliveryDeps: SmtpDeliveryDeps = { clock, lookup, allow, authorities };
  const running = new Set<SmtpDelivery>();
  let stopping = false;

  async function deliver(server: OpenServer, mail: OutgoingMail, withinMs: number): Promise<MailOutcome> {
    const { from, emailId } = mail;
    const to = toAsciiDomain(mail.to);
    const { fromName, replyTo } = server;
    const message = await compose(mail, { fromName, replyTo, stopUrl: stopUrlOf(mail) }, clock.now());
    if (stopping) return failed("stopped");
    const delivery = new SmtpDelivery(deliveryDeps, {
      server,
      from,
      to,
      message,
      withinMs,
      markTextLeft: () =>
        store.write("app", (tx) => markTextLeft(tx, emailId, clock.now()), mail.environmentId),
    });
    running.add(delivery);
    const end = await delivery.run();
    running.delete(delivery);
    if (end.kind !== "sent") logFailure(mail, server, end);
    return toOutcome(end);
  }

  function stopUrlOf({ environmentId, stopFor }: OutgoingMail): string | null {
    const baseUrl = deps.baseUrl();
    return stopFor === undefined || baseUrl === null
      ? null
      : makeStopUrl(deps.sealer, baseUrl, { environmentId, personId: stopFor });
  }

  function logFailure(
    mail: OutgoingMail,
    server: OpenServer,
    { kind, reason, retry, code, detail }: SmtpDeliveryResult,
  ): void {
    const { environmentId, emailId: email } = mail;
    const said = redactDetail(detail, mail, server);
    log.warn("a mail server rejected a mail", {
      environmentId,
      email,
      end: kind,
      reason,
      retry,
      code,
      said,
    });
  }

  return {
    async send(mail, { withinMs = SEND_TIMEOUT_MS } = {}) {
      if (stopping) return failed("stopped");
      try {
        const server = await findServer(deps, mail.environmentId);
        return server === null ? failed("no_server") : await deliver(server, mail, withinMs);
      } catch (error) {
        log.error("a mail could not be handed over", { email: mail.emailId, error });
        return failed("not_composed");
      }
    },
    async warmUp() {
      const environments = await store.read((tx) => listEnvironments(tx, null));
      if (environments.every((one) => readMailSettings(one).smtp === null)) return;
      await loadComposer();
      await loadSmtp();
    },
    stop() {
      stopping = true;
      for (const delivery of running) delivery.stop();
    },
  };
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
function redactDetail(words: string, mail: OutgoingMail, { username, clearPassword }: OpenServer): string {
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

async function findServer(deps: SmtpDeps, environmentId: number): Promise<OpenServer | null> {
  const environment = await deps.store.read((tx) => findEnvironmentById(tx, environmentId));
  if (environment === null) return null;
  const { smtp, fromName, replyTo } = readMailSettings(environment);
  if (smtp === null) return null;
  return { ...smtp, fromName, replyTo, clearPassword: unsealSmtpPassword(deps.sealer, environmentId, smtp) };
}

/** Headers that the environment and the service add to each mail. */
interface Envelope {
  fromName: string | null;
  replyTo: string | null;
  /** The one-click URL that stops such mail to this person. */
  stopUrl: string | null;
}

async function loadComposer(): Promise<typeof MailComposer> {
  return (await import("nodemailer/lib/mail-composer")).default;
}

/** Composes the bytes of the message. Throws for a malformed address. */
async function compose(
  mail: OutgoingMail,
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

/** Creates the mailer of a server, or of local development for `local`. */
export function createMailer(deps: SmtpDeps & { local: boolean }): StoppableMailer {
  return deps.local ? mailboxMailer : makeSmtpMailer(deps);
}
