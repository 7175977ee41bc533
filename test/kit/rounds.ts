/**
 * Chooses how often a randomized property runs. `npm test` runs a slice, `npm run test:soak` (TEST_SOAK=1) more, and `npm run test:soak -- --long`
 * (TEST_SOAK=long) as many rounds as take an hour.
 */
const SOAK = process.env.TEST_SOAK ?? "";
export const IS_SOAK = SOAK !== "";

/** Returns the number of rounds for this run. `long` defaults to `soak`. */
export function rounds({ slice, soak, long = soak }: { slice: number; soak: number; long?: number }): number {
  if (!IS_SOAK) return slice;
  return SOAK === "long" ? long : soak;
}
