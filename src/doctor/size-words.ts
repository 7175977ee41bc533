/** Sizes and durations as a person reads them. */

const BYTE_UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"] as const;
const MINUTE_MS = 60_000;

/** `512 bytes`, `3.4 MiB`. */
export function writeBytes(bytes: number): string {
  let size = bytes;
  let unit = 0;
  while (size >= 1024 && unit < BYTE_UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? size : size.toFixed(1)} ${BYTE_UNITS[unit]}`;
}

/** `under a minute`, `12 minutes`, `3 hours`, `2 days`: the largest unit, rounded down. */
export function writeDuration(ms: number): string {
  const minutes = Math.floor(ms / MINUTE_MS);
  if (minutes < 1) return "under a minute";
  if (minutes < 60) return count(minutes, "minute");
  if (minutes < 48 * 60) return count(Math.floor(minutes / 60), "hour");
  return count(Math.floor(minutes / (24 * 60)), "day");
}

/** `1 event`, `3 events`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
