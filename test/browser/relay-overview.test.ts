/** A relay's overview: what is left to do while it is new, how it is and why, and the way of its calls with a link to what stopped at each step. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { sendSigned } from "../kit/browser-sender.ts";

const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

let secret = "";
const paid = (id: string) => `{"id":"${id}","email":"ada@example.com","type":"paid"}`;

beforeAll(async () => {
  const trigger = {
    kind: "receiver",
    verify: { scheme: "hooks" },
    map: { event_id: "id", person_email: "email", event_type: "type" },
    when: { event_type: "paid" },
  };
  const actions = [
    { type: "grant_credits", amount: 1 },
    { type: "write_record", collection: "nowhere", data: { a: "b" } },
  ];
  secret = (await running.api("POST", "/relays", { definition: { name: "orders", trigger, actions } }, "local")).body.receiverSecret;
  await page.goto(at("relays/orders"));
});

const funnel = page.getByRole("region", { name: "Last 24 hours" });

test("a new relay says what is left to do, and the steps tick themselves", async () => {
  const steps = page.getByRole("region", { name: "Set it up" });
  await steps.getByRole("heading", { name: "Have both know the secret (done)" }).waitFor();
  await page.locator(".page-title").getByText("No calls yet").waitFor();
  await funnel.getByText("No call came in the last 24 hours").waitFor();
  await sendSigned(running, "orders", secret, "one", paid("one"));
  await steps.getByRole("heading", { name: "The first call arrives (done)" }).waitFor();
});

test("what is wrong stands there with its reason, and the funnel says where each call stopped", async () => {
  await sendSigned(running, "orders", secret, "one", paid("one"));
  await sendSigned(running, "orders", secret, "two", '{"id":"two","email":"ada@example.com","type":"sent"}');
  await running.hook("orders", { body: "{}", headers: { "content-type": "application/json" } });
  const health = page.getByRole("region", { name: "Health" });
  await health.getByText("Failing · 100 % dead").waitFor();
  await health.getByText(/names nowhere, which does not exist here/).waitFor();
  await health.getByRole("button", { name: "Replay its dead events…" }).waitFor();
  for (const words of ["bad_signature", "when.event_type must be", "was received before", "names nowhere"])
    await funnel.getByText(words).first().waitFor();
  const boxes = await funnel
    .locator(".funnel-box")
    .evaluateAll((all) => all.map((box) => `${box.querySelector(".funnel-title")?.textContent} ${box.querySelector(".funnel-count")?.textContent}`));
  expect(boxes).toEqual([
    "Calls 4",
    "Verified 3",
    "Matches when 2",
    "Not a duplicate 1",
    "Person found 1",
    "Grant credits 1",
    "Write a record: nowhere 0",
  ]);
});

test("what stopped at a step is one click away, in the room that lists it, and Back returns", async () => {
  await funnel.getByRole("link", { name: "See them: 1 that stopped with when" }).click();
  await page.waitForURL(/\/calls\?relay=orders&outcome=ignored$/);
  await page.getByText("when.event_type must be").first().waitFor();
  await page.goBack();
  await funnel.getByRole("link", { name: "See them: 1 that stopped with collection_missing" }).click();
  await page.waitForURL(/\/events\?relay=orders&state=dead&since=/);
  await page.getByRole("link", { name: /paid/ }).first().waitFor();
});

test("the list of relays stands by trouble, each with how it is", async () => {
  const actions = [{ type: "grant_credits", amount: 1 }];
  await running.api(
    "POST",
    "/relays",
    { definition: { name: "alpha", trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { person_email: "email" } }, actions } },
    "local",
  );
  await page.goto(at("relays"));
  await page.getByRole("row", { name: /alpha/ }).getByText("No calls yet").waitFor();
  await page
    .getByRole("row", { name: /orders/ })
    .getByText("Failing · 100 % dead")
    .waitFor();
  expect(await page.locator("[data-row]").allInnerTexts()).toEqual(["orders", "alpha"]);
});

test("nothing of all this was refused by the page's policy or broke in its console", () => {
  expect(complaints).toEqual([]);
});
