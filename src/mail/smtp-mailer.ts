/**
 * The mailer of a server: hands one plain-text mail to the environment's SMTP server and says how that ended. It tells a mail that
 * certainly did not leave from one whose end is not known, so that nothing is sent twice. It never chooses a sender or a recipient.
 * Source: RFC 5321 (replies), RFC 3834 (Auto-Submitted).
 */
import { Readable } from "node:stream";
import MailComposer from "nodemailer/lib/mail-composer";
import SMTPConnection from "nodemailer/lib/smtp-connection";
import { findEnvironmentById } from "../account/environment.ts";
import type { Clock } from "../ground/clock.ts";
import { cutToLine } from "../ground/plain-text.ts";
import type { Sealer } from "../secret/seal.ts";
import type { Store } from "../store/port.ts";
import { openSmtpPassword, readMailSettings, type SmtpSettings } from "./mail-settings.ts";
import type { Mailer, MailOutcome, OutgoingMail } from "./mailer.ts";

const CONNECT_TIMEOUT_MS = 10_000;
const SILENCE_TIMEOUT_MS = 30_000;
const WHOLE_TIMEOUT_MS = 60_000;
const MAX_MESSAGE_CHARS = 300;
/** One address without anything that means something in a header or an SMTP line. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: exactly these would end a line of the protocol.
const ADDRESS = /^[^\s"(),:;<>@[\]\\\u0000-\u001f\u007f]+@[^\s"(),:;<>@[\]\\\u0000-\u001f\u007f]+$/u;

export interface SmtpRooms {
  store: Store;
  sealer: Sealer;
  clock: Clock;
  /** Certificate authorities to trust instead of the system's (PEM). */
  authorities?: string[];
}

/** The SMTP server with its password in clear, for one sending. */
interface OpenServer extends SmtpSettings {
  clearPassword: string | null;
}

export function makeSmtpMailer(rooms: SmtpRooms): Mailer {
  return {
    async send(mail) {
      try {
        const server = await findServer(rooms, mail.environmentId);
        if (server === null) {
          const message = "No SMTP server is set in this environment: set one in the mail settings.";
          return { kind: "failed", message, retry: true };
        }
        const outcome = await handOver(rooms, server, mail, await compose(mail, rooms.clock.now()));
        return withoutPassword(outcome, server.clearPassword);
      } catch (error) {
        return { kind: "failed", message: inOneLine(error), retry: true };
      }
    },
  };
}

/** A server may repeat in its refusal what it was told; the row that keeps the sentence must not hold the password. */
function withoutPassword(outcome: MailOutcome, password: string | null): MailOutcome {
  if (password === null || password === "" || !("message" in outcome)) return outcome;
  const spellings = [password, Buffer.from(password).toString("base64")];
  const message = spellings.reduce((text, one) => text.replaceAll(one, "[password]"), outcome.message);
  return { ...outcome, message };
}

async function findServer(rooms: SmtpRooms, environmentId: number): Promise<OpenServer | null> {
  const environment = await rooms.store.read((tx) => findEnvironmentById(tx, environmentId));
  const smtp = environment === null ? null : readMailSettings(environment).smtp;
  if (smtp === null) return null;
  return { ...smtp, clearPassword: openSmtpPassword(rooms.sealer, environmentId, smtp) };
}

/** The message as it goes over the wire. Throws on an address that is not one. */
async function compose(mail: OutgoingMail, nowMs: number): Promise<Buffer> {
  for (const address of [mail.from, mail.to]) {
    if (!ADDRESS.test(address)) throw new Error("An address of this mail is not one, so it was not sent.");
  }
  const composer = new MailComposer({
    from: { name: "", address: mail.from },
    to: { name: "", address: mail.to },
    subject: cutToLine(mail.subject, mail.subject.length),
    text: mail.text,
    messageId: `<${mail.emailId}@${mail.from.slice(mail.from.indexOf("@") + 1)}>`,
    date: new Date(nowMs),
    headers: { "Auto-Submitted": "auto-generated" },
    disableFileAccess: true,
    disableUrlAccess: true,
    newline: "win",
  });
  return await composer.compile().build();
}

/** One connection, one mail. */
function handOver(
  rooms: SmtpRooms,
  server: OpenServer,
  mail: OutgoingMail,
  message: Buffer,
): Promise<MailOutcome> {
  let textLeft = false;
  const connection = new SMTPConnection({
    host: server.host,
    port: server.port,
    secure: server.security === "tls",
    requireTLS: server.security === "starttls",
    ignoreTLS: server.security === "none",
    name: mail.from.slice(mail.from.indexOf("@") + 1),
    connectionTimeout: CONNECT_TIMEOUT_MS,
    greetingTimeout: CONNECT_TIMEOUT_MS,
    dnsTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SILENCE_TIMEOUT_MS,
    ...(rooms.authorities === undefined ? {} : { tls: { ca: rooms.authorities } }),
  });
  const body = new Readable({
    // Read only once the server has said that it waits for the text.
    read() {
      textLeft = true;
      this.push(message);
      this.push(null);
    },
  });
  return new Promise((resolve) => {
    const cancel = rooms.clock.after(WHOLE_TIMEOUT_MS, () =>
      end(failed(new Error("the mail server took too long"), textLeft)),
    );
    let ended = false;
    const end = (outcome: MailOutcome): void => {
      if (ended) return;
      ended = true;
      cancel();
      if (outcome.kind === "sent") connection.quit();
      else connection.close();
      resolve(outcome);
    };
    const step =
      (next: () => void) =>
      (error?: Error | null): void =>
        error ? end(failed(error, textLeft)) : next();
    connection.on("error", (error: Error) => end(failed(error, textLeft)));
    connection.once("end", () => end(failed(new Error("the mail server closed the connection"), textLeft)));
    const send = (): void =>
      connection.send(
        { from: mail.from, to: [mail.to], size: message.length },
        body,
        step(() => end({ kind: "sent" })),
      );
    connection.connect(
      step(() => {
        if (server.username === null) send();
        else connection.login({ user: server.username, pass: server.clearPassword ?? "" }, step(send));
      }),
    );
  });
}

/** What an error means: a reply of the server is certain; anything else, once the text has left, is not. */
function failed(
  error: Error & { responseCode?: number; permanent?: boolean; code?: string },
  textLeft: boolean,
): MailOutcome {
  const message = inOneLine(error);
  if (error.responseCode === undefined && textLeft) return { kind: "unknown", message };
  const refused = error.permanent === true && (error.code === "EENVELOPE" || error.code === "EMESSAGE");
  return { kind: "failed", message, retry: !refused };
}

function inOneLine(error: unknown): string {
  return cutToLine(error instanceof Error ? error.message : String(error), MAX_MESSAGE_CHARS);
}
