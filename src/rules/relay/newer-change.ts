/**
 * Finds a change that is newer than the last failure of a trouble, such as new mail settings, a new version of a definition or a test mail. After
 * such a change, the failure no longer proves that the cause still exists.
 */
import { toIso } from "../../base/clock.ts";
import { findAlertEnd } from "../../platform/audit/alert.ts";
import type { TargetChange } from "../../platform/audit/audit.ts";
import type { AuditAction } from "../../platform/audit/audit-action.ts";
import { findRaisedAt } from "../../platform/audit/problem.ts";
import { findLastFailedMailAt } from "../../platform/mail/email.ts";
import type { Reader } from "../../store/port.ts";
import { type ChangeSource, concernsMail, listActions, listChanges, splitTarget } from "./recent-change.ts";
import { relayTarget } from "./relay.ts";
import { findStreak } from "./streak.ts";
import type { TroubleRows } from "./trouble-rows.ts";

const CREATIONS: readonly AuditAction[] = ["collection.created", "product.created", "plan.created"];

interface NewerChange {
  atMs: number;
  /** The change and how to find out whether it helped, in two sentences. */
  message: string;
}

const MAIL: readonly ChangeSource[] = ["relay", "mail"];
const CATALOG: readonly ChangeSource[] = ["relay", "catalog"];

/** The changes that can fix an event that failed with this code. A failure with another code can be fixed by a change of the relay. */
const FAILURES: Readonly<Record<string, readonly ChangeSource[]>> = {
  sends_off: MAIL,
  sender_domain_required: MAIL,
  mail_not_sent: MAIL,
  mail_refused: MAIL,
  collection_missing: CATALOG,
  product_unknown: CATALOG,
  plan_unknown: CATALOG,
  entitlement_unknown: CATALOG,
  product_not_sold_here: CATALOG,
  plan_not_sold_here: CATALOG,
  data_invalid: CATALOG,
};

/** Finds the change after the last failed attempt of an event of the relay. `failedAt`: the last one that the caller knows. */
export async function findChangeAfterFailure(
  tx: Reader,
  rows: TroubleRows,
  { relay, code, failedAt, check }: { relay: string; code: string; failedAt: number; check: string },
): Promise<NewerChange | null> {
  const target = relayTarget(relay);
  const streakEnd = await findStreakEnd(tx, rows.environmentId, "relay_failing", target);
  const sources = FAILURES[code] ?? ["relay"];
  return findNewer(tx, rows, {
    sources,
    code: "relay_failing",
    target,
    failedAt: Math.max(failedAt, streakEnd ?? 0),
    check,
  });
}

interface Problem {
  sources: readonly ChangeSource[];
  /** The way to find out whether the change helped, in a sentence. */
  check: string;
}

const BY_REQUEST = "The next request shows whether this fixed the problem.";

const PROBLEMS: Readonly<Record<string, Problem>> = {
  relay_failed: { sources: ["relay", "catalog", "mail"], check: "Replay one event to see." },
  relay_failing: { sources: ["relay", "catalog", "mail"], check: "Retry one event to see." },
  relay_refusing: { sources: ["relay", "processor"], check: BY_REQUEST },
  never_verified: { sources: ["relay", "processor"], check: BY_REQUEST },
  relay_ignoring: { sources: ["relay"], check: BY_REQUEST },
  relay_nobody: { sources: ["relay"], check: "Replay one event to see." },
  sender_domain_required: { sources: ["mail"], check: "Retry one event to see." },
  alerts_unmailed: { sources: ["mail"], check: "Send a test mail to see." },
  codes_unmailed: { sources: ["mail"], check: "Send a test mail to see." },
};

/** Finds the change after the last failure of an open problem or alert. `seenAt`: a failure that the caller knows; 0 for none. */
export async function findChangeAfterProblem(
  tx: Reader,
  rows: TroubleRows,
  { code, target, seenAt }: { code: string; target: string; seenAt: number },
): Promise<NewerChange | null> {
  const problem = PROBLEMS[code];
  if (problem === undefined) return null;
  const failedAt = await findLastFailedAt(tx, rows, { code, target });
  return failedAt === null
    ? null
    : findNewer(tx, rows, { ...problem, code, target, failedAt: Math.max(failedAt, seenAt) });
}

async function findNewer(
  tx: Reader,
  rows: TroubleRows,
  { sources, code, target, failedAt, check }: Problem & { code: string; target: string; failedAt: number },
): Promise<NewerChange | null> {
  const relay = await rows.findRelay(tx, target);
  // A deletion fixes nothing.
  const fixes = listActions(code).filter((action) => !action.endsWith(".deleted"));
  const period = {
    actions: [...fixes, ...CREATIONS],
    fromMs: failedAt + 1,
    untilMs: Number.MAX_SAFE_INTEGER,
  };
  const [change] = await listChanges(tx, rows.environmentId, { sources, relay }, period);
  const testedAt = concernsMail(sources, relay) ? await rows.findTestMailAt(tx) : null;
  if (testedAt !== null && testedAt > failedAt && testedAt >= (change?.at ?? 0))
    return { atMs: testedAt, message: `A test mail was sent at ${toIso(testedAt)}. ${check}` };
  if (change === undefined) return null;
  return { atMs: change.at, message: `${describeChange(change)} at ${toIso(change.at)}. ${check}` };
}

/** Describes what was changed, as the first words of a sentence. */
function describeChange({ target, action, mail }: TargetChange): string {
  const [noun, name] = splitTarget(target);
  switch (action) {
    case "relay.updated":
      return `The definition of ${name} was changed`;
    case "relay.secret_changed":
      return `The secret of ${name} was changed`;
    case "relay.signing_secret_changed":
      return `The signing secret of ${name} was changed`;
    case "settings.changed":
      return mail === null ? "The secret of the card processor was changed" : "The mail server was changed";
    case "sender_domain.changed":
      return "The sender domain was changed";
    case "access.changed":
      return name === null ? "The access slugs were changed" : `The access slug ${name} was changed`;
    default:
      return `The ${noun} ${name} was ${action.endsWith(".created") ? "created" : "changed"}`;
  }
}

/** Finds when the trouble last occurred. Returns null where no row says it. */
async function findLastFailedAt(
  tx: Reader,
  rows: TroubleRows,
  { code, target }: { code: string; target: string },
): Promise<number | null> {
  const { environmentId } = rows;
  const key = { environmentId, code, target };
  const known = [
    await findRaisedAt(tx, key),
    findAlertEnd(await rows.listOpenBursts(tx), key),
    await findStreakEnd(tx, environmentId, code, target),
    code === "alerts_unmailed" ? await findLastFailedMailAt(tx, environmentId, "alert") : null,
    code === "codes_unmailed" ? await findLastFailedMailAt(tx, environmentId, "account") : null,
  ].filter((one) => one !== null);
  return known.length === 0 ? null : Math.max(...known);
}

/** Finds when the streak of a relay's problem last grew. Returns null where no row says it. */
async function findStreakEnd(
  tx: Reader,
  environmentId: number,
  code: string,
  target: string,
): Promise<number | null> {
  return (await findStreak(tx, environmentId, code, target))?.at ?? null;
}
