/**
 * Lists what needs an owner's attention in an environment, each thing once. These things are a hold, changes that wait for approval, dead
 * events, problems, open alerts that none of these explains, and a missing backup. Leaves out what is resolved or acknowledged.
 */
import { type Clock, toIso } from "../../base/clock.ts";
import { WAITING_CODES } from "../../engine/event/alert.ts";
import { checkBackups } from "../../operator/doctor/setup-check.ts";
import { type Approval, listOpenApprovals } from "../../operator/sync/approval.ts";
import type { Environment } from "../../platform/account/environment.ts";
import { type AlertView, listOpenAlertCauses, listResolvedTimes } from "../../platform/audit/alert.ts";
import { listProblems, type ProblemView } from "../../platform/audit/problem.ts";
import { relayTarget } from "../../rules/relay/relay.ts";
import { findLastEventAt } from "../../rules/relay/relay-view.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import { type AttentionItem, explain, makeItem, relayOf } from "./attention-item.ts";
import { countOnce } from "./count-cache.ts";
import { countDead, type DeadOfRelay, type DeadView, describeDead, MAX_SHOWN } from "./dead-events.ts";
import { findLatestFailure } from "./latest-failure.ts";

/** The most items of each kind, the newest first. */
const MAX_ITEMS = 100;
/** The most relays whose dead events are described. */
const MAX_DESCRIBED = 20;
const FAILED = "relay_failed";

interface Attention {
  items: AttentionItem[];
  /** True if there are more items than these. */
  more: boolean;
}

/** The environment, and the part of the server's configuration that decides about backups. */
export interface AttentionContext {
  environment: Pick<Environment, "id" | "name" | "heldAt">;
  server: {
    dataDir: string;
    backupEveryMs: number | null;
    /** True except in local development and on PostgreSQL, which other tools back up. */
    backsUp: boolean;
  };
  clock: Clock;
}

/** The rows that the items are made from. */
interface Sources {
  dead: DeadOfRelay[];
  problems: ProblemView[];
  alerts: AlertView[];
  more: boolean;
}

/** The subject of a problem or an alert. */
type Subject = Pick<AlertView, "code" | "target">;

/** Lists the items as `listAttention` does. A server without relays (`relayCount` 0) needs no backup yet. */
export async function findAttention(
  store: Store,
  context: AttentionContext,
  relayCount: number,
  describesDead: boolean,
): Promise<Attention> {
  const server = relayCount === 0 ? { ...context.server, backsUp: false } : context.server;
  return await listAttention(store, { ...context, server }, describesDead);
}

/** Lists the items in the order of their kinds. `describesDead` adds why events died, which is slow. */
export async function listAttention(
  store: Store,
  { environment, server, clock }: AttentionContext,
  describesDead: boolean,
): Promise<Attention> {
  const { id } = environment;
  const sources = await readSources(store, clock, id);
  const items = [
    ...itemsOfHold(environment),
    ...(await itemsOfApprovals(store, id, clock)),
    ...(await itemsOfDead(store, id, sources, describesDead)),
    ...(await itemsOfProblems(store, id, sources)),
    ...(await itemsOfAlerts(store, sources)),
    ...itemsOfBackup(server, environment.name, clock),
  ];
  return { items, more: sources.more };
}

async function readSources(store: Store, clock: Clock, environmentId: number): Promise<Sources> {
  const page = { limit: MAX_ITEMS, after: null };
  const count = () => countDead(store, environmentId);
  const { relays } = await countOnce({ store, clock }, `dead ${environmentId}`, count);
  const problems = await store.read((tx) => listProblems(tx, environmentId, true, page));
  const alerts = await store.read((tx) => listOpenAlertCauses(tx, environmentId, MAX_ITEMS));
  const dead = await store.read((tx) => dropAcknowledged(tx, environmentId, relays, alerts.items));
  return {
    dead: dead.sort((one, other) => other.count - one.count).slice(0, MAX_ITEMS),
    problems: problems.items,
    alerts: alerts.items,
    more: problems.next !== null || alerts.more || dead.length > MAX_ITEMS,
  };
}

/** Drops the dead events of a relay whose alert an owner resolved after the newest one died. */
async function dropAcknowledged(
  tx: Reader,
  environmentId: number,
  relays: readonly DeadOfRelay[],
  open: readonly AlertView[],
): Promise<DeadOfRelay[]> {
  const resolvedAt = await listResolvedTimes(tx, environmentId, FAILED);
  const left: DeadOfRelay[] = [];
  for (const dead of relays) {
    const target = relayTarget(dead.relay);
    const at = resolvedAt.get(target);
    const isOpen = open.some((alert) => alert.code === FAILED && alert.target === target);
    if (at === undefined || isOpen || (await findDiedAt(tx, dead.newestSeq)) > at) left.push(dead);
  }
  return left;
}

function itemsOfHold({ heldAt }: AttentionContext["environment"]): AttentionItem[] {
  if (heldAt === null) return [];
  const code = "environment_held";
  return [makeItem({ code, target: "environment", since: toIso(heldAt), message: explain(code).what })];
}

async function itemsOfApprovals(store: Store, environmentId: number, clock: Clock): Promise<AttentionItem[]> {
  const open = await store.read((tx) => listOpenApprovals(tx, environmentId));
  return open
    .filter(({ state, expiresAt }) => state === "pending" && expiresAt > clock.now())
    .map(makeApprovalItem);
}

function makeApprovalItem({ id, createdAt, expiresAt, askedWith, askedBy }: Approval): AttentionItem {
  const asker = askedWith === null ? `by ${askedBy.replace(/^owner:/, "")}` : `with ${askedWith}`;
  const message = `A change of production waits for an owner's approval, asked for ${asker}: it is over at ${toIso(expiresAt)}.`;
  return makeItem({ code: "approval_waiting", target: `approval:${id}`, since: toIso(createdAt), message });
}

async function itemsOfDead(
  store: Store,
  environmentId: number,
  { dead, problems, alerts }: Sources,
  describes: boolean,
): Promise<AttentionItem[]> {
  const items: AttentionItem[] = [];
  for (const [index, one] of dead.entries()) {
    const target = relayTarget(one.relay);
    const isFailing = hasProblem(problems, "relay_failing", target);
    const view =
      describes && index < MAX_DESCRIBED
        ? await store.read((tx) => describeDead(tx, environmentId, one, isFailing))
        : null;
    const alert = alerts.find(({ code, target: of }) => code === FAILED && of === target) ?? null;
    items.push(await store.read((tx) => makeDeadItem(tx, one, view, alert)));
    await yieldToEventLoop();
  }
  return items;
}

async function makeDeadItem(
  tx: Reader,
  { relay, count, firstSeq }: DeadOfRelay,
  dead: DeadView | null,
  alert: AlertView | null,
): Promise<AttentionItem> {
  const since = dead?.firstDeadAt ?? toIso(await findDiedAt(tx, firstSeq));
  const many = count > MAX_SHOWN ? `${formatCount(MAX_SHOWN)}+` : formatCount(count);
  const why = dead === null ? "" : `: ${dead.failure.message}`;
  return makeItem({
    code: FAILED,
    target: relayTarget(relay),
    since,
    message: endSentence(`${many} ${count === 1 ? "event is" : "events are"} dead since ${since}${why}`),
    todo: formatReplay(dead, count),
    alert: alert?.id ?? null,
    dead,
    newest: dead === null ? null : newestOf(dead),
  });
}

function formatReplay(dead: DeadView | null, count: number): string {
  if (dead?.expunged === true && count === 1) return "The event never runs again. Resolve its alert.";
  if (dead?.failure.code === "missed")
    return "Replay those that are still wanted, one at a time from their list or all of them; or say that it is seen to.";
  return dead?.cause.stands === "no"
    ? "Replay them; what was done before is not done twice."
    : "Mend the cause, then replay them; what was done before is not done twice.";
}

function newestOf({ newestEvent, person, failure: { code, status } }: DeadView): AttentionItem["newest"] {
  return { event: newestEvent, person, reason: code, status };
}

async function findDiedAt(tx: Reader, seq: number): Promise<number> {
  const sql = "SELECT coalesce(finished_at, created_at) AS at FROM event WHERE seq = ?1";
  return (await tx.get<{ at: number }>(sql, seq))?.at ?? 0;
}

async function itemsOfProblems(
  store: Store,
  environmentId: number,
  sources: Sources,
): Promise<AttentionItem[]> {
  const items: AttentionItem[] = [];
  for (const problem of sources.problems) {
    if (isExplained(sources, problem)) continue;
    const { code, target, message, raisedAt } = problem;
    const began = await store.read((tx) => findBegin(tx, environmentId, code, relayOf(target)));
    const alert = sources.alerts.find((one) => keyOf(one) === keyOf(problem));
    const since = began === null ? raisedAt : toIso(began);
    const item = makeItem({ code, target, since, message, alert: alert?.id ?? null });
    items.push({ ...item, newest: await store.read((tx) => findLatestFailure(tx, environmentId, item)) });
  }
  return items;
}

/** Finds when a problem of a relay began, which is before it was raised. Returns null where no row says it. */
async function findBegin(
  tx: Reader,
  environmentId: number,
  code: string,
  relay: string | null,
): Promise<number | null> {
  if (relay === null) return null;
  if (code === "relay_silent") return findLastEventAt(tx, environmentId, relay);
  const sql = `SELECT CASE $code WHEN 'relay_refusing' THEN refused_since ELSE CAST(streaks ->> ('$.runs.' || $code || '.since') AS INTEGER) END AS since
    FROM relay WHERE environment_id = $environmentId AND name = $relay`;
  return (await tx.get<{ since: number | null }>(sql, { environmentId, code, relay }))?.since ?? null;
}

async function itemsOfAlerts(store: Store, sources: Sources): Promise<AttentionItem[]> {
  const shown = new Set(sources.problems.map(keyOf));
  const items: AttentionItem[] = [];
  for (const alert of sources.alerts) {
    const { id, code, target, at, message } = alert;
    if (code === FAILED || shown.has(keyOf(alert)) || isExplained(sources, alert)) continue;
    if (await store.read((tx) => isCauseOfDeath(tx, sources.dead, alert))) continue;
    shown.add(keyOf(alert));
    items.push(makeItem({ code, target, since: at, message, alert: id }));
  }
  return items;
}

/** Reports whether another item reports the same cause with more detail. */
function isExplained({ dead, problems }: Sources, { code, target }: Subject): boolean {
  switch (code) {
    case FAILED:
    case "relay_failing":
      return dead.some(({ relay }) => relayTarget(relay) === target);
    case "relay_silent":
      return hasProblem(problems, "relay_refusing", target);
    case "sale_nobody":
      return hasProblem(problems, "relay_nobody", target);
    default:
      return false;
  }
}

/** Reports whether the relay's newest dead event died of what the alert reports. The item of the dead events then covers it. */
async function isCauseOfDeath(
  tx: Reader,
  dead: readonly DeadOfRelay[],
  { code, target }: Subject,
): Promise<boolean> {
  const own = dead.find(({ relay }) => relayTarget(relay) === target);
  if (own === undefined || !WAITING_CODES.some((one) => one === code)) return false;
  const sql = "SELECT reason FROM event WHERE seq = ?1";
  return (await tx.get<{ reason: string | null }>(sql, own.newestSeq))?.reason === code;
}

/** A backup is the whole server's, and only production reports it. */
function itemsOfBackup(
  { dataDir, backupEveryMs, backsUp }: AttentionContext["server"],
  environment: string,
  clock: Clock,
): AttentionItem[] {
  if (!backsUp || environment !== "production") return [];
  const finding = checkBackups({ dataDir, backupEveryMs, clock }, false);
  if (finding.state === "ok") return [];
  const { message } = finding;
  return [makeItem({ code: "backup_missing", target: "server", since: toIso(clock.now()), message })];
}

function hasProblem(problems: readonly ProblemView[], code: string, target: string): boolean {
  return problems.some((problem) => problem.code === code && problem.target === target);
}

function keyOf({ code, target }: Subject): string {
  return `${code} ${target}`;
}

function formatCount(count: number): string {
  return count.toLocaleString("en");
}

function endSentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
