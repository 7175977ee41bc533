import { afterAll, expect } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { editorOf, readEditor, showJson, writeEditor } from "../kit/browser-editor.ts";
import { sendSigned } from "../kit/browser-sender.ts";
import { dependentSteps } from "../kit/dependent-steps.ts";
import { EVENT_ID, seqOf } from "../kit/event-sql.ts";

const test = dependentSteps();
const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

let secret = "";

test("a one-time link signs in and leaves no token in the address", async () => {
  await page.waitForURL(/\/apps\/[^/]+\/local\/home$/);
  await page.getByRole("heading", { name: "No relays yet" }).waitFor();
  expect(page.url()).not.toContain("#");
  expect(await page.getByRole("button", { name: /Local: app and environment/ }).isVisible()).toBe(true);
});

test("every problem of a definition is shown at its field, with its line", async () => {
  await page.getByRole("link", { name: "Start from an example" }).click();
  await page.getByRole("button", { name: "Use this template" }).click();
  const example = await readEditor(page);
  await writeEditor(page, example.replace('"amount": 10', '"amount": 0').replace('"event_id": "id"', '"event_id": "a..b"'));
  await page.getByRole("heading", { name: "2 problems to fix" }).waitFor();
  const places = await page.locator(".problem-place").allInnerTexts();
  expect(places.map((text) => text.replaceAll(/\s+/g, " "))).toEqual([
    expect.stringMatching(/^line 9 trigger\.map\.event_id$/),
    expect.stringMatching(/^line 21 actions\.0\.amount$/),
  ]);
  await writeEditor(page, `${example}}`);
  await page.locator(".problems", { hasText: "This } closes nothing: remove it." }).waitFor();
  await writeEditor(page, example);
  await page.locator(".editor-state", { hasText: "Valid" }).waitFor();
});

test("a new relay's secret is shown once, with a warning", async () => {
  await page.getByRole("button", { name: "Create relay" }).click();
  await page.getByRole("heading", { name: "order-paid is ready" }).waitFor();
  secret = await page.locator('[data-secret="Receiver secret"]').innerText();
  expect(secret).toStartWith("whsec_");
  expect(await page.locator("main").innerText()).toContain("only once");
  await page.getByRole("link", { name: /I stored the secret/ }).click();
  await page.getByRole("heading", { name: "order-paid" }).waitFor();
  await page.getByRole("navigation", { name: "Relay" }).getByRole("link", { name: "Secrets" }).click();
  await page.getByText(/^hmac:/).waitFor();
  expect(await page.content()).not.toContain(secret);
});

test("a new event appears without a reload, and opens with each action's result", async () => {
  const body = '{"id":"ord_1","type":"order.paid","data":{"email":"ada@example.com","order_id":"o1"}}';
  const sent = await sendSigned(running, "order-paid", secret, "msg_1", body);
  expect(sent.status).toBe(200);
  await page.goBack();
  await page.getByRole("link", { name: new RegExp(sent.body.eventId) }).click();
  await page.locator(".reason", { hasText: "Grant credits: done." }).waitFor();
  expect(await page.locator(".result").count()).toBe(1);
  expect(await page.getByRole("group", { name: "Payload" }).innerText()).toContain('"ada@example.com"');
});

test("a replay lists the actions that it skips, and shows its result only once it is known", async () => {
  await page.getByRole("button", { name: "Replay" }).click();
  await page.getByRole("dialog").getByText("Is skipped: its work was done").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Replay" }).click();
  await page.locator(".reason", { hasText: "Nothing new to do" }).waitFor();
  expect(await page.locator(".run").count()).toBe(2);
  expect(await running.rows("SELECT 1 FROM credit")).toHaveLength(1);
});

test("a paused relay stores events, and they say that they wait for the resume", async () => {
  await page.goto(at("relays/order-paid"));
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Resume" }).waitFor();
  const body = '{"id":"ord_2","type":"order.paid","data":{"email":"ada@example.com","order_id":"o2"}}';
  const { eventId } = (await sendSigned(running, "order-paid", secret, "msg_2", body)).body;
  await page.goto(at(`events/${eventId}`));
  await page.locator(".reason", { hasText: "The event waits because the relay is paused" }).waitFor();
  await page.goto(at("relays/order-paid"));
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: "Pause" }).waitFor();
  await page.goto(at(`events/${eventId}`));
  await page.locator(".reason", { hasText: "done" }).waitFor();
});

test("a rotation shows the new secret once, and the old one is rejected", async () => {
  await page.goto(at("relays/order-paid?tab=secrets"));
  await page.getByRole("button", { name: "Rotate or paste…" }).click();
  await page.getByRole("button", { name: "Create a new secret" }).click();
  const rotated = await page.locator('[data-secret="Receiver secret"]').innerText();
  expect(rotated).not.toBe(secret);
  await page.keyboard.press("Escape");
  expect(await page.getByRole("dialog").isVisible()).toBe(true);
  await page.getByRole("button", { name: "I stored the secret" }).click();
  expect((await sendSigned(running, "order-paid", secret, "msg_3", "{}")).status).toBe(401);
  expect((await sendSigned(running, "order-paid", rotated, "msg_4", "{}")).body.ignored).toBe("when");
  secret = rotated;
});

test("during an overlap both secrets verify, the last used one is shown, and an owner can end the old one", async () => {
  await page.getByRole("button", { name: "Rotate or paste…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("The current secret also verifies for").selectOption("24 hours");
  await dialog.getByRole("button", { name: "Create a new secret" }).click();
  const rotated = await page.locator('[data-secret="Receiver secret"]').innerText();
  await page.getByRole("button", { name: "I stored the secret" }).click();
  await page.getByText("No request arrived since then").waitFor();
  expect((await sendSigned(running, "order-paid", secret, "msg_5", "{}")).status).toBe(200);
  await page.getByText("The last request still used the earlier secret").waitFor();
  expect((await sendSigned(running, "order-paid", rotated, "msg_6", "{}")).status).toBe(200);
  await page.getByText("The last request used the new secret").waitFor();
  await page.getByRole("button", { name: "End the overlap now" }).click();
  await page.getByRole("button", { name: "End the overlap now" }).waitFor({ state: "detached" });
  expect((await sendSigned(running, "order-paid", secret, "msg_7", "{}")).status).toBe(401);
});

test("an unsuitable secret is rejected with the service's sentence, and no success is shown", async () => {
  await page.getByRole("button", { name: "Rotate or paste…" }).click();
  await page.getByRole("radio", { name: "Paste the secret of the sender" }).check();
  await page.getByLabel("The secret the sender shows").fill("short");
  await page.getByRole("button", { name: "Store secret" }).click();
  await page.getByRole("alert").waitFor();
  expect(await page.getByRole("alert").innerText()).toContain("at least 24 characters");
  await page.getByRole("button", { name: "Cancel" }).click();
});

test("a save over a newer version shows both sides, and saves only the choice", async () => {
  await page.getByRole("link", { name: "Definition" }).click();
  const read = await readEditor(page);
  await writeEditor(page, read.replace('"amount": 10', '"amount": 25'));
  const { relay } = (await running.api("GET", "/relays/order-paid", undefined, "local")).body;
  const theirs = { ...relay.definition, actions: [{ type: "grant_credits", amount: 99 }] };
  const saved = await running.api("PUT", "/relays/order-paid", { definition: theirs, version: relay.version }, "local");
  expect(saved.status).toBe(200);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "The relay changed while you edited it" });
  await dialog.waitFor();
  await dialog.locator(".cm-merge-a .cm-changedLine", { hasText: "99" }).waitFor();
  await dialog.locator(".cm-merge-b .cm-changedLine", { hasText: "25" }).waitFor();
  await dialog.getByRole("button", { name: "Overwrite with my version" }).click();
  await page.getByText("Saved order-paid as version 3.").waitFor();
  expect(await readEditor(page)).toContain('"amount": 25');
});

test("an action edited after it ran is skipped by a replay unless its box is checked", async () => {
  const [first] = await running.rows<{ id: string }>(`SELECT ${EVENT_ID} AS id FROM event ORDER BY seq LIMIT 1`);
  await page.goto(at(`events/${first?.id}`));
  await page.getByRole("button", { name: "Replay" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("amount was 10 and is 25").waitFor();
  await dialog.getByLabel("Run it as well").check();
  await dialog.getByRole("button", { name: "Replay" }).click();
  // The action ran, but its ref prevents a second grant.
  await page.locator(".reason", { hasText: "This ref already added credits" }).waitFor();
  expect(await page.locator(".run").count()).toBe(3);
  expect(await running.rows("SELECT chosen IS NOT NULL AS chosen FROM event WHERE seq = ?1", seqOf(first?.id ?? ""))).toEqual([{ chosen: 1 }]);
  await page.goto(at("relays/order-paid"));
});

test("a payload is deleted permanently after a confirmation, and event cannot be replayed", async () => {
  const [first] = await running.rows<{ id: string }>(`SELECT ${EVENT_ID} AS id FROM event ORDER BY seq LIMIT 1`);
  await page.goto(at(`events/${first?.id}`));
  await page.getByRole("button", { name: "Expunge…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Expunge permanently" }).click();
  await page.getByText("The payload was removed because someone expunged it.").waitFor();
  expect(await page.getByRole("button", { name: "Replay" }).isDisabled()).toBe(true);
  expect(await running.rows("SELECT payload FROM event WHERE seq = ?1", seqOf(first?.id ?? ""))).toEqual([
    { payload: '{"expunged":"payload_expunged"}' },
  ]);
});

test("a relay's page shows its last rejected requests with their causes, and a probably misspelled name", async () => {
  await running.hook("order-paid", { headers: { "content-type": "application/json" }, body: "{}" });
  await running.hook("order-payd", { headers: { "content-type": "application/json" }, body: "{}" });
  await page.goto(at("relays/order-paid"));
  const calls = page.getByRole("region", { name: "Rejected and ignored requests" });
  await calls.getByText("bad_signature").first().waitFor();
  await calls.getByText("Did the sender mean order-paid?").waitFor();
  expect(await calls.innerText()).toContain("127.0.0.1");
});

test("the store templates are offered, with the remaining steps", async () => {
  await page.goto(at("relays/new"));
  await page.getByRole("button", { name: "App-store purchase" }).click();
  const preview = page.getByRole("region", { name: "Preview of App-store purchase" });
  await preview.getByText('"RENEWAL"').waitFor();
  await preview.getByText("Use a service that sends plain JSON").waitFor();
  await preview.getByRole("button", { name: "Use this template" }).click();
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("my-store");
  await showJson(page);
  await editorOf(page).getByText('"my-store"').waitFor();
  // Another template never discards the user's text, because the text returns.
  await page.getByRole("button", { name: "Other starting points…" }).click();
  await page.getByRole("button", { name: "Schedule" }).click();
  await page.getByRole("button", { name: "Use this template" }).click();
  await showJson(page);
  await editorOf(page).getByText('"weekly-report"').waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await editorOf(page).getByText('"my-store"').waitFor();
  await page.goto(at("relays/order-paid"));
});

test("a word finds a known sender and its recipe, which starts a relay with the place for its secret", async () => {
  await page.goto(at("relays/new?step=template"));
  await page.getByLabel("Search senders and templates").fill("merge requests");
  await page.getByRole("button", { name: "Paid checkout" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "GitLab" }).click();
  const preview = page.getByRole("region", { name: "Preview of GitLab" });
  await preview.getByText("The sender does not sign the event").waitFor();
  await preview.getByLabel("Example event").getByText('"merge_request"').first().waitFor();
  await preview.getByRole("button", { name: "Use this sender" }).click();
  await showJson(page);
  await editorOf(page).getByText('"X-Gitlab-Token"').waitFor();
  await page.getByText("GitLab: Paste Relay's secret into the webhook's field Secret token").waitFor();
  await page.getByRole("button", { name: "Create relay" }).click();
  await page.getByRole("link", { name: "I stored the secret: open relay" }).click();
  await page.getByRole("link", { name: "Secrets", exact: true }).click();
  await page.getByRole("heading", { name: "At GitLab" }).waitFor();
  await running.api("DELETE", "/relays/gitlab", undefined, "local");
  await page.goto(at("relays/order-paid"));
});

test("a deletion asks for the name, and deletes the relay", async () => {
  await page.getByRole("button", { name: "Delete…", exact: true }).click();
  await page.getByRole("dialog").getByText("Waiting events become Failed.").waitFor();
  const remove = page.getByRole("button", { name: "Delete relay" });
  expect(await remove.isDisabled()).toBe(true);
  await page.getByLabel("Type order-paid to confirm").fill("order-paid");
  await remove.click();
  await page.getByRole("heading", { name: "No relays yet" }).waitFor();
  expect(await running.rows("SELECT 1 FROM relay")).toEqual([]);
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
