/** What is known of relays' health while the database is asked what stands: nothing that is noticed meanwhile is lost. */
import { expect, test } from "bun:test";
import { createLog } from "../../src/ground/log.ts";
import { Standing } from "../../src/health/standing.ts";
import { LiveRelays } from "../../src/relay/live-relay.ts";
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

test("a problem that is raised while what stands is read stays, is nobody's to resolve, and is over when it is over", async () => {
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
  const standing = new Standing({ store: slow, clock, log });
  await standing.start(() => undefined);
  const snapshot = await relays.current();
  const [silent, capped] = ["silent", "capped"].map((name) => snapshot.relays.find((one) => one.name === name));
  if (silent === undefined || capped === undefined) throw new Error("There are no relays.");
  standing.raise(silent, "relay_silent", "It is silent.");
  await standing.flush();
  const gate = Promise.withResolvers<void>();
  pass = gate.promise;
  const tended = standing.tend(snapshot);
  await Bun.sleep(20);
  standing.raise(capped, "relay_capped", "It is capped.");
  standing.clear(silent, "relay_silent");
  gate.resolve();
  expect(await tended).toEqual([]);
  expect([standing.stands(capped, "relay_capped"), standing.stands(silent, "relay_silent")]).toEqual([true, false]);
  await standing.flush();
  expect(await standsInStore()).toEqual([{ code: "relay_capped", target: "relay:capped" }]);
  standing.clear(capped, "relay_capped");
  await standing.flush();
  expect(await standsInStore()).toEqual([]);
});
