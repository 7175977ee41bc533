/**
 * Runs a service on a store as full as years of use make it. It prints one JSON line, then answers as loop-watch.ts describes.
 *
 * bun scripts/bench/lag-service.ts <data folder> <share of the rows>
 */
import { systemClock } from "../../src/base/clock.ts";
import { startFilledService } from "../../test/kit/filled-service.ts";
import { answerMeasures } from "./loop-watch.ts";

const [dataDir = ".bench-lag", share = "1"] = process.argv.slice(2);
const { service, access } = await startFilledService(dataDir, { clock: systemClock, share: Number(share) });
await answerMeasures(access);
await service[Symbol.asyncDispose]();
process.exit(0);
