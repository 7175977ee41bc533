/**
 * Lists the releases of the change feed, newest first. Each is a file of changes/, which never changes once it is released. The file of the
 * release in work is added here by the commit that releases it.
 */
import v0_1_0 from "../../../changes/0.1.0.json" with { type: "json" };
import v0_2_0 from "../../../changes/0.2.0.json" with { type: "json" };
import v0_3_0 from "../../../changes/0.3.0.json" with { type: "json" };
import v0_4_0 from "../../../changes/0.4.0.json" with { type: "json" };
import v0_5_0 from "../../../changes/0.5.0.json" with { type: "json" };
import v0_6_0 from "../../../changes/0.6.0.json" with { type: "json" };
import v0_7_0 from "../../../changes/0.7.0.json" with { type: "json" };
import v0_8_0 from "../../../changes/0.8.0.json" with { type: "json" };
import v0_9_0 from "../../../changes/0.9.0.json" with { type: "json" };
import v0_10_0 from "../../../changes/0.10.0.json" with { type: "json" };
import v0_11_0 from "../../../changes/0.11.0.json" with { type: "json" };
import v0_12_0 from "../../../changes/0.12.0.json" with { type: "json" };
import v0_13_0 from "../../../changes/0.13.0.json" with { type: "json" };
import v0_14_0 from "../../../changes/0.14.0.json" with { type: "json" };
import v0_15_0 from "../../../changes/0.15.0.json" with { type: "json" };
import v0_16_0 from "../../../changes/0.16.0.json" with { type: "json" };
import v0_17_0 from "../../../changes/0.17.0.json" with { type: "json" };
import type { Release } from "./release.ts";

/** TypeScript reads `kind` in a JSON file as any text. A test checks the files against the shape. */
export const RELEASES = [
  v0_17_0,
  v0_16_0,
  v0_15_0,
  v0_14_0,
  v0_13_0,
  v0_12_0,
  v0_11_0,
  v0_10_0,
  v0_9_0,
  v0_8_0,
  v0_7_0,
  v0_6_0,
  v0_5_0,
  v0_4_0,
  v0_3_0,
  v0_2_0,
  v0_1_0,
] as readonly [Release, ...Release[]];
