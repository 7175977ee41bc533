/** Tests a relay's overview: the open steps of a new relay, its health, and a funnel with links to each step's stops. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { sendSigned } from "../kit/browser-sender.ts";
import { shoot } from "../kit/browser-shots.ts";

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

test("a new relay lists its open steps, and they check themselves off", async () => {
  const steps = page.getByRole("region", { name: "Set it up" });
  await steps.getByRole("heading", { name: "Register the receiver URL at the sender", exact: true }).waitFor();
  await page.locator(".page-title").getByText("No requests yet").waitFor();
  await funnel.getByText("No request arrived since the relay was created at").waitFor();
  await sendSigned(running, "orders", secret, "one", paid("one"));
  await steps.getByRole("heading", { name: "The first request verifies (done)" }).waitFor();
});

test("a problem is shown with its reason, and the funnel shows where each request stopped", async () => {
  await sendSigned(running, "orders", secret, "one", paid("one"));
  await sendSigned(running, "orders", secret, "two", '{"id":"two","email":"ada@example.com","type":"sent"}');
  await running.hook("orders", { body: "{}", headers: { "content-type": "application/json" } });
  const health = page.getByRole("region", { name: "Health" });
  await health.getByText("Failing · 100 % dead").waitFor();
  await health.getByText(/names nowhere, which does not exist in this environment/).waitFor();
  await health.getByRole("button", { name: "Replay its dead events…" }).waitFor();
  for (const words of ["bad_signature", "when.event_type must be", "was received before", "names nowhere"])
    await funnel.getByText(words).first().waitFor();
  const boxes = await funnel
    .locator(".funnel-box")
    .evaluateAll((all) => all.map((box) => `${box.querySelector(".funnel-title")?.textContent} ${box.querySelector(".funnel-count")?.textContent}`));
  expect(boxes).toEqual([
    "Requests 4",
    "Verified 3",
    "Matches when 2",
    "Not a duplicate 1",
    "Person found 1",
    "Grant credits 1",
    "Write a record: nowhere 0",
  ]);
});

test("a step's stops are one click away on the page that lists them, and Back returns", async () => {
  await funnel.getByRole("link", { name: "Show: 1 that stopped with when" }).click();
  await page.waitForURL(/\/requests\?relay=orders&outcome=ignored$/);
  await page.getByText("when.event_type must be").first().waitFor();
  await page.goBack();
  await funnel.getByRole("link", { name: "Show: 1 that stopped with collection_missing" }).click();
  await page.waitForURL(/\/events\?relay=orders&state=dead&since=/);
  await page.getByRole("link", { name: /paid/ }).first().waitFor();
});

test("the list of relays is sorted by severity, each with its health", async () => {
  const actions = [{ type: "grant_credits", amount: 1 }];
  await running.api(
    "POST",
    "/relays",
    { definition: { name: "alpha", trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { person_email: "email" } }, actions } },
    "local",
  );
  await page.goto(at("relays"));
  await page.getByRole("row", { name: /alpha/ }).getByText("No requests yet").waitFor();
  await page
    .getByRole("row", { name: /orders/ })
    .getByText("Failing · 100 % dead")
    .waitFor();
  expect(await page.locator("[data-row]").allInnerTexts()).toEqual(["orders", "alpha"]);
});

test("a schedule offers the runs that a hold skipped: the list first, then the chosen ones start", async () => {
  const trigger = { kind: "schedule", every: "15m" };
  const definition = { name: "quarterly", trigger, actions: [{ type: "write_record", collection: "visits", data: { a: "b" } }] };
  await running.api("POST", "/collections", { name: "visits", kind: "shared", fields: { a: { type: "text" } } }, "local");
  await running.api("POST", "/relays", { definition }, "local");
  for (const held of [true, false]) {
    const { version } = (await running.api("GET", "/settings", undefined, "local")).body.settings;
    expect((await running.api("PUT", "/settings", { version, held }, "local")).status).toBe(200);
  }
  // The hold began 45 minutes ago, so it has skipped three runs.
  const earlier = 45 * 60_000;
  await running.service.store.write("app", async (tx) => {
    await tx.run("UPDATE relay SET created_at = created_at - ?1 WHERE name = 'quarterly'", 2 * earlier);
    await tx.run(`UPDATE audit SET at = at - ?1 WHERE action = 'settings.changed' AND instr(after, '"held":true') > 0`, earlier);
  });
  await page.goto(at("relays/quarterly"));
  await page.getByRole("button", { name: "Run the 3 skipped runs…" }).click();
  const dialog = page.getByRole("dialog", { name: "Run skipped runs of quarterly?" });
  const runs = dialog.getByRole("list", { name: "Skipped runs" }).getByRole("checkbox");
  expect(await runs.count()).toBe(3);
  await shoot(page, "skipped");
  await runs.first().uncheck();
  await dialog.getByRole("button", { name: "Run 2 skipped runs" }).click();
  await page.getByText("2 runs started.").waitFor();
  await page.getByRole("button", { name: "Run the skipped run…" }).waitFor();
  await shoot(page, "skipped-left");
  await running.drain();
  expect(await running.rows("SELECT count(*) AS count FROM record WHERE collection = 'visits'")).toEqual([{ count: 2 }]);
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
