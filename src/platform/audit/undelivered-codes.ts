/**
 * The problem `codes_unmailed`: sign-in codes cannot be mailed, so people who are not signed in stay out, and only they notice. It raises one
 * alert and is cleared by the next account mail that is sent.
 */
import type { FencedStore, Writer } from "../../store/port.ts";
import { raiseAlert } from "./alert.ts";
import { clearProblem, hasProblem, raiseProblem } from "./problem.ts";

const UNMAILED_CODES = "codes_unmailed";
const TARGET = "signin:codes";

/** Raises the problem. `why` is a sentence with its remedy. An unchanged message is not written again. */
export async function recordUndeliveredCodes(
  store: Pick<FencedStore, "read" | "write">,
  environmentId: number,
  { why, nowMs }: { why: string; nowMs: number },
): Promise<void> {
  const message = `Sign-in codes cannot be mailed, so new people cannot sign in: ${why}`;
  const report = { environmentId, code: UNMAILED_CODES, target: TARGET, message, nowMs } as const;
  if (await store.read((tx) => hasProblem(tx, report, message))) return;
  await store.write(
    "app",
    async (tx) => {
      if (await raiseProblem(tx, report)) await raiseAlert(tx, report);
    },
    environmentId,
  );
}

/** Clears the problem after a code, or another mail of kind account, was sent. */
export async function clearUndeliveredCodes(tx: Writer, environmentId: number, nowMs: number): Promise<void> {
  await clearProblem(tx, { environmentId, code: UNMAILED_CODES, target: TARGET, nowMs });
}
