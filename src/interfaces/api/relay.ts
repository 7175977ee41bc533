/** Routes of relays: list, create, save, pause, retry now, delete, and the state of each with its recent requests. One more lists the templates. */
import { Type } from "typebox";
import { toIsoOrNull } from "../../base/clock.ts";
import { makePage, readPageRequest } from "../../base/page.ts";
import {
  fields,
  oneOf,
  orNull,
  pageOf,
  pageQuery,
  savedFile,
  timeOrNull,
  warningView,
} from "../../base/schema.ts";
import { countRetries, retriesView, retryRelayNow, triedView } from "../../engine/event/retry-now.ts";
import { findSecretUse } from "../../engine/health/shared-health.ts";
import { findManyRemembered, rememberedView } from "../../engine/receiver/signature-memory.ts";
import { recordDueTicks, recordMissedTicks } from "../../engine/schedule/schedule.ts";
import { checklistView, showChecklist } from "../../insight/overview/checklist.ts";
import { funnelView, showFunnel } from "../../insight/overview/funnel.ts";
import { addHealth, HEALTH_STATES, healthView, listedRelay } from "../../insight/overview/health.ts";
import { listRelaysInOrder, RELAY_SORTS } from "../../insight/overview/relay-list.ts";
import { runCases, warnOfCases } from "../../insight/simulate/case-run.ts";
import { warnLostSpace } from "../../rules/relay/customer-space.ts";
import { receiverUrl, requireRelay } from "../../rules/relay/relay.ts";
import {
  listMissing,
  listSoldThroughWarnings,
  makeCatalogLookup,
  missingThing,
} from "../../rules/relay/relay-reference.ts";
import {
  createRelay,
  deleteRelay,
  pauseRelay,
  resumeRelay,
  saveRelay,
  updateRelay,
  viewSaved,
} from "../../rules/relay/relay-save.ts";
import { RELAY_TEMPLATES } from "../../rules/relay/relay-template.ts";
import { listVersions, readVersion, relayVersion } from "../../rules/relay/relay-version.ts";
import {
  type RelayView,
  relayView,
  type SavedRelay,
  savedRelay,
  showRelay,
} from "../../rules/relay/relay-view.ts";
import type { HttpDeps } from "../http/deps.ts";
import { type EnvironmentCall, environmentRoute, listRoute, openRoute } from "../http/route.ts";
import { caseDeps } from "./case.ts";
import { definition, sell } from "./explain.ts";
import { recordMissedBefore, relayContext, viewContext } from "./relay-context.ts";

/** The most characters of a search in the list. */
const MAX_SEARCH_CHARS = 200;

/** A save through the API counts as an edit in the dashboard, so a sync asks before it replaces it. */
const SAVED_HERE = { kind: "dashboard", synced: false } as const;

/** The last times at which requests verified with each of two secrets. Null means none since the server started or the relay was last changed. */
const secretUseView = Type.Object({ presentAt: timeOrNull, previousAt: timeOrNull });

/** Returns the use of both secrets, or null if only one verifies. */
async function secretUseOf({ relays, store, hasMasterKey }: HttpDeps, { id, secret }: RelayView) {
  if (!hasMasterKey) return null;
  const overlap = (await relays.current()).findRelay(id)?.receiver?.overlap ?? null;
  if (secret.previousUntil === undefined || overlap === null) return null;
  const { presentAt, previousAt } = await store.read((tx) => findSecretUse(tx, id, overlap));
  return { presentAt: toIsoOrNull(presentAt), previousAt: toIsoOrNull(previousAt) };
}

/**
 * Adds a warning about the cases whose result changed since the save, for a caller who may see their values. The save is done, so a failed run of the
 * cases changes nothing.
 */
async function addCaseWarnings(
  { deps, environment, may }: { deps: HttpDeps } & Pick<EnvironmentCall, "environment" | "may">,
  saved: SavedRelay,
): Promise<SavedRelay> {
  if (!may("read_payloads")) return saved;
  try {
    const { name } = saved.relay;
    const reports = await runCases(deps.store, caseDeps(deps), environment, [name]);
    return { ...saved, warnings: [...saved.warnings, ...warnOfCases(reports.get(name))] };
  } catch (error) {
    deps.log.warn("The cases of a saved relay were not run.", { relay: saved.relay.name, error });
    return saved;
  }
}

export const relayRoutes = [
  environmentRoute({
    method: "GET",
    path: "/relays",
    needs: "read",
    summary:
      "Lists relays, each with its health and the event counts of the last 24 hours: newest first, or by sort.",
    query: fields({
      ...pageQuery,
      sort: Type.Optional(oneOf(RELAY_SORTS)),
      state: Type.Optional(oneOf(HEALTH_STATES)),
      search: Type.Optional(
        Type.String({
          maxLength: MAX_SEARCH_CHARS,
          description: "a part of the name or of the trigger in words",
        }),
      ),
    }),
    answer: pageOf(listedRelay),
    async handle(call) {
      const { deps, query } = call;
      const { sort = "newest", state, search } = query;
      const request = readPageRequest(query);
      await deps.writeRecentRequests();
      const context = { ...viewContext(call), clock: deps.clock };
      return await listRelaysInOrder(deps.store, context, { sort, state, search }, request);
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/relays",
    needs: "edit_definitions",
    saves: "relay",
    summary: "Creates a relay. If Relay creates a secret, only this response contains it.",
    body: fields({
      definition,
      secret: Type.Optional(orNull(Type.String({ description: "the sender's secret or public key" }))),
      signingSecret: Type.Optional(
        orNull(
          Type.String({
            description: "a secret to sign notices with; standardWebhooks needs whsec_ and base64",
          }),
        ),
      ),
      sell,
    }),
    answer: savedRelay,
    status: 201,
    async write(tx, call) {
      const { definition, secret = null, signingSecret = null, sell: sells = false } = call.body;
      const input = { definition, secret, signingSecret, sells, origin: SAVED_HERE };
      const context = relayContext(call);
      return await viewSaved(tx, context, await createRelay(tx, context, input));
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/relays/:name",
    needs: "read",
    summary:
      "Shows one relay: its health with the reason, definition, facts about its secrets, problems, and the missing items that it names.",
    answer: Type.Object({
      relay: relayView,
      health: healthView,
      secretUse: orNull(secretUseView),
      remembered: orNull(rememberedView),
      missing: Type.Array(missingThing),
    }),
    async handle(call) {
      const { deps, environment, environmentId, params } = call;
      await deps.writeRecentRequests();
      const { relay, ...details } = await deps.store.read(async (tx) => {
        const row = await requireRelay(tx, environmentId, params.name);
        const missing = await listMissing(makeCatalogLookup(tx, environmentId), row.definition);
        const remembered = await findManyRemembered(tx, { environmentId, relayName: row.name });
        return { relay: await showRelay(tx, viewContext(call), row), missing, remembered };
      });
      const [evaluated] = await addHealth(deps.store, { environment, clock: deps.clock }, [relay], true);
      if (evaluated === undefined) throw new Error("A relay has no health.");
      return { relay, health: evaluated.health, secretUse: await secretUseOf(deps, relay), ...details };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/relays/:name/funnel",
    needs: "read",
    summary:
      "Shows why nothing happened: how many requests and events of 24 hours reached each step, and where and why the others stopped.",
    answer: Type.Object({ funnel: funnelView }),
    async handle({ deps, environmentId, params }) {
      await deps.writeRecentRequests();
      const relay = await deps.store.read((tx) => requireRelay(tx, environmentId, params.name));
      return { funnel: await showFunnel(deps.store, { environmentId, clock: deps.clock }, relay) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/relays/:name/checklist",
    needs: "read",
    summary:
      "Lists the steps until the relay handles its first real event: URL, event types, secret, first verified request, first event done.",
    answer: Type.Object({ checklist: checklistView }),
    async handle({ deps, environment, params }) {
      await deps.writeRecentRequests();
      const relay = await deps.store.read((tx) => requireRelay(tx, environment.id, params.name));
      const urlOf = (name: string) => receiverUrl(deps.baseUrl(), environment.appId, name);
      return { checklist: await showChecklist(deps.store, environment, relay, urlOf) };
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/relays/:name",
    needs: "edit_definitions",
    saves: "relay",
    summary:
      "Replaces a relay's definition. version must be the version that you read. Version 0 creates a relay that does not exist.",
    body: fields({
      definition,
      version: Type.Integer({ description: "the version you read, an integer; 0 creates the relay" }),
    }),
    answer: savedRelay,
    async handle(call) {
      const { deps, environmentId, origin, params, body } = call;
      await recordMissedBefore(call, environmentId, params.name);
      const context = relayContext(call);
      const input = { ...body, origin: SAVED_HERE };
      const saved = await deps.store.write(origin, async (tx) =>
        viewSaved(tx, context, await saveRelay(tx, context, params.name, input)),
      );
      return await addCaseWarnings(call, saved);
    },
  }),
  listRoute({
    path: "/relays/:name/versions",
    needs: "read",
    summary: "Lists the versions of a relay's definition, newest first: when, by whom, and what changed.",
    item: relayVersion,
    large: true,
    list: (tx, { environmentId, params }, page) => listVersions(tx, environmentId, params.name, page),
  }),
  environmentRoute({
    method: "POST",
    path: "/relays/:name/restore",
    needs: "edit_definitions",
    saves: "relay",
    summary:
      "Restores the definition of an earlier version as a new version. Relay checks it like any other save.",
    body: fields({
      restores: Type.Integer({ description: "the version to restore, an integer" }),
      version: Type.Integer({ description: "the version you read, an integer" }),
    }),
    answer: savedRelay,
    async handle(call) {
      const { deps, environmentId, origin, params, body } = call;
      const { restores, version } = body;
      const definition = await readVersion(deps.store, environmentId, params.name, restores);
      await recordMissedBefore(call, environmentId, params.name);
      const context = relayContext(call);
      const input = { definition, version, restores, origin: SAVED_HERE };
      const saved = await deps.store.write(origin, async (tx) =>
        viewSaved(tx, context, await updateRelay(tx, context, params.name, input)),
      );
      return await addCaseWarnings(call, saved);
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/relays/:name",
    needs: "edit_definitions",
    saves: "relay",
    summary:
      "Deletes a relay and its secrets. Its receiver then answers 404. Warnings list what was sold through it and who used its space.",
    answer: Type.Object({ warnings: Type.Array(warningView), ...savedFile }),
    warnsOnly: true,
    async write(tx, call) {
      const { environmentId, params } = call;
      await deleteRelay(tx, relayContext(call), params.name);
      const sold = await listSoldThroughWarnings(tx, environmentId, params.name);
      return { warnings: [...sold, ...(await warnLostSpace(tx, environmentId, params.name))] };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/relays/:name/pause",
    needs: "edit_definitions",
    summary: "Pauses a relay. New events are stored and wait. Ticks are not stored.",
    answer: Type.Object({ relay: relayView }),
    async handle(call) {
      const { deps, environmentId, origin, params, nowMs } = call;
      const believed = deps.scheduler.trustsClock();
      const settling = { environmentId, name: params.name, nowMs };
      if (believed) await recordMissedTicks(deps.store, settling);
      return await deps.store.write(origin, async (tx) => {
        if (believed) await recordDueTicks(tx, settling);
        return { relay: await pauseRelay(tx, { ...viewContext(call), actor: call.actor }, params.name) };
      });
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/relays/:name/resume",
    needs: "edit_definitions",
    summary: "Resumes a relay. Waiting events run in order.",
    answer: Type.Object({ relay: relayView }),
    write: async (tx, call) => ({
      relay: await resumeRelay(tx, { ...viewContext(call), actor: call.actor }, call.params.name),
    }),
  }),
  environmentRoute({
    method: "GET",
    path: "/relays/:name/retry",
    needs: "read",
    summary: "Counts the relay's events that wait for a retry, among the first 5,000 of the server.",
    answer: Type.Object({ retries: retriesView }),
    read: async (tx, { environmentId, params }) => ({
      retries: await countRetries(tx, environmentId, params.name),
    }),
  }),
  environmentRoute({
    method: "POST",
    path: "/relays/:name/retry",
    needs: "replay",
    summary:
      "Retries every waiting event of the relay now. It returns the number of events, and why it stopped if the relay was paused meanwhile.",
    answer: triedView,
    status: 202,
    handle: ({ deps: { store }, environmentId, by, params, nowMs }) =>
      retryRelayNow(store, { environmentId, name: params.name, actor: by, nowMs }),
  }),
  openRoute({
    method: "GET",
    path: "/api/relay-templates",
    summary: "Lists definitions to start from, each with the items that it names and the remaining steps.",
    query: fields(pageQuery),
    answer: pageOf(
      Type.Object({
        name: Type.String(),
        title: Type.String(),
        summary: Type.String(),
        definition: Type.Unknown(),
        catalog: Type.Unknown({ description: "in the form of catalog.json" }),
        steps: Type.Array(Type.String()),
      }),
    ),
    handle({ query }) {
      const page = readPageRequest(query);
      const first =
        page.after === null ? 0 : RELAY_TEMPLATES.findIndex(({ name }) => name === page.after) + 1;
      return makePage(
        RELAY_TEMPLATES.slice(first),
        page,
        ({ name }) => name,
        (one) => ({ ...one, steps: [...one.steps] }),
      );
    },
  }),
];
