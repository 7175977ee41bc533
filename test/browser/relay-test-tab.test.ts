/**
 * Tests a relay's Test tab: an example, a pasted request or a stored event is explained step by step without effect. Only development can send one
 * for real.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { readEditor, writeEditor } from "../kit/browser-editor.ts";
import { sendSigned } from "../kit/browser-sender.ts";

const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

let secret = "";
const paid = '{"id":"one","email":"ada@example.com","type":"paid"}';
const count = async (table: string) => (await running.rows(`SELECT 1 FROM ${table}`)).length;

beforeAll(async () => {
  const trigger = {
    kind: "receiver",
    verify: { scheme: "hooks" },
    map: { event_id: "id", person_email: "email", event_type: "type" },
    when: { event_type: "paid" },
  };
  const actions = [{ type: "grant_credits", amount: 3, reason: "For {{mapped.event_id}}" }];
  secret = (await running.api("POST", "/relays", { definition: { name: "orders", trigger, actions } }, "local")).body.receiverSecret;
  await running.api(
    "POST",
    "/relays",
    { definition: { name: "nightly", trigger: { kind: "schedule", every: "1d" }, actions: [{ type: "call_url", url: "https://example.com/x" }] } },
    "local",
  );
  await running.api("POST", "/collections", { name: "notes", kind: "shared", fields: { text: { type: "text" } } }, "local");
  const watching = {
    name: "watching",
    trigger: { kind: "data_change", collection: "notes", on: ["created"] },
    actions: [{ type: "write_record", collection: "seen", data: {} }],
  };
  await running.api("POST", "/relays", { definition: watching }, "local");
});

const steps = page.getByRole("region", { name: "Steps" });

test("an example is signed and explained at once, and stores nothing", async () => {
  await page.goto(at("relays/orders"));
  await page.getByRole("link", { name: "Test", exact: true }).click();
  await steps.getByText("It would run.").waitFor();
  const said = await steps.innerText();
  for (const words of [
    "Parts of the signature",
    "Signed payload",
    "It verifies, signed here",
    "when matches",
    "It is a new event",
    "would be made, as invited",
    "Grant credits",
  ])
    expect(said).toContain(words);
  await steps.getByText("With filled templates").click();
  await steps
    .getByText(/For test_/)
    .first()
    .waitFor();
  expect([await count("event"), await count("person"), await count("credit")]).toEqual([0, 0, 0]);
});

test("a pasted request gets its verdict, and a bare body is checked against when", async () => {
  await page.getByRole("button", { name: "A pasted request" }).click();
  await page.waitForURL(/with=paste/);
  const box = page.getByLabel(/The request: a curl command/);
  await box.fill(
    `curl -X POST https://x.test/hooks -H 'webhook-id: m' -H 'webhook-timestamp: ${Math.floor(Date.now() / 1000)}' -H 'webhook-signature: v1,${"a".repeat(43)}=' -d '${paid}'`,
  );
  await box.press("Control+Enter");
  await steps.getByText("It would be rejected.").waitFor();
  await steps
    .getByText(/The request is rejected with bad_signature/)
    .first()
    .waitFor();
  await box.fill('{"id":"two","email":"ada@example.com","type":"sent"}');
  await page.getByRole("button", { name: "Test again" }).click();
  await steps.getByText("It would be ignored.").waitFor();
  await steps
    .getByText(/when\.event_type must be/)
    .first()
    .waitFor();
  expect(await count("event")).toBe(0);
});

test("a request from the Requests page brings its stored parts, and a stored event is explained by its payload", async () => {
  await running.hook("orders", { body: "{}", headers: { "content-type": "application/json" } });
  await sendSigned(running, "orders", secret, "one", paid);
  await sendSigned(running, "orders", secret, "one", paid);
  await page.goto(at("requests?relay=orders&outcome=refused"));
  await page.getByRole("link", { name: "Test it" }).click();
  await page.waitForURL(/relays\/orders\?tab=test&call=/);
  await page.getByText("Relay does not store the body and headers").waitFor();
  await page.goto(at("requests?relay=orders&outcome=duplicate"));
  await page.getByRole("link", { name: "Test it" }).click();
  await page.getByRole("button", { name: "Test with the first event" }).click();
  await page.waitForURL(/event=evt_/);
  await steps.getByText("Every path of map found a value.").waitFor();
  await page.getByRole("button", { name: "A stored event" }).click();
  await page.getByRole("button", { name: /paid/ }).first().click();
  await steps.getByText("Grant credits", { exact: true }).waitFor();
});

test("a real test event has every effect, and links to the event", async () => {
  await page.goto(at("relays/orders?tab=test"));
  await page.getByRole("button", { name: "Send as a test event" }).click();
  await page.getByRole("link", { name: "Open event" }).click();
  await page.locator(".reason", { hasText: "Grant credits: done." }).waitFor();
});

test("the example can be edited before it is sent, and the answer says duplicate or ignored", async () => {
  await page.goto(at("relays/orders?tab=test"));
  await page.getByRole("button", { name: "Edit the example" }).click();
  const box = page.getByLabel(/The request: a curl command/);
  const text = (await box.inputValue()).replace('"ada@example.com"', '"grace@example.com"');
  expect(text).toContain('  "email": "grace@example.com"');
  await box.fill(text);
  const [send, sent] = [page.getByRole("button", { name: "Send as a test event" }), page.locator(".test-sent")];
  await send.click();
  await sent.getByText("Test event sent.").waitFor();
  await send.click();
  await sent.getByText(/^Nothing ran, because the test event is a duplicate of evt_\w+\./).waitFor();
  await box.fill(text.replace('"paid"', '"sent"'));
  await send.click();
  await sent.getByText(/^Relay ignored the test event, because when\.event_type must be "paid"/).waitFor();
  expect(await running.rows("SELECT 1 FROM person WHERE email = 'grace@example.com'")).toHaveLength(1);
});

test("the button of the overview links to each new event", async () => {
  await page.goto(at("relays/orders"));
  for (const _ of ["first", "second"]) await page.getByRole("button", { name: "Send a test event" }).click();
  const links = page.locator(".toasts").getByRole("link", { name: "Open event" });
  await links.nth(1).waitFor();
  expect(await links.first().getAttribute("href")).not.toBe(await links.nth(1).getAttribute("href"));
  await links.nth(1).click();
  await page.waitForURL(/\/events\/evt_/);
});

test("a schedule runs one tick, and a record change writes a test record", async () => {
  await page.goto(at("relays/nightly?tab=test"));
  await steps.getByText("Call a URL").first().waitFor();
  await page.getByRole("button", { name: "Run a tick now" }).click();
  await page.getByRole("link", { name: "Open event" }).waitFor();
  await page.goto(at("relays/watching?tab=test"));
  await page.getByRole("button", { name: "Write a test record" }).click();
  await page.getByText(/Wrote the record rec_\w+ in notes/).waitFor();
  expect(await running.rows("SELECT 1 FROM record WHERE collection = 'notes'")).toHaveLength(1);
});

test("a request is kept as a case, and a save that changes its result asks first", async () => {
  await page.goto(at("relays/orders?tab=test&with=paste"));
  await page.getByLabel(/The request: a curl command/).fill(paid);
  await page.getByRole("button", { name: "Run test" }).click();
  await page.getByRole("button", { name: "Keep as a case…" }).click();
  await page.getByLabel("Name of the case").fill("paid");
  await page.getByRole("button", { name: "Keep case" }).click();
  const cases = page.getByRole("region", { name: "Cases" });
  await cases.getByText("as before").waitFor();
  expect(await cases.innerText()).toContain("done (grant credits)");
  await page.goto(at("relays/orders?tab=definition"));
  const text = await readEditor(page);
  await writeEditor(page, text.replace('"event_type": "paid"', '"event_type": "sold"'));
  await page.getByRole("button", { name: "Save", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "A case has a different result" });
  await dialog.getByText("now ends ignored (when.event_type)").waitFor();
  const version = async () => (await running.rows<{ version: number }>("SELECT version FROM relay WHERE name = 'orders'"))[0]?.version;
  expect(await version()).toBe(1);
  await dialog.getByRole("button", { name: "Continue to edit" }).click();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await dialog.getByRole("button", { name: "Save anyway" }).click();
  await page.getByText(/Saved orders as version 2/).waitFor();
  await page.goto(at("relays/orders?tab=test"));
  await cases.getByText("1 case: 0 as before").waitFor();
  await cases.getByRole("button", { name: "Keep the new result" }).click();
  await cases.getByText("ignored (when.event_type)", { exact: true }).waitFor();
  await cases.getByText("as before", { exact: true }).waitFor();
  await cases.getByRole("button", { name: "Remove" }).click();
  await cases.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo" }).click();
  await cases.waitFor();
  await page.goto(at("relays/orders?tab=history"));
  await page.getByRole("button", { name: "Restore version 1…" }).click();
  await page.getByRole("dialog").getByText("now ends done").waitFor();
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
