/**
 * The problem of sign-in codes that cannot be mailed: whoever is not signed in to the app cannot be, and only they see it. It is told once, with
 * an alert where one can leave, and is over with the first mail that leaves from the account word.
 */
import type { FencedStore, Writer } from "../../store/port.ts";
import { raiseAlert } from "./alert.ts";
import { clearProblem, listOpenProblemsOfTarget, raiseProblem } from "./problem.ts";

const UNMAILED_CODES = "codes_unmailed";
const TARGET = "signin:codes";

/** `why`: in a sentence, with the way out. It stands from the first time on; what is said already is not written again. */
export async function recordUndeliveredCodes(
  store: Pick<FencedStore, "read" | "write">,
  environmentId: number,
  { why, nowMs }: { why: string; nowMs: number },
): Promise<void> {
  const message = `Nobody can be mailed a sign-in code, so nobody new signs in: ${why}`;
  const standing = await store.read((tx) => listOpenProblemsOfTarget(tx, environmentId, TARGET));
  if (standing.some((problem) => problem.code === UNMAILED_CODES && problem.message === message)) return;
  await store.write("app", async (tx) => {
    const report = { environmentId, code: UNMAILED_CODES, target: TARGET, message, nowMs } as const;
    if (await raiseProblem(tx, report)) await raiseAlert(tx, report);
  });
}

/** A code left, or another mail by the way that codes go. */
export async function clearUndeliveredCodes(tx: Writer, environmentId: number, nowMs: number): Promise<void> {
  await clearProblem(tx, { environmentId, code: UNMAILED_CODES, target: TARGET, nowMs });
}
