/**
 * Defines `latest.json`, a file of each release that names its version. `relay upgrade --check` reads the newest one at
 * `<releases>/latest/download/latest.json`.
 */
import { parseIso, toIso } from "./clock.ts";

/** The name of the file, in the folder of a release and at its address. */
export const LATEST_FILE = "latest.json";

export interface LatestRelease {
  /** `major.minor.patch`. */
  version: string;
  releasedAt: string;
}

const VERSION = /^\d{1,6}\.\d{1,6}\.\d{1,6}$/;

/** Reads the file. Returns null for a text that is not one. A later version may add fields. */
export function readLatest(text: string): LatestRelease | null {
  try {
    const { version, releasedAt }: Partial<Record<keyof LatestRelease, unknown>> = JSON.parse(text) ?? {};
    if (typeof version !== "string" || !VERSION.test(version)) return null;
    const atMs = typeof releasedAt === "string" ? parseIso(releasedAt) : null;
    return atMs === null ? null : { version, releasedAt: toIso(atMs) };
  } catch {
    return null;
  }
}

/** Writes the file. Throws for a version that `readLatest` refuses, such as a test release. */
export function writeLatest(release: LatestRelease): string {
  const text = `${JSON.stringify(release, null, 2)}\n`;
  if (readLatest(text) === null)
    throw new Error(
      `${LATEST_FILE}: the version ${release.version} or the time ${release.releasedAt} has another form.`,
    );
  return text;
}
