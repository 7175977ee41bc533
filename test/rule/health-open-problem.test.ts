/** The health of relays while the service reads the open problems: changes in the meantime are not lost. */
import { expect, test } from "bun:test";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { createLog } from "../../src/base/log.ts";
import { Health } from "../../src/engine/health/health.ts";
import { LiveRelays } from "../../src/rules/relay/live-relay.ts";
import type { Store } from "../../src/store/port.ts";
import { openFreshStore } from "../kit/fresh-store.ts";
import { makeRelayKit, receiver, sealer } from "../kit/relay-kit.ts";

const fresh = await openFreshStore();
const { store, clock } = fresh;
const kit = makeRelayKit(fresh);
for (const name of ["silent", "capped"]) await kit.create(receiver(name), { secret: "theSecret-of-thirty-Character5" });
const relays = new LiveRelays({ store, sealer, baseUrl: () => "https://relay.example.com" });
const log = createLog({ clock, format: "json", sink: () => undefined });
const standsInStore = () => store.read((tx) => tx.all("SELECT code, target FROM problem WHERE cleared_at IS NULL ORDER BY target"));

test("a problem raised during the read stays open, and resolves with its cause", async () => {
  let pass = Promise.resolve();
  const slow = new Proxy(store, {
    get: (target, name) =>
      name === "read"
        ? async (work: Parameters<Store["read"]>[0]) => {
            const read = await target.read(work);
            await pass;
            return read;
          }
        : Reflect.get(target, name).bind(target),
  });
  const health = new Health({ store: slow, clock, log, limits: DEFAULT_LIMITS });
  const { problems } = health;
  await health.start(() => false);
  const snapshot = await relays.current();
  const [silent, capped] = ["silent", "capped"].map((name) => snapshot.relays.find((one) => one.name === name));
  if (silent === undefined || capped === undefined) throw new Error("There are no relays.");
  problems.raise(silent, "relay_silent", "It is silent.");
  await health.flush();
  const gate = Promise.withResolvers<void>();
  pass = gate.promise;
  const tended = health.refresh(snapshot);
  await Bun.sleep(20);
  problems.raise(capped, "relay_capped", "It is capped.");
  problems.clear(silent, "relay_silent");
  gate.resolve();
  expect(await tended).toEqual([]);
  expect([problems.isRaised(capped, "relay_capped"), problems.isRaised(silent, "relay_silent")]).toEqual([true, false]);
  await health.flush();
  expect(await standsInStore()).toEqual([{ code: "relay_capped", target: "relay:capped" }]);
  problems.clear(capped, "relay_capped");
  await health.flush();
  expect(await standsInStore()).toEqual([]);
});
