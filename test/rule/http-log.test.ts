/** The log has one line for each entry, and never contains a secret or a body. */
import { describe, expect, test } from "bun:test";
import { createLog, foldRepeats, type LogFields, type LogLevel } from "../../src/base/log.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

function write(format: "text" | "json", message: string, fields?: LogFields, level: LogLevel = "error"): string {
  const lines: string[] = [];
  const log = createLog({ clock: new VirtualClock(0), format, sink: (line) => lines.push(line) });
  log[level](message, fields);
  return lines.join("\n");
}

test("text is time, level, message and fields on one line", () => {
  const line = write("text", "Started.", { port: 3000, host: "127.0.0.1", note: "two words", nothing: undefined }, "info");
  expect(line).toBe('1970-01-01T00:00:00.000Z INFO  Started. port=3000 host=127.0.0.1 note="two words"');
});

test("json is one object a line, with its own fields before any other", () => {
  expect(JSON.parse(write("json", "Started.", { port: 3000, level: "fake", message: "fake" }, "warn"))).toEqual({
    at: "1970-01-01T00:00:00.000Z",
    level: "warn",
    message: "Started.",
    port: 3000,
  });
});

test("a line break in a message or a field cannot forge a second line", () => {
  expect(write("text", "a\nb", { field: "c\nd" }).split("\n")).toHaveLength(1);
  expect(write("json", "a\nb", { field: "c\nd" }).split("\n")).toHaveLength(1);
});

test.each(["text", "json"] as const)("no control character and no Unicode line separator reaches a %s log", (format) => {
  const sly = "a\u009b2J\u0085b\u2028c\u2029d\u202ee\u2066f\u0007\u001b[31m\u007f";
  const line = write(format, sly, { field: sly, error: new Error(sly) });
  expect(line).not.toMatch(/[^\P{Cc}\n]|[\u2028\u2029\u202e\u2066]/u);
  expect(line).toContain("\\u009b");
});

test("an error's message of several lines cannot forge an entry", () => {
  const forged = "1970-01-01T00:00:00.000Z INFO  All is well.";
  const lines = write("text", "Failed.", { error: new Error(`broken\n${forged}`) }).split("\n");
  expect(lines).not.toContain(forged);
  expect(lines.slice(1).every((line) => line.startsWith("    "))).toBe(true);
});

test("an error is logged with its stack", () => {
  const error = new TypeError("broken");
  expect(JSON.parse(write("json", "Failed.", { error })).error).toMatchObject({
    name: "TypeError",
    message: "broken",
  });
  expect(write("text", "Failed.", { error })).toContain("http-log.test.ts");
});

test("levels below the lowest are dropped", () => {
  expect(write("text", "quiet", {}, "debug")).toBe("");
});

describe("the log blanks", () => {
  const planted = "pl4nted";
  const rows: readonly [name: string, fields: LogFields][] = [
    ["an authorization header", { headers: { Authorization: `Bearer ${planted}` } }],
    ["a cookie", { headers: { cookie: `relay_session=${planted}` } }],
    ["a set-cookie", { headers: { "set-cookie": planted } }],
    ["a body", { body: { password: planted } }],
    ["a payload", { payload: planted }],
    ["a field with a secret's name at any depth", { a: { b: { receiverSecret: planted, signing_secret: planted } } }],
    ["a token, a password, a private key", { token: planted, newPassword: planted, privateKey: planted }],
    ["a list's fields", { items: [{ secret: planted }] }],
    ["a secret key inside a text", { url: `https://x.example/?k=relay_live_${planted}` }],
    ["a secret key of an earlier version inside a text", { url: `https://x.example/?k=sk_live_${planted}` }],
    ["a hooks secret inside a text", { note: `got whsec_${planted}==` }],
    ["a minted receiver secret inside a text", { note: `got rcv_${planted}${"a".repeat(36)}` }],
    ["a signing secret inside a text", { note: `got sgn_${planted}${"a".repeat(36)}` }],
    ["a person's session inside a text", { note: `got ps_${planted}${"a".repeat(36)}` }],
    ["a bearer token inside an error", { error: new Error(`refused Bearer ${planted}`) }],
    ["a private key inside a text", { note: `-----BEGIN PRIVATE KEY-----\n${planted}\n-----END PRIVATE KEY-----` }],
    ["bytes", { sealed: new TextEncoder().encode(planted) }],
  ];
  for (const [name, fields] of rows) {
    test(name, () => {
      for (const format of ["text", "json"] as const) {
        const line = write(format, "Something.", fields);
        expect(line).not.toContain(planted);
        expect(line).toContain("Something.");
      }
    });
  }
  test("a key inside the message itself", () => expect(write("text", `bad key ak_dev_${planted}`)).not.toContain(planted));
});

describe("lines that repeat", () => {
  const open = () => {
    const lines: string[] = [];
    const clock = new VirtualClock(0);
    const log = foldRepeats(createLog({ clock, format: "json", sink: (line) => lines.push(line) }), clock);
    const told = () => lines.splice(0).map((line) => (JSON.parse(line) as { message: string }).message);
    return { clock, log, told };
  };

  test("are logged at once the first time, then once a minute with their count, then at once again", async () => {
    const { clock, log, told } = open();
    for (let n = 0; n < 469; n++) log.error("event not recorded", { cause: "full", event: n });
    expect(told()).toEqual(["event not recorded"]);
    await clock.advance(60_000);
    expect(told()).toEqual(["event not recorded: 468 more in the last minute"]);
    log.error("event not recorded", { cause: "full" });
    expect(told()).toEqual([]);
    await clock.advance(60_000);
    expect(told()).toEqual(["event not recorded: 1 more in the last minute"]);
    await clock.advance(60_000);
    log.error("event not recorded", { cause: "full" });
    expect(told()).toEqual(["event not recorded"]);
  });

  test("are separated by level, message, relay, cause, source and the error's message, but not by an id or a path", () => {
    const { log, told } = open();
    log.warn("a", { relay: "one", path: "/x" });
    log.warn("a", { relay: "one", path: "/y" });
    log.warn("a", { relay: "two" });
    log.error("a", { relay: "one" });
    log.error("a", { relay: "one", error: new Error("no") });
    log.error("a", { relay: "one", error: new Error("yes") });
    log.error("a", { relay: "one", error: new Error("no") });
    expect(told()).toHaveLength(5);
  });

  test("from more than 500 sources count as one kind", () => {
    const { log, told } = open();
    for (let n = 0; n < 2_000; n++) log.warn("A sign-in attempt failed.", { source: `10.0.0.${n}` });
    expect(told()).toHaveLength(501);
  });

  test("are counted at the end, and info lines are never combined", () => {
    const { log, told } = open();
    for (let n = 0; n < 3; n++) {
      log.warn("a");
      log.info("b");
    }
    log.stop();
    expect(told()).toEqual(["a", "b", "b", "b", "a: 2 more in the last minute"]);
  });
});
