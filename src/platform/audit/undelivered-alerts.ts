/**
 * The problem of alerts that do not reach the owners by mail: each owner's mail server refused the last one for good, or none could leave for an
 * hour. Whoever relies on mail sees it nowhere else; it is never mailed itself, and is over with the first mail to an owner that leaves.
 */
import { HOUR_MS } from "../../base/limit.ts";
import type { FencedStore, Reader, Writer } from "../../store/port.ts";
import { clearProblem, listOpenProblems, listOpenProblemsOfTarget, raiseProblem } from "./problem.ts";

export const UNMAILED_ALERTS = "alerts_unmailed";
const TARGET = "mail";
/** A server that is away for so long may come back by itself. */
const GRACE_PERIOD_MS = HOUR_MS;

const SWITCH = "switch alert mail off (relay settings set alerts.mail off).";

/** What became of a mail, as the mailer says it. */
interface Outcome {
  kind: string;
  reason?: string;
  message?: string;
  retry?: boolean;
}

/** Why no alert can be mailed though a mail server is set, as the log says it, with the way out. Where none is set, nobody relies on mail. */
const REMEDIES = {
  "no owner is there to be mailed": "make one with relay admin create",
  "it has no verified sender domain": "set one with relay domain set, then relay domain verify",
} as const;
export type UndeliverableReason = keyof typeof REMEDIES;

/** Alerts wait since `sinceMs` in an environment that cannot send. */
export async function recordUndeliverableAlerts(
  store: Pick<FencedStore, "read" | "write">,
  environmentId: number,
  { why, sinceMs, nowMs }: { why: UndeliverableReason; sinceMs: number; nowMs: number },
): Promise<void> {
  if (nowMs - sinceMs < GRACE_PERIOD_MS) return;
  const said = why.replace(/^it /, "the environment ");
  const message = `Alerts are not mailed to the owners, because ${said}: ${REMEDIES[why]}, or ${SWITCH}`;
  // Looked at every minute: what is said already is not written again.
  const standing = await store.read((tx) => listOpenProblemsOfTarget(tx, environmentId, TARGET));
  if (standing.some((problem) => problem.code === UNMAILED_ALERTS && problem.message === message)) return;
  await store.write("app", (tx) => raise(tx, environmentId, message, nowMs));
}

/** What became of the mails of alerts that wait since `sinceMs`, one to each owner. */
export async function recordAlertMailOutcomes(
  tx: Writer,
  environmentId: number,
  { outcomes, sinceMs, nowMs }: { outcomes: readonly Outcome[]; sinceMs: number; nowMs: number },
): Promise<void> {
  if (outcomes.some(({ kind }) => kind === "sent" || kind === "mailbox")) {
    await clearUndeliveredAlerts(tx, environmentId, nowMs);
    return;
  }
  const failed = outcomes.filter((outcome) => outcome.kind === "failed");
  const last = failed.at(-1);
  // One that may have left tells nothing, nor does one that the end of the process stopped.
  if (last === undefined || failed.length < outcomes.length) return;
  if (failed.some(({ reason }) => reason === "stopped")) return;
  if (failed.every(({ retry }) => retry === true) && nowMs - sinceMs < GRACE_PERIOD_MS) return;
  const why = (last.message ?? "").replace(/\.?$/, ".");
  await raise(
    tx,
    environmentId,
    `The last alert mail reached no owner. ${why} Mend that, then send a test mail with relay emails test.`,
    nowMs,
  );
}

/** A mail to an owner left. */
export async function clearUndeliveredAlerts(
  tx: Writer,
  environmentId: number,
  nowMs: number,
): Promise<void> {
  await clearProblem(tx, { environmentId, code: UNMAILED_ALERTS, target: TARGET, nowMs });
}

/** Environments where the problem stands. */
export async function listUndeliveredAlertEnvironments(tx: Reader): Promise<number[]> {
  return (await listOpenProblems(tx, [UNMAILED_ALERTS])).map(({ environmentId }) => environmentId);
}

async function raise(tx: Writer, environmentId: number, message: string, nowMs: number): Promise<void> {
  await raiseProblem(tx, { environmentId, code: UNMAILED_ALERTS, target: TARGET, message, nowMs });
}
