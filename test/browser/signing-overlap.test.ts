/** Tests the dialog that rotates a signing secret with an overlap and the notice that ends it. */
import { afterAll, expect } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";
import { dependentSteps } from "../kit/dependent-steps.ts";
import { HOOK_SECRET, receiverDefinition } from "../kit/relay-definition.ts";

const test = dependentSteps();
const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const untilOf = async () => (await running.api("GET", "/relays/orders", undefined, "local")).body.relay.signingSecret.previousUntil ?? null;

test("the dialog rotates with an overlap and shows the new secret once", async () => {
  const actions = [{ type: "call_url", url: "https://example.com/notice" }];
  const made = await running.api(
    "POST",
    "/relays",
    { definition: receiverDefinition({ map: { event_id: "id" }, actions }), secret: HOOK_SECRET },
    "local",
  );
  expect(made.status).toBe(201);
  await page.goto(at("relays/orders?tab=secrets"));
  await page.getByRole("button", { name: "Rotate…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Relay signs the next request of call_url only with the new secret.").waitFor();
  await dialog.getByLabel("The current secret also signs for").selectOption("24 hours");
  await dialog.getByText("Until then each request of call_url has a signature of both secrets.").waitFor();
  await shoot(page, "signing-dialog");
  await dialog.getByRole("button", { name: "Rotate", exact: true }).click();
  await page.getByRole("button", { name: "I stored the secret" }).click();
  expect(await untilOf()).not.toBe(null);
});

test("a notice shows the overlap and ends it", async () => {
  await page.getByText("The earlier secret also signs until").waitFor();
  await shoot(page, "signing-overlap");
  await page.getByRole("button", { name: "End the overlap now" }).click();
  await page.getByText("Now only the current signing secret of orders signs.").waitFor();
  await page.getByText("The earlier secret also signs until").waitFor({ state: "detached" });
  expect(await untilOf()).toBe(null);
  expect(complaints).toEqual([]);
});
