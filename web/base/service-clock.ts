/**
 * The service's time, by which everything that is shown happened: this machine's own, set right by the answers where it is far off, so that the
 * last hour is the service's last hour and what happened just now is told so.
 */

/** As much as the way of an answer, its whole seconds and two clocks that are kept may differ. */
const KEPT_MS = 30_000;

let aheadMs = 0;

/** Milliseconds since the epoch. */
export function serviceNow(): number {
  return Date.now() + aheadMs;
}

/** Takes the time of an answer (its `Date` header) that was asked for at `askedAt` by this machine's clock. */
export function hearTime(date: string | null, askedAt: number): void {
  const saidAt = Date.parse(date ?? "");
  const heardAt = Date.now();
  if (Number.isNaN(saidAt)) return;
  // An answer that waited, as for a laptop that slept, was written in between.
  const isKept = saidAt > askedAt - KEPT_MS && saidAt < heardAt + KEPT_MS;
  aheadMs = isKept ? 0 : saidAt - heardAt;
}
