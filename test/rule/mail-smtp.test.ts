import { afterAll, describe, expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { createLog } from "../../src/base/log.ts";
import { MAIL_TROUBLES, type MailTrouble } from "../../src/base/problem-code.ts";
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

/** What a mail server says in its own words. */
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

/** The mail's row, intended, as whoever sends writes it before. */
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

  test("carries its text as plain text, whatever it holds, and once more as HTML that shows the same", async () => {
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

  /** Sends to a server that says exactly this: to the connection, and to what begins a line of ours (".": the end of the text). */
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
    ["in ASCII, as it stands", "Ada+shop@Example.com", "Ada+shop@Example.com"],
    ["of another alphabet, in its ASCII spelling", "ada@bücher.example", "ada@xn--bcher-kva.example"],
    ["of another alphabet behind a name of one", "jürgen@bücher.example", "jürgen@xn--bcher-kva.example"],
  ])("goes to a domain %s", async (_rule, to, recipient) => {
    const { outcome, lines } = await sendToWords("220 mail.example", {}, to);
    expect(outcome).toEqual({ kind: "sent" });
    expect(lines).toContain(`RCPT TO:<${recipient}>`);
  });

  test.each<[string, string, Record<string, string>, "failed" | "unknown", MailTrouble, string | null]>([
    ["that turns the connection away for good", "554 5.7.1 your address is listed", {}, "failed", "server_trouble", "554 5.7.1"],
    ["that is busy", "421 4.7.0 too many connections", {}, "failed", "server_trouble", "421 4.7.0"],
    ["that is none", "HTTP/1.1 400 Bad Request", {}, "failed", "server_trouble", null],
    ["that is busy at the first word", "220 a", { EHLO: "421 later", HELO: "421 later" }, "failed", "server_trouble", "421"],
    ["that puts a new sender off", "220 a", { RCPT: "450 4.2.0 greylisted" }, "failed", "recipient_refused", "450 4.2.0"],
    ["that answers a text with no reply", "220 a", { ".": "thank you" }, "unknown", "server_trouble", null],
  ])("in clear to a server %s tells that, and nothing of encryption", async (_rule, greeting, words, kind, reason, code) => {
    const { outcome } = await sendToWords(greeting, words);
    const sentence = MAIL_TROUBLES[reason];
    const message = code === null ? sentence : `${sentence.slice(0, -1)} (${code}).`;
    expect(outcome).toEqual(kind === "failed" ? { kind, reason, message, retry: true } : { kind, reason, message });
  });

  test("a refusal that repeats a recipient's domain in ASCII is logged without it", async () => {
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

  describe("that may be stopped", () => {
    const stopHeaders = (raw: string) => headersOf(raw).filter((line) => /^list-/i.test(line));

    test("carries the one-click address of exactly its person, and says that one click is enough", async () => {
      const { taken } = await sendTo({ security: "none" }, { stopFor: "per_1" });
      const address = makeStopUrl(sealer, baseUrl, { environmentId, personId: "per_1" });
      expect(stopHeaders(taken[0]?.raw ?? "")).toEqual([`List-Unsubscribe: <${address}>`, "List-Unsubscribe-Post: List-Unsubscribe=One-Click"]);
    });

    test("carries none where the public origin is not https, and neither does any other mail", async () => {
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
    [string, Omit<MailServerOptions, "authority">, { security?: MailSecurity; password?: string }, [MailTrouble, "tried again" | "for good"]]
  >([
    ["a sender refused for good", { security: "none", refuse: { at: "sender", code: 550, message: PEER } }, {}, ["sender_refused", "for good"]],
    [
      "a sender put off until somebody signs in",
      { security: "none", refuse: { at: "sender", code: 530, message: PEER } },
      {},
      ["auth_refused", "tried again"],
    ],
    [
      "a recipient refused for good",
      { security: "none", refuse: { at: "recipient", code: 550, message: PEER } },
      {},
      ["recipient_refused", "for good"],
    ],
    ["a text refused for good", { security: "none", refuse: { at: "text", code: 554, message: PEER } }, {}, ["text_refused", "for good"]],
    ["a recipient put off", { security: "none", refuse: { at: "recipient", code: 451, message: PEER } }, {}, ["recipient_refused", "tried again"]],
    ["a text put off", { security: "none", refuse: { at: "text", code: 452, message: PEER } }, {}, ["text_refused", "tried again"]],
    [
      "a wrong password, which the owner can set right",
      { security: "starttls", password: "right" },
      { password: "wrong" },
      ["auth_refused", "tried again"],
    ],
    ["a server that offers no STARTTLS where it is asked for", { security: "none" }, { security: "starttls" }, ["tls_failed", "tried again"]],
    ["a certificate of another name", { security: "tls", names: ["elsewhere.example"] }, {}, ["tls_failed", "tried again"]],
    ["a connection that ends before the text", { security: "none", hangUp: "recipient" }, {}, ["connection_lost", "tried again"]],
  ])("certainly did not leave after %s, and the class of that is told", async (_rule, options, smtp, ends) => {
    said.length = 0;
    const { outcome, taken } = await sendTo(options, {}, smtp);
    const [reason, again] = ends;
    expect(outcome).toMatchObject({ kind: "failed", reason, retry: again === "tried again" });
    expect(taken).toEqual([]);
    expect("message" in outcome && outcome.message).toStartWith(MAIL_TROUBLES[reason].slice(0, -1));
    expect(JSON.stringify(outcome)).not.toMatch(/wrong"|right"|words of the peer/);
    if (options.refuse !== undefined) expect(said.join()).toContain("words of the peer");
  });

  test("a refusal is told with the reply's numbers and with no word of it", async () => {
    const refuse = { at: "recipient", code: 550, message: `5.1.1 ${PEER}` } as const;
    const { outcome } = await sendTo({ security: "none", refuse });
    expect("message" in outcome && outcome.message).toBe("The mail server refused the recipient's address (550 5.1.1).");
  });

  test.each([
    ["the password as it is", "hunter2-hunter2"],
    ["the password in base64", Buffer.from("hunter2-hunter2").toString("base64")],
    ["what was said to sign in", Buffer.from("\u0000shop\u0000hunter2-hunter2").toString("base64")],
    ["the recipient", mail.to],
    ["the sender", mail.from],
  ])("a server's refusal that repeats %s is logged without it, in one line", async (_rule, spelling) => {
    said.length = 0;
    const refuse = { at: "recipient", code: 550, message: `No, not with ${spelling} here` } as const;
    const { outcome } = await sendTo({ security: "starttls", password: "hunter2-hunter2", refuse });
    expect(outcome.kind).toBe("failed");
    expect(said).toHaveLength(1);
    expect(said[0]).toMatch(/No, not with \[(password|recipient|sender)\] here/);
    expect(said[0]).not.toContain(spelling);
  });

  test("is marked durably before the server gets the first byte of its text, and not before it asks for it", async () => {
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
    ["its row is gone", "DELETE FROM email"],
    ["its row was blanked by an erasure", "UPDATE email SET recipient = 'erased'"],
    ["its person was erased", "UPDATE person SET status = 'erased'"],
  ])("does not leave when %s by then", async (_rule, sql) => {
    const erase = (): Promise<void> => store.write("app", async (tx) => void (await tx.run(sql)));
    const { outcome, taken } = await sendTo({ security: "none", onRecipient: erase });
    expect([outcome.kind, taken]).toEqual(["failed", []]);
  });

  test("may have left when the connection ends after the text and before an answer", async () => {
    const { outcome } = await sendTo({ security: "none", hangUp: "text" });
    expect(outcome).toMatchObject({ kind: "unknown", reason: "connection_lost" });
  });

  test("may have left when no answer to the text comes in time; it certainly did not when the server never asked for it", async () => {
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

  test("trusts no authority that nobody named", async () => {
    const server = await startMailServer({ authority: makeAuthority("Stranger"), security: "tls" });
    await use({ smtp: { host: "localhost", port: server.port, security: "tls" } });
    expect(await mailer.send(mail)).toMatchObject({ kind: "failed", retry: true });
  });

  test("fails where nothing listens, and where no server is set", async () => {
    await use({ smtp: { host: "127.0.0.1", port: 1, security: "none" } });
    expect(await mailer.send(mail)).toMatchObject({
      kind: "failed",
      reason: "connection_refused",
      retry: true,
    });
    await use({ smtp: null });
    expect(await mailer.send(mail)).toMatchObject({ kind: "failed", reason: "no_server", retry: true });
  });

  test.each<[string, string, string[], string[], MailTrouble]>([
    ["loopback that the operator did not allow", "mail.example", ["127.0.0.1"], [], "address_refused"],
    ["a private address", "mail.example", ["10.1.2.3"], [], "address_refused"],
    ["a private address beside a public one", "mail.example", ["8.8.8.8", "10.1.2.3"], [], "address_refused"],
    ["loopback as an address", "127.0.0.1", [], [], "address_refused"],
    ["IPv6 loopback as an address", "::1", [], [], "address_refused"],
    ["metadata, allowed by range", "mail.example", ["169.254.169.254"], ["169.254.0.0/16"], "address_refused"],
    ["metadata, allowed by name", "mail.example", ["169.254.169.254"], ["mail.example"], "address_refused"],
    ["link-local, allowed by range", "mail.example", ["fe80::1"], ["fe80::/10"], "address_refused"],
    ["no address at all", "mail.example", [], [], "name_not_found"],
  ])("connects to nothing where the server is %s", async (_rule, host, found, allowPrivate, reason) => {
    const server = await startMailServer({ authority, security: "none" });
    await use({ smtp: { host, port: server.port, security: "none" } });
    const judged = makeSmtpMailer({ ...rooms, allowPrivate, lookup: async () => found });
    expect(await judged.send(mail)).toMatchObject({ kind: "failed", reason, retry: true });
    expect(server.connections()).toBe(0);
  });

  test.each<[string, MailTrouble]>([
    ["ENOTFOUND", "name_not_found"],
    ["DNS_ETIMEOUT", "not_connected"],
    ["EAI_AGAIN", "not_connected"],
    ["DNS_ECONNREFUSED", "not_connected"],
  ])("a look-up that ends with %s is told as %s", async (code, reason) => {
    await use({ smtp: { host: "mail.example", port: 25, security: "none" } });
    const lookup = () => Promise.reject(Object.assign(new Error(`getaddrinfo ${code}`), { code }));
    const judged = makeSmtpMailer({ ...rooms, lookup });
    expect(await judged.send(mail)).toMatchObject({ kind: "failed", reason, retry: true });
  });

  test("is looked up at each connect and connects to the address that was judged, whatever the name says a moment later", async () => {
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
    expect(await sending).toEqual({
      kind: "failed",
      reason: "timed_out",
      message: MAIL_TROUBLES.timed_out,
      retry: true,
    });
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
    const other = makeSmtpMailer({ ...rooms, sealer: new Sealer(Buffer.alloc(32, 8)) });
    const outcome = await other.send(mail);
    expect(outcome).toMatchObject({ kind: "failed", retry: true });
    expect(JSON.stringify(outcome)).not.toContain("planted-secret");
  });
});

test("in local development every mail stays in the mailbox", async () => {
  expect(await mailboxMailer.send(mail)).toEqual({ kind: "mailbox" });
});

/** The parts of a multipart mail, decoded, newlines as `\n`. */
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

/** Quoted-printable to bytes, as latin1 text. */
function unquote(text: string): string {
  return text.replaceAll(/=\r\n/g, "").replaceAll(/=([0-9A-F]{2})/g, (_match, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
