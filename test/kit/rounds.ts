/**
 * How often a randomized property is tried. `npm test` tries a slice; `npm run test:soak` (TEST_SOAK=1) tries the large number, in the files that
 * call this and in test/soak.
 */
export const IS_SOAK = process.env.TEST_SOAK === "1";

/** The number of rounds for this run: `slice` in `npm test`, `soak` in `npm run test:soak`. */
export function rounds({ slice, soak }: { slice: number; soak: number }): number {
  return IS_SOAK ? soak : slice;
}
