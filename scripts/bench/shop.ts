/** A service with a full shop's store in its own process, which reports what its main thread did. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Run } from "./measure.ts";
import { type MeasuredService, startMeasured } from "./measured-service.ts";
import type { ShopReady } from "./shop-service.ts";

export interface Shop extends MeasuredService<ShopReady> {
  /** Requests a path below the environment, or a full path that begins with `/api`. */
  ask(path: string): Promise<{ status: number; text: string; ms: number }>;
}

/** Fills the run's shop with events, unless an earlier measure did, and starts a service on it. */
export async function openShop({ stores, rows }: Pick<Run, "stores" | "rows">): Promise<Shop> {
  const folder = join(stores, `shop-${rows}`);
  mkdirSync(folder, { recursive: true });
  console.error(`  filling a shop's store with ${rows} events`);
  const service = await startMeasured<ShopReady>("shop-service.ts", folder, String(rows));
  const { url, session, key } = service.ready;
  return {
    ...service,
    async ask(path) {
      const isWhole = path.startsWith("/api/");
      const begun = performance.now();
      const answer = await fetch(isWhole ? url + path : `${url}/api/apps/shop/production${path}`, {
        headers: isWhole ? { cookie: `relay_session=${session}` } : { authorization: `Bearer ${key}` },
      });
      const text = await answer.text();
      return { status: answer.status, text, ms: performance.now() - begun };
    },
  };
}

/** Returns the id of the newest dead event of the shop, for the page of an event. */
export async function findDeadEvent(shop: Shop): Promise<string> {
  const { items } = JSON.parse((await shop.ask("/events?state=dead&limit=1")).text) as {
    items: { id: string }[];
  };
  const [event] = items;
  if (event === undefined) throw new Error("The shop has no dead event.");
  return event.id;
}
