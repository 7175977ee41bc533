/** Tests the page of a customer who paid under another address: it names the similar buyer, moves the purchase, and merges the two people. */
import { afterAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";

const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());
const toast = page.locator(".toast");
const [OLD, NEW] = ["first.last@example.com", "firstlast@example.org"];
const ids = new Map<string, string>();

test("an empty page names who bought something, shows the plan and moves the purchase", async () => {
  await running.api("PUT", "/products/atlas", { credits: 5 }, "local");
  for (const email of [OLD, NEW]) ids.set(email, (await running.api("POST", "/persons", { email }, "local")).body.person.id);
  await running.api("POST", "/receipts", { ref: "pay_7", person: ids.get(OLD), product: "atlas" }, "local");
  await page.goto(at(`people/${ids.get(NEW)}`));
  const similar = page.getByRole("region", { name: "Similar people who bought something" });
  await similar.getByText("atlas").waitFor();
  await similar.getByRole("link", { name: OLD }).waitFor();
  await similar.getByRole("button", { name: `Move purchase to ${NEW}…` }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Show the plan" }).click();
  await dialog.getByText(`from ${OLD} to ${NEW}. Its access to atlas moves. Its 5 credits move.`).waitFor();
  await dialog.getByRole("button", { name: "Move", exact: true }).click();
  await toast.getByText("The purchase of atlas is moved.").waitFor();
  await page.getByRole("region", { name: "Current access" }).getByText("Has access").waitFor();
  await similar.waitFor({ state: "detached" });
});

test("a merge shows its plan and its refusal, and moves everything", async () => {
  await page.getByRole("button", { name: "Merge…" }).click();
  const dialog = page.getByRole("dialog");
  const target = dialog.getByRole("textbox", { name: "Other person’s address or id" });
  await target.fill("nobody@example.com");
  await dialog.getByRole("button", { name: "Show the plan" }).click();
  await dialog.getByText("No person").waitFor();
  await target.fill(OLD);
  await dialog.getByRole("button", { name: "Show the plan" }).click();
  const plan = dialog.getByText(`Moves 1 purchase, 5 credits from ${NEW} to ${OLD}.`);
  await plan.waitFor();
  // Another target needs its own plan, and cannot change while the request runs.
  await target.fill("nobody@example.com");
  await plan.waitFor({ state: "detached" });
  await target.fill(`${OLD} `);
  const answer = Promise.withResolvers<void>();
  await page.route(/\/merge$/, async (route) => {
    await answer.promise;
    await route.continue();
  });
  await dialog.getByRole("button", { name: "Show the plan" }).click();
  await page.waitForFunction(() => document.querySelector("dialog input")?.matches(":disabled"));
  answer.resolve();
  await plan.waitFor();
  await dialog.getByRole("button", { name: "Merge", exact: true }).click();
  await toast.getByText(`Everything of ${NEW} is moved.`).waitFor();
  await page.goto(at(`people/${ids.get(OLD)}`));
  await page.getByRole("region", { name: "Current access" }).getByText("Has access").waitFor();
  expect(complaints.filter((one) => !one.includes("404"))).toEqual([]);
});
