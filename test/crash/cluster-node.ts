/**
 * A node of a cluster in a separate process that a test kills and stops: `bun test/crash/cluster-node.ts <data folder> <database URL> <ms ahead>
 * <sink URL>`. It prints `{ port }` when it listens. It runs as a server, and all its calls go to the sink on loopback, with any URL.
 */
import { systemClock } from "../../src/base/clock.ts";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import type { OutboundCaller } from "../../src/platform/outbound/caller.ts";
import { serveNode } from "../kit/node.ts";

const [dataDir = "", databaseUrl = "", aheadMs = "0", sinkUrl = ""] = process.argv.slice(2);
const UNCAPPED = 1_000_000_000;
const caller: OutboundCaller = {
  async call({ body }) {
    const answer = await fetch(sinkUrl, { method: "POST", body });
    // The delay makes many calls pending when the node is killed.
    await Bun.sleep(Math.random() * 300);
    return { kind: "answered", ok: answer.ok, status: answer.status, body: await answer.text() };
  },
};
const limits = { ...DEFAULT_LIMITS, verifiedEventsPerMinute: UNCAPPED, eventlessCallsPerMinute: UNCAPPED, unverifiedCallsPerMinute: UNCAPPED };
const clock = { ...systemClock, now: () => systemClock.now() + Number(aheadMs) };
const service = await serveNode({ dataDir, databaseUrl, config: { limits, clock } }, { caller, printRun: () => undefined });
console.log(JSON.stringify({ port: service.port }));
process.on("SIGTERM", () => void service[Symbol.asyncDispose]().then(() => process.exit(0)));
