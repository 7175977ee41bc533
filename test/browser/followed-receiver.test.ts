/** Tests the pages of a relay that follows a receiver, of that receiver, and of a request that none of them takes. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { sendSigned } from "../kit/browser-sender.ts";

const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

let secret = "";

beforeAll(async () => {
  const make = (name: string, verify: object, type: string) =>
    running.api(
      "POST",
      "/relays",
      {
        definition: {
          name,
          trigger: { kind: "receiver", verify, map: { event_id: "id", event_type: "type" }, when: { event_type: type } },
          actions: [{ type: "call_url", url: "http://127.0.0.1:9/notice" }],
        },
      },
      "local",
    );
  secret = (await make("stripe", { scheme: "hooks" }, "paid")).body.receiverSecret;
  const saved = await make("refunds", { scheme: "receiver", receiver: "stripe" }, "refunded");
  expect([saved.status, saved.body.message]).toEqual([201, undefined]);
});

test("a follower names the receiver that verifies its requests, and has no tab for a receiver secret", async () => {
  await page.goto(at("relays/refunds"));
  const follows = page.getByRole("region", { name: "Follows" });
  await follows.getByRole("link", { name: "stripe" }).waitFor();
  expect(await page.getByRole("region", { name: "Receiver URL" }).count()).toBe(0);
  const steps = page.getByRole("region", { name: "Set it up" });
  await steps.getByRole("heading", { name: "The receiver stripe verifies a request", exact: true }).waitFor();
  await follows.getByRole("link", { name: "stripe" }).click();
  await page.getByRole("region", { name: "Followers" }).getByRole("link", { name: "refunds" }).waitFor();
});

test("a request that no relay takes is one row with what each relay did", async () => {
  await sendSigned(running, "stripe", secret, "one", '{"id":"one","type":"other"}');
  await page.goto(at("requests"));
  const row = page.getByRole("listitem").filter({ hasText: 'must be "paid"' }).first();
  const followers = row.getByRole("list", { name: "Followers" });
  await followers.getByRole("link", { name: "refunds" }).waitFor();
  await followers.getByText('when.event_type must be "refunded" and the request has "other"').waitFor();
});

test("the pages raise no complaint of the browser", () => {
  expect(complaints).toEqual([]);
});
