/**
 * Tests that a hold or pause by a command on the data directory takes effect at its commit. The server's clock does not advance, so the server never
 * polls for other processes' changes.
 */
import { expect, test } from "bun:test";
import { runCommand } from "../kit/cli-io.ts";
import { CALL, WRITE } from "../kit/event-flow.ts";
import { FakeCaller } from "../kit/fake-caller.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { startRunningService } from "../kit/running-service.ts";
import { settle } from "../kit/virtual-clock.ts";

const BRAKES = [
  { brake: "relay settings set held on", words: ["settings", "set", "held", "on"] },
  { brake: "relay relays pause", words: ["relays", "pause", "orders"] },
] as const;
const RELAYS = [
  { does: "writes", actions: [WRITE] },
  { does: "calls a URL", actions: [CALL] },
] as const;

test.each(BRAKES.flatMap((brake) => RELAYS.map((relay) => ({ ...brake, ...relay }))))(
  "after $brake no event of a relay that $does starts",
  async ({ words, actions }) => {
    const caller = new FakeCaller();
    await using running = await startRunningService({ ports: { caller } });
    await makeOrders(running);
    await saveRelay(running, receiverDefinition({ actions: [...actions] }));
    const send = (id: string) => running.hook("orders", signedCall({ id, type: "order.paid", amount: 1 }));
    await send("before");
    await running.drain();
    const braked = await runCommand([...words, "--data-dir", running.dataDir], { cwd: running.dataDir, env: running.commandEnv });
    expect({ code: braked.code, soon: braked.told.includes("within a second") }).toEqual({ code: 0, soon: false });
    for (let at = 0; at < 5; at++) expect((await send(`after_${at}`)).status).toBe(200);
    await settle(60);
    const states = await running.rows<{ state: string; count: number }>("SELECT state, count(*) AS count FROM event GROUP BY state ORDER BY state");
    expect(states).toEqual([
      { state: "done", count: 1 },
      { state: "queued", count: 5 },
    ]);
    expect(caller.requests.length).toBe(actions[0].type === "call_url" ? 1 : 0);
  },
);
