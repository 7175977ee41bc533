/**
 * Loaded before every test file: the property tests draw the same cases in every run, so that a red run can be repeated. `RELAY_FUZZ_SEED=random`
 * draws new ones, another number draws those; the flags of each file raise how many.
 */
import fc from "fast-check";

const wanted = process.env.RELAY_FUZZ_SEED;
if (wanted !== "random") fc.configureGlobal({ seed: Number(wanted ?? 20_261_121) });
