/** Tests the form of a definition by itself: a person edits it with mouse and keyboard, and the text follows. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Locator } from "playwright-core";
import { findBarriers } from "../kit/axe.ts";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";
import { listKnownDefinitions } from "../kit/known-definition.ts";
import { mountForm } from "../kit/mounted-form.ts";

const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const DEFINITION = {
  name: "orders",
  trigger: {
    kind: "receiver",
    verify: { scheme: "hooks" },
    map: { event_id: "id", event_type: "type", person_email: "data.email", order: "data.order", lost: "data.nothing" },
    when: { event_type: "order.paid" },
  },
  actions: [
    { type: "write_record", collection: "orders", data: { number: "{{mapped.order}}", note: "{{mapped.lost}}", paid: true, lines: { count: 2 } } },
    { type: "email_person", subject: "Order {{mapped.order}}", text: "Thank you." },
    { type: "call_url", url: "https://example.com/relay" },
  ],
};
const BODY = JSON.stringify({ id: "evt_1", type: "order.paid", data: { email: "ada@example.com", order: "A-7" } });

const open = (definition: object = DEFINITION): Promise<void> => mountForm(page, at("form"), `${JSON.stringify(definition, null, 2)}\n`, BODY);

const text = (): Promise<string> => page.evaluate(() => window.formText);
const definition = async () => JSON.parse(await text());

/** Waits until the definition has the value at the path. */
async function untilText(path: string, value: unknown): Promise<void> {
  const wanted = JSON.stringify(value);
  await page.waitForFunction(
    ([steps, json]) => {
      try {
        const found = String(steps)
          .split("/")
          .reduce((one, step) => one?.[step], JSON.parse(window.formText));
        return (JSON.stringify(found) ?? null) === json;
      } catch {
        return false;
      }
    },
    [path, wanted ?? null] as const,
  );
}

const card = (number: number): Locator => page.getByRole("article", { name: `Action ${number}`, exact: true });
const focused = (): Promise<string> =>
  page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? "");

beforeAll(async () => {
  // A button fades for 120 ms, and the check of the contrast would measure a color in between.
  await page.emulateMedia({ reducedMotion: "reduce" });
  const fields = { number: { type: "text" }, note: { type: "text" }, paid: { type: "boolean" }, lines: { type: "json" } };
  await running.api("POST", "/collections", { name: "orders", kind: "private", fields }, "local");
});

describe("the form shows a definition", () => {
  beforeAll(() => open());

  test("as a sentence, rows and cards, and changes no byte", async () => {
    await page.getByText("When order.paid arrives").waitFor();
    await page.getByLabel("Path of order", { exact: true }).waitFor();
    expect(await page.getByLabel("Path of order", { exact: true }).inputValue()).toBe("data.order");
    expect(await page.getByRole("article").count()).toBe(3);
    expect(await page.getByText("Edited in JSON").count()).toBe(0);
    expect(await text()).toBe(`${JSON.stringify(DEFINITION, null, 2)}\n`);
  });

  test("with the values of the request in view, also where a path resolves to nothing", async () => {
    const row = page.locator('[data-field="trigger.map.order"]');
    await row.getByText("A-7").waitFor();
    await page.locator('[data-field="trigger.map.lost"]').getByText("resolves to nothing").waitFor();
    await page.locator('[data-field="actions.1.subject"]').getByText("Order A-7").waitFor();
    await page.locator('[data-field="actions.0.data.note"]').getByText("mapped.lost resolves to nothing").waitFor();
  });

  test("without barriers, in light and dark and at each width", async () => {
    expect(await findBarriers(page)).toEqual([]);
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await findBarriers(page)).toEqual([]);
    await page.setViewportSize({ width: 390, height: 900 });
    expect(await findBarriers(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await page.setViewportSize({ width: 1280, height: 860 });
    await shoot(page, "builder-form", { fullPage: true });
    await page.emulateMedia({ colorScheme: "light" });
  });
});

describe("typing", () => {
  beforeEach(() => open());

  test("in a field changes the text at once and keeps the cursor", async () => {
    const subject = page.locator('[data-field="actions.1.subject"] textarea');
    await subject.click();
    await page.keyboard.press("Home");
    await page.keyboard.type("Your ");
    expect((await definition()).actions[1].subject).toBe("Your Order {{mapped.order}}");
    await page.keyboard.type("own ");
    expect((await definition()).actions[1].subject).toBe("Your own Order {{mapped.order}}");
    const changed = (await text()).split("\n").filter((line) => !JSON.stringify(DEFINITION, null, 2).split("\n").includes(line));
    expect(changed).toEqual(['      "subject": "Your own Order {{mapped.order}}",', ""]);
  });

  test("in the JSON changes the form at once, and a text with an error keeps the last form", async () => {
    const json = page.getByLabel("Definition as JSON");
    await json.fill(JSON.stringify({ ...DEFINITION, name: "other" }));
    await page.waitForFunction(() => document.querySelector<HTMLInputElement>('[data-field="name"] input')?.value === "other");
    await json.fill("{ nope");
    await page.getByText("The JSON has an error, so the form cannot change it.").waitFor();
    expect(await page.locator('[data-field="name"] input').isDisabled()).toBeTrue();
    expect(await page.locator('[data-field="name"] input').inputValue()).toBe("other");
    await json.fill(JSON.stringify({ ...DEFINITION, name: "third" }));
    await page.waitForFunction(() => document.querySelector<HTMLInputElement>('[data-field="name"] input')?.value === "third");
  });

  test("a new name writes a row, and its value follows", async () => {
    await page.getByRole("button", { name: "Add a value" }).click();
    await page.keyboard.type("total");
    await untilText("trigger/map/total", "");
    await page.keyboard.press("Tab");
    await page.keyboard.type("data.total");
    await untilText("trigger/map/total", "data.total");
    expect(Object.keys((await definition()).trigger.map).at(-1)).toBe("total");
    await page.getByRole("button", { name: "Remove total" }).click();
    await untilText("trigger/map/total", undefined);
    await page.getByRole("button", { name: "Undo" }).click();
    await untilText("trigger/map/total", "data.total");
  });

  test("a name of another row is refused, and the text keeps both rows", async () => {
    const name = page.locator('[data-row="trigger.map.3"] input').first();
    await name.fill("lost");
    await page.getByText("Another row has this name.").waitFor();
    expect(Object.keys((await definition()).trigger.map)).toContain("order");
    await name.fill("order_id");
    await untilText("trigger/map/order_id", "data.order");
  });

  test("a condition takes several texts", async () => {
    await page.getByRole("button", { name: "or another text" }).first().click();
    await page.keyboard.type("order.renewed");
    await untilText("trigger/when/event_type", ["order.paid", "order.renewed"]);
    await page.getByText("When order.paid or order.renewed arrives").waitFor();
  });

  test("a value of another kind needs no JSON", async () => {
    const kind = page.getByLabel("Kind of Value of note");
    await kind.selectOption("number");
    await untilText("actions/0/data/note", 0);
    await page.getByLabel("Value of note", { exact: true }).fill("12.50");
    expect(await text()).toContain('"note": 12.50');
    await page.getByLabel("Value of note", { exact: true }).fill("12x");
    expect(await text()).toContain('"note": 12.50');
    await kind.selectOption("flag");
    await untilText("actions/0/data/note", true);
    await kind.selectOption("list");
    await untilText("actions/0/data/note", []);
    await page.getByRole("group", { name: "Value of note" }).getByRole("button", { name: "Add an item" }).click();
    await page.getByLabel("Item 1 of Value of note", { exact: true }).fill("{{mapped.order}}");
    await untilText("actions/0/data/note", ["{{mapped.order}}"]);
  });
});

describe("actions", () => {
  beforeEach(() => open());

  test("are added with their description, and the first field has the focus", async () => {
    await page.getByRole("button", { name: "Add an action" }).click();
    expect(await page.locator(".form-kinds button").count()).toBe(10);
    await shoot(page, "builder-kinds");
    await page.getByRole("button", { name: /^Grant credits/ }).click();
    await untilText("actions/3", { type: "grant_credits", amount: 1 });
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.type("250");
    await untilText("actions/3/amount", 250);
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.type("abc");
    await card(4).getByText("Write a number.").waitFor();
    await untilText("actions/3/amount", 250);
  });

  test("move by keys and by buttons, with the focus on the moved card", async () => {
    await card(2).getByRole("heading").focus();
    await page.keyboard.press("Alt+ArrowUp");
    await untilText("actions/0/type", "email_person");
    await page.getByText("Action 2 is now action 1.").waitFor();
    expect(await focused()).toContain("Email the person");
    await page.keyboard.press("Alt+ArrowUp");
    await page.keyboard.press("Alt+ArrowDown");
    await untilText("actions/1/type", "email_person");
    await card(2).getByRole("button", { name: "Move action 2 down" }).click();
    await untilText("actions/2/type", "email_person");
    expect(await focused()).toBe("Move action 3 down");
    await page.keyboard.press("Enter");
    await untilText("actions/2/type", "email_person");
    expect((await definition()).actions).toEqual([DEFINITION.actions[0], DEFINITION.actions[2], DEFINITION.actions[1]]);
  });

  test("move by drag and drop", async () => {
    // The outcome makes the cards higher, so the drag begins after it.
    await card(2).getByText("Order A-7").waitFor();
    // The pointer reaches only what the window shows.
    await page.setViewportSize({ width: 1280, height: 4_000 });
    await card(3).locator(".form-drag").dragTo(card(2).locator(".form-drag"));
    await page.setViewportSize({ width: 1280, height: 860 });
    await untilText("actions/1/type", "call_url");
    await untilText("actions/2/type", "email_person");
  });

  test("are removed with an undo that restores every byte", async () => {
    const before = await text();
    await card(2).getByRole("button", { name: "Remove action 2" }).click();
    await untilText("actions/1/type", "call_url");
    expect(await focused()).toContain("Call https://example.com/relay");
    await page.getByRole("button", { name: "Undo" }).click();
    await untilText("actions/1/type", "email_person");
    expect(await text()).toBe(before);
  });

  test("of another kind keep the fields that both kinds have", async () => {
    const kind = card(1).getByLabel("Action", { exact: true });
    await kind.focus();
    await kind.selectOption({ label: "Grant access" });
    await untilText("actions/0", { type: "grant_access", entitlement: "" });
    expect(await page.evaluate(() => document.activeElement?.tagName)).toBe("SELECT");
    await page.getByRole("button", { name: "Undo" }).click();
    await untilText("actions/0/collection", "orders");
  });
});

describe("the payload's values", () => {
  beforeEach(() => open());

  test("are inserted at the cursor of the field that was focused last", async () => {
    const field = page.locator('[data-field="actions.1.text"] textarea');
    await field.click();
    await page.keyboard.press("Home");
    await page.evaluate(() => window.formTarget?.insert("{{mapped.order}}"));
    await untilText("actions/1/text", "{{mapped.order}}Thank you.");
    expect(await page.evaluate(() => [window.formTarget?.label, window.formTarget?.kind])).toEqual(["Text of action 2", "template"]);
    await field.press("x");
    await untilText("actions/1/text", "{{mapped.order}}xThank you.");
    // A field that disappears stays no target, and it does not take the target from a field that was focused later.
    await page.locator('[data-field="actions.1.subject"] textarea').focus();
    await page.getByLabel("Path of order", { exact: true }).focus();
    await card(2).getByRole("button", { name: "Remove action 2" }).click();
    await untilText("actions/1/type", "call_url");
    await page.evaluate(() => window.formTarget?.insert("data.other"));
    await untilText("trigger/map/order", "data.other");
  });
});

test("Undo returns what it removed, with the focus on it", async () => {
  await open();
  await page.getByRole("button", { name: "Remove action 2" }).click();
  await untilText("actions/1/type", "call_url");
  await page.getByRole("button", { name: "Undo" }).click();
  await untilText("actions/1/type", "email_person");
  await page.waitForFunction(() => document.activeElement?.closest("[data-card]")?.getAttribute("data-card") === "1");
});

test("the name of a saved relay is only shown, and a draft with another name gets it back", async () => {
  const name = page.locator('[data-field="name"] input');
  await mountForm(page, at("form"), JSON.stringify(DEFINITION), BODY, "orders");
  await page.getByText("The name of a saved relay cannot change").waitFor();
  expect(await name.evaluate((input: HTMLInputElement) => input.readOnly)).toBe(true);
  await mountForm(page, at("form"), JSON.stringify({ ...DEFINITION, name: "order" }), BODY, "orders");
  await name.fill("orders");
  await page.getByText("The name of a saved relay cannot change").waitFor();
});

describe("a name that does not exist", () => {
  test("is created in place, and the form continues", async () => {
    await open({ ...DEFINITION, actions: [{ type: "fulfil_product", product: "atlas" }] });
    await page.getByRole("button", { name: "Create product atlas…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Create product" }).click();
    await page.getByRole("button", { name: "Create product atlas…" }).waitFor({ state: "hidden" });
    expect((await running.api("GET", "/products/atlas", undefined, "local")).status).toBe(200);
    expect(await page.locator('[data-field="actions.0.product"] input').evaluate((input) => input === document.activeElement)).toBe(true);
    await page.locator('[data-field="actions.0.product"] input').fill("");
    expect(await page.locator('[data-field="actions.0.product"] option').evaluateAll((all) => all.map((one) => one.getAttribute("value")))).toEqual([
      "atlas",
    ]);
  });

  test("can be a collection with the fields that the action writes", async () => {
    await open({ ...DEFINITION, actions: [{ type: "write_record", collection: "stars", data: { login: "x" } }] });
    await page.getByRole("button", { name: "Create collection stars…" }).click();
    const dialog = page.getByRole("dialog");
    expect(await dialog.getByLabel("Field name").inputValue()).toBe("login");
    await dialog.getByLabel("Who can read the records").selectOption("private");
    await dialog.getByRole("button", { name: "Create collection" }).click();
    await page.getByRole("button", { name: "Create collection stars…" }).waitFor({ state: "hidden" });
  });
});

test("every known definition opens completely, and no byte changes", async () => {
  await open();
  const json = page.getByLabel("Definition as JSON");
  for (const [title, one] of listKnownDefinitions()) {
    const written = `${JSON.stringify(one, null, 4)}\n`;
    await json.fill(written);
    const name = (one as { name: string }).name;
    await page.waitForFunction((wanted) => document.querySelector<HTMLInputElement>('[data-field="name"] input')?.value === wanted, name);
    const shown = await page.evaluate(() => ({
      written: window.formText,
      inJson: document.querySelectorAll(".form-json").length,
      actions: document.querySelectorAll("[data-card]").length,
    }));
    const { length: actions } = (one as { actions: unknown[] }).actions;
    expect([title, shown]).toEqual([title, { written, inJson: 0, actions }]);
  }
});

test("a hostile definition breaks nothing", async () => {
  const deep = `${"[".repeat(5_000)}1${"]".repeat(5_000)}`;
  await open();
  const json = page.getByLabel("Definition as JSON");
  const hostile = [
    `{"name":"deep","actions":[{"type":"write_record","collection":"a","data":{"b":${deep}}}]}`,
    JSON.stringify({ name: "wide", actions: Array(5_000).fill({ type: "call_url" }), trigger: { kind: "receiver", map: null } }),
    JSON.stringify({ name: "script", "<script>alert(1)</script>\u202e": 1, trigger: { kind: "receiver", map: { "</code>\u202ex": "<b>" } } }),
  ];
  for (const one of hostile) {
    await json.fill(one);
    await page.waitForFunction(
      (wanted) => document.querySelector<HTMLInputElement>('[data-field="name"] input')?.value === wanted,
      JSON.parse(one).name,
    );
    await page.getByText("Edited in JSON").first().waitFor();
    expect(await text()).toBe(one);
  }
  await json.fill("[]");
  await page.getByText("Edited in JSON").first().waitFor();
});

test("a problem is at its field, and content that the form cannot show leads to the JSON", async () => {
  const wrong = {
    ...DEFINITION,
    $schema: "x",
    actions: [
      { type: "grant_credits", amount: 20_000 },
      { type: "call_url", url: 5 },
    ],
  };
  await open(wrong);
  const amount = page.locator('[data-field="actions.0.amount"]');
  await amount.locator(".field-problem").waitFor();
  expect(await amount.locator("input").getAttribute("aria-invalid")).toBe("true");
  const json = page.locator('[data-field="actions.1.url"]');
  await json.getByText("Edited in JSON").waitFor();
  await json.getByRole("button", { name: "Show in JSON" }).click();
  const shown = await page.evaluate(() => window.formText.slice(window.formShown?.from, window.formShown?.to));
  expect(shown).toBe("5");
  expect(await findBarriers(page)).toEqual([]);
  await shoot(page, "builder-problems", { fullPage: true });
});

test("a call shows exactly what Relay sends, and code that verifies it in five languages", async () => {
  await open();
  await card(3).getByText("Exactly what Relay sends").click();
  await card(3).getByLabel("Request line and headers").getByText("POST https://example.com/relay").waitFor();
  await card(3).getByLabel("Body", { exact: true }).getByText('"order": "A-7"').waitFor();
  await card(3).getByText("Code that verifies the signature").click();
  const languages = card(3).getByRole("group", { name: "Language" }).getByRole("button");
  await languages.first().waitFor();
  expect(await languages.count()).toBe(5);
  await card(3).getByRole("button", { name: "Go", exact: true }).click();
  await card(3).getByText("package ").first().waitFor();
  expect(await findBarriers(page)).toEqual([]);
  await page.setViewportSize({ width: 390, height: 900 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  await page.setViewportSize({ width: 1280, height: 860 });
  await shoot(page, "builder-call", { fullPage: true });
});

test("a schedule shows its next five times in both zones, and a record change the last changes", async () => {
  const actions = [{ type: "call_url", url: "https://example.com/relay" }];
  await open({ name: "weekly", trigger: { kind: "schedule", every: "1w", on: "friday", at: "09:00" }, actions });
  const times = page.locator(".form-occurrences time");
  await times.first().waitFor();
  expect(await times.count()).toBe(5);
  await running.api("POST", "/collections/orders/records", { data: { number: "A-1", paid: true } }, "local");
  await open({ name: "changed", trigger: { kind: "data_change", collection: "orders", on: ["created"], where: { paid: false } }, actions });
  await page.locator(".form-occurrences").getByText("Would not start").waitFor();
  await shoot(page, "builder-changes", { fullPage: true });
});

test("a recipe shows its written fields, and the others are one click away", async () => {
  await open({ ...DEFINITION, trigger: { ...DEFINITION.trigger, verify: { scheme: "signature", header: "X-Signature" } } });
  expect(await page.locator('[data-field="trigger.verify.header"] input').inputValue()).toBe("X-Signature");
  await page.getByText(/^More fields: Algorithm/).click();
  const payload = page.locator('[data-field="trigger.verify.signedPayload"] input');
  await payload.fill("{timestamp}.{body}");
  await untilText("trigger/verify", { scheme: "signature", header: "X-Signature", signedPayload: "{timestamp}.{body}" });
  await payload.fill("");
  await untilText("trigger/verify", { scheme: "signature", header: "X-Signature" });
  expect(await payload.isVisible()).toBeTrue();
});

test("the recipe of a known sender is folded, also if an action is unfinished, and opens when it is another's", async () => {
  const verify = { scheme: "signature", header: "stripe-signature", signatureKey: "v1", timestampKey: "t", signedPayload: "{timestamp}.{body}" };
  const map = { event_id: "id", event_type: "type" };
  const actions = [{ type: "call_url", url: "" }];
  await open({ name: "paid", trigger: { kind: "receiver", verify, map, when: { event_type: "invoice.paid" } }, actions });
  const recipe = page.locator('details[data-field="trigger.verify"]');
  await recipe.getByText("as Stripe signs").waitFor();
  expect(await recipe.evaluate((one: HTMLDetailsElement) => one.open)).toBeFalse();
  await shoot(page, "builder-known-sender", { fullPage: true });
  await recipe.locator("summary").first().click();
  await recipe.locator('[data-field="trigger.verify.header"] input').fill("x-other");
  await recipe.getByText("as Stripe signs").waitFor({ state: "detached" });
  expect(await recipe.evaluate((one: HTMLDetailsElement) => one.open)).toBeTrue();
});

test("a schedule and a record change have their own fields", async () => {
  await open({ name: "weekly", trigger: { kind: "schedule", every: "1w" }, actions: [{ type: "call_url", url: "https://example.com/relay" }] });
  await page.getByText("Every Monday at 00:00 UTC").waitFor();
  await page.locator('[data-field="trigger.on"] select').selectOption("friday");
  await page.locator('[data-field="trigger.at"] input').fill("09:00");
  await page.getByText("Every Friday at 09:00 UTC").waitFor();
  await untilText("trigger", { kind: "schedule", every: "1w", on: "friday", at: "09:00" });
  await page.getByLabel("Starts with").selectOption({ label: "A record changes" });
  await page.getByLabel("Collection").fill("orders");
  await page.getByLabel("updated").check();
  await page.getByRole("button", { name: "Add a condition" }).click();
  await page.keyboard.type("paid");
  await page.getByLabel("Kind of Text of paid").selectOption("flag");
  await untilText("trigger", { kind: "data_change", collection: "orders", on: ["created", "updated"], where: { paid: true } });
  await page.getByText("When a record of orders is created or updated where paid = true").waitFor();
  expect(await findBarriers(page)).toEqual([]);
});

test("nothing broke", () => {
  expect(complaints).toEqual([]);
});
