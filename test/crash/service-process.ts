/**
 * A whole service in a process of its own, to be killed: `bun test/crash/service-process.ts <data folder> <sink url>`. Prints
 * `{ port }` when it listens. It runs in local mode, where call_url may reach the loopback sink.
 */
import { COMMAND_LINE } from "../../src/account/actor.ts";
import { requireEnvironment } from "../../src/account/environment.ts";
import type { ServiceConfig } from "../../src/config.ts";
import { systemClock } from "../../src/ground/clock.ts";
import { DEFAULT_LIMITS } from "../../src/ground/limit.ts";
import { putAccessSlug } from "../../src/people/access-slug.ts";
import { createCollection } from "../../src/records/collection.ts";
import { requireCollectionDefinition } from "../../src/records/collection-definition.ts";
import { createRelay } from "../../src/relay/relay-save.ts";
import { saveProduct } from "../../src/selling/product.ts";
import { LOCAL_APP, type Service, startService } from "../../src/service.ts";
import { CRASH_SECRET, crashRelays } from "./crash-relay.ts";

const [dataDir = "", sinkUrl = ""] = process.argv.slice(2);
const UNCAPPED = 1_000_000_000;

const config: ServiceConfig = {
  mode: "local",
  host: "127.0.0.1",
  port: 0,
  dataDir,
  baseUrl: null,
  serviceDir: null,
  trustedProxies: [],
  allowPrivate: [],
  concurrency: 32,
  limits: {
    ...DEFAULT_LIMITS,
    verifiedEventsPerMinute: UNCAPPED,
    unverifiedCallsPerMinute: UNCAPPED,
    invitesPerDay: UNCAPPED,
  },
  logFormat: "text",
  docsUrl: null,
  backup: null,
  masterKey: null,
  clock: systemClock,
};
const service = await startService(config, { printRun: () => undefined });
await seed(service);
console.log(JSON.stringify({ port: service.port }));
process.on("SIGTERM", () => void service[Symbol.asyncDispose]().then(() => process.exit(0)));

/** Makes what the relays act on; all of it in one transaction, so that a kill leaves all or nothing. */
async function seed({ store, sealer, baseUrl, refresh }: Service): Promise<void> {
  await store.write("app", async (tx) => {
    if ((await tx.get("SELECT 1 FROM relay")) !== null) return;
    const environment = await requireEnvironment(tx, LOCAL_APP, "local");
    const at = { environmentId: environment.id, nowMs: systemClock.now(), by: "command line" };
    const orders = requireCollectionDefinition({
      name: "orders",
      kind: "shared",
      fields: { order: "text", step: "text" },
    });
    await createCollection(tx, environment.id, orders, at.nowMs);
    await putAccessSlug(tx, environment.id, { slug: "pro", title: "Pro" }, at.nowMs);
    const limits = DEFAULT_LIMITS;
    const context = { environment, actor: COMMAND_LINE, nowMs: at.nowMs, limits, sealer, baseUrl };
    for (const definition of crashRelays(sinkUrl)) {
      await createRelay(tx, context, {
        definition,
        secret: CRASH_SECRET,
        signingSecret: null,
        origin: { kind: "file", synced: false },
      });
      if (definition.name === "sales") {
        const soldThrough = { kind: "relay", relay: "sales" } as const;
        await saveProduct(tx, at, "pack", { title: "Pack", credits: 10, soldThrough });
      }
    }
  });
  refresh();
}
