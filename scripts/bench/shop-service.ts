/**
 * Runs the service on a full shop's store, for the requests of the dashboard. It prints one JSON line, then answers as loop-watch.ts describes.
 *
 * bun scripts/bench/shop-service.ts <data folder> <events> [days they arrived in]
 */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { DAY_MS } from "../../src/base/limit.ts";
import { COMMAND_LINE, mintApiKey } from "../../src/platform/account/api-key.ts";
import { createApp } from "../../src/platform/account/app.ts";
import { type Environment, findEnvironmentById } from "../../src/platform/account/environment.ts";
import { createOwner } from "../../src/platform/account/owner.ts";
import { createSession } from "../../src/platform/account/session.ts";
import { createRelay, pauseRelay } from "../../src/rules/relay/relay-save.ts";
import { type Service, startService } from "../../src/service.ts";
import { RAISED_LIMITS, serviceConfig } from "../../test/kit/service-config.ts";
import { answerMeasures } from "./loop-watch.ts";
import { fillShop, SHOP } from "./shop-fill.ts";

/** The line that the script prints when it is ready. */
export interface ShopReady {
  url: string;
  key: string;
  session: string;
  secret: string;
}

const SECRET = "bench-secret-of-thirty-two-chars";
const PAUSED = ["newsletter"];
const verify = { scheme: "signature", header: "x-signature", signedPayload: "{body}", encoding: "hex" };
const map = { event_id: "id", event_type: "type", order: "data.order", amount: "data.amount" };
const receiver = { kind: "receiver", verify, map };
const write = (collection: string) => ({
  type: "write_record",
  collection,
  data: { text: "{{mapped.order}}", amount: "{{mapped.amount}}" },
});

const DEFINITIONS: Record<keyof typeof SHOP, object> = {
  "orders-paid": { trigger: receiver, actions: [write("orders")] },
  signups: { trigger: receiver, actions: [write("members")] },
  newsletter: { trigger: receiver, actions: [write("orders")] },
  shipping: { trigger: receiver, actions: [{ type: "call_url", url: "https://shipping.example/parcel" }] },
  refunds: {
    trigger: { ...receiver, map: { ...map, person_email: "data.email" } },
    actions: [{ type: "grant_credits", amount: 1, reason: "Refund" }],
  },
  "order-written": {
    trigger: { kind: "data_change", collection: "tickets", on: ["created"] },
    actions: [write("notes-of-tickets")],
  },
  nightly: { trigger: { kind: "schedule", every: "1d" }, actions: [write("orders")] },
};

const [dataDir = ".bench-shop", rows = "1000000", days = "29"] = process.argv.slice(2);
const file = join(dataDir, "relay.db");
const filled = join(dataDir, `filled-${rows}`);

const open = (): Promise<Service> =>
  startService(serviceConfig(dataDir, { limits: RAISED_LIMITS, logFormat: "text" }), {
    printRun: () => undefined,
    logSink: () => undefined,
  });

async function seed(service: Service): Promise<number> {
  const nowMs = systemClock.now();
  const { store } = service;
  const { environments } = await store.write("app", (tx) =>
    createApp(tx, { id: "shop", name: "Shop", environments: ["development", "production"], nowMs }),
  );
  const made = environments.find(({ name }) => name === "production");
  if (made === undefined) throw new Error("no environment");
  await store.write("app", (tx) => createOwner(tx, { email: "ann@example.com", passwordHash: null, nowMs }));
  const environment = await store.read((tx) => findEnvironmentById(tx, made.id));
  for (const [name, rest] of Object.entries(DEFINITIONS)) {
    await store.write("app", async (tx) => {
      const { limits, actor, sealer, baseUrl } = {
        limits: { relaysPerEnvironment: 100 },
        actor: COMMAND_LINE,
        sealer: service.sealer,
        baseUrl: service.baseUrl,
      };
      const context = { environment: environment as Environment, actor, nowMs, limits, sealer, baseUrl };
      const isReceiver = SHOP[name as keyof typeof SHOP].kind === "receiver";
      await createRelay(tx, context, {
        definition: { name, ...rest },
        secret: isReceiver ? SECRET : null,
        signingSecret: null,
        origin: { kind: "dashboard", synced: false },
      });
      if (PAUSED.includes(name)) await pauseRelay(tx, context, name);
    });
  }
  return made.id;
}

if (!existsSync(filled)) {
  const first = await open();
  const environmentId = await seed(first);
  await first[Symbol.asyncDispose]();
  fillShop(file, {
    environmentId,
    rows: Number(rows),
    spreadMs: Number(days) * DAY_MS,
    nowMs: systemClock.now(),
  });
  writeFileSync(filled, "");
}
const service = await open();
const nowMs = systemClock.now();
const ready = await service.store.write("app", async (tx) => {
  const environment = await tx.get<Pick<Environment, "id" | "name">>(
    "SELECT id, name FROM environment WHERE name = 'production'",
  );
  const owner = await tx.get<{ id: string }>("SELECT id FROM owner");
  if (environment === null || owner === null) throw new Error("nothing was seeded");
  const { token } = await mintApiKey(tx, { environment, kind: "secret", name: "bench", nowMs });
  return { key: token, session: (await createSession(tx, owner.id, nowMs)).token };
});
service.refresh();

await answerMeasures({ url: service.url, secret: SECRET, ...ready } satisfies ShopReady);
await service[Symbol.asyncDispose]();
process.exit(0);
