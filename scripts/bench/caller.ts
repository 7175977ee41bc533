/**
 * Posts notices one after another, or in rounds of several at once as the runner does, to a URL of this machine. It prints the µs of CPU of all
 * threads for each call after the warm-up. `product` is the service's outbound client with its rules. `bare` is a keep-alive client that only
 * signs and posts.
 *
 * bun scripts/bench/caller.ts <product|bare> <url> <calls> <calls to warm up> [<calls at once>]
 */
import { systemClock } from "../../src/base/clock.ts";
import { createCaller } from "../../src/platform/outbound/caller.ts";
import { signNotice } from "../../src/platform/outbound/notice-signature.ts";

const [kind = "product", url = "", count = "2000", warmUp = "1000", atOnce = "1"] = process.argv.slice(2);
const signingSecret = "sgn_bench";
const body = JSON.stringify({ id: "evt_bench", event: { note: "x".repeat(600) } });
const caller = createCaller({
  concurrency: 32,
  ownHosts: () => ["relay.example"],
  allowPrivate: [],
  clock: systemClock,
});

async function callProduct(): Promise<boolean> {
  const outcome = await caller.call({ url, body, signingSecret, local: true });
  return outcome.kind === "answered" && outcome.ok && outcome.body === "ok";
}

async function callBare(): Promise<boolean> {
  const headers = {
    "content-type": "application/json",
    "x-service-signature": signNotice(signingSecret, body, Date.now()),
  };
  const response = await fetch(url, { method: "POST", headers, body });
  return (await response.text()) === "ok" && response.ok;
}

async function repeat(calls: number): Promise<void> {
  const call = kind === "product" ? callProduct : callBare;
  for (let index = 0; index < calls; index += Number(atOnce)) {
    const round = await Promise.all(Array.from({ length: Number(atOnce) }, call));
    if (round.includes(false)) throw new Error(`${url} did not answer ok`);
  }
}

await repeat(Number(warmUp));
const begun = process.cpuUsage();
await repeat(Number(count));
const { user, system } = process.cpuUsage(begun);
console.log(Math.round((user + system) / Number(count)));
process.exit(0);
