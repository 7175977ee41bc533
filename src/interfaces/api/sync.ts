/**
 * Sync: previews what a set of definition files and a catalog would change in an environment, and applies exactly that in development. For
 * production it only previews. Applying needs an approval (approval.ts).
 */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { isJsonObject, type Json, writeJson } from "../../base/json.ts";
import { MAX_PROBLEMS } from "../../base/limit.ts";
import { capProblems, type Problem, Refusal, rejectDefinition, type Warning } from "../../base/refusal.ts";
import { fields, oneOf, orNull } from "../../base/schema.ts";
import { placeProblems } from "../../base/shape.ts";
import { utf8Bytes } from "../../base/text.ts";
import { countUnfinished } from "../../engine/event/count.ts";
import { runCases, warnOfCases } from "../../insight/simulate/case-run.ts";
import { ApplyKey, applyOnce } from "../../operator/sync/apply-response.ts";
import { listOpenApprovals, rejectCapped, type SentFiles } from "../../operator/sync/approval.ts";
import { checkCatalog } from "../../operator/sync/catalog-file.ts";
import { SYNC_ITEM_KINDS } from "../../operator/sync/deployed-state.ts";
import { readEnvironmentFiles, requireSyncSize } from "../../operator/sync/environment-files.ts";
import type { Files } from "../../operator/sync/plan.ts";
import { applyPlan, type CaseTrial, previewPlan } from "../../operator/sync/plan-apply.ts";
import {
  appliedView,
  applyKey,
  type EntryView,
  type PlanResult,
  planView,
} from "../../operator/sync/plan-view.ts";
import { MAX_SEEN_ITEMS, type SeenItem } from "../../operator/sync/side-comparison.ts";
import { syncTarget } from "../../operator/sync/synced.ts";
import { type Environment, requireEnvironment } from "../../platform/account/environment.ts";
import type { Permission } from "../../platform/account/permission.ts";
import { type Checked, checkDefinition } from "../../rules/relay/definition.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { HttpDeps } from "../http/deps.ts";
import { type EnvironmentCall, environmentRoute } from "../http/route.ts";
import { caseDeps } from "./case.ts";
import { recordMissedBefore, relayContext } from "./relay-context.ts";

const MAX_NAME_CHARS = 200;
/** The longest commit: a SHA-256 in hex, and `-dirty`. */
const MAX_COMMIT_CHARS = 70;

/** The files to sync, and the target environment. */
export const wanted = {
  relays: Type.Optional(
    Type.Array(Type.Unknown(), {
      description: "the relay definitions of all files",
    }),
  ),
  catalog: Type.Optional(
    orNull(Type.Unknown({ description: "the catalog file; without it, the catalog does not change" })),
  ),
  prune: Type.Optional(
    Type.Boolean({
      description:
        "delete relays from an earlier sync whose file is gone and that were not edited since; development only",
    }),
  ),
  replaceEdited: Type.Optional(
    Type.Boolean({
      description: "also replace items that were created or edited in the dashboard since the last sync",
    }),
  ),
  base: Type.Optional(
    Type.Array(
      fields({
        kind: oneOf(SYNC_ITEM_KINDS),
        name: Type.String({ maxLength: MAX_NAME_CHARS }),
        mark: Type.String({ pattern: "^[0-9a-f]{40}$", maxLength: 40 }),
        changed: Type.Boolean(),
      }),
      {
        maxItems: MAX_SEEN_ITEMS,
        description:
          "what the folder last saw of the environment: the mark of each item's content, and whether the file differs from it. An item that changed there since is replaced only with replaceEdited. Without it, an item counts as known if it equals the content of the last sync.",
      },
    ),
  ),
  commit: Type.Optional(
    Type.String({
      pattern: "^([0-9a-f]{40}|[0-9a-f]{64})(-dirty)?$",
      maxLength: MAX_COMMIT_CHARS,
      description: "the git commit of the folder; -dirty: the folder has changes that are in no commit",
    }),
  ),
  from: Type.Optional(
    Type.Literal("development", {
      description: "development: apply the items of that environment of the app instead of files",
    }),
  ),
  to: Type.Optional(
    Type.Literal("production", {
      description:
        "production: a development key can name it too, but applying the plan there needs an approval",
    }),
  ),
};
type Wanted = Static<ReturnType<typeof fields<typeof wanted>>>;

export const syncRoutes = [
  environmentRoute({
    method: "POST",
    path: "/sync/plan",
    needs: "read",
    summary:
      "Shows what files, or the items in development, would change in an environment, and what would be refused. It changes nothing.",
    body: fields(wanted),
    answer: planView,
    async handle(call) {
      const target = await findTarget(call, call.body, "read");
      const trial = maySeeCases(call, target) ? makeCaseTrial(call.deps, target) : NO_TRIAL;
      const { preview, warnings } = await previewWanted(call, target, call.body, trial);
      const rejection = await findRejection(call, target, preview.changes);
      const entries = await countWaiting(call.deps, target, preview.entries);
      return { ...viewCarried({ ...preview, entries }, warnings), refusal: viewRejection(rejection) };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/sync/apply",
    needs: "edit_definitions",
    // A plan can delete relays and items of the catalog.
    sensitive: true,
    summary: "Applies the plan of this name in one transaction. Only this response contains the new secrets.",
    body: fields({
      ...wanted,
      plan: Type.String({ description: "the name of the plan that was read" }),
      key: applyKey,
    }),
    answer: appliedView,
    async handle(call) {
      const { deps, by, nowMs } = call;
      const { key, ...body } = call.body;
      const target = await findTarget(call, body, "read");
      if (target.name === "production")
        throw new Refusal(
          "approval_needed",
          "Production accepts no change without an owner's approval: relay sync --live and relay promote request one.",
        );
      const change = { environmentId: target.id, by, nowMs };
      const once = key === undefined ? null : new ApplyKey(deps.sealer, change, key, body as Json);
      const { files, warnings } = await readWanted(call, body);
      const deployment = { files, replacesEdited: body.replaceEdited === true };
      const cap = deps.syncCap.makeCap(target, nowMs);
      await recordMissedBefore(call, target.id);
      return await deps.store.write(call.origin, (tx) =>
        applyOnce(tx, once, async () => {
          const done = await applyPlan(tx, relayContext(call), deployment, body.plan, cap);
          return { ...viewCarried(done, warnings), secrets: done.secrets };
        }),
      );
    },
  }),
];

/** Returns the refusal that the apply of the plan, or the request for its approval, would get now. */
async function findRejection(
  { deps, by, nowMs }: WantedCall & Pick<EnvironmentCall, "by">,
  target: Environment,
  changes: number,
): Promise<Refusal | null> {
  return await deps.store.read(async (tx) => {
    const tooMany = await deps.syncCap.findRejection(tx, target, changes, nowMs);
    if (tooMany !== null || target.name !== "production" || changes === 0) return tooMany;
    return rejectCapped(await listOpenApprovals(tx, target.id), by);
  });
}

function viewRejection(rejection: Refusal | null) {
  if (rejection === null) return null;
  const { code, message, extra } = rejection;
  return { code, message, ...(extra.resetAtMs === undefined ? {} : { resetAt: toIso(extra.resetAtMs) }) };
}

/** The most relays whose events a plan counts. */
const MAX_COUNTED_RELAYS = 20;

/** Adds to each relay that would be deleted how many of its events wait, because these fail with it. */
async function countWaiting(
  { store }: HttpDeps,
  { id }: Environment,
  entries: readonly EntryView[],
): Promise<EntryView[]> {
  const deleted = entries.filter(({ state }) => state === "deleted").slice(0, MAX_COUNTED_RELAYS);
  const counts = new Map<EntryView, number>();
  for (const entry of deleted) counts.set(entry, await countUnfinished(store, id, entry.name));
  return entries.map((entry) => {
    const waitingEvents = counts.get(entry);
    return waitingEvents === undefined ? entry : { ...entry, waitingEvents };
  });
}

export function viewCarried({ plan, changes, entries, warnings }: PlanResult, ofFiles: readonly Warning[]) {
  return { plan, changes, entries, warnings: [...ofFiles, ...warnings] };
}

type WantedCall = Pick<EnvironmentCall, "environment" | "actor" | "requireIn"> & {
  deps: HttpDeps;
  nowMs: number;
};

/** Returns the target environment: the one in the path, or production if the body names it and the caller has the permission there. */
export async function findTarget(
  { deps, environment, requireIn }: WantedCall,
  { to, prune }: Pick<Wanted, "to" | "prune">,
  needs: Permission,
): Promise<Environment> {
  const { appId, name } = environment;
  if (name === "local")
    throw new Refusal(
      "forbidden",
      "Local development reads its own service directory, and accepts no sync: name the development environment of a server.",
    );
  if (name === "development" && to === undefined) return environment;
  if (prune === true)
    throw new Refusal(
      "invalid_input",
      "prune works only in development, because a sync deletes nothing in production: delete a production relay in the dashboard.",
    );
  if (name === "production") return environment;
  requireIn("production", needs);
  return await deps.store.read((tx) => requireEnvironment(tx, appId, "production"));
}

/** Reports whether the caller may see payloads in both environments, because production also runs the cases of development. */
function maySeeCases({ mayIn }: Pick<EnvironmentCall, "mayIn">, target: Environment): boolean {
  return mayIn(target.name, "read_payloads") && mayIn("development", "read_payloads");
}

/** Runs no case. The results of cases tell the values of their requests. */
const NO_TRIAL: CaseTrial = async () => new Map();

/** Returns the plan, with the refusals and warnings of each of its saves. */
export async function previewWanted(
  call: WantedCall,
  target: Environment,
  body: Wanted,
  trial = makeCaseTrial(call.deps, target),
) {
  const { files, warnings, sent } = await readWanted(call, body);
  const deployment = { files, replacesEdited: body.replaceEdited === true };
  const { store, syncCap } = call.deps;
  const most = await store.read((tx) => syncCap.findMost(tx, target));
  const context = { ...relayContext(call), environment: target };
  const preview = await previewPlan(store, context, deployment, most, trial);
  return { preview, warnings, sent, most };
}

function makeCaseTrial(deps: HttpDeps, target: Environment): CaseTrial {
  return async (relayNames, prepare) => {
    const reports = await runCases(deps.store, caseDeps(deps), target, relayNames, prepare);
    return new Map(
      [...reports].map(([name, report]) => [
        name,
        { message: report.message, warnings: warnOfCases(report) },
      ]),
    );
  };
}

/** Reads the files to sync: those in the body, or the current state of development. */
async function readWanted(
  { deps, environment, requireIn, nowMs }: WantedCall,
  { relays, catalog = null, prune = false, base, commit, from }: Wanted,
): Promise<{ files: Files; warnings: Warning[]; sent: SentFiles | null }> {
  if ((from === undefined) === (relays === undefined))
    throw new Refusal(
      "invalid_input",
      "relays and from cannot be combined, and one of them is required: send the definitions in relays, or name their environment with from.",
    );
  if (relays === undefined) {
    requireIn("development", "read");
    const source = await deps.store.read((tx) => requireEnvironment(tx, environment.appId, "development"));
    return { files: await readEnvironmentFiles(deps.store, source, nowMs), warnings: [], sent: null };
  }
  const sent = {
    relays: relays as Json[],
    catalog: catalog as Json,
    ...(base === undefined ? {} : { base }),
    ...(commit === undefined ? {} : { commit }),
  };
  return { ...(await readSent(sent, prune, nowMs)), sent };
}

/** Checks every file of the set like a save. Refuses with `invalid_definition` and every problem. */
export async function readSent(
  { relays, catalog, base, commit }: SentFiles,
  prune: boolean,
  nowMs: number,
): Promise<{ files: Files; warnings: Warning[] }> {
  requireSyncSize(utf8Bytes(writeJson({ relays, catalog })));
  const problems: Problem[] = [];
  const checkeds = new Map<string, Checked>();
  for (const [index, value] of relays.entries()) {
    if (problems.length > MAX_PROBLEMS) break;
    const name = isJsonObject(value) && typeof value.name === "string" ? value.name : String(index);
    const place = `relays.${name.slice(0, 63)}`;
    const checked = checkDefinition(value, nowMs);
    if ("problems" in checked) problems.push(...placeProblems(place, checked.problems));
    else if (checkeds.has(name)) {
      problems.push({
        field: place,
        message: `\`${place}\` occurs twice: send one definition for each name.`,
      });
    } else checkeds.set(name, checked);
    await yieldToEventLoop();
  }
  const read = catalog === null ? null : checkCatalog(catalog);
  if (read !== null && "problems" in read) problems.push(...placeProblems("catalog", read.problems));
  if (problems.length > 0 || (read !== null && "problems" in read))
    throw rejectDefinition(capProblems(problems, "The set"));
  const seen =
    base === undefined ? null : new Map(base.map((one): [string, SeenItem] => [syncTarget(one), one]));
  const files = {
    relays: [...checkeds.values()],
    catalog: read?.catalog ?? null,
    prune,
    seen,
    commit: commit ?? null,
    source: null,
  };
  return { files, warnings: read?.warnings ?? [] };
}
