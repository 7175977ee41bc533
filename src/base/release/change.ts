/** The change feed: what changed in each release, newest first, one file each. What was released is never edited. */

import type { Release } from "./release.ts";
import { RELEASE_0_1 } from "./release-0-1.ts";
import { RELEASE_0_2 } from "./release-0-2.ts";
import { RELEASE_0_3 } from "./release-0-3.ts";
import { RELEASE_0_4 } from "./release-0-4.ts";
import { RELEASE_0_5 } from "./release-0-5.ts";
import { RELEASE_0_6 } from "./release-0-6.ts";
import { RELEASE_0_7 } from "./release-0-7.ts";
import { RELEASE_0_8 } from "./release-0-8.ts";
import { RELEASE_0_9 } from "./release-0-9.ts";
import { RELEASE_0_10 } from "./release-0-10.ts";
import { RELEASE_0_11 } from "./release-0-11.ts";
import { RELEASE_0_12 } from "./release-0-12.ts";
import { RELEASE_0_13 } from "./release-0-13.ts";
import { RELEASE_0_14 } from "./release-0-14.ts";
import { RELEASE_0_15 } from "./release-0-15.ts";
import { RELEASE_0_16 } from "./release-0-16.ts";
import { RELEASE_0_17 } from "./release-0-17.ts";

export const RELEASES: readonly [Release, ...Release[]] = [
  RELEASE_0_17,
  RELEASE_0_16,
  RELEASE_0_15,
  RELEASE_0_14,
  RELEASE_0_13,
  RELEASE_0_12,
  RELEASE_0_11,
  RELEASE_0_10,
  RELEASE_0_9,
  RELEASE_0_8,
  RELEASE_0_7,
  RELEASE_0_6,
  RELEASE_0_5,
  RELEASE_0_4,
  RELEASE_0_3,
  RELEASE_0_2,
  RELEASE_0_1,
];

/** The version of this service: the newest release's. */
export const VERSION: string = RELEASES[0].version;
