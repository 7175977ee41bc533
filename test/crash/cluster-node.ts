/**
 * A node of a cluster in a process of its own, to be killed and stopped: `bun test/crash/cluster-node.ts <data folder> <database URL> <ms ahead> <sink URL>`.
 * Prints `{ port }` when it listens. It runs as a server, whose calls go to the sink on loopback whatever their address.
 */
import { systemClock } from "../../src/ground/clock.ts";
import { readDatabaseUrl } from "../../src/ground/database-url.ts";
import { DEFAULT_LIMITS } from "../../src/ground/limit.ts";
import type { OutboundCaller } from "../../src/outbound/caller.ts";
import { startService } from "../../src/service.ts";

const [dataDir = "", url = "", aheadMs = "0", sinkUrl = ""] = process.argv.slice(2);
const database = readDatabaseUrl(url);
if (typeof database === "string") throw new Error(database);
const UNCAPPED = 1_000_000_000;
const caller: OutboundCaller = {
  async call({ body }) {
    const answer = await fetch(sinkUrl, { method: "POST", body });
    // Many are on their way when the node dies.
    await Bun.sleep(Math.random() * 300);
    return { kind: "answered", ok: answer.ok, status: answer.status, body: await answer.text() };
  },
};
const service = await startService(
  {
    mode: "server",
    host: "127.0.0.1",
    port: 0,
    dataDir,
    database,
    baseUrl: null,
    serviceDir: null,
    trustedProxies: [],
    allowPrivate: [],
    concurrency: 32,
    limits: { ...DEFAULT_LIMITS, verifiedEventsPerMinute: UNCAPPED, eventlessCallsPerMinute: UNCAPPED, unverifiedCallsPerMinute: UNCAPPED },
    logFormat: "text",
    docsUrl: null,
    backup: null,
    masterKey: "5a".repeat(32),
    clock: { ...systemClock, now: () => systemClock.now() + Number(aheadMs) },
  },
  { caller, printRun: () => undefined },
);
console.log(JSON.stringify({ port: service.port }));
process.on("SIGTERM", () => void service[Symbol.asyncDispose]().then(() => process.exit(0)));
