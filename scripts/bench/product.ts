/**
 * The product for the bench: the service with all features and raised caps, a key, and relays that write one record each. Paused relays run
 * nothing. `followed`: paused as well, each relay ignores the requests, and one of the ten relays that follow it takes them. Prints one JSON line { port, paths, key, base }, then runs until it is stopped. With `rows` it first adds events until the store has
 * that many.
 *
 * bun scripts/bench/product.ts <data folder> <relays> <secret> <paused|followed|running|calls> [url|rows] [unverified calls a minute]
 */

import { systemClock } from "../../src/base/clock.ts";
import { type DatabaseUrl, readDatabaseUrl } from "../../src/base/database-url.ts";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { collectUnderLoad } from "../../src/interfaces/cli/server/gc-pacing.ts";
import { COMMAND_LINE, mintApiKey } from "../../src/platform/account/api-key.ts";
import { createApp, findApp } from "../../src/platform/account/app.ts";
import { findEnvironmentById } from "../../src/platform/account/environment.ts";
import { createRelay, pauseRelay } from "../../src/rules/relay/relay-save.ts";
import { startService } from "../../src/service.ts";
import { createCollection } from "../../src/shop/records/collection.ts";
import { parseCollection } from "../../src/shop/records/collection-definition.ts";
import { type FilledRelay, fillEvents } from "./fill.ts";

const [dataDir = ".bench", count = "1", secret = "bench", kind = "running", more = "", unverified = ""] =
  process.argv.slice(2);
const url = kind === "calls" ? more : "";
const rows = kind === "calls" ? 0 : Number(more);
const RAISED = 1_000_000_000;
const FOLLOWERS = 10;

const service = await startService(
  {
    mode: kind === "calls" ? "local" : "server",
    host: "127.0.0.1",
    port: 0,
    dataDir,
    database: readDatabase(),
    baseUrl: null,
    serviceDir: null,
    trustedProxies: [],
    allowPrivate: [],
    concurrency: 32,
    limits: {
      ...DEFAULT_LIMITS,
      relaysPerEnvironment: 1_000,
      verifiedEventsPerMinute: RAISED,
      eventlessCallsPerMinute: RAISED,
      unverifiedCallsPerMinute: unverified === "" ? RAISED : Number(unverified),
    },
    logFormat: "text",
    docsUrl: null,
    backup: null,
    secondFactor: null,
    mailUrl: null,
    masterKey: process.env.RELAY_MASTER_KEY ?? null,
    telemetry: null,
    clock: systemClock,
  },
  { printRun: () => undefined },
);

// `relay serve` collects garbage in the same way.
collectUnderLoad(systemClock);

/** Reads the PostgreSQL database of RELAY_DATABASE; null means the file in the data folder. */
function readDatabase(): DatabaseUrl | null {
  const text = process.env.RELAY_DATABASE ?? "";
  const url = text === "" ? null : readDatabaseUrl(text);
  if (typeof url === "string") throw new Error(`RELAY_DATABASE ${url}`);
  return url;
}

/** The apps that several nodes share: as many as BENCH_APPS says, or one. */
const apps =
  kind === "calls"
    ? ["local"]
    : Array.from({ length: Number(process.env.BENCH_APPS ?? 1) }, (_, at) =>
        at === 0 ? "bench" : `bench-${at}`,
      );
const nowMs = systemClock.now();
for (const app of apps) {
  if ((await service.store.read((tx) => findApp(tx, app))) !== null) continue;
  await service.store.write("app", (tx) =>
    createApp(tx, { id: app, name: app, environments: ["development"], nowMs }),
  );
}
const exists = await service.store.read((tx) => tx.get("SELECT 1 FROM relay LIMIT 1"));
const environments = await service.store.read((tx) =>
  tx.all<{ id: number; name: "development" | "local" }>("SELECT id, name FROM environment ORDER BY id"),
);
for (const { id } of environments) if (exists === null) await seed(id);
const [app = ""] = apps;
const [row] = environments;
if (row === undefined) throw new Error("no environment");
const { token } = await service.store.write("app", (tx) =>
  mintApiKey(tx, { environment: row, kind: "secret", name: "bench", nowMs }),
);
service.refresh();
if (rows > 0) {
  const listed = `SELECT id, name, environment_id AS environmentId, key AS relayKey, name_key AS nameKey
    FROM relay JOIN relay_key ON relay_id = id ORDER BY id`;
  const relays = await service.store.read((tx) => tx.all<FilledRelay>(listed));
  await fillEvents(service.store, relays, { rows, nowMs });
}
console.log(
  JSON.stringify({
    port: service.port,
    paths: apps.flatMap((one) =>
      Array.from({ length: Number(count) }, (_, index) => `/hooks/${one}/orders-${index}`),
    ),
    base: `${service.url}/api/apps/${app}/${row.name}`,
    key: token,
  }),
);
process.on("SIGTERM", () => void service[Symbol.asyncDispose]().then(() => process.exit(0)));

async function seed(environmentId: number): Promise<void> {
  const environment = await service.store.read((tx) => findEnvironmentById(tx, environmentId));
  if (environment === null) throw new Error("no environment");
  await service.store.write("app", async (tx) => {
    const fields = { order: { type: "text" }, amount: { type: "number" } };
    const { definition } = parseCollection({ name: "orders", kind: "shared", fields });
    if (definition !== null) await createCollection(tx, environmentId, definition, nowMs);
  });
  const write = {
    type: "write_record",
    collection: "orders",
    data: { order: "{{mapped.event_id}}", amount: "{{event.amount}}" },
  };
  for (let index = 0; index < Number(count); index++) {
    const context = {
      environment,
      actor: COMMAND_LINE,
      nowMs,
      limits: { relaysPerEnvironment: 1_000 },
      sealer: service.sealer,
      baseUrl: service.baseUrl,
    };
    const definition = {
      name: `orders-${index}`,
      trigger: {
        kind: "receiver",
        verify: { scheme: "signature", header: "x-signature", signedPayload: "{body}", encoding: "hex" },
        map: { event_id: "id", event_type: "type" },
        when: { event_type: kind === "followed" ? "order.lost" : "order.paid" },
      },
      actions: kind === "calls" ? [{ type: "call_url", url }] : [write],
    };
    const followers = Array.from({ length: kind === "followed" ? FOLLOWERS : 0 }, (_, nth) => ({
      ...definition,
      name: `follower-${index}-${nth}`,
      trigger: {
        ...definition.trigger,
        verify: { scheme: "receiver", receiver: definition.name },
        when: { event_type: nth === 0 ? "order.paid" : `order.other-${nth}` },
      },
    }));
    await service.store.write("app", async (tx) => {
      for (const one of [definition, ...followers]) {
        await createRelay(tx, context, {
          definition: one,
          secret: one === definition ? secret : null,
          signingSecret: null,
          origin: { kind: "dashboard", synced: false },
        });
        if (kind === "paused" || kind === "followed") await pauseRelay(tx, context, one.name);
      }
    });
  }
}
