/** Reads SQLite's write-ahead log. Format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log. */
import { readFileSync } from "node:fs";

/** Lists the number of pages of each commit in a write-ahead log. */
export function listCommits(file: string): number[] {
  const log = readFileSync(file);
  const [header, head] = [32, 24];
  const frame = head + log.readUInt32BE(8);
  const salt = log.subarray(16, 24);
  const commits: number[] = [];
  let pages = 0;
  for (let at = header; at + frame <= log.length; at += frame) {
    // The remaining frames are from before the log restarted.
    if (!log.subarray(at + 8, at + 16).equals(salt)) break;
    pages += 1;
    if (log.readUInt32BE(at + 4) === 0) continue;
    commits.push(pages);
    pages = 0;
  }
  return commits;
}
