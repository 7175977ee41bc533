/** The attention room: what is wrong in words, and an alert that is seen to. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { raiseAlert } from "../../src/watch/alert.ts";
import { raiseProblem } from "../../src/watch/problem.ts";
import { openDashboard } from "../kit/browser.ts";

const dashboard = await openDashboard();
const { page, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

beforeAll(async () => {
  const [environment] = await running.rows<{ id: number }>("SELECT id FROM environment WHERE name = 'local' AND app_id = 'app_test'");
  const key = { environmentId: environment?.id ?? 0, code: "relay_ignoring", target: "relay:orders", nowMs: running.clock.now() } as const;
  const message = "orders has ignored every call since yesterday, 7 so far: compare the relay's when with what the sender sends.";
  await running.service.store.write("app", async (tx) => {
    await raiseProblem(tx, { ...key, message });
    await raiseAlert(tx, { ...key, message });
  });
  await page.goto(at("attention"));
});

test("a problem is told in words beside its code, and resolving its alert clears it", async () => {
  const problems = page.getByRole("region", { name: "Problems" });
  await problems.getByText("Ignores every call").waitFor();
  await problems.getByText("compare the relay's when").waitFor();
  const alerts = page.getByRole("region", { name: "Alerts" });
  await alerts.getByRole("button", { name: "Resolve" }).click();
  await alerts.getByText("resolved").waitFor();
  await problems.waitFor({ state: "detached" });
  expect(await running.rows("SELECT cleared_at IS NULL AS standing FROM problem WHERE code = 'relay_ignoring'")).toEqual([{ standing: 0 }]);
  expect(complaints).toEqual([]);
});
