/** Writes `latest.json`, which names the version of the release for `relay upgrade --check`. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { LATEST_FILE, writeLatest } from "../../src/base/latest-release.ts";
import type { Release } from "./release.ts";

export function writeLatestFile({ out, version, time }: Release): string[] {
  const file = join(out, LATEST_FILE);
  writeFileSync(file, writeLatest({ version, releasedAt: time.toISOString() }));
  return [file];
}
