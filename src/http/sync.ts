/** Sync: what a set of definition files and a catalog would change in a development environment, and the carrying out of exactly that. */
import { type Static, Type } from "typebox";
import { isJsonObject, type Json, writeJson } from "../ground/json.ts";
import { type Problem, placeProblems, Refusal, refuseDefinition, type Warning } from "../ground/refusal.ts";
import { fields, orNull } from "../ground/schema.ts";
import { utf8Bytes } from "../ground/text.ts";
import { type Checked, checkDefinition } from "../relay/definition.ts";
import { turnLoop } from "../store/walk.ts";
import { applyPlan, tellPlan } from "../sync/carry.ts";
import { checkCatalog } from "../sync/catalog-file.ts";
import { appliedView, type Carried, type Files, planView } from "../sync/plan.ts";
import { relayContext } from "./relay.ts";
import { type EnvironmentCall, environmentRoute } from "./route.ts";

const set = {
  relays: Type.Array(Type.Unknown(), {
    description: "relay definitions, every one there is a file of",
  }),
  catalog: Type.Optional(
    orNull(
      Type.Unknown({ description: "the catalog file; absent: there is none, and nothing of it changes" }),
    ),
  ),
  prune: Type.Optional(
    Type.Boolean({
      description: "delete relays that a sync brought, that nobody edited since, and whose file is gone",
    }),
  ),
  replaceEdited: Type.Optional(
    Type.Boolean({
      description: "replace also what was made or edited in the dashboard since the last sync",
    }),
  ),
};
export const syncRoutes = [
  environmentRoute({
    method: "POST",
    path: "/sync/plan",
    summary:
      "Tells what a set of definition files and a catalog would change in development, what of it would be refused or warned of, and changes nothing.",
    body: fields(set),
    answer: planView,
    async handle(call) {
      requireDevelopment(call);
      const { deps, body, nowMs } = call;
      const { files, warnings } = await readFiles(body, nowMs);
      const wish = { files, replacesEdited: body.replaceEdited === true };
      const { syncCap } = deps;
      const told = await tellPlan(deps.store, relayContext(call), wish, syncCap.limit);
      const tooLarge = syncCap.findTooLarge(told.changes);
      const refusal = tooLarge === null ? null : { code: tooLarge.code, message: tooLarge.message };
      return { ...viewCarried(told, warnings), refusal };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/sync/apply",
    summary:
      "Carries out the plan of this name in one transaction, or nothing of it; secrets that are minted stand in this answer and in no other.",
    body: fields({ ...set, plan: Type.String({ description: "the name of the plan that was read" }) }),
    answer: appliedView,
    async handle(call) {
      requireDevelopment(call);
      const { deps, environmentId, body, nowMs } = call;
      const { files, warnings } = await readFiles(body, nowMs);
      const wish = { files, replacesEdited: body.replaceEdited === true };
      const cap = deps.syncCap.begin(environmentId);
      try {
        const done = await deps.store.write(call.origin, (tx) =>
          applyPlan(tx, relayContext(call), wish, body.plan, cap),
        );
        return { ...viewCarried(done, warnings), secrets: done.secrets };
      } catch (error) {
        cap.giveBack();
        throw error;
      }
    },
  }),
];

function viewCarried({ plan, changes, entries, warnings }: Carried, ofFiles: readonly Warning[]) {
  return { plan, changes, entries, warnings: [...ofFiles, ...warnings] };
}

function requireDevelopment({ environment }: EnvironmentCall): void {
  if (environment.name === "development") return;
  throw new Refusal(
    "forbidden",
    environment.name === "production"
      ? "Production takes no sync by key: sync to the development environment, and change production in its dashboard."
      : "Local development reads the files of its own service directory and takes no sync: name the development environment of a server.",
  );
}

type Sent = Static<ReturnType<typeof fields<typeof set>>>;

/** The set, each file of it checked as every save does. Refuses with `invalid_definition` and every problem. */
async function readFiles(
  { relays, catalog, prune = false }: Sent,
  nowMs: number,
): Promise<{ files: Files; warnings: Warning[] }> {
  const bytes = utf8Bytes(writeJson({ relays, catalog }));
  if (bytes > MAX_SYNC_BYTES) {
    throw new Refusal(
      "body_too_large",
      `The files are ${bytes} bytes together, and one sync carries at most ${MAX_SYNC_BYTES}: make them smaller, or split the app.`,
    );
  }
  const problems: Problem[] = [];
  const checkeds = new Map<string, Checked>();
  for (const [index, value] of relays.entries()) {
    const name = isJsonObject(value) && typeof value.name === "string" ? value.name : String(index);
    const place = `relays.${name.slice(0, 63)}`;
    const checked = checkDefinition(value, nowMs);
    if ("problems" in checked) problems.push(...placeProblems(place, checked.problems));
    else if (checkeds.has(name)) {
      problems.push({
        field: place,
        message: `\`${place}\` stands here twice: send one definition of each name.`,
      });
    } else checkeds.set(name, checked);
    await turnLoop();
  }
  const read = catalog === undefined || catalog === null ? null : checkCatalog(catalog as Json);
  if (read !== null && "problems" in read) problems.push(...placeProblems("catalog", read.problems));
  if (problems.length > 0 || (read !== null && "problems" in read))
    throw refuseDefinition(problems.slice(0, MAX_PROBLEMS));
  const files = { relays: [...checkeds.values()], catalog: read?.catalog ?? null, prune };
  return { files, warnings: read?.warnings ?? [] };
}

/** All is saved in one transaction, which holds the loop; a relay is some 2 KB. */
const MAX_SYNC_BYTES = 256 * 1024;
/** More than anyone mends in one go. */
const MAX_PROBLEMS = 200;
