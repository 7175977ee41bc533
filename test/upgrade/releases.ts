/** The releases whose databases the upgrade tests open, with the commit of each in the history of this project. */

export interface Release {
  version: string;
  commit: string;
}

export const RELEASES: readonly Release[] = [
  { version: "0.9.0", commit: "66303242" },
  { version: "0.10.0", commit: "92f0457c" },
  { version: "0.11.0", commit: "34c1492b" },
  { version: "0.12.0", commit: "2e5df2d0" },
  { version: "0.13.0", commit: "a4634824" },
  { version: "0.14.0", commit: "724099cc" },
  { version: "0.15.0", commit: "affb5ca6" },
  { version: "0.16.0", commit: "7d38f411" },
  { version: "0.17.0", commit: "79a0e2cd" },
];

/** A commit after 0.17.0 that edited the released migration 49 and added migration 50. Databases that it made exist too. */
export const AFTER_0_17: Release = { version: "after-0.17.0", commit: "315a0b60" };
