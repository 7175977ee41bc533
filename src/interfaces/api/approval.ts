/** Approvals of changes to production. A key or the dashboard requests one, a signed-in owner decides, and the requester uses it once. */
import { Type } from "typebox";
import type { RefusalCode } from "../../base/code/refusal-code.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, oneOf } from "../../base/schema.ts";
import { showChecklist } from "../../insight/overview/checklist.ts";
import { ApplyKey, applyOnce } from "../../operator/sync/apply-response.ts";
import {
  type ApprovalView,
  approvalView,
  decideApproval,
  endApproval,
  findApproval,
  isOpen,
  listOpenApprovals,
  requestApproval,
  requireApproval,
  requireApprovalWithPlan,
  requireState,
  useApproval,
  viewApproval,
  viewPlan,
  withdrawApproval,
} from "../../operator/sync/approval.ts";
import { readEnvironmentFiles, requirePlan } from "../../operator/sync/environment-files.ts";
import { type Files, findRefusal, isChange } from "../../operator/sync/plan.ts";
import { applyPlan } from "../../operator/sync/plan-apply.ts";
import { appliedView, applyKey, type EntryView, type PlanResult } from "../../operator/sync/plan-view.ts";
import {
  type Environment,
  findEnvironmentById,
  needsSecondPerson,
  requireEnvironment,
} from "../../platform/account/environment.ts";
import type { Place } from "../../platform/account/permission.ts";
import type { Change } from "../../platform/audit/audit.ts";
import { findRelay, receiverUrl } from "../../rules/relay/relay.ts";
import type { Origin, Reader, Writer } from "../../store/port.ts";
import { rejectUnknownApproval, requireApprover } from "../http/admission.ts";
import { callerOf } from "../http/caller.ts";
import { type Caller, callerRoute } from "../http/caller-route.ts";
import { dashboardOrigin } from "../http/cookie.ts";
import type { HttpDeps } from "../http/deps.ts";
import { environmentRoute } from "../http/route.ts";
import { recordMissedBefore, relayContext } from "./relay-context.ts";
import { findTarget, previewWanted, readSent, viewCarried, wanted } from "./sync.ts";

const plan = Type.String({ description: "the name of the plan that was read" });
const answer = Type.Object({ approval: approvalView });

type Approval = Awaited<ReturnType<typeof requireApproval>>;
type Asking = Caller & { deps: HttpDeps; nowMs: number };

/** Returns the environment that an approval changes; null for an unknown approval, which the route itself refuses. */
async function placeOf(tx: Reader, { id = "" }: Readonly<Record<string, string>>): Promise<Place | null> {
  const row = await findApproval(tx, id);
  return row === null ? null : await findEnvironmentById(tx, row.environmentId);
}

export const approvalRoutes = [
  environmentRoute({
    method: "POST",
    path: "/approvals",
    needs: "request_changes",
    summary:
      "Requests an owner's approval to apply exactly this plan to production, once, within 10 minutes.",
    body: fields({ ...wanted, plan }),
    answer,
    status: 201,
    async handle(call) {
      const { deps, body, request, source, by, nowMs } = call;
      const target = await findTarget(call, { ...body, to: "production" }, "request_changes");
      const { preview, warnings, sent, most } = await previewWanted(call, target, body);
      if (preview.plan !== body.plan) throw rejectChangedPlan(preview.plan);
      const refused = deps.syncCap.rejectTooLarge(preview.changes, target, most) ?? findRefusal(preview);
      if (refused !== null) throw new Refusal(refused.code, refused.message);
      requirePerson(target, by);
      if (preview.changes === 0)
        throw new Refusal(
          "invalid_input",
          "plan changes nothing in production, so there is nothing to approve or apply.",
        );
      await deps.approvals.take(target.id);
      const key = callerOf(request);
      const asked = {
        plan: preview.plan,
        source: sent === null ? ("development" as const) : ("files" as const),
        files: sent,
        replaceEdited: body.replaceEdited === true,
        shown: viewPlan({ ...preview, warnings: [...warnings, ...preview.warnings] }, preview.read.entries),
        askedWith: key?.kind === "key" ? `${key.key.name} (${key.key.hint})` : null,
        askedFrom: source,
        sourceCommit: sent?.commit ?? null,
      };
      const change = { environmentId: target.id, by, nowMs };
      const row = await deps.store.write(call.origin, (tx) => requestApproval(tx, change, asked));
      return { approval: view(call, row, target) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/approvals",
    needs: "read",
    summary: "Lists the approvals that wait for an owner, newest first, without their plans.",
    answer: Type.Object({
      approvals: Type.Array(approvalView),
      others: Type.Integer({ description: "the approvals of other callers, which a key does not see" }),
    }),
    async handle(call) {
      const { deps } = call;
      const target = await findTarget(call, { to: "production" }, "read");
      const rows = await deps.store.read((tx) => listOpenApprovals(tx, target.id));
      // A key must not see requests of other callers.
      const alive = rows.filter((row) => deps.approvals.remainingMs(row) > 0);
      const shown = alive.filter((row) => call.may("approve") || row.askedBy === call.by);
      return {
        approvals: shown.map((row) => view(call, row, target)),
        others: alive.length - shown.length,
      };
    },
  }),
  callerRoute({
    method: "GET",
    path: "/api/approvals/:id",
    needs: "read",
    placeOf,
    summary:
      "Shows the state of an approval. A signed-in owner also gets the plan; the key that requested it gets the relays with new secrets.",
    answer,
    async handle(call) {
      const { deps, params } = call;
      const { row: asked, target } = await requireSeen(call, params.id);
      const row = await refreshApproval(call, asked);
      const { shown } = await deps.store.read((tx) => requireApprovalWithPlan(tx, row.id));
      const { secretsOf } = shown;
      const visible = call.may("approve") ? { shown } : row.state === "done" ? { secretsOf } : {};
      return { approval: { ...view(call, row, target), ...visible } };
    },
  }),
  callerRoute({
    method: "POST",
    path: "/api/approvals/:id",
    needs: "request_changes",
    sensitive: true,
    placeOf,
    summary:
      "Approves or refuses the plan of this name, as a signed-in owner. The requester can withdraw their own request.",
    body: fields({
      decision: oneOf(["approve", "refuse", "withdraw"]),
      plan: Type.String({ description: "the name of the plan that was shown" }),
    }),
    answer,
    async handle(call) {
      const { deps, by, params, body, nowMs, origin } = call;
      const { row: asked, target } = await requireSeen(call, params.id);
      const { decision } = body;
      if (decision === "withdraw" && asked.askedBy !== by)
        throw new Refusal(
          "forbidden",
          "decision is withdraw, but another owner or key requested this approval: refuse it instead.",
        );
      if (decision !== "withdraw" && !call.may("approve"))
        throw new Refusal(
          "forbidden",
          "Only an owner of production can approve or refuse this change: ask an owner to open it in the dashboard.",
        );
      if (body.plan !== asked.plan) throw rejectChangedPlan(asked.plan);
      const row = await endIfExpired(call, asked);
      const change = { environmentId: target.id, by, nowMs };
      if (decision === "approve") await approve(call, row, change);
      else
        await deps.store.write(origin, async (tx) => {
          const now = await requireApproval(tx, row.id);
          if (decision === "withdraw") {
            if (isOpen(now)) await withdrawApproval(tx, now, change);
            return;
          }
          if (now.state !== "approved") requireState("pending", now);
          await decideApproval(tx, now, "denied", change);
        });
      return { approval: view(call, await deps.store.read((tx) => requireApproval(tx, row.id)), target) };
    },
  }),
  callerRoute({
    method: "POST",
    path: "/api/approvals/:id/apply",
    needs: "request_changes",
    placeOf,
    summary:
      "Applies an approved plan once, in one transaction, for the requester. Only this response contains the new secrets.",
    body: fields({ key: applyKey }),
    answer: appliedView,
    async handle(call) {
      const { deps, by, params, body, nowMs } = call;
      const { row: asked, target } = await requireSeen(call, params.id);
      if (asked.askedBy !== by)
        throw new Refusal(
          "forbidden",
          "Another owner or key requested this approval, and only the requester can apply it: request your own approval.",
        );
      const change = { environmentId: target.id, by, nowMs };
      // The key belongs to this approval, so each approval can be applied under the same key.
      const key = body.key === undefined ? null : `${asked.id}:${body.key}`;
      const once = key === null ? null : new ApplyKey(deps.sealer, change, key, { approval: asked.id });
      const known = once === null ? null : await deps.store.read((tx) => once.find(tx));
      const done = known ?? (await applyApproved(call, asked, target, once));
      // The plan is applied, and only this response contains the secrets, so a failed read must not lose them.
      const notLive = await listNotLive(
        deps,
        target,
        done.entries.filter((entry) => isChange(entry, asked.replaceEdited)),
      ).catch((error: unknown) => {
        deps.log.warn("The checklists of the applied relays were not read.", { error });
        return [];
      });
      return { ...done, notLive };
    },
  }),
];

/** Applies the approved plan in one transaction, and ends an approval whose plan is refused. */
async function applyApproved(
  call: Asking & { origin: Origin },
  asked: Approval,
  target: Environment,
  once: ApplyKey | null,
): Promise<PlanResult> {
  const { deps, actor, by, nowMs, origin } = call;
  const row = await endIfExpired(call, asked);
  requireState("approved", row);
  const files = await readAsked(call, row);
  const deployment = { files, replacesEdited: row.replaceEdited };
  const context = relayContext({ deps, environment: target, actor, nowMs });
  const cap = deps.syncCap.makeCap(target, nowMs);
  await recordMissedBefore(call, target.id);
  const apply = async (tx: Writer): Promise<PlanResult> => {
    const now = await requireApproval(tx, row.id);
    requireTime(call, now);
    requireState("approved", now);
    await requireApprover(tx, now.decidedBy, target);
    const carried = await applyPlan(tx, context, deployment, now.plan, cap);
    await useApproval(tx, now, { environmentId: target.id, by, nowMs }, carried.changes);
    return { ...viewCarried(carried, []), secrets: carried.secrets };
  };
  try {
    return await deps.store.write(origin, (tx) => applyOnce(tx, once, () => apply(tx)));
  } catch (error) {
    // An approval that expired meanwhile is not void: no side changed.
    if (error instanceof Refusal && error.code === "approval_expired") await endIfExpired(call, row);
    else if (error instanceof Refusal) await endVoid(call, row, error.message);
    throw error;
  }
}

/** The number of relays whose checklist is read after a plan was applied, because a plan can have hundreds of relays. */
const MAX_CHECKLISTS = 5;

/** Lists the relays that have an open step on their checklist, of the first ones among the changed entries. */
async function listNotLive(
  { store, baseUrl }: HttpDeps,
  target: Environment,
  entries: readonly EntryView[],
): Promise<string[]> {
  const carried = entries.filter(({ kind, state }) => kind === "relay" && state !== "deleted");
  const names: string[] = [];
  for (const { name } of carried.slice(0, MAX_CHECKLISTS)) {
    const relay = await store.read((tx) => findRelay(tx, target.id, name));
    if (relay === null) continue;
    const urlOf = (of: string) => receiverUrl(baseUrl(), target.appId, of);
    const { left } = await showChecklist(store, target, relay, urlOf);
    if (left > 0) names.push(name);
  }
  return names;
}

/** Returns the person of an actor in the format of rows; null for a key that belongs to no person, and for the command line. */
function personOf(by: string): string | null {
  return /^owner:(\S+)/.exec(by)?.[1] ?? null;
}

/** Refuses a request that no person makes, if production needs a second person: the first one would be unknown. */
function requirePerson(target: Environment, askedBy: string): void {
  if (!needsSecondPerson(target) || personOf(askedBy) !== null) return;
  throw new Refusal(
    "forbidden",
    "Production needs a second person, and this request belongs to no person: request the change in the dashboard, or with a key of relay login.",
  );
}

/** Refuses an approval by the person who requested it, if production needs a second person. */
function requireOther(target: Environment, askedBy: string, by: string): void {
  requirePerson(target, askedBy);
  if (!needsSecondPerson(target) || personOf(askedBy) !== personOf(by)) return;
  throw new Refusal(
    "forbidden",
    "You requested this change, and production needs a second person: ask another owner to approve it.",
  );
}

/** Approves in the transaction that finds both sides unchanged since they were shown. Otherwise the approval becomes void. */
async function approve(call: Asking, row: Approval, change: Change): Promise<void> {
  requireState("pending", row);
  try {
    const files = await readAsked(call, row);
    await call.deps.store.write("dashboard", async (tx) => {
      const now = await requireApproval(tx, row.id);
      const target = await findEnvironmentById(tx, now.environmentId);
      if (target !== null) requireOther(target, now.askedBy, call.by);
      requireTime(call, now);
      requireState("pending", now);
      await requirePlan(tx, now.environmentId, files, now.plan);
      await decideApproval(tx, now, "approved", change);
    });
  } catch (error) {
    if (!(error instanceof Refusal) || !MOVED.has(error.code)) throw error;
    await endVoid(call, row, MOVED_WORDS);
    throw new Refusal("approval_void", `${MOVED_WORDS} Nothing was approved: request an approval again.`);
  }
}

/** Codes of refusals that mean that a side changed since it was shown. */
const MOVED: ReadonlySet<RefusalCode> = new Set<RefusalCode>([
  "version_conflict",
  "invalid_definition",
  "body_too_large",
]);
const MOVED_WORDS = "Development or production changed after this request.";

/** Returns the approval and its environment, for owners and for the requester. */
async function requireSeen(
  { deps, may, by }: Asking,
  id: string,
): Promise<{ row: Approval; target: Environment }> {
  return await deps.store.read(async (tx) => {
    const row = await requireApproval(tx, id);
    const target = await findEnvironmentById(tx, row.environmentId);
    if (target !== null && (may("approve") || row.askedBy === by)) return { row, target };
    throw rejectUnknownApproval();
  });
}

/** Returns the approval in its current state. It ends one that has expired. */
async function endIfExpired({ deps, nowMs }: Asking, row: Approval): Promise<Approval> {
  if (!isOpen(row) || deps.approvals.remainingMs(row) > 0) return row;
  return await deps.store.write("dashboard", async (tx) => {
    await endApproval(tx, await requireApproval(tx, row.id), "expired", nowMs, null);
    return await requireApproval(tx, row.id);
  });
}

/** Does the same as `endIfExpired`, and makes an approval void if a side changed since the request. It does not compare both sides at every call. */
async function refreshApproval(call: Asking, asked: Approval): Promise<Approval> {
  const row = await endIfExpired(call, asked);
  const { deps } = call;
  if (!isOpen(row) || !deps.approvals.startCheckIfDue(row)) return row;
  try {
    const files = await readAsked(call, row);
    await deps.store.read((tx) => requirePlan(tx, row.environmentId, files, row.plan));
    return row;
  } catch (error) {
    if (!(error instanceof Refusal) || !MOVED.has(error.code)) throw error;
    return await endVoid(call, row, MOVED_WORDS);
  }
}

async function endVoid({ deps, nowMs }: Asking, row: Approval, why: string): Promise<Approval> {
  return await deps.store.write("dashboard", async (tx) => {
    await endApproval(tx, await requireApproval(tx, row.id), "void", nowMs, why);
    return await requireApproval(tx, row.id);
  });
}

/** Refuses with `approval_expired` an approval that expired since it was last read. */
function requireTime({ deps }: Asking, row: Approval): void {
  if (deps.approvals.remainingMs(row) === 0) requireState("pending", { ...row, state: "expired", why: null });
}

/** Reads the files of the request, or the current definitions of development. */
async function readAsked({ deps, nowMs }: Asking, { id, environmentId }: Approval): Promise<Files> {
  const approval = await deps.store.read((tx) => requireApprovalWithPlan(tx, id));
  if (approval.files !== null) return (await readSent(approval.files, false, nowMs)).files;
  const from = await deps.store.read(async (tx) => {
    const appId = (await findEnvironmentById(tx, environmentId))?.appId ?? "";
    return await requireEnvironment(tx, appId, "development");
  });
  return await readEnvironmentFiles(deps.store, from, nowMs);
}

function rejectChangedPlan(planId: string): Refusal {
  return new Refusal(
    "version_conflict",
    "plan names another plan than the current one: read the plan again, then decide on that one.",
    { details: { plan: planId } },
  );
}

function view({ deps, by }: Asking, row: Approval, { appId }: Environment): ApprovalView {
  const origin = dashboardOrigin(deps.config) ?? deps.baseUrl();
  const secondsLeft = isOpen(row) ? Math.ceil(deps.approvals.remainingMs(row) / 1_000) : 0;
  return viewApproval(row, { app: appId, url: `${origin}/approvals/${row.id}`, asker: by, secondsLeft });
}
