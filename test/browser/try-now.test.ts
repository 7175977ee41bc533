/** Try now: an event that waits for its retry runs from its own page, and a relay's from the relay's page, once the cause is mended. */
import { afterAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { CALL, sendEvent, showEvent } from "../kit/event-flow.ts";
import { BROKEN, FakeCaller, OK } from "../kit/fake-caller.ts";
import { receiverDefinition, saveRelay } from "../kit/relay-definition.ts";

const caller = new FakeCaller(BROKEN);
const dashboard = await openDashboard({ ports: { caller }, environments: ["development", "production"] });
const { page, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

test("a waiting event is tried from its page; the relay's others from the relay's, and then nothing waits", async () => {
  await saveRelay(running, receiverDefinition({ actions: [CALL] }));
  const [one = "", ...others] = [await sendEvent(running, "a"), await sendEvent(running, "b"), await sendEvent(running, "c")];
  await running.drain();
  caller.reply = () => OK;
  await page.goto(at(`events/${one}`));
  await page.getByRole("button", { name: "Try now" }).click();
  await page.getByText("Tried now; what it does appears here.").waitFor();
  await page.getByRole("button", { name: "Try now" }).waitFor({ state: "detached" });
  await running.drain();
  expect(await showEvent(running, one)).toMatchObject({ state: "done", attempts: 2 });
  await page.goto(at("relays/orders"));
  const retries = page.getByRole("region", { name: "Retries" });
  await retries.getByText(/^2 events wait for their retry, the first in /).waitFor();
  await retries.getByRole("button", { name: "Try now" }).click();
  await page.getByText("2 events tried now; what they do appears here.").waitFor();
  await retries.waitFor({ state: "detached" });
  await running.drain();
  for (const id of others) expect(await showEvent(running, id)).toMatchObject({ state: "done", attempts: 2 });
  expect(complaints).toEqual([]);
});
