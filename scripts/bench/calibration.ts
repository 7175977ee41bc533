/**
 * Measures how slow this machine is at the moment, so that a bar in milliseconds means the same on every machine. It times a fixed piece of work
 * in the measured process, in the same run. Machines differ, and other processes slow the caches and the clock rate of one machine.
 */
/**
 * Milliseconds that the fixed work takes where the bars were set: a processor of a rented two-core machine (AMD EPYC) without other work, Bun
 * 1.4.5. A machine of that speed has a slowness of 1.
 */
const REFERENCE_MS = 25;

const DOCUMENT = JSON.stringify({
  items: Array.from({ length: 400 }, (_, at) => ({
    ...{ id: `item_${at}`, amount: at, tags: ["a", "b"], note: "x".repeat(60) },
  })),
});
const BYTES = new Uint8Array(1024 * 1024);
/** Repeats of parsing, writing and hashing that take the reference's milliseconds. */
const REPEATS = 15;
const PARSED_A_REPEAT = 8;
const WARM_UP_ROUNDS = 4;
/** Number of rounds that are added, because some systems count a thread's CPU time in steps of 4 ms. */
const ROUNDS = 4;

interface Took {
  /** This thread's CPU time. */
  cpuMs: number;
  wallMs: number;
}

/** Slowness by this thread's CPU time and by the wall clock. It is at least 1, so a faster machine gets the unscaled bar. */
interface Slowness {
  cpu: number;
  wall: number;
}

/** Measures the slowness now. It takes a tenth of a second on the reference machine. */
export function readSlowness(): Slowness {
  warmUp();
  const took = Array.from({ length: ROUNDS }, timeFixedWork);
  const of = (ms: readonly number[]): number =>
    Math.max(1, ms.reduce((sum, one) => sum + one, 0) / ROUNDS / REFERENCE_MS);
  return { cpu: of(took.map(({ cpuMs }) => cpuMs)), wall: of(took.map(({ wallMs }) => wallMs)) };
}

let isWarm = false;

/** Runs the work until the runtime has compiled it, because only compiled code is timed. */
function warmUp(): void {
  for (let round = 0; !isWarm && round < WARM_UP_ROUNDS; round++) timeFixedWork();
  isWarm = true;
}

function timeFixedWork(): Took {
  const [wall, cpu] = [performance.now(), threadCpuMs()];
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    for (let time = 0; time < PARSED_A_REPEAT; time++) JSON.stringify(JSON.parse(DOCUMENT));
    new Bun.CryptoHasher("sha256").update(BYTES).digest();
  }
  return { cpuMs: threadCpuMs() - cpu, wallMs: performance.now() - wall };
}

/** Returns the CPU time of this thread since it started. */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
