/** Tests the channels of alerts: adding one, its test with the service's answer, a change, one that fails, and its removal. */
import { afterAll, expect, test } from "bun:test";
import { listChannels } from "../../src/platform/channel/channel.ts";
import { recordResult } from "../../src/platform/channel/channel-delivery.ts";
import { findBarriers } from "../kit/axe.ts";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";
import { FakeCaller } from "../kit/fake-caller.ts";

const SLACK = "https://hooks.slack.com/services/T012/B012/secretOfTheWebhook";
const caller = new FakeCaller();
const dashboard = await openDashboard({ ports: { caller } });
const { page, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const dialog = page.getByRole("dialog");
const card = (name: string) => page.getByRole("region", { name, exact: true });

test("a channel is added with the fields of its service, and a wrong address is refused with its reason", async () => {
  await page.goto(at("alerts?tab=channels"));
  await page.getByText("No channels yet").waitFor();
  await shoot(page, "channels-none");
  await page.getByRole("button", { name: "Add channel" }).click();
  await dialog.getByLabel("Name").fill("Ops");
  await dialog.getByLabel("Webhook URL").fill("https://evil.example/x");
  await shoot(page, "channel-dialog");
  await dialog.getByRole("button", { name: "Add channel" }).click();
  await dialog.getByRole("alert").getByText("is not a valid Webhook URL of Slack").waitFor();
  await dialog.getByLabel("Webhook URL").fill(SLACK);
  await dialog.getByText("Only these kinds").click();
  await dialog.getByLabel("Dead events").check();
  await dialog.getByLabel("Silent").check();
  await shoot(page, "channel-dialog-kinds");
  expect(await findBarriers(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Add channel" }).click();
  await card("Ops").getByText("Dead events · Silent").waitFor();
  await card("Ops").getByText("Nothing sent yet").waitFor();
  expect(await page.content()).not.toContain("secretOfTheWebhook");
});

test("a test shows what the service answered", async () => {
  await card("Ops").getByRole("button", { name: "Send a test" }).click();
  await card("Ops").getByText("The service took the test. Slack answered 200.").waitFor();
  expect(caller.requests.map(({ url }) => url)).toEqual([SLACK]);
  caller.reply = () => ({ kind: "answered", ok: false, status: 404, body: "no_service" });
  await card("Ops").getByRole("button", { name: "Send a test" }).click();
  await card("Ops").getByRole("alert").getByText("Slack answered 404 (no_service)").waitFor();
  await shoot(page, "channel-tested");
});

test("a change keeps the secret that it does not enter again", async () => {
  const before = await running.rows("SELECT fingerprints FROM alert_channel");
  await card("Ops").getByRole("button", { name: "Change…" }).click();
  expect(await dialog.getByLabel("Webhook URL").inputValue()).toBe("");
  await dialog.getByLabel("Name").fill("On call");
  await dialog.getByText("All alerts").click();
  await dialog.getByRole("button", { name: "Save" }).click();
  await card("On call").getByText("All alerts").waitFor();
  expect(await running.rows("SELECT fingerprints FROM alert_channel")).toEqual(before);
});

test("a webhook shows its signing secret once", async () => {
  await page.getByRole("button", { name: "Add channel" }).click();
  await dialog.getByLabel("Service").selectOption("webhook");
  await dialog.getByLabel("URL").fill("https://example.com/relay-alerts");
  await dialog.getByRole("button", { name: "Add channel" }).click();
  await dialog.getByText(/^whsec_/).waitFor();
  await dialog.getByRole("button", { name: "Copy Signing secret" }).click();
  await dialog.getByRole("button", { name: "I stored the secret" }).click();
  await card("Webhook").waitFor();
  expect(await page.content()).not.toContain("whsec_");
});

test("a channel that fails is on Home with a link to it", async () => {
  const [environment] = await running.rows<{ id: number }>("SELECT id FROM environment WHERE name = 'local' AND app_id = 'app_test'");
  await running.service.store.write("app", async (tx) => {
    const [channel] = await listChannels(tx, Number(environment?.id));
    if (channel !== undefined)
      await recordResult(tx, channel, { meaning: "wrong", waitMs: null, message: "Slack answered 404 (no_service)." }, running.clock.now());
  });
  await page.goto(at("home"));
  await page.getByText("Alerts do not reach the channel On call (Slack).").waitFor();
  await shoot(page, "channel-home");
  await page.getByRole("link", { name: "Open the channels" }).click();
  await card("On call").getByText("Fails").waitFor();
  await shoot(page, "channels");
  expect(await findBarriers(page)).toEqual([]);
});

test("a channel is removed after a question, with its problem", async () => {
  await card("On call").getByRole("button", { name: "Remove… On call" }).click();
  await dialog.getByRole("button", { name: "Remove channel" }).click();
  await card("On call").waitFor({ state: "detached" });
  expect(await running.rows("SELECT name FROM alert_channel")).toEqual([{ name: "Webhook" }]);
  expect(await running.rows("SELECT 1 FROM problem WHERE code = 'alert_channel_failing' AND cleared_at IS NULL")).toEqual([]);
});

test("nothing broke and the policy blocked nothing", () => {
  expect(complaints).toEqual([]);
});
