/** Tests more relays than one response lists: relays with problems are first, all are counted, and a name finds each. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { putEvents, WRITE } from "../kit/event-flow.ts";
import { HOOK_SECRET, receiverDefinition } from "../kit/relay-definition.ts";
import { RAISED_LIMITS } from "../kit/service-config.ts";

const MANY = 205;
const dashboard = await openDashboard({ config: { limits: RAISED_LIMITS } });
const { page, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

beforeAll(async () => {
  await running.api("POST", "/collections", { name: "notes", kind: "shared", fields: { order: { type: "text" } } }, "local");
  // The failing relay is the oldest one.
  for (const name of ["broken", ...Array.from({ length: MANY }, (_, at) => `fine-${at}`)]) {
    const action = { ...WRITE, collection: name === "broken" ? "nowhere" : "notes" };
    const definition = receiverDefinition({ name, map: { event_id: "id" }, actions: [action] });
    expect((await running.api("POST", "/relays", { definition, secret: HOOK_SECRET }, "local")).status).toBe(201);
  }
  await putEvents(running, ["one"], { relay: "broken" });
  await running.drain();
});

test("the relay with a problem is first although it is the oldest, and all are counted", async () => {
  await page.goto(at("relays"));
  await page.getByText(`${MANY + 1} relays`, { exact: true }).waitFor();
  expect(await page.locator("main [data-row]").first().innerText()).toBe("broken");
});

test("a name finds the relay", async () => {
  await page.goto(at("relays?q=broken"));
  await page.getByRole("link", { name: "broken" }).waitFor();
  expect(await page.getByRole("heading", { name: "No relay matches" }).count()).toBe(0);
});

test("the list shows only a state, sorts by traffic or name, and the address keeps the choice", async () => {
  await page.goto(at("relays"));
  const first = page.locator("main [data-row]").first();
  await page.getByLabel("Order").selectOption("name");
  await page.waitForURL(/sort=name/);
  await first.and(page.getByText("broken", { exact: true })).waitFor();
  await page.getByRole("searchbox", { name: "Search relays" }).fill("fine-2");
  await page.waitForURL(/q=fine-2/);
  await page.getByText(`16 of ${MANY + 1} relays`, { exact: true }).waitFor();
  expect(await first.innerText()).toBe("fine-2");
  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByLabel("State").selectOption({ label: "Failing · 1" });
  await page.getByText(`1 of ${MANY + 1} relays`, { exact: true }).waitFor();
  await page.reload();
  await page.getByText(`1 of ${MANY + 1} relays`, { exact: true }).waitFor();
  expect(await page.locator("main [data-row]").allInnerTexts()).toEqual(["broken"]);
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
