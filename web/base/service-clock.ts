/**
 * The service's clock, which all shown times use. It is this machine's clock, corrected by responses if it is far off.
 * "The last hour" and "just now" then mean the service's time.
 */

/** Largest normal difference of the two clocks: network delay, whole seconds and drift. */
const KEPT_MS = 30_000;

let aheadMs = 0;

/** Returns milliseconds since the epoch. */
export function serviceNow(): number {
  return Date.now() + aheadMs;
}

/** Reads the time of a response (its `Date` header). `askedAt` is the time of the request by this machine's clock. */
export function hearTime(date: string | null, askedAt: number): void {
  const saidAt = Date.parse(date ?? "");
  const heardAt = Date.now();
  if (Number.isNaN(saidAt)) return;
  // A delayed response, for example after the laptop slept, has a date between the request and its arrival.
  const isKept = saidAt > askedAt - KEPT_MS && saidAt < heardAt + KEPT_MS;
  aheadMs = isKept ? 0 : saidAt - heardAt;
}
