/**
 * Approvals for changes of production: a caller requests one, an owner sees the exact plan in the browser, and the caller applies it
 * once, within ten minutes. This file decides who may approve and when an approval ends. plan-apply.ts decides what is applied and
 * whether both sides are unchanged. Source: the specification's "Authentication", point 6.
 */
import { type Static, Type } from "typebox";
import type { RefusalCode } from "../../base/code/refusal-code.ts";
import { newId } from "../../base/id.ts";
import type { Json } from "../../base/json.ts";
import { APPROVAL_LIFE_MS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import {
  json as anyJson,
  oneOf,
  show,
  textOrNull,
  time,
  timeOrNull,
  warningView,
} from "../../base/schema.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, flag, integer, json, orNull, type RowOf, text } from "../../store/table.ts";
import type { SyncItem } from "./deployed-state.ts";
import { type Entry, isChange } from "./plan.ts";
import { entryView, type PlanResult } from "./plan-view.ts";
import type { SeenItem } from "./side-comparison.ts";

const STATES = ["pending", "approved", "done", "denied", "withdrawn", "void", "expired"] as const;
type State = (typeof STATES)[number];
const SOURCES = ["files", "development"] as const;

const { diff: _, ...shownFields } = entryView.properties;
/** An item of the plan, with its content before and after where they differ. */
const approvedEntryView = Type.Object({ ...shownFields, before: anyJson, after: anyJson });

const shownPlanView = Type.Object({
  changes: Type.Integer(),
  entries: Type.Array(approvedEntryView),
  warnings: Type.Array(warningView),
  secretsOf: Type.Array(Type.String(), { description: "relays whose secrets are made on the way" }),
});
type ShownPlan = Static<typeof shownPlanView>;

/** The files as they were sent. */
export interface SentFiles {
  relays: readonly Json[];
  catalog: Json;
  /** The folder's last knowledge of the environment; absent: none. */
  base?: readonly (SyncItem & SeenItem)[];
  /** The git commit of the folder. */
  commit?: string;
}

const APPROVAL = defineTable({
  name: "approval",
  key: ["id"],
  columns: {
    id: text(),
    environmentId: integer(),
    plan: text(),
    source: text<(typeof SOURCES)[number]>(),
    /** The sent files; null where the content comes from development, and after the approval ended. */
    files: orNull(json<SentFiles>()),
    replaceEdited: flag(),
    shown: json<ShownPlan>(),
    state: text<State>(),
    /** The requester, as the audit writes it. */
    askedBy: text(),
    /** The key's name and hint; null for the dashboard's session. */
    askedWith: orNull(text()),
    askedFrom: text(),
    /** The git commit of the files; null: they have none, or the content comes from development. */
    sourceCommit: orNull(text()),
    createdAt: integer(),
    expiresAt: integer(),
    decidedBy: orNull(text()),
    decidedAt: orNull(integer()),
    endedAt: orNull(integer()),
    /** The reason why it is void, denied or withdrawn, in one sentence. */
    why: orNull(text()),
  },
});
type ApprovalRow = RowOf<typeof APPROVAL>;

/** An approval without its plan. */
const APPROVAL_STATE = APPROVAL.pick(
  "id",
  "environmentId",
  "plan",
  "source",
  "replaceEdited",
  "state",
  "askedBy",
  "askedWith",
  "askedFrom",
  "sourceCommit",
  "createdAt",
  "expiresAt",
  "decidedBy",
  "decidedAt",
  "endedAt",
  "why",
);
export type Approval = RowOf<typeof APPROVAL_STATE>;

const stateFields = {
  id: Type.String(),
  state: oneOf(STATES),
  app: Type.String(),
  environment: Type.Literal("production"),
  url: Type.String({ description: "the dashboard's page on which an owner approves or refuses" }),
  plan: Type.String(),
  source: oneOf(SOURCES),
  replaceEdited: Type.Boolean(),
  askedBy: Type.String(),
  askedWith: textOrNull,
  askedFrom: Type.String(),
  sourceCommit: textOrNull,
  isMine: Type.Boolean({ description: "whether the caller asked, and so carries it out" }),
  createdAt: time,
  expiresAt: time,
  secondsLeft: Type.Integer(),
  decidedBy: textOrNull,
  decidedAt: timeOrNull,
  endedAt: timeOrNull,
  why: textOrNull,
};
const stateView = Type.Object(stateFields);
export const approvalView = Type.Object({
  ...stateFields,
  shown: Type.Optional(shownPlanView),
  secretsOf: Type.Optional(shownPlanView.properties.secretsOf),
});
export type ApprovalView = Static<typeof approvalView>;

export function viewApproval(
  row: Approval,
  { app, url, asker, secondsLeft }: { app: string; url: string; asker: string; secondsLeft: number },
): ApprovalView {
  const isMine = row.askedBy === asker;
  return show(stateView, { ...row, app, url, isMine, secondsLeft, environment: "production" as const });
}

/** Returns the plan as an owner sees it. */
export function viewPlan(
  { changes, entries, warnings, secrets }: PlanResult,
  read: readonly Entry[],
): ShownPlan {
  return {
    changes,
    entries: entries.map(({ diff: _, ...entry }, at) => {
      const { before = null, after = null } = read[at] ?? {};
      const isShown = isChange(entry, true);
      return { ...entry, before: isShown ? before : null, after: isShown ? after : null };
    }),
    warnings,
    secretsOf: secrets.map(({ relay }) => relay),
  };
}

/** The requested plan, with its files, and the key and address that requested it. */
interface ApprovalRequest
  extends Pick<Approval, "plan" | "source" | "replaceEdited" | "askedWith" | "askedFrom" | "sourceCommit"> {
  files: SentFiles | null;
  shown: ShownPlan;
}

/** Creates an approval. A new request withdraws the caller's earlier ones. Throws `approval_capped`. */
export async function requestApproval(tx: Writer, change: Change, asked: ApprovalRequest): Promise<Approval> {
  const { environmentId, by, nowMs } = change;
  const open = await listOpenApprovals(tx, environmentId);
  for (const row of open.filter(({ askedBy }) => askedBy === by))
    await end(tx, row, "withdrawn", nowMs, "A newer request replaced it.");
  const capped = rejectCapped(open, by);
  if (capped !== null) throw capped;
  const row: ApprovalRow = {
    ...asked,
    id: newId("apr", nowMs),
    environmentId,
    state: "pending",
    askedBy: by,
    createdAt: nowMs,
    expiresAt: nowMs + APPROVAL_LIFE_MS,
    decidedBy: null,
    decidedAt: null,
    endedAt: null,
    why: null,
  };
  await APPROVAL.insert(tx, row);
  const { plan, source, replaceEdited, askedWith, askedFrom, sourceCommit, shown } = asked;
  const after = { plan, source, replaceEdited, changes: shown.changes, askedWith, askedFrom, sourceCommit };
  await writeAudit(tx, { ...change, action: "approval.asked", target: targetOf(row), after });
  return row;
}

const MAX_OPEN = 20;

/** Returns the refusal of another request while others wait; null if it may be requested. */
export function rejectCapped(open: readonly Pick<Approval, "askedBy">[], by: string): Refusal | null {
  if (open.filter(({ askedBy }) => askedBy !== by).length < MAX_OPEN) return null;
  return new Refusal(
    "approval_capped",
    `${MAX_OPEN} approvals wait for production already: ask an owner to refuse those that are not needed, or wait until they expire.`,
  );
}

/** Returns the approval without its plan. Throws `not_found`. */
export function requireApproval(tx: Reader, id: string): Promise<Approval> {
  return APPROVAL_STATE.require(tx, { id }, NOT_FOUND);
}

/** Returns the approval without its plan, or null if there is none with this id. */
export function findApproval(tx: Reader, id: string): Promise<Approval | null> {
  return APPROVAL_STATE.get(tx, "WHERE id = $id", { id });
}

/** Returns the approval with its plan and files. Throws `not_found`. */
export function requireApprovalWithPlan(tx: Reader, id: string): Promise<ApprovalRow> {
  return APPROVAL.require(tx, { id }, NOT_FOUND);
}

const NOT_FOUND =
  "There is no approval with this id: it expired long ago, or it was never requested. Request a new one.";

/** Lists the environment's approvals that can still be used. */
export function listOpenApprovals(tx: Reader, environmentId: number): Promise<Approval[]> {
  const rest = "WHERE environment_id = $environmentId AND ended_at IS NULL ORDER BY expires_at DESC";
  return APPROVAL_STATE.all(tx, rest, { environmentId });
}

export function isOpen({ endedAt }: Pick<Approval, "endedAt">): boolean {
  return endedAt === null;
}

/** Approves or denies a pending approval, which the caller must check with `requireState`. */
export async function decideApproval(
  tx: Writer,
  row: Approval,
  decision: "approved" | "denied",
  { by, nowMs, environmentId }: Change,
): Promise<void> {
  const noted = { decidedBy: by, decidedAt: nowMs };
  if (decision === "approved") await APPROVAL.change(tx, row, { ...noted, state: "approved" });
  else await APPROVAL.change(tx, row, { ...noted, state: "denied", endedAt: nowMs, files: null });
  const { plan, askedBy, askedWith, askedFrom } = row;
  const after = { plan, askedBy, askedWith, askedFrom };
  await writeAudit(tx, {
    environmentId,
    by,
    nowMs,
    action: `approval.${decision}`,
    target: targetOf(row),
    after,
  });
}

/** Withdraws an approval whose requester no longer waits. */
export async function withdrawApproval(tx: Writer, row: Approval, change: Change): Promise<void> {
  await end(tx, row, "withdrawn", change.nowMs, "The requester no longer waits for it.");
  await writeAudit(tx, { ...change, action: "approval.withdrawn", target: targetOf(row) });
}

/** Uses the approval, in the transaction of the change. */
export async function useApproval(tx: Writer, row: Approval, change: Change, changes: number): Promise<void> {
  await end(tx, row, "done", change.nowMs, null);
  const after = { plan: row.plan, changes, approvedBy: row.decidedBy };
  await writeAudit(tx, { ...change, action: "approval.used", target: targetOf(row), after });
}

/** Ends an approval whose time is over, or whose files or environment changed. */
export async function endApproval(
  tx: Writer,
  row: Approval,
  state: "void" | "expired",
  nowMs: number,
  why: string | null,
): Promise<void> {
  if (isOpen(row)) await end(tx, row, state, nowMs, why);
}

/** Keeps the plan of a used approval for its retention time. Drops the plan of any other. */
async function end(
  tx: Writer,
  row: Approval,
  state: State,
  nowMs: number,
  why: string | null,
): Promise<void> {
  const change = { state, endedAt: nowMs, files: null, why };
  await APPROVAL.change(tx, row, state === "done" ? change : { ...change, shown: EMPTY_PLAN });
}

const EMPTY_PLAN: ShownPlan = { changes: 0, entries: [], warnings: [], secretsOf: [] };

/** Throws unless the approval is in this state. */
export function requireState(
  wanted: "pending" | "approved",
  { state, why, decidedBy }: Pick<Approval, "state" | "why" | "decidedBy">,
): void {
  if (state === wanted) return;
  const [code, message] =
    state === "expired" && decidedBy !== null ? APPLIED_TOO_LATE : STATE_REFUSALS[state];
  throw new Refusal(code, why === null ? message : `${message} ${why}`);
}

const STATE_REFUSALS: Readonly<Record<State, readonly [RefusalCode, string]>> = {
  pending: [
    "approval_pending",
    "No owner has approved this yet: open its address in the browser and approve it there.",
  ],
  approved: [
    "approval_used",
    "This was approved already: the requester carries it out, and no second approval is needed.",
  ],
  done: [
    "approval_used",
    "This was approved and carried out already, and an approval works once: request a new one.",
  ],
  denied: ["approval_denied", "An owner refused this: talk to the owner, then request a new one."],
  withdrawn: ["approval_void", "This was withdrawn, so there is nothing to approve: request a new one."],
  void: [
    "approval_void",
    "Production changed after the plan was shown, so the approval is void: request a new one.",
  ],
  expired: [
    "approval_expired",
    "No owner approved this within ten minutes, so the request expired: request a new one.",
  ],
};

const APPLIED_TOO_LATE: (typeof STATE_REFUSALS)[State] = [
  "approval_expired",
  "An owner approved this, but the plan was not applied within ten minutes of the request. The approval expired and nothing was changed. Run the command again: an owner must approve the new request.",
];

/** Ends up to 50 approvals whose time is over, and returns how many it ended. */
export async function endExpiredApprovals(tx: Writer, nowMs: number): Promise<number> {
  const rest = "WHERE ended_at IS NULL AND expires_at <= $nowMs LIMIT 50";
  const rows = await APPROVAL_STATE.all(tx, rest, { nowMs });
  for (const row of rows) await end(tx, row, "expired", nowMs, null);
  return rows.length;
}

function targetOf({ id }: Pick<Approval, "id">): string {
  return `approval:${id}`;
}
