/**
 * Tests that no failure is silent in local development. It stages ten failures against the compiled executable and reads the terminal of `relay dev`.
 * A line with the relay's name scores 1, with the code or an error 2, with the cause 3.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CliProcess, startCli } from "../kit/cli-process.ts";
import { type Executable, placeExecutable } from "../kit/executable.ts";
import { poll } from "../kit/patience.ts";
import { HOOK_SECRET } from "../kit/relay-definition.ts";
import { PRIVATE, TIMED } from "../kit/staged-failure.ts";

const PLAIN = { scheme: "signature", header: "x-signature", signedPayload: "{body}", encoding: "hex" };
const WRITE = { type: "write_record", collection: "orders", data: { order: "{{mapped.event_id}}" } };
const BODY = JSON.stringify({ id: "a", type: "order.paid", note: PRIVATE, person: "per_nobody" });

interface DevFailure {
  name: string;
  trigger?: object;
  actions?: object[];
  /** Holds the request to send. It is absent if the save itself fails. */
  post?: { text?: string; secret?: string; to?: string; body?: string; agoSeconds?: number };
  cause: RegExp;
  /** Marks a request that no signature verified, so its words must not appear. */
  unverified?: boolean;
}

const ROWS: readonly DevFailure[] = [
  {
    name: "wrong-secret",
    post: { secret: "anotherSecretOfTwentyFour1" },
    cause: /401 bad_signature · the signature does not match; the secret or the recipe differs/,
    unverified: true,
  },
  {
    name: "header-typo",
    trigger: { verify: { ...PLAIN, header: "x-signture" } },
    post: {},
    cause:
      /401 bad_signature · header x-signture is missing; the request has a header with a similar name: `x-signature`|it verifies with.*x-signature/,
    unverified: true,
  },
  {
    name: "signed-text",
    trigger: { verify: TIMED },
    post: { agoSeconds: 0 },
    cause: /it verifies with .*signedPayload `\{body\}`/,
    unverified: true,
  },
  {
    name: "clock-off",
    trigger: { verify: TIMED },
    post: { agoSeconds: 912, text: `<seconds>.${BODY}` },
    cause: /the timestamp is \d{3,4} seconds old, and at most 300 are allowed/,
    unverified: true,
  },
  {
    name: "when-typo",
    trigger: { when: { event_type: "order.piad" } },
    post: {},
    cause: /200 ignored · when\.event_type must be "order\.piad" and the request has "order\.paid"/,
  },
  {
    name: "path-nothing",
    trigger: { map: { event_id: "id", amount: "data.amuont" } },
    actions: [{ ...WRITE, data: { order: "{{mapped.amount}}" } }],
    post: {},
    cause: /ran_with_warnings · \{\{mapped\.amount\}\} resolves to nothing in this event and was left empty: the map reads it from data\.amuont/,
  },
  {
    name: "nobody-found",
    trigger: { map: { event_id: "id", person_id: "person" } },
    actions: [{ type: "grant_credits", amount: 5 }],
    post: {},
    cause: /person_not_found · .*(resolved to no person|no person)/,
  },
  {
    name: "url-down",
    actions: [{ type: "call_url", url: "http://localhost:9/nobody" }],
    post: {},
    cause: /connection_failed · .* · retry at .* in (1 minute|60 seconds|59 seconds) · .*events show evt_/,
  },
  { name: "url-typo", post: { to: "url-tpyo" }, cause: /404 unknown_receiver · .*did the sender mean url-typo\?/ },
  {
    name: "ghost",
    trigger: { kind: "data_change", collection: "ordrs", on: ["created"] },
    actions: [{ type: "call_url", url: "https://example.com/x" }],
    cause: /warning: `trigger\.collection`: there is no collection named ordrs .*did you mean orders\?/,
  },
];

let folder: string;
let executable: Executable;
let dev: CliProcess;
let base: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "relay-silent-"));
  mkdirSync(join(folder, "service/relays"), { recursive: true });
  const secrets: Record<string, object> = {};
  for (const { name, trigger, actions = [WRITE] } of ROWS) {
    const receiver = { kind: "receiver", verify: PLAIN, map: { event_id: "id", event_type: "type" } };
    const whole = { ...(trigger !== undefined && "kind" in trigger ? {} : receiver), ...trigger } as { kind: string };
    writeFileSync(join(folder, `service/relays/${name}.json`), JSON.stringify({ name, trigger: whole, actions }, null, 2));
    if (whole.kind === "receiver") secrets[name] = { receiverSecret: HOOK_SECRET };
  }
  writeFileSync(join(folder, "service/.secrets.json"), JSON.stringify(secrets));
  writeFileSync(join(folder, "service/catalog.json"), JSON.stringify({ collections: { orders: { kind: "shared", fields: { order: "text" } } } }));
  executable = placeExecutable();
  dev = startCli(["dev", "--port", "0"], { cwd: folder, command: [executable.file] });
  base = (await dev.line("/hooks/")).replace(/^.*?(http\S+)\/[^/]+$/, "$1");
  await dev.line("Press Ctrl+C");
  // The first test that needs the executable builds it.
});

afterAll(async () => {
  dev.kill("SIGINT");
  await dev.exited;
  executable[Symbol.dispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function post(
  name: string,
  { text = BODY, agoSeconds, secret = HOOK_SECRET, to = name, body = BODY }: NonNullable<DevFailure["post"]>,
): Promise<void> {
  const seconds = Math.floor(Date.now() / 1000) - (agoSeconds ?? 0);
  const hex = createHmac("sha256", secret)
    .update(text.replace("<seconds>", String(seconds)))
    .digest("hex");
  const value = agoSeconds === undefined ? hex : `t=${seconds},v1=${hex}`;
  await fetch(`${base}/${to}`, { method: "POST", headers: { "content-type": "application/json", "x-signature": value }, body });
}

/** Returns the lines of the row's relay, and the indented lines under them. */
function linesOf(name: string): string[] {
  const lines = dev.lines();
  return lines.filter((line, at) => line.includes(name) || (/^\s{4}/.test(line) && lines[at - 1]?.includes(name)));
}

const scores = new Map<string, number>();

describe("the terminal reports, with the cause", () => {
  test.each(ROWS.map((row) => [row.name, row] as const))("%s", async (name, row) => {
    if (row.post !== undefined) await post(name, row.post);
    const named = row.post?.to ?? name;
    const lines = await poll(
      () => linesOf(named),
      (all) => all.some((line) => row.cause.test(line)),
    );
    const cause = lines.some((line) => row.cause.test(line));
    const code = lines.some((line) => /[a-z]_[a-z]|warning|failed/.test(line.replaceAll(named, "")));
    scores.set(name, cause ? 3 : code ? 2 : lines.length > 0 ? 1 : 0);
    if (!cause) throw new Error(`${name}: ${scores.get(name)} of 3:\n${lines.join("\n")}`);
    if (row.unverified === true) expect(dev.lines().join("\n")).not.toContain(PRIVATE);
  });

  test("a tunnel without a configured name", async () => {
    await fetch(`${base}/url-typo`, { method: "POST", headers: { host: "abc.tunnel.example" }, body: BODY });
    expect(await dev.line("wrong_origin")).toStartWith("CALL  · url-typo · 403 wrong_origin · it came for a host that local development does not");
    expect(dev.lines().join("\n")).not.toContain("abc.tunnel.example");
  });

  test("ten failures with at least 27 of 30 points", () => {
    expect(scores.size).toBe(10);
    expect([...scores.values()].reduce((sum, score) => sum + score, 0)).toBeGreaterThanOrEqual(27);
  });
});
