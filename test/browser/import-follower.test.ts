/** Tests the import of missed events into a receiver that other relays follow: the plan says what each relay does with the lines. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";
import { makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";

const dashboard = await openDashboard({ environments: ["development", "production"] });
const { page, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

beforeAll(async () => {
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({ name: "stripe" }));
  const follower = (name: string, when: Record<string, string>) =>
    receiverDefinition({ name, verify: { scheme: "receiver", receiver: "stripe" }, when });
  for (const [name, type] of [
    ["paid", "paid"],
    ["refunds", "refunded"],
  ] as const)
    expect((await running.api("POST", "/relays", { definition: follower(name, { event_type: type }) })).status).toBe(201);
  await page.goto(at("relays/stripe"));
});

test("the plan and the result count the new events of each relay", async () => {
  await page.getByRole("button", { name: "Import missed events…" }).click();
  const lines = ["a paid", "b refunded", "c paid", "d other"].map((one) => JSON.stringify({ id: one[0], type: one.slice(2), amount: 1 }));
  await page.getByLabel("Or paste the export").fill(lines.join("\n"));
  await page.getByRole("button", { name: "Show the plan" }).click();
  await page.getByRole("button", { name: "Import 7 events" }).waitFor();
  await shoot(page, "missed-follower-plan");
  const rows = page.locator("dialog .missed-causes").first().locator("li");
  expect(await rows.allInnerTexts()).toEqual([
    "stripe: 4 new, 0 duplicates, 0 ignored, 0 rejected",
    "paid: 2 new, 0 duplicates, 2 ignored, 0 rejected",
    "refunds: 1 new, 0 duplicates, 3 ignored, 0 rejected",
  ]);
  await page.getByRole("button", { name: "Import 7 events" }).click();
  await page.getByText("7 events imported").waitFor();
  await shoot(page, "missed-follower-done");
  expect(await running.rows("SELECT 1 FROM event")).toHaveLength(7);
  expect(complaints).toEqual([]);
});
