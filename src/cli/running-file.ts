/**
 * A note in the data directory that says where the running service answers, so that the commands beside it need no address. Whether it
 * still runs is not in it: the process that wrote it may be gone, and then the address answers nothing.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const FILE_NAME = "running.json";

/** Notes the public origin; the answer removes the note. A disk that takes neither leaves the commands without an address, and nothing else. */
export function noteRunningUrl(dataDir: string, url: string): () => void {
  const file = join(dataDir, FILE_NAME);
  const quietly = (work: () => void): void => {
    try {
      work();
    } catch {}
  };
  quietly(() => writeFileSync(file, `${JSON.stringify({ url })}\n`));
  return () => quietly(() => rmSync(file, { force: true }));
}

/** The origin that was noted last, or null. */
export function readRunningUrl(dataDir: string): string | null {
  try {
    const note: unknown = JSON.parse(readFileSync(join(dataDir, FILE_NAME), "utf8"));
    const url = (note as { url?: unknown } | null)?.url;
    return typeof url === "string" ? url : null;
  } catch {
    return null;
  }
}
