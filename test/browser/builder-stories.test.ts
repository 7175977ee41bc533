/** Tests that a person builds five relays without typing JSON and without leaving the page. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import type { Locator } from "playwright-core";
import { findBarriers } from "../kit/axe.ts";
import { openDashboard } from "../kit/browser.ts";
import { readEditor, writeEditor } from "../kit/browser-editor.ts";
import { shoot } from "../kit/browser-shots.ts";
import { poll } from "../kit/patience.ts";

const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const api = (method: string, path: string, body?: unknown) => running.api(method, path, body, "local");
const field = (path: string): Locator => page.locator(`[data-field="${path}"]`);
const outcome = page.getByRole("region", { name: "Expected outcome" });
const view = (name: string) => page.getByRole("group", { name: "View" }).getByRole("button", { name, exact: true });
const saved = async (name: string) => (await api("GET", `/relays/${name}`)).body.relay?.definition;

/** Opens the uses of a value in the payload and chooses one. */
async function use(row: RegExp, choice: string): Promise<void> {
  await page.getByRole("treeitem", { name: row }).first().click();
  await page
    .getByRole("menu")
    .getByRole(/^Insert/.test(choice) ? "menuitem" : "menuitemcheckbox", { name: choice })
    .click();
}

async function addAction(title: RegExp): Promise<void> {
  await page.getByRole("button", { name: "Add an action" }).click();
  await page.getByRole("list", { name: "Kinds of actions" }).getByRole("button", { name: title }).click();
}

async function create(name: string): Promise<void> {
  await page.getByRole("button", { name: "Create relay" }).click();
  await page.getByRole("heading", { name: `${name} is ready` }).waitFor();
}

beforeAll(async () => {
  // A button fades for 120 ms, and the check of the contrast would measure a color in between.
  await page.emulateMedia({ reducedMotion: "reduce" });
});

test("a Stripe one-off purchase: from the known sender to a product that is created in place", async () => {
  await page.goto(at("relays/new?step=template"));
  await page.getByLabel("Search senders and templates").fill("stripe");
  await page.getByRole("button", { name: /^Stripe/ }).click();
  await page.getByRole("button", { name: "Use this sender" }).click();
  await field("name").getByRole("textbox").fill("stripe-purchase");
  await page.getByRole("button", { name: "Remove action 1" }).click();
  await addAction(/^Grant access/);
  await field("actions.0.entitlement").locator("input").fill("premium");
  await page.getByRole("button", { name: "Create product premium…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Create product" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await view("Request").click();
  await use(/^email:/, "Use as the person’s email");
  await outcome.getByText("Grant access: granted no → yes").waitFor();
  await field("actions.0.expiresAt").locator("input").fill("30d");
  await outcome.getByText(/^Grant access: granted no → yes/).waitFor();
  await outcome.getByRole("button", { name: "Show steps" }).click();
  await outcome
    .getByText(/^until nothing → \d+ \w+/)
    .or(outcome.getByText(/until .* → \d+ \w+.*, \d\d:\d\d/))
    .first()
    .waitFor();
  expect(await page.locator(".outcome-changes").innerText()).not.toMatch(/T\d\d:\d\d:|grant_access/);
  await outcome.getByRole("button", { name: "Hide steps" }).click();
  await page.getByRole("button", { name: "Remove action 1" }).click();
  await addAction(/^Fulfill a product/);
  await field("actions.0.product").locator("input").fill("premium");
  await field("actions.0.ref").locator("textarea").focus();
  await use(/^payment_intent:/, "Insert into Payment reference");
  await outcome.getByText("It would run").waitFor();
  await outcome.getByText("Verified", { exact: true }).waitFor();
  await outcome.getByText("Matches", { exact: true }).waitFor();
  await outcome.getByText("ada@example.com").waitFor();
  await outcome.getByText("Fulfill a product: grants 0 → 1").waitFor();
  // Only a relay that sells a product can fulfill it, so the outcome shows why the choice matters.
  await page.getByLabel(/^Sell premium through this relay/).uncheck();
  await outcome.getByText("It would fail").waitFor();
  await page.getByLabel(/^Sell premium through this relay/).check();
  await outcome.getByText("It would run").waitFor();
  await shoot(page, "builder-stripe", { widths: [390, 1280, 1920] });
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await findBarriers(page)).toEqual([]);
  }
  await page.getByRole("button", { name: "Create relay" }).click();
  await page.getByRole("link", { name: "I stored the secret: open relay" }).waitFor();
  const { trigger, actions } = await saved("stripe-purchase");
  expect(trigger.map.person_email).toBe("data.object.customer_details.email");
  expect(actions).toEqual([{ type: "fulfil_product", product: "premium", ref: "{{mapped.payment}}" }]);
  const { body } = await api("POST", "/relays/stripe-purchase/test-event", {});
  await running.drain();
  expect((await api("GET", `/events/${body.eventId}`)).body.event.state).toBe("done");
});

const STAR = {
  action: "created",
  starred_at: "2026-01-15T10:00:00Z",
  repository: { id: 186853002, full_name: "octo-org/octo-repo", stargazers_count: 81 },
  sender: { login: "octocat", id: 583231 },
};

test("a GitHub star: from a pasted curl command to a record and a notice", async () => {
  await page.goto(at("relays/new?step=template"));
  await page.getByRole("button", { name: /^A pasted payload or curl command/ }).click();
  await page
    .getByLabel("A curl command, headers and body, or only the body")
    .fill(
      `curl https://x.test -H 'content-type: application/json' -H 'user-agent: GitHub-Hookshot/1' -H 'x-github-event: star' -H 'x-github-delivery: 72d3162e' -H 'x-hub-signature-256: sha256=${"ab".repeat(32)}' -d '${JSON.stringify(STAR)}'`,
    );
  await page.getByRole("button", { name: "Continue", exact: true }).click();
  await page.getByRole("heading", { name: "What Relay found" }).waitFor();
  await page.getByText("GitHub", { exact: true }).waitFor();
  expect(await findBarriers(page)).toEqual([]);
  await shoot(page, "builder-found", { fullPage: true });
  await page.getByLabel("Name of the relay").fill("github-star");
  await page.getByRole("button", { name: "Build the relay" }).click();
  await addAction(/^Write a record/);
  await field("actions.0.collection").locator("input").fill("stars");
  await field("actions.0.data").getByRole("button", { name: "Add a field" }).click();
  await page.keyboard.type("login");
  await field("actions.0.data.login").locator("textarea").focus();
  await use(/^login:/, "Insert into Value of login");
  await page.getByRole("button", { name: "Create collection stars…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Who can read the records").selectOption("private");
  await dialog.getByRole("button", { name: "Create collection" }).click();
  await dialog.waitFor({ state: "detached" });
  await addAction(/^Call a URL/);
  await field("actions.1.url").locator("input").fill("https://example.com/stars");
  // Without the secret, the outcome says that nothing checked the signature, and shows the later steps.
  await outcome.getByText("Signature not checked").waitFor();
  await outcome.getByText("Write a record").waitFor();
  await create("github-star");
  const { trigger, actions } = await saved("github-star");
  expect(trigger.verify.header.toLowerCase()).toBe("x-hub-signature-256");
  expect(actions[0]).toMatchObject({
    type: "write_record",
    collection: "stars",
    data: { login: expect.stringMatching(/^\{\{(mapped\.login|event\.sender\.login)\}\}$/) },
  });
  expect(actions[1]).toEqual({ type: "call_url", url: "https://example.com/stars" });
});

test("an unknown signed sender: from a captured request, whose secret verifies it", async () => {
  await page.goto(at("relays/new?step=template"));
  await page.getByRole("button", { name: /^A request I will send now/ }).click();
  await page.getByRole("button", { name: "Open a capture URL" }).click();
  await page.getByText("Waiting for a request…").waitFor();
  expect(await findBarriers(page)).toEqual([]);
  const url = await page.locator(".copy-row code").innerText();
  const secret = "acme_live_9pQmXw3RkTz7NbYc5VdHs2J";
  const body = JSON.stringify({ id: "ord_77", event: "order.paid", customer: { email: "bea@buyer.example" }, total: 4200 });
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  await fetch(url, { method: "POST", headers: { "content-type": "application/json", "x-acme-signature": signature }, body });
  await page.getByRole("button", { name: /^POST/ }).click();
  await page.getByText("Unknown sender").waitFor();
  await page.getByLabel("Secret or public key of the sender (optional)").fill(secret);
  await page.getByText("The secret verifies this request.").waitFor();
  await page.getByText("bea@buyer.example").waitFor();
  await page.getByLabel("Name of the relay").fill("acme-order");
  await page.getByRole("button", { name: "Build the relay" }).click();
  // The request stays in view after a reload, and the browser stores its body for this tab only.
  await page.reload();
  await page.getByRole("treeitem", { name: /^total: 4200/ }).waitFor();
  expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain("bea@buyer.example");
  await page.getByLabel("Secret or public key of the sender, if it shows one").fill(secret);
  await addAction(/^Grant credits/);
  await field("actions.0.amount").locator("input").fill("25");
  await outcome.getByText("Verified", { exact: true }).waitFor();
  await outcome.getByText("Grant credits: balance 0 → 25").waitFor();
  await create("acme-order");
  const relay = await saved("acme-order");
  expect(relay.trigger.verify.header.toLowerCase()).toBe("x-acme-signature");
  expect(relay.actions).toEqual([{ type: "grant_credits", amount: 25 }]);
});

/** Presses Tab until the element has the focus. Escape lets Tab leave the JSON editor. */
async function tabTo(element: Locator): Promise<void> {
  for (let presses = 0; presses < 200; presses++) {
    if ((await element.count()) > 0 && (await element.first().evaluate((one) => one === document.activeElement))) return;
    if (await page.evaluate(() => document.activeElement?.classList.contains("editor-host"))) await page.keyboard.press("Escape");
    await page.keyboard.press("Tab");
  }
  throw new Error("The Tab key does not reach the element.");
}

test("a weekly digest, with the keyboard only", async () => {
  await page.goto(at("relays/new?step=template"));
  await page.getByRole("heading", { name: "New relay" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("Schedule");
  await page.getByRole("button", { name: /^Paid checkout/ }).waitFor({ state: "detached" });
  await tabTo(page.getByRole("button", { name: /^Schedule/ }));
  await page.keyboard.press("Enter");
  await tabTo(page.getByRole("button", { name: "Use this template" }));
  await page.keyboard.press("Enter");
  await page.getByText("Every Monday at 09:00 UTC").first().waitFor();
  await tabTo(field("name").locator("input"));
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type("weekly-digest");
  await tabTo(field("trigger.on").locator("select"));
  await page.keyboard.type("fri");
  await page.getByText("Every Friday at 09:00 UTC").first().waitFor();
  await page.locator(".form-occurrences time").nth(4).waitFor();
  await tabTo(field("actions.0.url").locator("input"));
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type("https://example.com/digest");
  await outcome.getByText("Call a URL").waitFor();
  await tabTo(page.getByRole("button", { name: "Create relay" }));
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "weekly-digest is ready" }).waitFor();
  expect(await saved("weekly-digest")).toEqual({
    name: "weekly-digest",
    trigger: { kind: "schedule", every: "1w", on: "friday", at: "09:00" },
    actions: [{ type: "call_url", url: "https://example.com/digest" }],
  });
});

test("tell my server when an order record changes, on a small screen", async () => {
  await api("POST", "/collections", { name: "orders", kind: "private", fields: { status: { type: "text" }, total: { type: "number" } } });
  expect((await api("POST", "/collections/orders/records", { data: { status: "paid", total: 42 } })).status).toBe(201);
  await page.setViewportSize({ width: 390, height: 800 });
  await page.goto(at("relays/new?step=template"));
  await page.getByRole("button", { name: /^Record change/ }).click();
  await page.getByRole("button", { name: "Use this template" }).click();
  await view("Form").click();
  await field("name").getByRole("textbox").fill("order-changed");
  // The form becomes visible for the field into which the value is inserted.
  const subject = field("actions.0.subject").locator("textarea");
  await subject.fill("Order ");
  await view("Request").click();
  await use(/^status: "paid"/, "Insert into Subject");
  await page.waitForFunction(() => {
    const { activeElement } = document;
    return activeElement instanceof HTMLTextAreaElement && activeElement.value === "Order {{record.data.status}}";
  });
  await page.getByRole("button", { name: "Remove status" }).click();
  await page.getByRole("button", { name: "Remove action 1" }).click();
  await addAction(/^Call a URL/);
  await field("actions.0.url").locator("input").fill("https://example.com/orders");
  await page.getByLabel("created").check();
  await view("Request").click();
  await use(/^status: "paid"/, "Only when this is “paid”");
  await outcome.getByText("Matches", { exact: true }).waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  expect(await findBarriers(page)).toEqual([]);
  await view("Form").click();
  expect(await findBarriers(page)).toEqual([]);
  await create("order-changed");
  expect((await saved("order-changed")).trigger).toEqual({
    kind: "data_change",
    collection: "orders",
    on: ["updated", "created"],
    where: { status: "paid" },
  });
});

test("a refused save leads to its first problem, in the form and in the JSON", async () => {
  await page.setViewportSize({ width: 1280, height: 860 });
  await page.goto(at("relays/acme-order?tab=definition"));
  const amount = field("actions.0.amount").locator("input");
  const hasFocus = (element: Locator) => poll(() => element.evaluate((one) => one === document.activeElement), Boolean);
  await amount.fill("0");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await hasFocus(amount);
  await amount.fill("26");
  await writeEditor(page, `x${await readEditor(page)}`);
  await page.getByText("The JSON has an error").waitFor();
  await field("actions.0.amount").scrollIntoViewIfNeeded();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await hasFocus(page.locator(".editor-host").first());
  await page.getByRole("button", { name: "Discard changes" }).click();
  await page.goto(at("relays/new?step=template"));
  await page.getByRole("button", { name: "An empty relay" }).click();
  await page.getByRole("button", { name: "Create relay" }).click();
  await hasFocus(field("name").getByRole("textbox"));
});

test("nothing broke", () => {
  expect(complaints).toEqual([]);
});
