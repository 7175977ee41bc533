/**
 * Lists what needs an owner's attention in an environment, each thing once: a hold, changes that wait for approval, dead events, problems, and open
 * alerts that none of these explains. Leaves out what is resolved or acknowledged.
 */
import { type Clock, toIso } from "../../base/clock.ts";
import { type Approval, listOpenApprovals } from "../../operator/sync/approval.ts";
import type { Environment } from "../../platform/account/environment.ts";
import { type AlertView, listOpenAlertCauses } from "../../platform/audit/alert.ts";
import { listProblems, type ProblemView } from "../../platform/audit/problem.ts";
import { findChangeAfterFailure, findChangeAfterProblem } from "../../rules/relay/newer-change.ts";
import { findRecentChange, findStreakBegin } from "../../rules/relay/recent-change.ts";
import { findRejected, REQUESTS_REJECTED } from "../../rules/relay/rejected-request.ts";
import { relayOf, relayTarget } from "../../rules/relay/relay.ts";
import { findLastEventAt } from "../../rules/relay/relay-activity.ts";
import { addFigures } from "../../rules/relay/streak-figure.ts";
import { TroubleRows } from "../../rules/relay/trouble-rows.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import { type AttentionItem, explain, makeItem } from "./attention-item.ts";
import { countOnce } from "./count-cache.ts";
import { dropAcknowledged, isCauseOfDeath, makeDeadItems, RELAY_FAILED } from "./dead-attention.ts";
import { countDead, type DeadOfRelay } from "./dead-events.ts";
import { describeHold } from "./hold.ts";
import { findLastAttemptAt, findLatestFailure } from "./latest-failure.ts";

/** The most items of each kind, the newest first. */
const MAX_ITEMS = 100;

/** Problems of a receiver that still rejects requests. */
const REJECTING = ["relay_refusing", "never_verified", "secret_missing"];

/** The code of an environment on hold. */
export const HELD = "environment_held";

export interface Attention {
  items: AttentionItem[];
  /** True if there are more items than these. */
  more: boolean;
}

export interface AttentionContext {
  environment: Pick<Environment, "id" | "heldAt">;
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

/** Lists the items in the order of their kinds. `describes` adds why events died and what changed shortly before, which is slow. */
export async function listAttention(
  store: Store,
  { environment, clock }: AttentionContext,
  describes: boolean,
): Promise<Attention> {
  const { id } = environment;
  const rows = new TroubleRows(id);
  const sources = await readSources(store, clock, id);
  const { dead, problems, alerts } = sources;
  const isFailing = (target: string): boolean => hasProblem(problems, "relay_failing", target);
  const items = [
    ...(await itemsOfHold(store, { environment, clock }, describes)),
    ...(await itemsOfApprovals(store, id, clock)),
    ...(await makeDeadItems(store, rows, dead, alerts, { describes, isFailing })),
    ...(await itemsOfProblems(store, id, sources, clock.now())),
    ...(await itemsOfAlerts(store, sources)),
  ];
  return { items: describes ? await addChanges(store, rows, items) : items, more: sources.more };
}

/** Finds a change that is newer than the last failure of an item without dead events. */
async function findDoubt(
  tx: Reader,
  rows: TroubleRows,
  { code, target, relay, newest, dead }: AttentionItem,
): Promise<AttentionItem["doubt"]> {
  if (dead !== null) return null;
  const seenAt = await findLastAttemptAt(tx, rows.environmentId, { code, relay });
  const change =
    code === "relay_failing" && relay !== null
      ? await findChangeAfterFailure(tx, rows, {
          relay,
          code: newest?.reason ?? "",
          failedAt: seenAt,
          check: "Retry one event to see.",
        })
      : await findChangeAfterProblem(tx, rows, { code, target, seenAt });
  if (change === null) return null;
  return { stands: "unknown", message: change.message, since: toIso(change.atMs), missing: null };
}

/**
 * Adds the change that was made shortly before each item began, unless the cause no longer exists, and the doubt after a change that is newer than
 * the last failure.
 */
async function addChanges(
  store: Store,
  rows: TroubleRows,
  items: readonly AttentionItem[],
): Promise<AttentionItem[]> {
  const changed: AttentionItem[] = [];
  for (const item of items) {
    const { code, target, since, dead } = item;
    const trouble = { code, target, sinceMs: Date.parse(since) };
    const isOver = dead?.cause.stands === "no";
    const doubt = await store.read((tx) => findDoubt(tx, rows, item));
    const change =
      isOver || doubt !== null ? null : await store.read((tx) => findRecentChange(tx, rows, trouble));
    changed.push({ ...item, change, doubt });
    await yieldToEventLoop();
  }
  return changed;
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

async function itemsOfHold(
  store: Store,
  { environment: { id, heldAt }, clock }: AttentionContext,
  describes: boolean,
): Promise<AttentionItem[]> {
  if (heldAt === null) return [];
  const code = HELD;
  const hold = { environmentId: id, heldAt, nowMs: clock.now() };
  const message = describes ? await describeHold(store, hold) : explain(code).what;
  return [makeItem({ code, target: "environment", since: toIso(heldAt), message })];
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

async function itemsOfProblems(
  store: Store,
  environmentId: number,
  sources: Sources,
  nowMs: number,
): Promise<AttentionItem[]> {
  const items: AttentionItem[] = [];
  for (const problem of sources.problems) {
    if (isExplained(sources, problem)) continue;
    const { code, target, raisedAt } = problem;
    const message = await store.read((tx) => addFigures(tx, environmentId, problem, nowMs));
    const began = await store.read((tx) => findBegin(tx, environmentId, code, target, nowMs));
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
  target: string,
  nowMs: number,
): Promise<number | null> {
  const relay = relayOf(target);
  if (code === REQUESTS_REJECTED) {
    const since = (await findRejected(tx, environmentId, target, nowMs))?.since ?? null;
    return since === null ? null : Date.parse(since);
  }
  if (code === "relay_silent" && relay !== null) return findLastEventAt(tx, environmentId, relay);
  return findStreakBegin(tx, environmentId, code, target);
}

async function itemsOfAlerts(store: Store, sources: Sources): Promise<AttentionItem[]> {
  const shown = new Set(sources.problems.map(keyOf));
  const items: AttentionItem[] = [];
  for (const alert of sources.alerts) {
    const { id, code, target, at, message } = alert;
    if (code === RELAY_FAILED || shown.has(keyOf(alert)) || isExplained(sources, alert)) continue;
    if (await store.read((tx) => isCauseOfDeath(tx, sources.dead, alert))) continue;
    shown.add(keyOf(alert));
    items.push(makeItem({ code, target, since: at, message, alert: id }));
  }
  return items;
}

/** Reports whether another item reports the same cause with more detail. */
function isExplained({ dead, problems }: Sources, { code, target }: Subject): boolean {
  switch (code) {
    case RELAY_FAILED:
    case "relay_failing":
      return dead.some(({ relay }) => relayTarget(relay) === target);
    case "relay_silent":
      return hasProblem(problems, "relay_refusing", target);
    case "relay_refusing":
    case "relay_uncalled":
    case "never_verified":
      return hasProblem(problems, "secret_missing", target);
    case REQUESTS_REJECTED:
      return REJECTING.some((rejecting) => hasProblem(problems, rejecting, target));
    case "sale_nobody":
      return hasProblem(problems, "relay_nobody", target);
    default:
      return false;
  }
}

function hasProblem(problems: readonly ProblemView[], code: string, target: string): boolean {
  return problems.some((problem) => problem.code === code && problem.target === target);
}

function keyOf({ code, target }: Subject): string {
  return `${code} ${target}`;
}
