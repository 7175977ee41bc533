/** Tests the starting points of a new relay that are a request: stored events, rejected requests, a capture that is closed, and the choice of guesses. */
import { afterAll, beforeAll, expect } from "bun:test";
import { findBarriers } from "../kit/axe.ts";
import { openDashboard } from "../kit/browser.ts";
import { sendSigned } from "../kit/browser-sender.ts";
import { shoot } from "../kit/browser-shots.ts";
import { dependentSteps } from "../kit/dependent-steps.ts";

const test = dependentSteps();
const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const api = (method: string, path: string, body?: unknown) => running.api(method, path, body, "local");
const preview = page.getByRole("region", { name: "A request that is already here" });

beforeAll(async () => {
  await page.emulateMedia({ reducedMotion: "reduce" });
  const trigger = { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id", event_type: "type" } };
  const definition = { name: "orders", trigger, actions: [{ type: "call_url", url: "https://example.com/x" }] };
  const secret = (await api("POST", "/relays", { definition })).body.receiverSecret;
  await sendSigned(running, "orders", secret, "one", '{"id":"one","type":"order.paid","data":{"email":"ada@example.com"}}');
  await running.hook("orders", { headers: { "content-type": "application/json" }, body: '{"type":"order.lost"}' });
});

test("an event that is here starts a relay, and the search finds it by its words", async () => {
  await page.goto(at("relays/new"));
  await page.getByRole("button", { name: /^A request that is already here/ }).click();
  await preview.getByRole("button", { name: /order\.paid/ }).waitFor();
  await preview.getByRole("button", { name: /Rejected/ }).waitFor();
  await shoot(page, "builder-recent");
  expect(await findBarriers(page)).toEqual([]);
  await preview.getByLabel("Search events and requests").fill("nothing like it");
  await preview.getByText("No request has these words.").waitFor();
  await preview.getByLabel("Search events and requests").fill("one");
  await preview.getByRole("button", { name: /order\.paid/ }).click();
  await page.getByRole("heading", { name: "What Relay found" }).waitFor();
});

test("a relay from an event follows the receiver that verified it, unless the user wants an own URL and secret", async () => {
  const follow = page.getByRole("checkbox", { name: /^Follow orders, which verified this request/ });
  const secret = page.getByLabel("Secret or public key of the sender (optional)");
  expect([await follow.isChecked(), await secret.count()]).toEqual([true, 0]);
  await shoot(page, "builder-follow", { fullPage: true });
  await follow.uncheck();
  await secret.waitFor();
  await follow.check();
});

test("a guess that the user drops is not in the relay, and the name is the user’s", async () => {
  await page.getByRole("checkbox", { name: /Person’s email/ }).uncheck();
  await page.getByRole("checkbox", { name: /Only requests with/ }).uncheck();
  await page.getByLabel("Name of the relay").fill("second-order");
  await page.getByRole("button", { name: "Build the relay" }).click();
  await page.getByRole("treeitem", { name: /^email: "ada@example.com"$/ }).waitFor();
  const draft = await page.evaluate(() => Object.entries(localStorage).find(([key]) => key.startsWith("relay.draft."))?.[1]);
  const definition = JSON.parse(JSON.parse(draft ?? "{}").text);
  expect(definition).toMatchObject({ name: "second-order", trigger: { map: { event_id: "id", event_type: "type" } }, actions: [] });
  expect(definition.trigger.verify).toEqual({ scheme: "receiver", receiver: "orders" });
  expect(definition.trigger.when).toBeUndefined();
  expect(definition.trigger.map.person_email).toBeUndefined();
});

test("a rejected request says that Relay has no body of it, and leads to a capture", async () => {
  await page.getByRole("button", { name: "Other starting points…" }).click();
  await page.getByRole("button", { name: /^A request that is already here/ }).click();
  await preview.getByRole("button", { name: /Rejected/ }).click();
  await preview.getByText("Relay stores no body of a rejected request.").waitFor();
  await preview.getByRole("button", { name: "Capture the next request" }).click();
  await page.getByRole("button", { name: "Open a capture URL" }).waitFor();
});

test("a capture that is closed takes no request, and the user can open another one", async () => {
  await page.getByRole("button", { name: "Open a capture URL" }).click();
  const url = await page.locator(".copy-row code").innerText();
  await page.getByRole("button", { name: "Close the URL" }).click();
  await page.getByRole("button", { name: "Open a capture URL" }).waitFor();
  expect((await fetch(url, { method: "POST", body: "{}" })).status).toBe(404);
  const gone = new URL(page.url());
  gone.searchParams.set("capture", "cap_none");
  await page.goto(gone.href);
  await page.getByText("This capture is over, and Relay deleted its requests.").waitFor();
  await page.getByRole("button", { name: "Start again" }).click();
  await page.getByRole("button", { name: "Open a capture URL" }).waitFor();
});

test("a pasted text that is no request says so", async () => {
  await page.getByRole("button", { name: /^A pasted payload or curl command/ }).click();
  await page.getByLabel("A curl command, headers and body, or only the body").fill("{ not json");
  await page.getByRole("button", { name: "Continue", exact: true }).click();
  await page.getByText("The body is neither JSON nor a form.").waitFor();
  await page.getByLabel("A curl command, headers and body, or only the body").fill(JSON.stringify({ text: "é".repeat(140_000) }));
  await page.getByRole("button", { name: "Continue", exact: true }).click();
  await page.getByText("The body is larger than 256 KiB").waitFor();
  expect(await findBarriers(page)).toEqual([]);
  expect(complaints).toEqual([]);
});

test("on a small screen a choice comes into view", async () => {
  await page.setViewportSize({ width: 390, height: 800 });
  await page.goto(at("relays/new?step=template"));
  const choose = page.getByRole("button", { name: /^A request I will send now/ });
  await choose.click();
  const open = page.getByRole("button", { name: "Open a capture URL" });
  await open.waitFor();
  const { y = 0 } = (await open.boundingBox()) ?? {};
  expect(y > 0 && y < 800).toBe(true);
});
