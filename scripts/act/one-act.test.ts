/** Performs one act in the running service, or none. `act-files.ts` measures it by coverage. `ACT` names the act, `TIMES` its number of repeats. */

import { test } from "bun:test";
import { HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import {
  HOOK_SECRET,
  makeOrders,
  receiverDefinition,
  saveRelay,
  signedCall,
} from "../../test/kit/relay-definition.ts";
import { startRunningService } from "../../test/kit/running-service.ts";

test("one act", async () => {
  await using running = await startRunningService();
  const act = process.env.ACT;
  const times = Number(process.env.TIMES);
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({ name: "before" }));
  const trigger = { kind: "schedule", every: times > 0 ? "15m" : "1w" };
  const actions = [{ type: "write_record", collection: "orders", data: { order: "tick" } }];
  const first = await running.hook("before", signedCall({ id: "first", amount: "1" }));
  await running.drain();
  await running.clock.advance(2 * HOUR_MS + 5 * MINUTE_MS);
  // This request records the key's use, which happens at most once a minute, so that no act records it.
  await running.api("GET", "/relays");
  if (act === "tick")
    await running.api("POST", "/relays", { definition: { name: "quarterly", trigger, actions } });
  await running.drain();
  for (let time = 0; time < times; time++) {
    if (act === "save") {
      const definition = receiverDefinition({ name: `relay-${time}` });
      await running.api("POST", "/relays", { definition, secret: `${HOOK_SECRET}${time}` });
    }
    if (act === "webhook") await running.hook("before", signedCall({ id: `more-${time}`, amount: "2" }));
    if (act === "show") await running.api("GET", `/events/${first.body.eventId}`);
    await running.drain();
  }
  // This stops before the next maintenance round, which would read what the ticks wrote.
  if (act === "tick") await running.clock.advance(50 * MINUTE_MS);
  await running.drain();
});
