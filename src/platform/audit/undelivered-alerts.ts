/**
 * The problem `alerts_unmailed`: alert mail reaches no owner, because every mail server rejected the last one permanently or none could be
 * sent for an hour. It is never mailed itself. It is cleared by the next mail that reaches an owner.
 */
import { HOUR_MS } from "../../base/limit.ts";
import type { FencedStore, Reader, Writer } from "../../store/port.ts";
import { clearProblem, hasProblem, listOpenProblems, raiseProblem } from "./problem.ts";

export const UNMAILED_ALERTS = "alerts_unmailed";
const TARGET = "mail";
/** A mail server may recover by itself within this time. */
const GRACE_PERIOD_MS = HOUR_MS;

/** The result of a mail, as the mailer reports it. */
interface Outcome {
  kind: string;
  reason?: string;
  message?: string;
  retry?: boolean;
}

/** The reasons why a set mail server cannot send alerts, each with its remedy. An owner who set no mail server does not rely on mail. */
const REMEDIES = {
  "there is no owner to mail": "Create one with relay admin create.",
  "the environment has no verified sender domain": "Set one with relay domain set, then relay domain verify.",
} as const;
export type UndeliverableReason = keyof typeof REMEDIES;

/** Raises the problem in an environment that cannot send mail and whose alerts wait since `sinceMs`. */
export async function recordUndeliverableAlerts(
  store: Pick<FencedStore, "read" | "write">,
  environmentId: number,
  { why, sinceMs, nowMs }: { why: UndeliverableReason; sinceMs: number; nowMs: number },
): Promise<void> {
  if (nowMs - sinceMs < GRACE_PERIOD_MS) return;
  const message = `Relay does not mail alerts to the owners, because ${why}. ${REMEDIES[why]}`;
  // This runs every minute, so an unchanged message is not written again.
  const key = { environmentId, code: UNMAILED_ALERTS, target: TARGET };
  if (await store.read((tx) => hasProblem(tx, key, message))) return;
  await store.write("app", (tx) => raise(tx, environmentId, message, nowMs), environmentId);
}

/** Raises or clears the problem after the mails of alerts that wait since `sinceMs`, one to each owner. */
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
  // A mail with an unknown result proves nothing, nor does one that the end of the process stopped.
  if (last === undefined || failed.length < outcomes.length) return;
  if (failed.some(({ reason }) => reason === "stopped")) return;
  if (failed.every(({ retry }) => retry === true) && nowMs - sinceMs < GRACE_PERIOD_MS) return;
  await raise(tx, environmentId, `The last alert mail reached no owner. ${last.message ?? ""}`, nowMs);
}

/** Clears the problem after a mail reached an owner. */
export async function clearUndeliveredAlerts(
  tx: Writer,
  environmentId: number,
  nowMs: number,
): Promise<void> {
  await clearProblem(tx, { environmentId, code: UNMAILED_ALERTS, target: TARGET, nowMs });
}

/** Lists the environments where the problem is open. */
export async function listUndeliveredAlertEnvironments(tx: Reader): Promise<number[]> {
  return (await listOpenProblems(tx, [UNMAILED_ALERTS])).map(({ environmentId }) => environmentId);
}

async function raise(tx: Writer, environmentId: number, message: string, nowMs: number): Promise<void> {
  await raiseProblem(tx, { environmentId, code: UNMAILED_ALERTS, target: TARGET, message, nowMs });
}
