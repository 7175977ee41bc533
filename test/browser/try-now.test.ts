/** Tests immediate retries from the dashboard: one event from its page, and a relay's events from the relay's page, after the cause was fixed. */
import { afterAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { CALL, putEvents, sendEvent, showEvent } from "../kit/event-flow.ts";
import { BROKEN, FakeCaller, OK } from "../kit/fake-caller.ts";
import { receiverDefinition, saveRelay } from "../kit/relay-definition.ts";

const caller = new FakeCaller(BROKEN);
const dashboard = await openDashboard({ ports: { caller }, environments: ["development", "production"] });
const { page, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

test("a waiting event is retried from its page, the others from the relay's page, and then none waits", async () => {
  await saveRelay(running, receiverDefinition({ actions: [CALL] }));
  const [one = "", ...others] = [await sendEvent(running, "a"), await sendEvent(running, "b"), await sendEvent(running, "c")];
  await running.drain();
  caller.reply = () => OK;
  await page.goto(at(`events/${one}`));
  await page.getByText("Attempt 1 of 7 failed at “Call a URL”").waitFor();
  await page.getByRole("button", { name: "Retry now" }).click();
  await page.getByText("Retrying now. The result appears here.").waitFor();
  await page.getByRole("button", { name: "Retry now" }).waitFor({ state: "detached" });
  await running.drain();
  expect(await showEvent(running, one)).toMatchObject({ state: "done", attempts: 2 });
  await page.goto(at("relays/orders"));
  const retries = page.getByRole("region", { name: "Retries" });
  await retries.getByText(/^2 events wait for their retry, the first in /).waitFor();
  await retries.getByRole("button", { name: "Retry now" }).click();
  await page.getByText("2 events retried now. The results appear here.").waitFor();
  await retries.waitFor({ state: "detached" });
  await running.drain();
  for (const id of others) expect(await showEvent(running, id)).toMatchObject({ state: "done", attempts: 2 });
  expect(complaints).toEqual([]);
});

test("a customer whose paid event waits for a retry is marked on their page, with finished actions and the retry time", async () => {
  caller.reply = () => BROKEN;
  const map = { event_id: "id", event_type: "type", person_email: "email" };
  await saveRelay(running, receiverDefinition({ name: "paid", map, actions: [{ type: "grant_credits", amount: 1 }, CALL] }));
  const [id = ""] = await putEvents(running, ["d"], { relay: "paid", email: "ada@example.com" });
  await running.drain();
  const [ada] = (await running.api("GET", "/persons?email=ada@example.com")).body.items;
  await page.goto(at(`people/${ada.id}`));
  const waiting = page.getByRole("region", { name: "Waiting events" });
  await waiting.getByText(/retried in /).waitFor();
  await page.setViewportSize({ width: 360, height: 780 });
  await page.goto(at("events?relay=paid"));
  const why = page.locator(".event-why");
  await why.waitFor();
  expect(await why.evaluate((line) => line.scrollWidth <= line.clientWidth)).toBe(true);
  await page.setViewportSize({ width: 1280, height: 860 });
  await page.goto(at(`events/${id}`));
  await page.getByText("1 other action is done.").waitFor();
  await page.getByRole("button", { name: "Retry now" }).click();
  await running.drain();
  const granted = page.locator(".run").first().locator(".result", { hasText: "Grant credits" });
  await page.getByText("Attempt 2 of 7 failed at").waitFor();
  await granted.getByText("Already done").waitFor();
  expect(complaints).toEqual([]);
});
