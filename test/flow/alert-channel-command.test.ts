/** Tests `relay alerts channels` and the commands that add, change, test and remove a channel, against a server. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ApiServer, startApi } from "../kit/api-server.ts";
import { runCommand } from "../kit/cli-io.ts";
import { FakeCaller } from "../kit/fake-caller.ts";

const SLACK = "https://hooks.slack.com/services/T012/B012/secretOfTheWebhook";
const caller = new FakeCaller();
let api: ApiServer;
let cwd: string;

beforeAll(async () => {
  api = await startApi({}, { caller });
  cwd = mkdtempSync(join(tmpdir(), "relay-channel-"));
});
afterAll(async () => {
  rmSync(cwd, { recursive: true });
  await api[Symbol.asyncDispose]();
});

const run = (line: string, input = "") => runCommand(line.split(" "), { cwd, input, env: { RELAY_URL: api.base, RELAY_KEY: api.keys.dev } });
const list = async () => JSON.parse((await run("alerts channels --json")).said).items;

test("the kinds are listed with their fields and where to find them", async () => {
  const { said } = await run("alerts channels --kinds");
  expect(said).toMatch(/^KIND +FIELD +GIVE IT +WHERE TO FIND IT\n/);
  expect(said).toMatch(/telegram +token +secret +Create a bot with @BotFather/);
  expect(said).toMatch(/telegram +chatId +with --field +/);
  expect(said).toMatch(/ntfy +token +secret, optional/);
});

test("a channel is added from standard input, tested, changed and listed, and its secret is never printed", async () => {
  const added = await run("alerts add-channel slack --name Ops", `${SLACK}\n`);
  expect(added).toMatchObject({ code: 0, said: "" });
  expect(added.told).toStartWith("Ops is added. Send a test: relay alerts test-channel chn_");
  expect(await run("alerts test-channel Ops")).toMatchObject({ code: 0, said: "Slack answered 200." });
  expect(caller.requests.map(({ url }) => url)).toEqual([SLACK]);
  caller.reply = () => ({ kind: "answered", ok: false, status: 410, body: "channel_is_archived" });
  const failed = await run("alerts test-channel Ops");
  expect([failed.code, failed.said]).toEqual([
    1,
    expect.stringContaining("Slack answered 410 (channel_is_archived): this address does not exist any more"),
  ]);
  expect((await run("alerts set-channel Ops --name Night --alert relay_failed,relay_silent")).told).toBe("Night is changed.");
  expect(await list()).toMatchObject([{ kind: "slack", name: "Night", codes: ["relay_failed", "relay_silent"], failingAt: null }]);
  const before = (await list())[0].fingerprints.url;
  expect((await run("alerts set-channel Night --secrets --alert all", "https://hooks.slack.com/services/T9/B9/other")).code).toBe(0);
  expect((await list())[0]).toMatchObject({ codes: null });
  expect((await list())[0].fingerprints.url).not.toBe(before);
  const shown = await run("alerts channels");
  expect(shown.said).toMatch(/^NAME +KIND +ALERTS/);
  expect(JSON.stringify([added, failed, shown])).not.toContain("secretOfTheWebhook");
});

test("a webhook prints its signing secret once, and several secrets are read one a line", async () => {
  const added = await run("alerts add-channel webhook", "https://example.com/alerts");
  expect(added.said).toMatch(/^whsec_[A-Za-z0-9+/]+=*$/);
  expect(added.told).toContain("Copy it now: it is shown once.");
  expect((await run("alerts add-channel ntfy --name Phone --field server=https://ntfy.example.com", "my-topic\ntk_abcdefghij\n")).code).toBe(0);
  const phone = (await list()).find(({ name }: { name: string }) => name === "Phone");
  expect([phone.fields, Object.keys(phone.fingerprints)]).toEqual([{ server: "https://ntfy.example.com" }, ["topic", "token"]]);
});

test("a removal needs its confirmation, and a name that two channels have needs the id", async () => {
  expect((await run("alerts add-channel webhook", "https://example.com/second")).code).toBe(0);
  expect((await run("alerts test-channel Webhook")).told).toContain("Several alert channels are called Webhook");
  expect((await run("alerts remove-channel Phone")).told).toContain("Nothing was removed, because there is no terminal");
  expect((await run("alerts remove-channel Phone --confirm Webhook")).code).toBe(2);
  expect(await run("alerts remove-channel Phone --confirm Phone")).toMatchObject({ code: 0, told: "Phone is removed. It gets no more alerts." });
  for (const { id } of await list()) expect((await run(`alerts remove-channel ${id} --confirm ${id}`)).code).toBe(0);
  expect((await run("alerts channels")).told).toContain("There is no alert channel");
});

test.each([
  ["alerts add-channel slack", "", 2, "Webhook URL is missing"],
  ["alerts add-channel slack", "https://evil.example/x", 1, "is not a valid Webhook URL of Slack"],
  ["alerts add-channel pager", "x", 2, "There is no kind pager: write one of slack, discord, telegram, ntfy, pagerduty, webhook."],
  ["alerts add-channel telegram --field chatId", "1", 2, "--field chatId has no value"],
  ["alerts add-channel slack --alert relay_fails", SLACK, 1, "codes"],
  ["alerts set-channel nobody --name x", "", 2, "There is no alert channel nobody"],
] as const)("%s is refused", async (line, input, code, why) => {
  const refused = await run(line, input);
  expect(refused.code).toBe(code);
  expect(refused.told).toContain(why);
});
