import { afterAll, describe, expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { saveSettings } from "../../src/account/environment.ts";
import {
  changeMailSettings,
  type MailSecurity,
  type MailSettingsInput,
} from "../../src/mail/mail-settings.ts";
import { mailboxMailer } from "../../src/mail/mailbox-mailer.ts";
import type { OutgoingMail } from "../../src/mail/mailer.ts";
import { makeSmtpMailer } from "../../src/mail/smtp-mailer.ts";
import { Sealer } from "../../src/secret/seal.ts";
import { makeAuthority } from "../kit/certificate.ts";
import { openFreshStore } from "../kit/fresh-store.ts";
import { type MailServerOptions, startMailServer } from "../kit/mail-server.ts";

const { store, clock, environment } = await openFreshStore();
const environmentId = (await environment("production")).id;
const sealer = new Sealer(Buffer.alloc(32, 7));
const authority = makeAuthority("Test authority");
const mailer = makeSmtpMailer({ store, sealer, clock, authorities: [authority.cert] });

const mail: OutgoingMail = {
  environmentId,
  emailId: "eml_1",
  from: "event@shop.example",
  to: "ada@example.com",
  subject: "Thank you",
  text: "Your order is on its way.",
};

async function use(input: MailSettingsInput): Promise<void> {
  const now = await environment("production");
  const section = changeMailSettings(now, input, sealer, clock.now());
  await store.write("dashboard", (tx) => saveSettings(tx, now, { mail: section }, now.version));
}

/** Starts a server, points the environment at it, sends one mail. */
async function sendTo(
  options: Omit<MailServerOptions, "authority">,
  more: Partial<OutgoingMail> = {},
  smtp: { security?: MailSecurity; password?: string } = {},
) {
  const server = await startMailServer({ authority, ...options });
  const password = smtp.password ?? options.password ?? null;
  await use({
    smtp: {
      host: "localhost",
      port: server.port,
      security: smtp.security ?? options.security,
      ...(password === null ? {} : { username: "shop", password }),
    },
  });
  return { outcome: await mailer.send({ ...mail, ...more }), taken: server.taken };
}

const headersOf = (raw: string) =>
  raw
    .slice(0, raw.indexOf("\r\n\r\n"))
    .replaceAll(/\r\n[ \t]+/g, " ")
    .split("\r\n");
const textOf = (raw: string) => raw.slice(raw.indexOf("\r\n\r\n") + 4).trimEnd();

describe("a mail by SMTP", () => {
  test.each<[string, Omit<MailServerOptions, "authority">, boolean, string | null]>([
    ["TLS from the first byte, signed in", { security: "tls", password: "pass word" }, true, "shop"],
    ["STARTTLS, signed in", { security: "starttls", password: "p\u00e4ss" }, true, "shop"],
    ["STARTTLS, not signed in", { security: "starttls" }, true, null],
    ["in clear on this machine", { security: "none" }, false, null],
  ])("leaves over %s", async (_rule, options, secure, user) => {
    const { outcome, taken } = await sendTo(options);
    expect(outcome).toEqual({ kind: "sent" });
    expect(taken).toMatchObject([{ from: mail.from, to: [mail.to], secure, user }]);
  });

  test("carries its sender, recipient, subject, id and time, and says that a machine wrote it", async () => {
    const { taken } = await sendTo({ security: "none" });
    expect(headersOf(taken[0]?.raw ?? "").toSorted()).toEqual([
      "Auto-Submitted: auto-generated",
      "Content-Transfer-Encoding: 7bit",
      "Content-Type: text/plain; charset=utf-8",
      "Date: Thu, 15 Jan 2026 12:00:00 +0000",
      "From: event@shop.example",
      "MIME-Version: 1.0",
      "Message-ID: <eml_1@shop.example>",
      "Subject: Thank you",
      "To: ada@example.com",
    ]);
    expect(textOf(taken[0]?.raw ?? "")).toBe(mail.text);
  });

  test("is plain text, whatever it holds: dots, markup, other alphabets", async () => {
    const text = "first\n.\n..two\n<b>Grüße</b> 你好 👋";
    const { outcome, taken } = await sendTo({ security: "none" }, { text, subject: "Grüße 👋" });
    expect(outcome).toEqual({ kind: "sent" });
    const raw = taken[0]?.raw ?? "";
    const base64 = /base64/i.test(raw.slice(0, raw.indexOf("\r\n\r\n")));
    const decoded = base64
      ? Buffer.from(textOf(raw), "base64").toString()
      : Buffer.from(unquote(textOf(raw)), "latin1").toString();
    expect(decoded.replaceAll("\r\n", "\n")).toBe(text);
    expect(headersOf(raw).some((line) => line.startsWith("Subject: =?UTF-8?"))).toBe(true);
    expect(headersOf(raw)).toContain("Content-Type: text/plain; charset=utf-8");
  });

  test.each([
    ["a subject with a line break", { subject: "Hello\r\nBcc: victim@example.com\r\n\r\nbody" }],
    ["a text that begins like headers", { text: "Bcc: victim@example.com\n\nbody" }],
  ])("takes no header from %s", async (_rule, more) => {
    const { taken } = await sendTo({ security: "none" }, more);
    expect(taken[0]?.to).toEqual([mail.to]);
    expect(headersOf(taken[0]?.raw ?? "").filter((line) => /^bcc:/i.test(line))).toEqual([]);
    expect(headersOf(taken[0]?.raw ?? "").filter((line) => /^subject:/i.test(line))).toHaveLength(1);
  });

  test.each([
    ["two recipients", { to: "ada@example.com,eve@example.com" }],
    ["a line break in the recipient", { to: "ada@example.com>\r\nRCPT TO:<eve@example.com" }],
    ["a name around the recipient", { to: "Ada <ada@example.com>" }],
    ["no recipient", { to: "" }],
    ["a line break in the sender", { from: "event@shop.example\r\nX: y" }],
  ])("does not leave with %s", async (_rule, more) => {
    const { outcome, taken } = await sendTo({ security: "none" }, more);
    expect([outcome.kind, taken]).toEqual(["failed", []]);
  });

  test.each<
    [string, Omit<MailServerOptions, "authority">, { security?: MailSecurity; password?: string }, boolean]
  >([
    [
      "a recipient refused for good",
      { security: "none", refuse: { at: "recipient", code: 550, message: "No such user" } },
      {},
      false,
    ],
    [
      "a text refused for good",
      { security: "none", refuse: { at: "text", code: 554, message: "Spam" } },
      {},
      false,
    ],
    [
      "a recipient put off",
      { security: "none", refuse: { at: "recipient", code: 451, message: "Later" } },
      {},
      true,
    ],
    ["a text put off", { security: "none", refuse: { at: "text", code: 452, message: "Full" } }, {}, true],
    [
      "a wrong password, which the owner can set right",
      { security: "starttls", password: "right" },
      { password: "wrong" },
      true,
    ],
    [
      "a server that offers no STARTTLS where it is asked for",
      { security: "none" },
      { security: "starttls" },
      true,
    ],
    ["a certificate of another name", { security: "tls", names: ["elsewhere.example"] }, {}, true],
    ["a connection that ends before the text", { security: "none", hangUp: "recipient" }, {}, true],
  ])("certainly did not leave after %s", async (_rule, options, smtp, retry) => {
    const { outcome, taken } = await sendTo(options, {}, smtp);
    expect(outcome).toMatchObject({ kind: "failed", retry });
    expect(taken).toEqual([]);
    expect(JSON.stringify(outcome)).not.toMatch(/wrong"|right"/);
  });

  test.each([
    ["as it is", "hunter2-hunter2"],
    ["in base64", Buffer.from("hunter2-hunter2").toString("base64")],
  ])("a server's refusal that repeats the password %s is kept without it", async (_rule, spelling) => {
    const refuse = { at: "recipient", code: 550, message: `No, not with ${spelling} here` } as const;
    const { outcome } = await sendTo({ security: "starttls", password: "hunter2-hunter2", refuse });
    expect(outcome).toMatchObject({
      kind: "failed",
      message: expect.stringContaining("not with [password] here"),
    });
  });

  test("may have left when the connection ends after the text and before an answer", async () => {
    const { outcome } = await sendTo({ security: "none", hangUp: "text" });
    expect(outcome.kind).toBe("unknown");
  });

  test("trusts no authority that nobody named", async () => {
    const server = await startMailServer({ authority: makeAuthority("Stranger"), security: "tls" });
    await use({ smtp: { host: "localhost", port: server.port, security: "tls" } });
    expect(await mailer.send(mail)).toMatchObject({ kind: "failed", retry: true });
  });

  test("fails where nothing listens, and where no server is set", async () => {
    await use({ smtp: { host: "127.0.0.1", port: 1, security: "none" } });
    expect(await mailer.send(mail)).toMatchObject({ kind: "failed", retry: true });
    await use({ smtp: null });
    expect(await mailer.send(mail)).toMatchObject({
      kind: "failed",
      message: expect.stringContaining("No SMTP server is set"),
    });
  });

  test("a server that never speaks is given up after a minute", async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => void sockets.push(socket));
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    afterAll(() => {
      for (const socket of sockets) socket.destroy();
      silent.close();
    });
    const connected = new Promise((resolve) => silent.once("connection", resolve));
    const address = silent.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    await use({ smtp: { host: "127.0.0.1", port, security: "none" } });
    const sending = mailer.send(mail);
    await connected;
    await clock.advance(60_000);
    expect(await sending).toEqual({ kind: "failed", message: "the mail server took too long", retry: true });
  });

  test("a password sealed under another master key fails, and shows nothing of it", async () => {
    await use({
      smtp: {
        host: "localhost",
        port: 25,
        security: "starttls",
        username: "shop",
        password: "planted-secret",
      },
    });
    const other = makeSmtpMailer({ store, sealer: new Sealer(Buffer.alloc(32, 8)), clock });
    const outcome = await other.send(mail);
    expect(outcome).toMatchObject({ kind: "failed", retry: true });
    expect(JSON.stringify(outcome)).not.toContain("planted-secret");
  });
});

test("in local development every mail stays in the mailbox", async () => {
  expect(await mailboxMailer.send(mail)).toEqual({ kind: "mailbox" });
});

/** Quoted-printable to bytes, as latin1 text. */
function unquote(text: string): string {
  return text
    .replaceAll(/=\r\n/g, "")
    .replaceAll(/=([0-9A-F]{2})/g, (_match, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
