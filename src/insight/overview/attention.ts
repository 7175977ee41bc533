/**
 * What needs somebody in an environment, each thing once: dead events by relay, what stands, open alerts that nothing of these covers, a
 * hold, a change that waits for an owner's approval, and a server without a backup. What is over needs nobody, nor what somebody said is seen to.
 */
import { type Static, Type } from "typebox";
import { type Clock, toIso } from "../../base/clock.ts";
import { explainCode } from "../../base/result-code.ts";
import { orNull, textOrNull, time } from "../../base/schema.ts";
import { WAITING_CODES } from "../../engine/event/alert.ts";
import { checkBackups } from "../../operator/doctor/setup-check.ts";
import { type Approval, listOpenApprovals } from "../../operator/sync/approval.ts";
import type { Environment } from "../../platform/account/environment.ts";
import { type AlertView, listOpenAlertCauses, listResolvedTimes } from "../../platform/audit/alert.ts";
import { listProblems, type ProblemView } from "../../platform/audit/problem.ts";
import { relayTarget } from "../../rules/relay/relay.ts";
import { findLastEventAt } from "../../rules/relay/relay-view.ts";
import { turnLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import { countOnce } from "./count-cache.ts";
import {
  countDead,
  type DeadOfRelay,
  type DeadView,
  deadView,
  describeDead,
  MAX_SHOWN,
} from "./dead-events.ts";
import { findLatestFailure, latestFailure } from "./latest-failure.ts";

/** Of each kind, the newest; where there are more, `more` says so. */
const MAX_NEEDS = 100;
/** Relays whose dead events are looked into. */
const MAX_DESCRIBED = 20;

export const attentionItemView = Type.Object({
  code: Type.String(),
  /** Such as `relay:orders`, `environment` or `server`. */
  target: Type.String(),
  /** The relay's name, where it is of one. */
  relay: textOrNull,
  since: time,
  /** What is wrong, in a sentence. */
  message: Type.String(),
  /** How to get out of it, in a sentence. */
  todo: Type.String(),
  /** The page that explains the code, for a caller who is one to be told of pages. */
  docs: Type.Optional(Type.String()),
  /** The alert that told of it and that can be resolved by hand. */
  alert: textOrNull,
  /** Dead events alone. */
  dead: orNull(deadView),
  /** Of events that failed, dead ones or such that are tried again; null: it is of no event, or not looked into. */
  newest: latestFailure,
});
export type AttentionItem = Static<typeof attentionItemView>;

interface Needs {
  needs: AttentionItem[];
  more: boolean;
}

/** Where an environment stands, and what of the server its needs are read from. */
export interface AttentionContext {
  environment: Pick<Environment, "id" | "name" | "heldAt">;
  server: {
    dataDir: string;
    backupEveryMs: number | null;
    /** Not local development, nor PostgreSQL, whose copies are made elsewhere. */
    backsUp: boolean;
  };
  clock: Clock;
}

/** What is looked up of each, beside what it is. */
interface Found {
  dead: DeadOfRelay[];
  problems: ProblemView[];
  alerts: AlertView[];
  more: boolean;
}

const FAILED = "relay_failed";
/** Said of a relay whose dead events say it better. */
const SAID_BY_DEAD = [FAILED, "relay_failing"];

/**
 * `relays`: how many there are; a server on which nothing is set up yet needs no backup. `looksInto`: whether it is said of dead events why, which
 * costs more than that there are some.
 */
export async function findAttention(
  store: Store,
  context: AttentionContext,
  relays: number,
  looksInto: boolean,
): Promise<Needs> {
  const server = relays === 0 ? { ...context.server, backsUp: false } : context.server;
  return await listAttention(store, { ...context, server }, looksInto);
}

/** `looksInto`: as for `findAttention`. */
export async function listAttention(
  store: Store,
  { environment, server, clock }: AttentionContext,
  looksInto: boolean,
): Promise<Needs> {
  const { id } = environment;
  const found = await findNeeds(store, clock, id);
  const needs: AttentionItem[] = [];
  if (environment.heldAt !== null)
    needs.push(
      makeNeed(
        "environment_held",
        "environment",
        toIso(environment.heldAt),
        explain("environment_held").when,
      ),
    );
  for (const approval of await store.read((tx) => listOpenApprovals(tx, id)))
    if (approval.state === "pending" && approval.expiresAt > clock.now())
      needs.push(needOfApproval(approval));
  const failing = new Set(
    found.problems.filter(({ code }) => code === "relay_failing").map(({ target }) => target),
  );
  for (const [at, dead] of found.dead.entries()) {
    const target = relayTarget(dead.relay);
    const view =
      looksInto && at < MAX_DESCRIBED
        ? await store.read((tx) => describeDead(tx, id, dead, failing.has(target)))
        : null;
    const alert = found.alerts.find((one) => one.code === FAILED && one.target === target) ?? null;
    needs.push(await store.read((tx) => needOfDead(tx, dead, view, alert)));
    await turnLoop();
  }
  const said = new Set(found.dead.map(({ relay }) => relayTarget(relay)));
  const refusing = new Set(
    found.problems.filter(({ code }) => code === "relay_refusing").map(({ target }) => target),
  );
  const nobody = new Set(
    found.problems.filter(({ code }) => code === "relay_nobody").map(({ target }) => target),
  );
  const isSaid = ({ code, target }: { code: string; target: string }) =>
    (SAID_BY_DEAD.includes(code) && said.has(target)) ||
    (code === "relay_silent" && refusing.has(target)) ||
    (code === "sale_nobody" && nobody.has(target));
  const problems = found.problems.filter((problem) => !isSaid(problem));
  for (const problem of problems) {
    const { code, target, message, raisedAt } = problem;
    const began = await store.read((tx) => findBegin(tx, id, code, relayOf(target)));
    const told = found.alerts.find((alert) => keyOf(alert) === keyOf(problem));
    const need = makeNeed(code, target, began === null ? raisedAt : toIso(began), message, told?.id ?? null);
    const newest = await store.read((tx) => findLatestFailure(tx, id, need));
    needs.push({ ...need, newest });
  }
  const covered = new Set(found.problems.map(keyOf));
  for (const alert of found.alerts) {
    if (isSaid(alert) || covered.has(keyOf(alert)) || alert.code === FAILED) continue;
    if (await store.read((tx) => isDeathOf(tx, found.dead, alert))) continue;
    covered.add(keyOf(alert));
    needs.push(makeNeed(alert.code, alert.target, alert.at, alert.message, alert.id));
  }
  const backup = needOfBackup(server, environment.name, clock);
  if (backup !== null) needs.push(backup);
  return { needs, more: found.more };
}

/** Whether it tells of what its relay's newest dead event died of, so that one thing to do were two needs. */
async function isDeathOf(
  tx: Reader,
  dead: readonly DeadOfRelay[],
  { code, target }: AlertView,
): Promise<boolean> {
  const own = dead.find(({ relay }) => relayTarget(relay) === target);
  if (own === undefined || !WAITING_CODES.some((one) => one === code)) return false;
  const sql = "SELECT reason FROM event WHERE seq = ?1";
  return (await tx.get<{ reason: string | null }>(sql, own.newestSeq))?.reason === code;
}

/** When what is told began, which is before it was told; null: that is not kept. */
async function findBegin(
  tx: Reader,
  environmentId: number,
  code: string,
  relay: string | null,
): Promise<number | null> {
  if (relay === null) return null;
  if (code === "relay_silent") return findLastEventAt(tx, environmentId, relay);
  const sql = `SELECT CASE $code WHEN 'relay_refusing' THEN refused_since ELSE CAST(fruitless ->> ('$.runs.' || $code || '.since') AS INTEGER) END AS since
    FROM relay WHERE environment_id = $environmentId AND name = $relay`;
  return (await tx.get<{ since: number | null }>(sql, { environmentId, code, relay }))?.since ?? null;
}

const keyOf = ({ code, target }: { code: string; target: string }): string => `${code} ${target}`;

async function findNeeds(store: Store, clock: Clock, environmentId: number): Promise<Found> {
  const page = { limit: MAX_NEEDS, after: null };
  const count = () => countDead(store, environmentId);
  const { relays } = await countOnce({ store, clock }, `dead ${environmentId}`, count);
  const problems = await store.read((tx) => listProblems(tx, environmentId, true, page));
  const alerts = await store.read((tx) => listOpenAlertCauses(tx, environmentId, MAX_NEEDS));
  const dead = await store.read((tx) => leaveSeenTo(tx, environmentId, relays, alerts.items));
  return {
    dead: dead.sort((a, b) => b.count - a.count).slice(0, MAX_NEEDS),
    problems: problems.items,
    alerts: alerts.items,
    more: problems.next !== null || alerts.more || dead.length > MAX_NEEDS,
  };
}

/** Without the dead of which somebody said, after the newest of them came, that they are seen to. */
async function leaveSeenTo(
  tx: Reader,
  environmentId: number,
  relays: readonly DeadOfRelay[],
  open: readonly AlertView[],
): Promise<DeadOfRelay[]> {
  const seenTo = await listResolvedTimes(tx, environmentId, FAILED);
  const left: DeadOfRelay[] = [];
  for (const one of relays) {
    const target = relayTarget(one.relay);
    const at = seenTo.get(target);
    const isOpen = open.some((alert) => alert.code === FAILED && alert.target === target);
    if (at === undefined || isOpen || (await diedAt(tx, one.newestSeq)) > at) left.push(one);
  }
  return left;
}

async function diedAt(tx: Reader, seq: number): Promise<number> {
  const sql = "SELECT coalesce(finished_at, created_at) AS at FROM event WHERE seq = ?1";
  return (await tx.get<{ at: number }>(sql, seq))?.at ?? 0;
}

async function needOfDead(
  tx: Reader,
  { relay, count, firstSeq }: DeadOfRelay,
  dead: DeadView | null,
  alert: AlertView | null,
): Promise<AttentionItem> {
  const since = dead?.firstDeadAt ?? toIso(await diedAt(tx, firstSeq));
  const many = count > MAX_SHOWN ? `${say(MAX_SHOWN)}+` : say(count);
  const are = count === 1 ? "event is" : "events are";
  const why = dead === null ? "" : `: ${dead.failure.message}`;
  const todo =
    dead?.expunged === true && count === 1
      ? "The event never runs again. Resolve its alert."
      : formatReplay(dead);
  const message = endSentence(`${many} ${are} dead since ${since}${why}`);
  const newest = dead === null ? null : newestOf(dead);
  return { ...makeNeed(FAILED, relayTarget(relay), since, message, alert?.id ?? null), todo, dead, newest };
}

function formatReplay(dead: DeadView | null): string {
  if (dead?.failure.code === "missed")
    return "Replay those that are still wanted, one at a time from their list or all of them; or say that it is seen to.";
  return dead?.cause.stands === "no"
    ? "Replay them; what was done before is not done twice."
    : "Mend the cause, then replay them; what was done before is not done twice.";
}

const newestOf = ({ newestEvent, person, failure: { code, status } }: DeadView): AttentionItem["newest"] => ({
  event: newestEvent,
  person,
  reason: code,
  status,
});
const say = (count: number): string => count.toLocaleString("en");
const endSentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);

function makeNeed(
  code: string,
  target: string,
  since: string,
  message: string,
  alert: string | null = null,
): AttentionItem {
  return {
    code,
    target,
    relay: relayOf(target),
    since,
    message,
    todo: explain(code).todo,
    alert,
    dead: null,
    newest: null,
  };
}

function needOfApproval({ id, createdAt, expiresAt, askedWith, askedBy }: Approval): AttentionItem {
  const message = `A change of production waits for an owner's approval, asked for ${askedWith === null ? `by ${askedBy.replace(/^owner:/, "")}` : `with ${askedWith}`}: it is over at ${toIso(expiresAt)}.`;
  return makeNeed("approval_waiting", `approval:${id}`, toIso(createdAt), message);
}

const relayOf = (target: string): string | null =>
  target.startsWith("relay:") ? target.slice("relay:".length) : null;

function explain(code: string): { when: string; todo: string } {
  return explainCode(code) ?? { when: `${code}.`, todo: "See it, and mend its cause." };
}

/** Of the whole server, so it stands where it matters. */
function needOfBackup(
  server: AttentionContext["server"],
  environment: string,
  clock: Clock,
): AttentionItem | null {
  if (!server.backsUp || environment !== "production") return null;
  const { dataDir, backupEveryMs } = server;
  const finding = checkBackups({ dataDir, backupEveryMs, clock }, false);
  if (finding.state === "ok") return null;
  return makeNeed("backup_missing", "server", toIso(clock.now()), finding.message);
}
