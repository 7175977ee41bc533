/** Tests requests that Relay makes for one environment: no other environment's secret receives them, and they do not count for the sender. */
import { beforeEach, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { createLog } from "../../src/base/log.ts";
import { Refusal } from "../../src/base/refusal.ts";
import { LiveRelays } from "../../src/rules/relay/live-relay.ts";
import { type BareReceiver, makeBareReceiver } from "../kit/bare-receiver.ts";
import { type FreshStore, openFreshStore } from "../kit/fresh-store.ts";
import { makeRelayKit, receiver, sealer } from "../kit/relay-kit.ts";

const SECRETS = { development: "secret-of-development-1234567890", production: "secret-of-production-1234567890" } as const;
type Name = keyof typeof SECRETS;

let fresh: FreshStore;
let relays: LiveRelays;
let receiving: BareReceiver;

beforeEach(async () => {
  fresh = await openFreshStore();
  const kit = makeRelayKit(fresh);
  relays = new LiveRelays({ store: fresh.store, sealer, baseUrl: () => "https://relay.example.com" });
  const log = createLog({ clock: fresh.clock, format: "json", sink: () => undefined });
  receiving = makeBareReceiver({ store: fresh.store, clock: fresh.clock, relays, sealer, log, limits: DEFAULT_LIMITS });
  await receiving.start();
  for (const name of ["development", "production"] as const) await kit.create(receiver("orders"), { secret: SECRETS[name] }, name);
  relays.invalidate();
});

/** Sends a request that is signed with the secret of one environment. Returns the code of a refusal, or the environments with an event. */
async function send(signedFor: Name, testIn: Name | null) {
  const body = Buffer.from('{"id":"call-1"}');
  const signature = createHmac("sha256", SECRETS[signedFor]).update(body).digest("hex");
  const headers = new Headers({ "content-type": "application/json", "x-signature": signature });
  const call = { appId: "app_test", name: "orders", headers, body, search: "", source: () => "203.0.113.7" };
  const only = testIn === null ? {} : { testIn: (await fresh.environment(testIn)).id };
  const answer = await receiving.receiver.receive({ ...call, ...only });
  const events = await fresh.store.read((tx) =>
    tx.all<{ name: string; source: string | null }>(
      "SELECT environment.name AS name, event.source AS source FROM event JOIN relay_key ON relay_key.key = event.relay_key JOIN relay ON relay.id = relay_key.relay_id JOIN environment ON environment.id = relay.environment_id",
    ),
  );
  const heard = (await relays.current()).relays.filter(({ id }) => receiving.health.healthOf(id).acceptedAt !== null);
  return {
    code: answer instanceof Refusal ? answer.code : null,
    events: events.map(({ name, source }) => [name, source]),
    heard: heard.map(({ environmentName }) => environmentName),
  };
}

const ROWS: [signedFor: Name, testIn: Name | null, wanted: Awaited<ReturnType<typeof send>>][] = [
  ["production", null, { code: null, events: [["production", null]], heard: ["production"] }],
  ["development", "development", { code: null, events: [["development", "test"]], heard: [] }],
  ["production", "development", { code: "bad_signature", events: [], heard: [] }],
];
test.each(ROWS)("a request with the secret of %s for a test in %s", async (signedFor, testIn, wanted) => {
  expect(await send(signedFor, testIn)).toEqual(wanted);
});
