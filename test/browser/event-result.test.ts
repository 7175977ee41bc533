/** Tests the duration and response of each action of an event, and the paths of its payload by mouse and keyboard. */
import { afterAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { sendSigned } from "../kit/browser-sender.ts";
import { shoot } from "../kit/browser-shots.ts";
import { until } from "../kit/event-flow.ts";
import { FakeCaller } from "../kit/fake-caller.ts";

const caller = new FakeCaller("hang");
const dashboard = await openDashboard({ ports: { caller } });
const { page, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

test("shows a bar per action, the sent request and the response headers", async () => {
  const call = (path: string) => ({ type: "call_url", url: `https://example.com/${path}` });
  const definition = {
    name: "calls",
    trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id", person_email: "email", order: "order" } },
    actions: [{ type: "grant_credits", amount: 1 }, call("first"), call("second")],
  };
  const made = await running.api("POST", "/relays", { definition }, "local");
  const body = JSON.stringify({ id: "a", email: "ann@example.com", order: { lines: [{ sku: "book" }] }, none: [] });
  const sent = await sendSigned(running, "calls", made.body.receiverSecret, "a", body);
  for (const path of ["first", "second"]) {
    await until(`${path} is called`, () => caller.hanging() === 1);
    await Bun.sleep(50);
    const headers = { "content-type": "text/html", server: "<b>lab</b>\u202e" };
    const request = { method: "POST", url: `https://example.com/${path}`, headers: { "X-Service-Signature": "t=1,v1=(not kept)" } } as const;
    caller.letGo(1, { kind: "answered", ok: true, status: 202, headers, body: "heard", request });
  }
  await running.drain();
  await page.goto(at(`events/${sent.body.eventId}`));
  const results = page.locator(".result");
  await results.nth(2).waitFor();
  expect(await page.locator(".result-took").count()).toBe(3);
  const bars = await page
    .locator(".result-time rect")
    .evaluateAll((all) => all.map((bar) => ({ from: Number(bar.getAttribute("x")), width: Number(bar.getAttribute("width")) })));
  const [granted, first, last] = bars as [(typeof bars)[0], (typeof bars)[0], (typeof bars)[0]];
  expect(granted.from).toBe(0);
  const { event } = (await running.api("GET", `/events/${sent.body.eventId}`, undefined, "local")).body;
  const took = event.runs[0].results.map(({ tookMs }: { tookMs: number }) => tookMs);
  // The slower action must have the wider bar, and either one can be slower.
  expect(last.width >= first.width).toBe(took[2] >= took[1]);
  expect(last.from).toBeGreaterThanOrEqual(first.from + first.width);
  expect(last.from + last.width).toBeLessThanOrEqual(1_000);
  const second = results.nth(2);
  const sentText = second.getByLabel("Request");
  expect(await sentText.isVisible()).toBe(false);
  await second.getByText("Request and headers").click();
  expect(await sentText.innerText()).toContain("POST https://example.com/second");
  expect(await sentText.innerText()).toContain("v1=(not kept)");
  expect(await second.getByLabel("Answer").innerText()).toContain("server: <b>lab</b>\\u202e");
  await shoot(page, "exchange", { widths: [360, 1280], fullPage: true });
});

test("a click copies the path of a value, and so do the arrows and y", async () => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const payload = page.getByRole("group", { name: "Payload" });
  await payload.getByText('"ann@example.com"').first().hover();
  await payload.getByRole("button", { name: "Copy the path event.email", exact: true }).click();
  await page.getByText("Copied the path.").waitFor();
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  expect(await copied()).toBe("event.email");
  await payload.getByRole("button", { name: "event: 4 fields" }).focus();
  for (const path of ["event.id", "event.email", "event.order"]) {
    await page.keyboard.press("ArrowDown");
    expect(await page.evaluate(() => (document.activeElement as HTMLElement).dataset.path)).toBe(path);
  }
  await page.keyboard.press("y");
  await until("y copied", async () => (await copied()) === "event.order");
  // The list and its first item are folded, and Enter opens them.
  for (let step = 0; step < 2; step++) {
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
  }
  await payload.getByText('"book"').waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await until("Enter copied", async () => (await copied()) === "event.order.lines.0.sku");
  await page.keyboard.press("ArrowUp");
  expect(await page.evaluate(() => (document.activeElement as HTMLElement).dataset.path)).toBe("event.order.lines.0");
  await shoot(page, "paths", { widths: [360, 1280], fullPage: true });
  expect(complaints).toEqual([]);
});
