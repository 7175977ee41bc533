import { afterAll, describe, expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { formatMailFailure, MAIL_FAILURES, type MailFailureCode } from "../../src/base/code/mail-code.ts";
import { createLog } from "../../src/base/log.ts";
import { saveSettings } from "../../src/platform/account/environment.ts";
import { changeMailSettings, type MailSecurity, type MailSettingsInput } from "../../src/platform/mail/mail-settings.ts";
import { makeStopUrl } from "../../src/platform/mail/mail-stop.ts";
import { mailboxMailer, makeHtml, type OutgoingMail } from "../../src/platform/mail/mailer.ts";
import { makeSmtpMailer } from "../../src/platform/mail/smtp-mailer.ts";
import { parseAllowList } from "../../src/platform/outbound/address.ts";
import { Sealer } from "../../src/platform/secret/seal.ts";
import { makeAuthority } from "../kit/certificate.ts";
import { openFreshStore } from "../kit/fresh-store.ts";
import { type MailServerOptions, startMailServer } from "../kit/mail-server.ts";

const { store, clock, environment } = await openFreshStore();
const environmentId = (await environment("production")).id;
const sealer = new Sealer(Buffer.alloc(32, 7));
const authority = makeAuthority("Test authority");
const said: string[] = [];
const log = createLog({ clock, format: "json", sink: (line) => said.push(line) });
let baseUrl = "https://relay.example";
const rooms = {
  store,
  sealer,
  clock,
  log,
  allowPrivate: ["localhost", "127.0.0.1"],
  baseUrl: () => baseUrl,
};
const mailer = makeSmtpMailer({ ...rooms, authorities: [authority.cert] });

/** The mail server's own message. */
const PEER = "words of the peer";
const mail: OutgoingMail = {
  environmentId,
  emailId: "eml_1",
  from: "event@shop.example",
  to: "ada@example.com",
  subject: "Thank you",
  text: "Your order is on its way.",
};

const LOOPBACK = parseAllowList(["127.0.0.0/8", "::1"]);

async function use(input: MailSettingsInput): Promise<void> {
  const now = await environment("production");
  const section = changeMailSettings(now, input, sealer, clock.now(), LOOPBACK);
  await store.write("dashboard", (tx) => saveSettings(tx, now, { mail: section }, now.version));
}

/** Stores the mail's row as intended, as every sender does before. */
async function intend(): Promise<void> {
  await store.write("app", async (tx) => {
    await tx.run("DELETE FROM email");
    await tx.run(
      `INSERT INTO person (id, environment_id, email, email_key, status, attributes, created_by, created_at, updated_at)
       VALUES ('per_1', ?1, 'ada@example.com', 'ada@example.com', 'active', '{}', 'test', 0, 0)
       ON CONFLICT (id) DO UPDATE SET environment_id = excluded.environment_id, email = excluded.email, email_key = excluded.email_key, status = 'active'`,
      environmentId,
    );
    await tx.run(
      `INSERT INTO email (id, environment_id, person_id, recipient, sender, kind, subject, text, state, created_at)
       VALUES (?1, ?2, 'per_1', '', '', 'event', '', '', 'intended', ?3)`,
      mail.emailId,
      environmentId,
      clock.now(),
    );
  });
}
const isMarked = async () => (await store.read((tx) => tx.get("SELECT 1 FROM email WHERE left_at IS NOT NULL"))) !== null;

/** Starts a server, configures the environment for it, and sends one mail. */
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
  await intend();
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
    ["unencrypted on this machine", { security: "none" }, false, null],
  ])("is sent over %s", async (_rule, options, secure, user) => {
    const { outcome, taken } = await sendTo(options);
    expect(outcome).toEqual({ kind: "sent" });
    expect(taken).toMatchObject([{ from: mail.from, to: [mail.to], secure, user }]);
  });

  test("carries its sender, recipient, subject, id and time, and an auto-generated header", async () => {
    const { taken } = await sendTo({ security: "none" });
    expect(headersOf(taken[0]?.raw ?? "").toSorted()).toEqual([
      "Auto-Submitted: auto-generated",
      expect.stringMatching(/^Content-Type: multipart\/alternative; boundary="[^"]+"$/),
      "Date: Thu, 15 Jan 2026 12:00:00 +0000",
      "From: event@shop.example",
      "MIME-Version: 1.0",
      "Message-ID: <eml_1@shop.example>",
      "Subject: Thank you",
      "To: ada@example.com",
    ]);
    expect(partsOf(taken[0]?.raw ?? "").map(({ type }) => type)).toEqual(["text/plain; charset=utf-8", "text/html; charset=utf-8"]);
  });

  test("carries its text unchanged as plain text, and as HTML that shows the same", async () => {
    const text = "first\n.\n..two\n<b>Grüße</b> 你好 👋";
    const { outcome, taken } = await sendTo({ security: "none" }, { text, subject: "Grüße 👋" });
    expect(outcome).toEqual({ kind: "sent" });
    const [plain, html] = partsOf(taken[0]?.raw ?? "");
    expect(plain?.text).toBe(text);
    expect(html?.text.trimEnd()).toBe(makeHtml(text).trimEnd());
    expect(headersOf(taken[0]?.raw ?? "").some((line) => line.startsWith("Subject: =?UTF-8?"))).toBe(true);
  });

  test.each([
    ["a plain name", "Shop", "From: Shop <event@shop.example>"],
    ["a name with quotes and a comma", 'Ada, "the" Shop', 'From: "Ada, \\"the\\" Shop" <event@shop.example>'],
    ["a name in another alphabet", "Grüße", /^From: =\?UTF-8\?\S+\?= <event@shop\.example>$/],
    ["a name that looks like an address", "eve@evil.example", 'From: "eve@evil.example" <event@shop.example>'],
  ])("carries the From name of its environment: %s", async (_rule, fromName, expected) => {
    await use({ fromName });
    const { taken } = await sendTo({ security: "none" });
    await use({ fromName: null });
    const from = headersOf(taken[0]?.raw ?? "").filter((line) => /^from:/i.test(line));
    expect(from).toEqual([typeof expected === "string" ? expected : expect.stringMatching(expected)]);
    expect(taken[0]?.from).toBe(mail.from);
  });

  /** Sends to a server with fixed replies. It has one for the connection, and one for each start of our lines ("." is the end of the text). */
  async function sendToWords(greeting: string, words: Readonly<Record<string, string>>, to = mail.to) {
    const lines: string[] = [];
    const plain = createServer((socket) => {
      let isText = false;
      socket.on("error", () => undefined);
      socket.write(`${greeting}\r\n`);
      socket.on("data", (data) => {
        for (const line of data.toString().split("\r\n").slice(0, -1)) {
          lines.push(line);
          if (isText && line !== ".") continue;
          isText = line === "DATA";
          const begins = Object.keys(words).find((word) => line.startsWith(word)) ?? "";
          socket.write(`${words[begins] ?? (isText ? "354 go on" : "250 mail.example")}\r\n`);
        }
      });
    });
    await new Promise<void>((resolve) => plain.listen(0, "127.0.0.1", resolve));
    const address = plain.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    await use({ smtp: { host: "127.0.0.1", port, security: "none" } });
    await intend();
    const outcome = await mailer.send({ ...mail, to });
    plain.close();
    return { outcome, lines };
  }

  test.each([
    ["in ASCII, unchanged", "Ada+shop@Example.com", "Ada+shop@Example.com"],
    ["of another alphabet, in its ASCII spelling", "ada@bücher.example", "ada@xn--bcher-kva.example"],
    ["of another alphabet after a local part in that alphabet", "jürgen@bücher.example", "jürgen@xn--bcher-kva.example"],
  ])("goes to a domain %s", async (_rule, to, recipient) => {
    const { outcome, lines } = await sendToWords("220 mail.example", {}, to);
    expect(outcome).toEqual({ kind: "sent" });
    expect(lines).toContain(`RCPT TO:<${recipient}>`);
  });

  test.each<[string, string, Record<string, string>, "failed" | "unknown", MailFailureCode, string | null]>([
    ["that rejects the connection permanently", "554 5.7.1 your address is listed", {}, "failed", "server_trouble", "554 5.7.1"],
    ["that is busy", "421 4.7.0 too many connections", {}, "failed", "server_trouble", "421 4.7.0"],
    ["that is no mail server", "HTTP/1.1 400 Bad Request", {}, "failed", "server_trouble", null],
    ["that is busy at the first command", "220 a", { EHLO: "421 later", HELO: "421 later" }, "failed", "server_trouble", "421"],
    ["that defers a new sender", "220 a", { RCPT: "450 4.2.0 greylisted" }, "failed", "recipient_refused", "450 4.2.0"],
    ["that answers the text with no valid reply", "220 a", { ".": "thank you" }, "unknown", "server_trouble", null],
  ])("unencrypted to a server %s reports that reason, and not encryption", async (_rule, greeting, words, kind, reason, code) => {
    const { outcome } = await sendToWords(greeting, words);
    const message = formatMailFailure(reason, code);
    expect(outcome).toEqual(kind === "failed" ? { kind, reason, message, retry: true } : { kind, reason, message });
  });

  test("is refused without the recipient's ASCII domain in the log", async () => {
    said.length = 0;
    const refuse = { at: "recipient", code: 550, message: "no ada@xn--bcher-kva.example here" } as const;
    await sendTo({ security: "none", refuse }, { to: "ada@bücher.example" });
    expect(said.join()).toContain("no [recipient] here");
  });

  test("carries the Reply-To of its environment", async () => {
    await use({ replyTo: "help@shop.example" });
    const { taken } = await sendTo({ security: "none" });
    await use({ replyTo: null });
    expect(headersOf(taken[0]?.raw ?? "")).toContain("Reply-To: help@shop.example");
  });

  describe("that a person can stop", () => {
    const stopHeaders = (raw: string) => headersOf(raw).filter((line) => /^list-/i.test(line));

    test("carries a one-click unsubscribe URL for exactly its person", async () => {
      const { taken } = await sendTo({ security: "none" }, { stopFor: "per_1" });
      const address = makeStopUrl(sealer, baseUrl, { environmentId, personId: "per_1" });
      expect(stopHeaders(taken[0]?.raw ?? "")).toEqual([`List-Unsubscribe: <${address}>`, "List-Unsubscribe-Post: List-Unsubscribe=One-Click"]);
    });

    test("carries no such URL if the public origin is not https, and other mail never does", async () => {
      baseUrl = "http://127.0.0.1:4747";
      const { taken: plain } = await sendTo({ security: "none" }, { stopFor: "per_1" });
      baseUrl = "https://relay.example";
      const { taken: other } = await sendTo({ security: "none" });
      expect([plain, other].flatMap((one) => stopHeaders(one[0]?.raw ?? ""))).toEqual([]);
    });
  });

  test.each([
    ["a subject with a line break", { subject: "Hello\r\nBcc: victim@example.com\r\n\r\nbody" }],
    ["a text that begins like headers", { text: "Bcc: victim@example.com\n\nbody" }],
  ])("accepts no header from %s", async (_rule, more) => {
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
  ])("is not sent with %s", async (_rule, more) => {
    const { outcome, taken } = await sendTo({ security: "none" }, more);
    expect([outcome.kind, taken]).toEqual(["failed", []]);
  });

  test.each<
    [string, Omit<MailServerOptions, "authority">, { security?: MailSecurity; password?: string }, [MailFailureCode, "tried again" | "for good"]]
  >([
    ["a permanently refused sender", { security: "none", refuse: { at: "sender", code: 550, message: PEER } }, {}, ["sender_refused", "for good"]],
    [
      "a sender that must authenticate first",
      { security: "none", refuse: { at: "sender", code: 530, message: PEER } },
      {},
      ["auth_refused", "tried again"],
    ],
    [
      "a permanently refused recipient",
      { security: "none", refuse: { at: "recipient", code: 550, message: PEER } },
      {},
      ["recipient_refused", "for good"],
    ],
    ["a permanently refused text", { security: "none", refuse: { at: "text", code: 554, message: PEER } }, {}, ["text_refused", "for good"]],
    ["a deferred recipient", { security: "none", refuse: { at: "recipient", code: 451, message: PEER } }, {}, ["recipient_refused", "tried again"]],
    ["a deferred text", { security: "none", refuse: { at: "text", code: 452, message: PEER } }, {}, ["text_refused", "tried again"]],
    [
      "a wrong password, which the owner can fix",
      { security: "starttls", password: "right" },
      { password: "wrong" },
      ["auth_refused", "tried again"],
    ],
    ["a server without the required STARTTLS", { security: "none" }, { security: "starttls" }, ["tls_failed", "tried again"]],
    ["a certificate for another name", { security: "tls", names: ["elsewhere.example"] }, {}, ["tls_failed", "tried again"]],
    ["a connection that ends before the text", { security: "none", hangUp: "recipient" }, {}, ["connection_lost", "tried again"]],
  ])("was certainly not sent after %s, and the result has that class", async (_rule, options, smtp, ends) => {
    said.length = 0;
    const { outcome, taken } = await sendTo(options, {}, smtp);
    const [reason, again] = ends;
    expect(outcome).toMatchObject({ kind: "failed", reason, retry: again === "tried again" });
    expect(taken).toEqual([]);
    expect("message" in outcome && outcome.message).toStartWith(MAIL_FAILURES[reason].what);
    expect(JSON.stringify(outcome)).not.toMatch(/wrong"|right"|words of the peer/);
    if (options.refuse !== undefined) expect(said.join()).toContain("words of the peer");
  });

  test("is refused with the reply's numbers but not its message", async () => {
    const refuse = { at: "recipient", code: 550, message: `5.1.1 ${PEER}` } as const;
    const { outcome } = await sendTo({ security: "none", refuse });
    expect("message" in outcome && outcome.message).toBe(
      "The mail server rejected the recipient's address. Its reply was 550 5.1.1. Check the recipient's address.",
    );
  });

  test.each([
    ["the password", "hunter2-hunter2"],
    ["the password in base64", Buffer.from("hunter2-hunter2").toString("base64")],
    ["the sign-in command", Buffer.from("\u0000shop\u0000hunter2-hunter2").toString("base64")],
    ["the recipient", mail.to],
    ["the sender", mail.from],
  ])("is refused without %s in the log, on one line", async (_rule, spelling) => {
    said.length = 0;
    const refuse = { at: "recipient", code: 550, message: `No, not with ${spelling} here` } as const;
    const { outcome } = await sendTo({ security: "starttls", password: "hunter2-hunter2", refuse });
    expect(outcome.kind).toBe("failed");
    expect(said).toHaveLength(1);
    expect(said[0]).toMatch(/No, not with \[(password|recipient|sender)\] here/);
    expect(said[0]).not.toContain(spelling);
  });

  test("is marked durably before the server gets the first byte of its text, and only when it asks for it", async () => {
    const { outcome } = await sendTo({ security: "none", hangUp: "recipient" });
    expect([outcome.kind, await isMarked()]).toEqual(["failed", false]);
    let marked: boolean | null = null;
    const onText = async (): Promise<void> => {
      marked = await isMarked();
    };
    await sendTo({ security: "none", onText });
    expect<boolean | null>(marked).toBe(true);
  });

  test.each([
    ["its row was deleted", "DELETE FROM email"],
    ["its row was blanked by an erasure", "UPDATE email SET recipient = 'erased'"],
    ["its person was erased", "UPDATE person SET status = 'erased'"],
  ])("is not sent if %s in the meantime", async (_rule, sql) => {
    const erase = (): Promise<void> => store.write("app", async (tx) => void (await tx.run(sql)));
    const { outcome, taken } = await sendTo({ security: "none", onRecipient: erase });
    expect([outcome.kind, taken]).toEqual(["failed", []]);
  });

  test("may have been sent if the connection ends after the text and before a reply", async () => {
    const { outcome } = await sendTo({ security: "none", hangUp: "text" });
    expect(outcome).toMatchObject({ kind: "unknown", reason: "connection_lost" });
  });

  test("may have been sent if no reply to the text comes in time, but not if the server never asked for it", async () => {
    for (const [hold, kind] of [
      ["text", "unknown"],
      ["recipient", "failed"],
    ] as const) {
      const server = await startMailServer({ authority, security: "none" });
      server.hold = hold;
      await use({ smtp: { host: "localhost", port: server.port, security: "none" } });
      await intend();
      const sending = mailer.send(mail);
      await server.untilHeld(1);
      await clock.advance(60_000);
      expect(await sending).toMatchObject({ kind, reason: "timed_out" });
      server.letGo();
    }
  });

  test("trusts no authority that is not configured", async () => {
    const server = await startMailServer({ authority: makeAuthority("Stranger"), security: "tls" });
    await use({ smtp: { host: "localhost", port: server.port, security: "tls" } });
    expect(await mailer.send(mail)).toMatchObject({ kind: "failed", retry: true });
  });

  test("fails if no server listens, or if none is configured", async () => {
    await use({ smtp: { host: "127.0.0.1", port: 1, security: "none" } });
    expect(await mailer.send(mail)).toMatchObject({
      kind: "failed",
      reason: "connection_refused",
      retry: true,
    });
    await use({ smtp: null });
    expect(await mailer.send(mail)).toMatchObject({ kind: "failed", reason: "no_server", retry: true });
  });

  test.each<[string, string, string[], string[], MailFailureCode]>([
    ["loopback that the operator did not allow", "mail.example", ["127.0.0.1"], [], "address_refused"],
    ["a private address", "mail.example", ["10.1.2.3"], [], "address_refused"],
    ["a private address together with a public one", "mail.example", ["8.8.8.8", "10.1.2.3"], [], "address_refused"],
    ["loopback as an address", "127.0.0.1", [], [], "address_refused"],
    ["IPv6 loopback as an address", "::1", [], [], "address_refused"],
    ["metadata, allowed by range", "mail.example", ["169.254.169.254"], ["169.254.0.0/16"], "address_refused"],
    ["metadata, allowed by name", "mail.example", ["169.254.169.254"], ["mail.example"], "address_refused"],
    ["link-local, allowed by range", "mail.example", ["fe80::1"], ["fe80::/10"], "address_refused"],
    ["an invalid address", "mail.example", [], [], "name_not_found"],
  ])("makes no connection if the server is %s", async (_rule, host, found, allowPrivate, reason) => {
    const server = await startMailServer({ authority, security: "none" });
    await use({ smtp: { host, port: server.port, security: "none" } });
    const judged = makeSmtpMailer({ ...rooms, allowPrivate, lookup: async () => found });
    expect(await judged.send(mail)).toMatchObject({ kind: "failed", reason, retry: true });
    expect(server.connections()).toBe(0);
  });

  test.each<[string, MailFailureCode]>([
    ["ENOTFOUND", "name_not_found"],
    ["DNS_ETIMEOUT", "not_connected"],
    ["EAI_AGAIN", "not_connected"],
    ["DNS_ECONNREFUSED", "not_connected"],
  ])("fails with a look-up error %s as %s", async (code, reason) => {
    await use({ smtp: { host: "mail.example", port: 25, security: "none" } });
    const lookup = () => Promise.reject(Object.assign(new Error(`getaddrinfo ${code}`), { code }));
    const judged = makeSmtpMailer({ ...rooms, lookup });
    expect(await judged.send(mail)).toMatchObject({ kind: "failed", reason, retry: true });
  });

  test("uses the address that was checked, whatever the name resolves to a moment later", async () => {
    const server = await startMailServer({ authority, security: "none" });
    await use({ smtp: { host: "mail.example", port: server.port, security: "none" } });
    const answers = [["127.0.0.1"], ["10.1.2.3"]];
    const pinned = makeSmtpMailer({
      ...rooms,
      allowPrivate: ["127.0.0.1/32"],
      lookup: async () => answers.shift() ?? [],
    });
    await intend();
    expect(await pinned.send(mail)).toEqual({ kind: "sent" });
    expect(await pinned.send(mail)).toMatchObject({ kind: "failed", reason: "address_refused" });
    expect(server.taken).toHaveLength(1);
  });

  test("fails after a minute if the server never speaks", async () => {
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
    expect(await sending).toEqual({
      kind: "failed",
      reason: "timed_out",
      message: formatMailFailure("timed_out"),
      retry: true,
    });
  });

  test("fails if the password is sealed under another master key, and shows nothing of it", async () => {
    await use({
      smtp: {
        host: "localhost",
        port: 25,
        security: "starttls",
        username: "shop",
        password: "planted-secret",
      },
    });
    const other = makeSmtpMailer({ ...rooms, sealer: new Sealer(Buffer.alloc(32, 8)) });
    const outcome = await other.send(mail);
    expect(outcome).toMatchObject({ kind: "failed", retry: true });
    expect(JSON.stringify(outcome)).not.toContain("planted-secret");
  });
});

test("in local development every mail stays in the mailbox", async () => {
  expect(await mailboxMailer.send(mail)).toEqual({ kind: "mailbox" });
});

/** Splits a multipart mail into decoded parts, with newlines as `\n`. */
function partsOf(raw: string): { type: string; text: string }[] {
  const boundary = /boundary="([^"]+)"/.exec(raw)?.[1] ?? "?";
  return raw
    .split(`--${boundary}`)
    .slice(1, -1)
    .map((part) => {
      const headers = headersOf(part.trimStart());
      const find = (name: string): string =>
        headers
          .find((line) => line.toLowerCase().startsWith(name))
          ?.slice(name.length)
          .trim() ?? "";
      const content = textOf(part.trimStart());
      const bytes = Buffer.from(
        ...((/base64/i.test(find("content-transfer-encoding:")) ? [content, "base64"] : [unquote(content), "latin1"]) as [string, BufferEncoding]),
      );
      return { type: find("content-type:"), text: bytes.toString().replaceAll("\r\n", "\n") };
    });
}

/** Decodes quoted-printable to bytes, as latin1 text. */
function unquote(text: string): string {
  return text.replaceAll(/=\r\n/g, "").replaceAll(/=([0-9A-F]{2})/g, (_match, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
