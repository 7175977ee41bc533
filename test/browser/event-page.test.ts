/** Tests the Events page: the bars that filter, a typed search, the side panel, the selection, and one event with its steps and neighbors. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { sendSigned } from "../kit/browser-sender.ts";
import { shoot } from "../kit/browser-shots.ts";

const dashboard = await openDashboard();
const { page, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const rows = page.locator("main [data-row]");
const count = (wanted: number) => page.waitForFunction((wanted) => document.querySelectorAll("main [data-row]").length === wanted, wanted);

beforeAll(async () => {
  const define = (name: string, actions: object[]) => ({
    name,
    trigger: {
      kind: "receiver",
      verify: { scheme: "hooks" },
      map: { event_id: "id", event_type: "type", person_email: "email", order: "order", amount: "amount" },
    },
    actions,
  });
  const GRANT = { type: "grant_credits", amount: 1 };
  const WRITE = { type: "write_record", collection: "nowhere", data: { text: "x" } };
  const send = async (name: string, actions: object[], bodies: object[]) => {
    const made = await running.api("POST", "/relays", { definition: define(name, actions) }, "local");
    for (const [number, body] of bodies.entries()) {
      const text = JSON.stringify({ id: `${name}_${number}`, ...body });
      expect((await sendSigned(running, name, made.body.receiverSecret, `${name}_${number}`, text)).status).toBe(200);
    }
  };
  const paid = (email: string, number: number) => ({ type: "checkout.session.completed", email, order: `cs_live_be0${number}`, amount: 9900 });
  await send(
    "checkout",
    [GRANT],
    Array.from({ length: 6 }, (_, number) => paid("carol@example.com", number)),
  );
  await send("broken", [GRANT, WRITE], [paid("dan@example.com", 7), paid("dan@example.com", 8)]);
  await running.drain();
});

test("typed text becomes a filter by person, mapped value or text", async () => {
  await page.goto(at("events"));
  await count(8);
  const search = page.getByLabel("Find text or an event id");
  await search.fill("person:dan@example.com mapped.order:cs_live_be08");
  await search.press("Enter");
  await page.waitForURL(/person=dan%40example\.com&mapped=order%3Acs_live_be08/);
  await count(1);
  await page.getByRole("button", { name: "Without person dan@example.com" }).click();
  await page.getByRole("button", { name: "Without order cs_live_be08" }).click();
  await count(8);
  await search.fill("person:nobody@example.com");
  await search.press("Enter");
  await page.getByText('No person "nobody@example.com" exists in this environment').waitFor();
  await page.getByRole("button", { name: "Clear", exact: true }).click();
  await count(8);
});

test("the bars count events by state, and keys or a drag select a time range", async () => {
  const bars = page.getByRole("slider", { name: /^Events over time/ });
  await page.locator("figcaption", { hasText: "6 done, 2 dead" }).waitFor();
  await bars.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("Enter");
  await page.waitForURL(/since=.*until=/);
  await page.getByRole("heading", { name: "No event matches" }).waitFor();
  await page.getByRole("button", { name: /^Without from/ }).click();
  await count(8);
  const box = await bars.boundingBox();
  if (box === null) throw new Error("The bars are not drawn.");
  await page.mouse.move(box.x + box.width * 0.9, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width - 2, box.y + 20, { steps: 4 });
  await page.mouse.up();
  await page.waitForURL(/since=.*until=/);
  await count(8);
  await page.getByRole("button", { name: "Clear", exact: true }).click();
});

test("keys move the side panel, Escape closes it, a click opens it, and Enter opens the page", async () => {
  await page.goto(at("events?state=dead"));
  await count(2);
  await page.keyboard.press("j");
  const panel = page.getByRole("complementary", { name: "Open event" });
  await panel.getByText("cs_live_be08").first().waitFor();
  await panel.getByText("There is still no collection nowhere.").waitFor();
  await shoot(page, "panel", { widths: [360, 390, 1280, 1920] });
  await page.keyboard.press("j");
  await panel.getByText("cs_live_be07").first().waitFor();
  await page.waitForURL(/open=evt_/);
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
  expect(new URL(page.url()).searchParams.get("open")).toBeNull();
  await rows.first().click();
  await panel.getByText("cs_live_be08").first().waitFor();
  await rows.first().focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "checkout.session.completed · broken event" }).waitFor();
});

test("an event's page shows the failure and the remedy, and links to its neighbors in the filter", async () => {
  await page.locator(".reason", { hasText: "There is still no collection nowhere." }).waitFor();
  await page.getByRole("region", { name: "Mapped values" }).getByText("cs_live_be08").waitFor();
  await page.getByRole("button", { name: "Next event" }).waitFor();
  await page.keyboard.press("n");
  await page.getByRole("region", { name: "Mapped values" }).getByText("cs_live_be07").waitFor();
  await page.keyboard.press("p");
  await page.getByRole("region", { name: "Mapped values" }).getByText("cs_live_be08").waitFor();
  await page.getByLabel("Find in the payload").fill("be08");
  await page.getByRole("button", { name: "event.order", exact: true }).waitFor();
  await page.getByRole("button", { name: "Raw" }).click();
  await page.locator("pre", { hasText: '"order": "cs_live_be08"' }).waitFor();
  await shoot(page, "event-dead", { widths: [360, 390, 1280, 1920] });
  await page.getByRole("button", { name: "Replay", exact: true }).click();
  await page.getByRole("dialog").getByText("The cause still exists: There is still no collection nowhere.").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("a[data-back]").click();
  await page.waitForURL(/events\?state=dead/);
});

test("a replay without any effect says so first", async () => {
  const [done] = (await running.api("GET", "/events?state=done&limit=1", undefined, "local")).body.items;
  await page.goto(at(`events/${done.id}`));
  await page.getByRole("button", { name: "Replay", exact: true }).click();
  await page.getByRole("dialog").getByText("All of its actions are done. A replay does nothing.").waitFor();
  await page.goto(at("events?state=dead"));
});

test("x and shift-x select events, and r replays them after a preview", async () => {
  await count(2);
  await running.api("POST", "/collections", { name: "nowhere", kind: "shared", fields: { text: { type: "text" } } }, "local");
  await rows.first().focus();
  await page.keyboard.press("x");
  await rows.last().focus();
  await page.keyboard.press("Shift+X");
  await page.getByText("2 events selected").waitFor();
  // With two replay buttons, a user in a hurry may press the one for thousands of events.
  expect(await page.getByRole("button", { name: "Replay these…" }).count()).toBe(0);
  await shoot(page, "chosen", { widths: [360, 390, 1280, 1920] });
  await page.keyboard.press("r");
  const dialog = page.getByRole("dialog", { name: "Replay 2 events?" });
  await dialog.getByText("Grant credits is skipped: already done: 2").waitFor();
  await dialog.getByText("Write a record runs: 2").waitFor();
  await dialog.getByRole("button", { name: "Replay 2 events" }).click();
  await dialog.getByText("2 of 2 queued.").waitFor();
  await dialog.getByRole("button", { name: "Close", exact: true }).click();
  await page.getByRole("heading", { name: "No event matches" }).waitFor();
  await page.goto(at("events"));
  await count(8);
  await shoot(page, "list", { widths: [360, 390, 1280, 1920] });
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
