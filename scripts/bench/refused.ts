/**
 * What a flood of refused calls costs: how many a second are refused of 10,000 that are sent, the server's CPU for one, and how an accepted call fares
 * beside it, at ten a second, as on the same server at rest.
 */
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { DEFAULT_LIMITS } from "../../src/ground/limit.ts";
import type { Figure } from "./figure.ts";
import { type ProductReady, SECRET, scratch, start } from "./process.ts";

const RATE = 10_000;
const ACCEPTED_EVERY_MS = 100;

interface Flood {
  sent: number;
  statuses: Record<string, number>;
  seconds: number;
}

/** Milliseconds that an accepted call takes, again and again until `ended`. */
async function accept({ port, paths: [path] }: ProductReady, ended: Promise<unknown>): Promise<number[]> {
  const took: number[] = [];
  let going = true;
  void ended.then(() => {
    going = false;
  });
  while (going) {
    const body = JSON.stringify({ id: crypto.randomUUID(), type: "order.paid", amount: 4200 });
    const signature = createHmac("sha256", SECRET).update(body).digest("hex");
    const headers = { "content-type": "application/json", "x-signature": signature };
    const begun = performance.now();
    const { status } = await fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", headers, body });
    if (status !== 200) throw new Error(`A good call was answered ${status}.`);
    took.push(performance.now() - begun);
    await Bun.sleep(ACCEPTED_EVERY_MS);
  }
  return took.sort((one, other) => one - other);
}

async function flood({ port }: ProductReady, path: string, seconds: number): Promise<Flood> {
  const options = [
    "--port",
    String(port),
    "--path",
    path,
    "--rate",
    String(RATE),
    "--seconds",
    String(seconds),
  ];
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "flood.ts"), ...options], {
    stdout: "pipe",
    stderr: "inherit",
  });
  return JSON.parse(await new Response(child.stdout).text()) as Flood;
}

export async function measureRefused(seconds: number): Promise<Figure[]> {
  const figures: Figure[] = [];
  const ofRelay = ({ paths: [path = ""] }: ProductReady): string => path;
  for (const [name, pathOf, unverified] of [
    ["wrong signature", ofRelay, ""],
    ["over the address's cap", ofRelay, String(DEFAULT_LIMITS.unverifiedCallsPerMinute)],
    ["no such receiver", () => "/hooks/bench/ordres-0", ""],
  ] as const) {
    using folder = scratch();
    const args = [folder.path, "1", SECRET, "running", "", unverified];
    await using product = await start<ProductReady>("product.ts", ...args);
    const { ready } = product;
    await flood(ready, pathOf(ready), 1);
    const idle = await accept(ready, Bun.sleep(seconds * 1000));
    const before = await product.cpuMs();
    const sending = flood(ready, pathOf(ready), seconds);
    const beside = await accept(ready, sending);
    const { statuses, seconds: took } = await sending;
    const refused = Object.entries(statuses).reduce(
      (sum, [status, count]) => sum + (status === "200" ? 0 : count),
      0,
    );
    const cpuUs = Math.round((((await product.cpuMs()) - before) * 1000) / refused);
    const ms = (list: readonly number[], share: number) =>
      (list[Math.floor(list.length * share)] ?? 0).toFixed(1);
    figures.push({
      name: `refused a second, ${name}`,
      value: `${Math.round(refused / took)}/s`,
      limit: `sent: ${RATE}/s`,
      cpu: `${cpuUs}`,
    });
    figures.push({
      name: `an accepted call beside it, p50 and p99`,
      value: `${ms(beside, 0.5)} and ${ms(beside, 0.99)} ms`,
      limit: `at rest: ${ms(idle, 0.5)} and ${ms(idle, 0.99)} ms`,
    });
  }
  return figures;
}
