/**
 * Runs before every test file. The property tests draw the same cases in every run, so a failed run can be repeated. `RELAY_FUZZ_SEED=random` draws
 * new cases, and a number draws the cases of that seed. The flags of each file raise the number of cases.
 */
import fc from "fast-check";

const wanted = process.env.RELAY_FUZZ_SEED;
if (wanted !== "random") fc.configureGlobal({ seed: Number(wanted ?? 20_261_121) });
