/**
 * Tests what a newcomer meets in local development: an empty form, a collection created in place, a relay that follows another, a selling kit of a
 * provider that makes its own secret, and a deleted item that exists again.
 */
import { afterAll, expect } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";
import { dependentSteps } from "../kit/dependent-steps.ts";

const test = dependentSteps();
const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const api = (method: string, path: string, body?: unknown) => running.api(method, path, body, "local");
const field = (path: string) => page.locator(`[data-field="${path}"]`);
const outcome = page.getByRole("region", { name: "Expected outcome" });
const secret = page.getByLabel("Secret or public key of the sender");

async function startEmpty(): Promise<void> {
  await page.goto(at("relays/new?step=template"));
  await page.getByRole("button", { name: /^An empty relay/ }).click();
  await field("name").waitFor();
}

test("an empty form marks no field as wrong before the first try, and every empty field after it", async () => {
  await startEmpty();
  await field("name").getByText("Name is empty: it must be 2 to 63 characters").waitFor();
  await field("trigger.kind").getByText("Starts with is missing: choose one.").waitFor();
  expect(await page.locator(".workbench-form [aria-invalid=true], .workbench-form .field-problem").count()).toBe(0);
  // A rule is on the page once: in the problem or in the hint.
  expect(await field("name").getByText("it must be 2 to 63", { exact: false }).count()).toBe(1);
  await shoot(page, "empty-form", { fullPage: true });
  await page.getByRole("button", { name: "Create relay" }).click();
  await page.locator(".workbench-form .field-problem").first().waitFor();
  expect(await field("name").locator("input").getAttribute("aria-invalid")).toBe("true");
});

test("a relay that follows another asks for no secret", async () => {
  await startEmpty();
  await field("trigger.kind").locator("select").selectOption("receiver");
  await secret.waitFor();
  await page.getByLabel("Scheme", { exact: true }).selectOption({ label: "Another receiver relay" });
  await secret.waitFor({ state: "detached" });
});

test("the expected outcome is up to date after a collection is created in place, with the types of the values", async () => {
  await page.goto(at("relays/new?step=template&sender=stripe"));
  await page.getByRole("button", { name: "Use this sender" }).click();
  await outcome.getByText("It would fail").waitFor();
  await page.getByRole("button", { name: "Create collection stripe_events…" }).click();
  const dialog = page.getByRole("dialog");
  expect(await dialog.getByLabel("Type of amount").inputValue()).toBe("number");
  expect(await dialog.getByLabel("Type of currency").inputValue()).toBe("text");
  await dialog.getByLabel("Who can read the records").selectOption("private");
  await dialog.getByRole("button", { name: "Create collection" }).click();
  await outcome.getByText("It would run").waitFor();
});

test("a pasted secret is no open step, and a local receiver URL needs a tunnel", async () => {
  await secret.fill("whsec_stripe1A2b3C4d5E6f7G8h9J0k");
  await page.getByRole("button", { name: "Create relay" }).click();
  await page.getByRole("heading", { name: "stripe is ready" }).waitFor();
  await page.getByText("Register the receiver URL at Stripe").waitFor();
  await page.getByText("A sender on the internet cannot reach this machine.").waitFor();
  expect(await page.getByText("Set the secret:").count()).toBe(0);
});

test("a kit of a provider that makes its own secret says that Relay signs only test requests with the generated one", async () => {
  await page.goto(at("relays/new?sell=paddle"));
  await page.getByRole("button", { name: /^Save \d+ relays and the catalog/ }).click();
  await page.getByText("Paddle makes its own secret, so Relay signs only test requests with this one.").waitFor();
  expect(await page.getByText("Paste it at the provider.").count()).toBe(0);
  await shoot(page, "kit-local", { fullPage: true });
  await page.getByRole("button", { name: "Copy Receiver secret" }).click();
});

test("a deleted collection that exists again is opened, not created again", async () => {
  const shape = { kind: "private", fields: { text: { type: "text" } } };
  const actions = [{ type: "write_record", collection: "notes", data: { text: "x", more: "y" } }];
  await api("POST", "/collections", { name: "notes", kind: "private", fields: { ...shape.fields, more: { type: "text" } } });
  await api("POST", "/relays", { definition: { name: "noting", trigger: { kind: "schedule", every: "1d" }, actions } });
  await api("DELETE", "/collections/notes?force=true");
  await page.goto(at("relays/noting"));
  await page.getByRole("link", { name: "Create collection notes again…" }).first().waitFor();
  await api("POST", "/collections", { name: "notes", ...shape });
  await page.getByRole("link", { name: "Open collection notes…" }).first().waitFor();
  expect(await page.getByRole("link", { name: "Create collection notes again…" }).count()).toBe(0);
});

test("the pages log no error", () => {
  expect(complaints).toEqual([]);
});
