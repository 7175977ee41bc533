import { describe, expect, test } from "bun:test";
import { saveSettings } from "../../src/platform/account/environment.ts";
import {
  changeMailSettings,
  type MailSettingsInput,
  readMailSettings,
  unsealSmtpPassword,
  viewMailSettings,
} from "../../src/platform/mail/mail-settings.ts";
import { makeHtml, makeSubject, makeText } from "../../src/platform/mail/mailer.ts";
import { parseAllowList } from "../../src/platform/outbound/address.ts";
import { Sealer } from "../../src/platform/secret/seal.ts";
import { openFreshStore, refusalOf } from "../kit/fresh-store.ts";

const { store, clock, environment } = await openFreshStore();
const sealer = new Sealer(Buffer.alloc(32, 1));
/** No From name and no Reply-To address. */
const PLAIN = { fromName: null, replyTo: null };
const signIn = { host: "smtp.example.com", username: "shop", password: "planted-secret" };

async function save(input: MailSettingsInput, allowed: readonly string[] = []) {
  const now = await environment("production");
  const section = changeMailSettings(now, input, sealer, clock.now(), parseAllowList(allowed));
  const after = await store.write("dashboard", (tx) => saveSettings(tx, now, { mail: section }, now.version));
  return readMailSettings(after);
}
const passwordOf = async () => {
  const now = await environment("production");
  const { smtp } = readMailSettings(now);
  return smtp === null ? null : unsealSmtpPassword(sealer, now.id, smtp);
};

describe("mail settings", () => {
  test("send by default, through no server", async () => {
    expect(readMailSettings(await environment("development"))).toEqual({ ...PLAIN, sends: true, smtp: null });
  });

  test("seal the password and never show it", async () => {
    const saved = await save({ smtp: signIn });
    const stored = JSON.stringify((await environment("production")).settings);
    expect(stored + JSON.stringify(viewMailSettings(saved))).not.toContain("planted-secret");
    expect(viewMailSettings(saved)).toEqual({
      ...PLAIN,
      sends: true,
      smtp: {
        host: "smtp.example.com",
        port: 587,
        security: "starttls",
        username: "shop",
        passwordSetAt: "2026-01-15T12:00:00.000Z",
      },
    });
    expect(await passwordOf()).toBe("planted-secret");
  });

  test("seal the password for one environment only", async () => {
    const { smtp } = await save({ smtp: signIn });
    const other = (await environment("development")).id;
    expect(() => smtp && unsealSmtpPassword(sealer, other, smtp)).toThrow("cannot be opened");
  });

  test("keep the password while host and username stay", async () => {
    await save({ smtp: signIn });
    await save({ smtp: { host: "smtp.example.com", username: "shop", security: "tls" } });
    expect([await passwordOf(), readMailSettings(await environment("production")).smtp?.port]).toEqual(["planted-secret", 465]);
  });

  test.each([
    ["another host", { host: "evil.example.com", username: "shop" }],
    ["another username", { host: "smtp.example.com", username: "other" }],
  ])("never send a stored password to %s", async (_rule, smtp) => {
    await save({ smtp: signIn });
    expect((await refusalOf(() => save({ smtp }))).code).toBe("invalid_input");
    expect(await passwordOf()).toBe("planted-secret");
  });

  test("keep everything else when only the sends switch changes, and keep the switch when the server is removed", async () => {
    await save({ smtp: signIn, sends: true });
    expect((await save({ sends: false })).smtp?.host).toBe("smtp.example.com");
    expect(await save({ smtp: null })).toEqual({ ...PLAIN, sends: false, smtp: null });
  });

  test.each<[string, NonNullable<MailSettingsInput["smtp"]>]>([
    ["an invalid host", { host: "https://smtp.example.com/" }],
    ["a host with a line break", { host: "a.example\r\nX" }],
    ["an empty host", { host: "" }],
    ["an invalid port", { host: "a.example", port: 70_000 }],
    ["a username without a password", { host: "a.example", username: "shop" }],
    ["a password without a username", { host: "a.example", password: "p" }],
    ["an unencrypted password over the network", { ...signIn, security: "none" }],
    ["a password with a line break", { ...signIn, password: "a\nb" }],
  ])("refuse %s", async (_rule, smtp) => {
    expect((await refusalOf(() => save({ smtp }))).code).toBe("invalid_input");
  });

  test("store a From name and a Reply-To separately, and delete them separately", async () => {
    expect(await save({ fromName: " Ada's Shop ", replyTo: "help@shop.example" })).toMatchObject({
      fromName: "Ada's Shop",
      replyTo: "help@shop.example",
    });
    expect(await save({ fromName: null })).toMatchObject({ fromName: null, replyTo: "help@shop.example" });
    expect(await save({ replyTo: "" })).toMatchObject(PLAIN);
  });

  test.each<[string, MailSettingsInput]>([
    ["a From name with a line break", { fromName: "Ada\r\nBcc: eve@example.com" }],
    ["a From name with a control character", { fromName: "Ada\u0000" }],
    ["a From name of invisible characters", { fromName: "\u200b\u2060" }],
    ["a From name of 101 characters", { fromName: "x".repeat(101) }],
    ["an invalid Reply-To", { replyTo: "help" }],
    ["a Reply-To with a name", { replyTo: "Help <help@example.com>" }],
    ["two addresses as Reply-To", { replyTo: "a@example.com,b@example.com" }],
    ["a Reply-To with a line break", { replyTo: "a@example.com\r\nBcc: eve@example.com" }],
  ])("refuse %s", async (_rule, input) => {
    expect((await refusalOf(() => save(input))).code).toBe("invalid_input");
  });

  test.each([
    ["loopback", "127.0.0.1", []],
    ["a private address", "10.1.2.3", ["10.2.0.0/16"]],
    ["a metadata address, even if the operator allows it", "169.254.169.254", ["169.254.0.0/16"]],
    ["a link-local address, even if the operator allows it", "fe80::1", ["fe80::/10"]],
    ["an IPv4 address inside an IPv6 one", "::ffff:127.0.0.1", []],
  ])("refuse %s as the server's address", async (_rule, host, allowed) => {
    const refusal = await refusalOf(() => save({ smtp: { host, security: "none" } }, allowed));
    expect([refusal.code, refusal.message]).toEqual(["invalid_input", expect.stringContaining("smtp.host")]);
  });

  test("accept a server on this machine without TLS if the operator allows it, and an IPv6 address", async () => {
    expect((await save({ smtp: { host: "127.0.0.1", security: "none" } }, ["127.0.0.1"])).smtp?.port).toBe(25);
    expect((await save({ smtp: { host: "localhost", security: "none" } })).smtp?.port).toBe(25);
    expect((await save({ smtp: { host: "2606:4700::1" } })).smtp?.host).toBe("2606:4700::1");
  });
});

describe("the output of a template", () => {
  test.each([
    ["turns a line break into a space", "a\r\nb\nc", "a b c"],
    ["turns control characters into a space", "a\u0000b\u0007", "a b"],
    ["cuts it to 300 characters", "x".repeat(400), "x".repeat(300)],
  ])("as a subject: %s", (_rule, rendered, expected) => {
    expect(makeSubject(rendered)).toBe(expected);
  });

  test.each([
    ["turns line breaks into one newline each", "a\r\nb\rc\nd", "a\nb\nc\nd"],
    ["removes control characters but not tabs", "a\u0000\tb\u001b[31m", "a\tb[31m"],
    ["replaces half a surrogate pair", "a\ud800b", "a\ufffdb"],
    ["cuts it to 10,000 characters, never inside one", "👋".repeat(10_001), "👋".repeat(10_000)],
  ])("as a text: %s", (_rule, rendered, expected) => {
    expect(makeText(rendered)).toBe(expected);
  });
});

describe("the HTML part of a mail", () => {
  const body = (text: string): string => /<body>\n([\s\S]*)\n<\/body>/.exec(makeHtml(text))?.[1]?.replaceAll("<br>\n", "|") ?? "";

  test.each([
    ["keeps lines and paragraphs", "one\ntwo\n\nthree", "<p>one|two</p>\n<p>three</p>"],
    ["shows markup as text", `<script>alert("1")</script> & 'x'`, "<p>&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;x&#39;</p>"],
    [
      "makes web addresses clickable under their own words",
      "See https://shop.example/a?b=1&c=2, please.",
      '<p>See <a href="https://shop.example/a?b=1&amp;c=2">https://shop.example/a?b=1&amp;c=2</a>, please.</p>',
    ],
    ["leaves other schemes as text", "javascript:alert(1) data:text/html,x mailto:a@b.example", null],
    ["leaves an address with a user name as text", "https://bank.example@evil.example/", null],
    ["leaves an invalid address as text", "https://", null],
    [
      "ends an address before a quote",
      'https://a.example/"onclick=alert(1)',
      '<p><a href="https://a.example/">https://a.example/</a>&quot;onclick=alert(1)</p>',
    ],
    ["ends an address before a bracket", "(https://a.example/b)<b>", '<p>(<a href="https://a.example/b">https://a.example/b</a>)&lt;b&gt;</p>'],
  ])("%s", (_rule, text, expected) => {
    expect(body(text)).toBe(expected ?? `<p>${text}</p>`);
  });

  test.each([`${"http://".padEnd(9_990, ".")}x`, `${"http://a".padEnd(9_990, "_*")}x`, "http://a ".repeat(1_100)])(
    "keeps every character of a text full of link endings: %#",
    (text) => {
      expect(makeHtml(text).replaceAll(/<[^>]*>/g, "")).toContain(text.trim());
    },
  );

  test("loads nothing and contains no address except those of the text", () => {
    const html = makeHtml("Hello https://a.example/");
    expect(html.match(/(src|href|url|action)\s*[=(]/g)).toEqual(["href="]);
    expect(html).not.toMatch(/<(img|link|script|style|iframe)/);
  });
});
