/** Tests the way from a wrong secret to the last missing event: the item on Home, the list of the missing events, their import, and the end of both. */
import { expect, test } from "bun:test";
import { HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { shoot } from "../kit/browser-shots.ts";
import { type DashboardVisit, openDashboardVisit } from "../kit/dashboard-visit.ts";
import { WRITE } from "../kit/event-flow.ts";
import { HOOK_SECRET, receiverDefinition, signedCall } from "../kit/relay-definition.ts";

const ROTATED = "whsec_TheNewOneOfTheSender0123456789";

const bodyOf = (id: string) => ({ id, type: "order.paid" });
const send = (visit: DashboardVisit, id: string, secret: string) => visit.running.hook("orders", signedCall(bodyOf(id), secret));

async function makeShop(visit: DashboardVisit): Promise<void> {
  await visit.api("POST", "/collections", { name: "orders", kind: "shared", fields: { order: "text" } });
  const definition = receiverDefinition({ map: { event_id: "id", event_type: "type" }, actions: [WRITE] });
  expect((await visit.api("POST", "/relays", { definition, secret: HOOK_SECRET })).status).toBe(201);
  await send(visit, "before", HOOK_SECRET);
}

test("after the secret is fixed, Home names the missing events until they arrived or were imported", async () => {
  await using visit = await openDashboardVisit(6 * HOUR_MS);
  const { page } = visit;
  await makeShop(visit);
  for (let nth = 1; nth <= 6; nth++) {
    await visit.clock.leap(10 * MINUTE_MS);
    await send(visit, `evt_${nth}`, ROTATED);
  }
  const needs = await visit.signIn();
  await needs.getByRole("heading", { name: "orders: rejects every request" }).waitFor();
  expect(await needs.innerText()).toMatch(/So far 6 requests were rejected since/);
  expect(await needs.getByRole("listitem").filter({ hasText: "orders" }).count()).toBe(1);

  await visit.click(needs.getByRole("link", { name: "Paste its secret…" }));
  const pasted = page.getByRole("dialog");
  await pasted.getByLabel("The secret the sender shows").fill(ROTATED);
  await visit.click(pasted.getByRole("button", { name: "Store secret" }));
  await send(visit, "evt_2", ROTATED);
  await visit.running.drain();
  await page.goto(visit.at("home"));
  await needs.getByRole("heading", { name: "orders: rejected requests are missing" }).waitFor();
  await needs.getByText("1 of 6 events has arrived since then.").waitFor();
  await shoot(page, "missing-home");

  await visit.click(needs.getByRole("link", { name: "Show the missing events" }));
  const list = page.getByRole("list", { name: "Events of rejected requests" });
  await list.getByText("evt_1", { exact: true }).waitFor();
  expect(await list.getByText("Missing", { exact: true }).count()).toBe(5);
  expect(await list.getByRole("listitem").last().innerText()).toMatch(/Arrived\s+evt_2\s+order\.paid\s+Open event/);
  await shoot(page, "missing-list");

  await visit.click(page.getByRole("button", { name: "Import the missing events…" }));
  await page.getByLabel("Or paste the export").fill(JSON.stringify([1, 3, 4, 5, 6].map((nth) => bodyOf(`evt_${nth}`))));
  await shoot(page, "missing-import");
  await visit.click(page.getByRole("button", { name: "Show the plan" }));
  await visit.click(page.getByRole("button", { name: "Import 5 events" }));
  await page.getByText("5 events imported").waitFor();
  await visit.click(page.getByRole("dialog").getByRole("button", { name: "Close" }));
  await page.getByText("No rejected request of orders is missing.").waitFor();
  await page.goto(visit.at("home"));
  await needs.getByRole("listitem").first().waitFor();
  expect(await needs.getByRole("listitem").filter({ hasText: "orders" }).count()).toBe(0);
  expect(visit.complaints).toEqual([]);
});

test("a person closes the list after a question, and the item on Home disappears", async () => {
  await using visit = await openDashboardVisit(6 * HOUR_MS);
  const { page } = visit;
  await makeShop(visit);
  for (let nth = 1; nth <= 6; nth++) {
    await visit.clock.leap(10 * MINUTE_MS);
    await send(visit, `evt_${nth}`, ROTATED);
  }
  expect((await visit.api("PUT", "/relays/orders/secret", { value: ROTATED })).status).toBe(200);
  await visit.clock.leap(MINUTE_MS);
  await send(visit, "evt_7", ROTATED);
  const needs = await visit.signIn();
  await visit.click(needs.getByRole("link", { name: "Show the missing events" }));
  await visit.click(page.getByRole("button", { name: "Close the list…" }));
  const question = page.getByRole("dialog", { name: "Close the list of orders?" });
  await question.getByText("(6 events still missing)").waitFor();
  await shoot(page, "missing-close");
  await visit.click(question.getByRole("button", { name: "Close the list" }));
  await page.getByText("No rejected request of orders is missing.").waitFor();
  await page.goto(visit.at("home"));
  await needs.getByRole("listitem").first().waitFor();
  expect(await needs.getByRole("listitem").filter({ hasText: "orders" }).count()).toBe(0);
  expect(visit.complaints).toEqual([]);
});
