/** Every measure of the bench, in the order in which a full run takes them. */
import { call } from "./measure/call.ts";
import { dashboard } from "./measure/dashboard.ts";
import { distance } from "./measure/distance.ts";
import { followers } from "./measure/followers.ts";
import { growth } from "./measure/growth.ts";
import { hang } from "./measure/hang.ts";
import { ingest } from "./measure/ingest.ts";
import { lag } from "./measure/lag.ts";
import { latency } from "./measure/latency.ts";
import { lone } from "./measure/lone.ts";
import { payload } from "./measure/payload.ts";
import { plan } from "./measure/plan.ts";
import { postgresIngest } from "./measure/postgres-ingest.ts";
import { postgresRun } from "./measure/postgres-run.ts";
import { refused } from "./measure/refused.ts";
import { relays } from "./measure/relays.ts";
import { run } from "./measure/run.ts";
import { scale } from "./measure/scale.ts";
import { screens } from "./measure/screens.ts";
import { secret } from "./measure/secret.ts";
import { start } from "./measure/start.ts";
import { startTime } from "./measure/start-time.ts";
import { sustained } from "./measure/sustained.ts";
import { text } from "./measure/text.ts";
import { warmUp } from "./measure/warm-up.ts";
import type { Measure } from "./measure.ts";

export const MEASURES: readonly Measure[] = [
  ingest,
  followers,
  relays,
  run,
  sustained,
  warmUp,
  latency,
  call,
  lone,
  refused,
  growth,
  start,
  plan,
  startTime,
  lag,
  dashboard,
  screens,
  payload,
  text,
  secret,
  postgresIngest,
  postgresRun,
  scale,
  distance,
  hang,
];
