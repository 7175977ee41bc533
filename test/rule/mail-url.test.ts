/** The URL of the server's own mail server: accepted forms, refusals in one sentence, and a masked password. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { maskPasswords } from "../../src/base/database-url.ts";
import { MailUrl, readMailUrl } from "../../src/base/mail-url.ts";
import { runCommand } from "../kit/cli-io.ts";

const PASSWORD = "hunter2";
const FROM = "?from=relay@example.com";

const TAKEN: readonly [text: string, read: Record<string, unknown>][] = [
  [
    `smtps://relay:hunter2@smtp.example.com${FROM}`,
    { host: "smtp.example.com", port: 465, security: "tls", username: "relay", password: PASSWORD, from: "relay@example.com" },
  ],
  [`smtp://relay:hunter2@smtp.example.com/${FROM}`, { port: 587, security: "starttls" }],
  [`SMTP://SMTP.Example.com:2525${FROM}`, { host: "smtp.example.com", port: 2525, security: "starttls", username: null, password: null }],
  [`smtp://localhost${FROM}`, { port: 25, security: "none" }],
  [`smtps://[::1]${FROM}`, { host: "::1", port: 465, security: "tls" }],
  [`smtps://relay%40example.com:p%40ss%3A%2F@h${FROM}`, { username: "relay@example.com", password: "p@ss:/" }],
];
test.each(TAKEN)("%s is read", (text, read) => {
  const url = readMailUrl(text);
  expect(url).toBeInstanceOf(MailUrl);
  const { host, port, security, username, from, password } = url as MailUrl;
  expect({ host, port, security, username, from, password }).toMatchObject(read);
});

const REFUSED: readonly [text: string, why: string][] = [
  [`https://relay:hunter2@smtp.example.com${FROM}`, "is no URL of a mail server"],
  ["smtp.example.com", "is no URL of a mail server"],
  [`smtps://relay:hunter2#@smtp.example.com${FROM}`, "cannot be read"],
  [`smtps://relay:hunter2%@smtp.example.com${FROM}`, "cannot be read"],
  [`smtps://relay:hunter2%0Ax@smtp.example.com${FROM}`, "cannot be read"],
  [`smtps://${FROM}`, "names no host"],
  [`smtps://relay:hunter2@smtp.example.com/inbox${FROM}`, "has a path"],
  [`smtps://relay@smtp.example.com${FROM}`, "has only one of user and password"],
  [`smtps://:hunter2@smtp.example.com${FROM}`, "has only one of user and password"],
  ["smtps://relay:hunter2@smtp.example.com", "names no sender"],
  ["smtps://relay:hunter2@smtp.example.com?from=Relay", "names no sender"],
  [`smtps://relay:hunter2@smtp.example.com${FROM}&tls=no`, 'has "tls" after its question mark'],
];
test.each(REFUSED)("%s is refused, without the password", (text, why) => {
  const refusal = readMailUrl(text);
  expect(refusal).toContain(why);
  expect(refusal).not.toContain(PASSWORD);
});

test("the password is masked wherever the URL becomes text", async () => {
  const text = `smtps://relay:${PASSWORD}@smtp.example.com${FROM}`;
  const url = readMailUrl(text) as MailUrl;
  const masked = "smtps://relay:••••@smtp.example.com:465?from=relay@example.com";
  expect([String(url), JSON.parse(JSON.stringify(url))]).toEqual([masked, masked]);
  for (const one of [inspect(url), Bun.inspect(url), maskPasswords(`cannot reach ${text}`)]) expect(one).not.toContain(PASSWORD);
  const cwd = mkdtempSync(join(tmpdir(), "relay-mail-url-"));
  const shown = await runCommand(["config", "--json"], { cwd, env: { RELAY_MAIL_URL: text } });
  expect(shown.said).toContain(masked);
  expect(shown.said).not.toContain(PASSWORD);
  const refused = await runCommand(["config"], { cwd, env: { RELAY_MAIL_URL: "smtps://relay:hunter2@h" } });
  expect([refused.code, refused.told.includes("RELAY_MAIL_URL names no sender"), refused.told.includes(PASSWORD)]).toEqual([2, true, false]);
  rmSync(cwd, { recursive: true });
});
