/**
 * Tests events that end together, for example after a pause. They must raise one alert per relay and cause with a count, instead of one each under
 * the writer lock.
 */
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import * as alertRow from "../../src/platform/audit/alert.ts";
import { sendEvent } from "../kit/event-flow.ts";
import { receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { RAISED_LIMITS } from "../kit/service-config.ts";

let running: RunningService;
beforeEach(async () => {
  running = await startRunningService({ config: { limits: { ...RAISED_LIMITS, invitesPerDay: 1 } } });
  await running.api("POST", "/persons", { email: "first@example.com" });
});
afterEach(() => running[Symbol.asyncDispose]());

const NOTE = { type: "write_record", collection: "missing", data: { text: "x" } };
const GIVE = { type: "grant_credits", amount: 1 };

test.each([
  ["that died", "relay_failed", NOTE, { event_id: "id" }, "4 more have died"],
  ["that wait for the owner", "invite_capped", GIVE, { event_id: "id", person_email: "email" }, "An event of orders waits"],
])("events %s raise one alert, with their count and the last of them", async (_which, code, action, map, says) => {
  await saveRelay(running, receiverDefinition({ map, actions: [action] }));
  await running.api("POST", "/relays/orders/pause");
  const sent: string[] = [];
  for (let event = 0; event < 5; event++) sent.push(await sendEvent(running, `evt-${event}`, { email: `p${event}@example.com` }));
  using raises = spyOn(alertRow, "raiseAlert");
  await running.api("POST", "/relays/orders/resume");
  await running.drain();
  const raised: unknown[][] = raises.mock.calls.map(([, { code, count }]) => [code, count]);
  expect(raised.filter(([one]) => one === code)).toEqual([[code, 5]]);
  const { items } = (await running.api("GET", "/alerts")).body;
  const [alert] = items.filter((one: { code: string }) => one.code === code);
  expect([alert.target, alert.count]).toEqual(["relay:orders", 5]);
  expect(alert.message).toContain(says);
  if (code === "relay_failed") expect(alert.message).toStartWith(`The event ${sent.at(-1)} of orders is dead`);
});
