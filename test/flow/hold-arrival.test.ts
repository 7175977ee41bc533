/** Tests access after a hold is released. The waiting events must have the same effect as on arrival, whichever relay runs first. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { RAISED_LIMITS } from "../kit/service-config.ts";
import { type Arriving, storeEvents } from "../kit/stored-events.ts";

let running: RunningService;
const map = { event_id: "id", person_email: "email", ref: "ref" };

beforeEach(async () => {
  running = await startRunningService({ config: { limits: RAISED_LIMITS } });
  await running.api("PUT", "/access/club", {});
  await saveRelay(running, receiverDefinition({ name: "paid", map, actions: [{ type: "grant_access", entitlement: "access:club" }] }));
  await saveRelay(running, receiverDefinition({ name: "canceled", map, actions: [{ type: "revoke_access", entitlement: "access:club" }] }));
});
afterEach(() => running[Symbol.asyncDispose]());

async function setHold(held: boolean): Promise<void> {
  const { version } = (await running.api("GET", "/settings")).body.settings;
  expect((await running.api("PUT", "/settings", { version, held })).status).toBe(200);
}

/** Stores the events during a hold, releases it, and returns the number of people with access. */
async function countHolders(events: readonly Arriving[]): Promise<number> {
  await setHold(true);
  await storeEvents(running, events);
  await setHold(false);
  running.service.runner.wake();
  await running.drain();
  const [row] = await running.rows<{ held: number }>("SELECT count(DISTINCT person_id) AS held FROM access_grant WHERE revoked_at IS NULL");
  return row?.held ?? 0;
}

const EMAILS = (count: number) => Array.from({ length: count }, (_, at) => `b${at}@example.com`);

const of = (relay: string, emails: readonly string[]) => emails.map((email) => ({ relay, email }));

describe("events of one hold", () => {
  test("leave 300 buyers who paid and canceled without access", async () => {
    const buyers = EMAILS(300);
    expect(await countHolders([...of("paid", buyers), ...of("canceled", buyers.toReversed())])).toBe(0);
  });

  test("give access to 100 buyers who paid, canceled and paid again, while many others canceled before them", async () => {
    const buyers = EMAILS(100);
    const others = EMAILS(300).map((email) => `other-${email}`);
    const events = [...of("canceled", others), ...of("paid", buyers), ...of("canceled", buyers), ...of("paid", buyers)];
    expect(await countHolders(events)).toBe(100);
  });
});
