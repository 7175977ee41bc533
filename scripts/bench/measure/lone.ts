/** Measures how many pages of the write-ahead log the commit of one event takes when no other event shares it. */
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { compareCount, median } from "../figure.ts";
import { listCommits } from "../log-commits.ts";
import type { Measure } from "../measure.ts";
import { type ProductReady, SECRET, scratch, start } from "../process.ts";

const EVENTS = 40;
/** Milliseconds between two events, so that no two share a commit. */
const APART_MS = 50;
const MOST_PAGES = 5;

export const lone: Measure = {
  name: "lone",
  what: "pages that SQLite writes for one event that arrives by itself",
  pinned: true,
  async measure({ tiny }) {
    const events = tiny ? 5 : EVENTS;
    using folder = scratch();
    await using server = await start<ProductReady>("product.ts", folder.path, "4", SECRET, "paused");
    const { port, paths } = server.ready;
    for (let index = 0; index < events; index++) {
      const note = "x".repeat(290);
      const body = JSON.stringify({ id: crypto.randomUUID(), type: "order.paid", amount: 4200, note });
      const signature = createHmac("sha256", SECRET).update(body).digest("hex");
      const headers = { "content-type": "application/json", "x-signature": signature };
      const url = `http://127.0.0.1:${port}${paths[index % paths.length]}`;
      await fetch(url, { method: "POST", headers, body });
      await Bun.sleep(APART_MS);
    }
    const pages = median(listCommits(join(folder.path, "relay.db-wal")).slice(-events));
    return [compareCount("pages written for one event by itself", pages, MOST_PAGES)];
  },
};
