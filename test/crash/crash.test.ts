/**
 * SIGKILL under load with every kind of action, emails to a real server, a lock file that is removed at random, and second servers next to the first.
 * At the end everything is replayed. The default is some dozens of kills. `RELAY_CRASH_KILLS=1000 bun test test/crash` runs the long loop.
 * `RELAY_CRASH_POWER=1` (Linux, root) adds power cuts, half of them with torn writes. `RELAY_CRASH_SEED` repeats one.
 */
import { expect, test } from "bun:test";
import { makeAuthority } from "../kit/certificate.ts";
import { startMailServer } from "../kit/mail-server.ts";
import { PATIENCE_MS, TEST_MS } from "../kit/patience.ts";
import { makeRandom } from "../kit/random.ts";
import { rounds } from "../kit/rounds.ts";
import { runCrashLoop } from "./crash-loop.ts";

const kills = Number(process.env.RELAY_CRASH_KILLS ?? rounds({ slice: 3, soak: 15, long: 40 }));
const power = process.env.RELAY_CRASH_POWER !== undefined;
const seed = Number(process.env.RELAY_CRASH_SEED ?? Date.now() % 1_000_000);

const random = makeRandom(seed);
/** The delays make many emails pending when the process is killed. */
const mailHooks: { onText: () => void } = { onText: () => undefined };
const mailServer = await startMailServer({
  authority: makeAuthority("Nobody"),
  security: "none",
  onRecipient: () => Bun.sleep(random() * 10),
  onText: () => {
    mailHooks.onText();
    return Bun.sleep(random() * 30);
  },
});

test(
  `the service loses no acknowledged event, leaves none stuck, applies no effect twice and leaves no email silently unsent over ${kills} kills (seed ${seed})`,
  async () => {
    const report = await runCrashLoop(kills, power, random, mailServer, mailHooks);
    // A long loop prints its figures.
    if (process.env.RELAY_CRASH_KILLS !== undefined) console.log({ ...report, broken: report.broken.length });
    expect(report.broken).toEqual([]);
    expect(report.acknowledged).toBeGreaterThan(0);
  },
  { timeout: TEST_MS + kills * PATIENCE_MS },
);
