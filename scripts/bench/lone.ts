/** What one event that comes alone writes: pages of the log in its commit. */
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Figure, median } from "./figure.ts";
import { type ProductReady, SECRET, scratch, start } from "./process.ts";

const EVENTS = 40;
/** So far apart that none shares another's commit. */
const APART_MS = 50;
const MOST_PAGES = 5;

export async function measureLone(): Promise<Figure[]> {
  using folder = scratch();
  await using server = await start<ProductReady>("product.ts", folder.path, "4", SECRET, "paused");
  const { port, paths } = server.ready;
  for (let index = 0; index < EVENTS; index++) {
    const note = "x".repeat(290);
    const body = JSON.stringify({ id: crypto.randomUUID(), type: "order.paid", amount: 4200, note });
    const signature = createHmac("sha256", SECRET).update(body).digest("hex");
    const headers = { "content-type": "application/json", "x-signature": signature };
    await fetch(`http://127.0.0.1:${port}${paths[index % paths.length]}`, { method: "POST", headers, body });
    await Bun.sleep(APART_MS);
  }
  const pages = median(listCommits(join(folder.path, "relay.db-wal")).slice(-EVENTS));
  return [
    {
      name: "a lone event, pages written",
      value: String(pages),
      goal: `≤ ${MOST_PAGES}`,
      met: pages <= MOST_PAGES,
    },
  ];
}

/** Pages of each commit in a write-ahead log, in the order of https://www.sqlite.org/fileformat2.html#the_write_ahead_log. */
function listCommits(file: string): number[] {
  const log = readFileSync(file);
  const [header, head] = [32, 24];
  const frame = head + log.readUInt32BE(8);
  const salt = log.subarray(16, 24);
  const commits: number[] = [];
  let pages = 0;
  for (let at = header; at + frame <= log.length; at += frame) {
    // Frames of before the log was begun anew.
    if (!log.subarray(at + 8, at + 16).equals(salt)) break;
    pages += 1;
    if (log.readUInt32BE(at + 4) === 0) continue;
    commits.push(pages);
    pages = 0;
  }
  return commits;
}
