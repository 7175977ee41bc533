/**
 * Saves a relay in one transaction: its definition, the secrets that follow from it, its warnings, its problems and its audit row. Every
 * path that saves uses it: dashboard, API, command line, sync and promote. It also pauses, resumes and deletes. A paused receiver still
 * records events, which wait. Ticks during a pause are not recorded: a resumed schedule counts from its resume. A deleted relay's events
 * stay for their 30 days. Its one-time signatures stay for another 24 hours, so that a new relay of that name does not accept a replay.
 */

import { newId } from "../../base/id.ts";
import { writeCanonicalJson } from "../../base/json.ts";
import { Refusal, rejectDefinition, type Warning } from "../../base/refusal.ts";
import { formatActor } from "../../platform/account/api-key.ts";
import { isLocalEnvironment } from "../../platform/account/environment.ts";
import { clearExpiringProblems, clearProblemsOf } from "../../platform/audit/problem.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { cronOf } from "../trigger/schedule.ts";
import { explainSpace, requireSpace, warnLostSpace } from "./customer-space.ts";
import { type Checked, dropAllowedUrls, requireDefinition, warnOwnHost } from "./definition.ts";
import type { Definition } from "./definition-shape.ts";
import {
  auditRelay,
  countRelays,
  findRelay,
  NO_OVERLAP,
  type OriginKind,
  RELAY,
  type RelayContext,
  type RelayRow,
  receiverUrl,
  relayTarget,
  requireRelay,
  requireRelayVersion,
  updateSignatureRetention,
  withSecret,
} from "./relay.ts";
import { listReferenceWarnings, refreshMisfitProblem, updateRuleProblems } from "./relay-problem.ts";
import { checkWrites, makeCatalogLookup, requireSellingRelays } from "./relay-reference.ts";
import { adaptSecret, listSecretWarnings, type MadeSecret, makeFirstSecret } from "./relay-secret.ts";
import { type RelayView, type SavedRelay, showRelay } from "./relay-view.ts";
import { sellThrough } from "./sell-through.ts";
import { requireUnsharedSecret } from "./shared-secret.ts";
import {
  adaptSigningSecret,
  callsUrl,
  checkSigningSecret,
  type MadeSigningSecret,
  makeSigningSecret,
  NO_SIGNING_SECRET,
  rejectWithoutCallUrl,
} from "./signing-secret.ts";
import { checkFollowing, requireUnfollowed, sourceNameOf, warnEndedUrl } from "./source.ts";
import { widensUnsigned } from "./unsigned-rule.ts";

/**
 * The origin of a save. `synced`: a sync or promote wrote it, which fixes the trigger's kind. `promotedFrom`: the environment that a promote read.
 * `commit`: the git commit of the synced folder.
 */
interface SaveOrigin {
  kind: OriginKind;
  synced: boolean;
  promotedFrom?: string;
  commit?: string;
}

/** A definition to check here, or one that is already checked, because checking many in one transaction blocks the event loop. */
type DefinitionInput = { definition: unknown } | { checked: Checked };

function check(given: DefinitionInput, nowMs: number): Checked {
  return "checked" in given ? given.checked : requireDefinition(given.definition, nowMs);
}

export type NewRelay = DefinitionInput & {
  /** A pasted secret or public key. null generates a secret where the scheme has one. */
  secret: string | null;
  /** A given signing secret. null generates one where there is a call_url. */
  signingSecret: string | null;
  /** True if the relay must sell the products and plans that its actions name and that nothing sells. */
  sells?: boolean;
  origin: SaveOrigin;
};

/** A finished save. Only this answer has the secrets that it generated; null: it generated none. */
interface Saved {
  row: RelayRow;
  receiverSecret: string | null;
  signingSecret: string | null;
  warnings: Warning[];
  /** Warnings about what the relay names as the catalog is now. */
  misfits: Warning[];
  /** The problems of a new relay; undefined for an existing one. */
  problems: RelayView["problems"] | undefined;
}

/** Returns the save as the API answers it. */
export async function viewSaved(
  tx: Reader,
  context: RelayContext,
  { row, receiverSecret, signingSecret, warnings, misfits, problems }: Saved,
): Promise<SavedRelay> {
  const relay = await showRelay(tx, context, row, problems);
  return {
    relay,
    ...(relay.receiverUrl === undefined ? {} : { receiverUrl: relay.receiverUrl }),
    ...(receiverSecret === null ? {} : { receiverSecret }),
    ...(signingSecret === null ? {} : { signingSecret }),
    warnings: [...warnings, ...misfits],
  };
}

/**
 * Creates a relay. Throws `invalid_definition`, `name_taken`, `relay_capped`, `invalid_input` (a secret that does not fit), `no_call_url`
 * (a signing secret without a call_url) or `relay_missing` (a sale bound to a missing relay, or a space that does not exist).
 */
export async function createRelay(tx: Writer, context: RelayContext, input: NewRelay): Promise<Saved> {
  const { environment, nowMs, sealer } = context;
  const { definition, warnings } = check(input, nowMs);
  await requireFreeName(tx, context, definition.name);
  await requireRelayCapacity(tx, context);
  const id = newId("rly", nowMs);
  const made = makeFirstSecret(
    { relayId: id, isLocal: isLocalEnvironment(environment), definition, sealer, nowMs },
    input.secret,
  );
  await requireUnsharedSecret(tx, context, definition.name, made.columns);
  if (!callsUrl(definition) && input.signingSecret !== null) throw rejectWithoutCallUrl();
  const signing = callsUrl(definition) ? makeSigningSecret(id, input.signingSecret, sealer, nowMs) : null;
  const row: RelayRow = {
    id,
    environmentId: environment.id,
    name: definition.name,
    definition,
    version: 1,
    state: "active",
    originKind: input.origin.kind,
    originAt: nowMs,
    syncedAt: input.origin.synced ? nowMs : null,
    sourceName: sourceNameOf(definition),
    ...promotedAs(input.origin, 1),
    ...made.columns,
    ...NO_OVERLAP,
    ...(signing?.columns ?? NO_SIGNING_SECRET),
    activeSince: nowMs,
    createdAt: nowMs,
    updatedAt: nowMs,
  };
  await RELAY.insert(tx, row);
  if (input.sells === true) {
    const change = { environmentId: environment.id, by: formatActor(context.actor), nowMs };
    await sellThrough(tx, change, definition);
  }
  if (input.secret !== null) await updateSignatureRetention(tx, { before: null, after: row, nowMs }, true);
  const todo = listSecretWarnings(definition, made.columns.secretKind, environment);
  const { commit } = input.origin;
  return await finishSave(tx, context, { before: null, after: row, made, signing, commit }, [
    ...warnings,
    ...todo,
  ]);
}

/**
 * `recordDue` records the ticks that a schedule owes until now, as the scheduler would. It records nothing while the clock is not
 * trusted.
 */
export interface UpdateContext extends RelayContext {
  recordDue(tx: Writer, relayId: string, nowMs: number): Promise<unknown>;
}

/**
 * Replaces the definition of a relay that was read at `version`. Due ticks are recorded before another trigger replaces the schedule.
 * Throws `invalid_definition` (also for another name), `not_found`, `version_conflict` (the current version in `details.version`),
 * `trigger_kind_fixed` or `relay_missing`. `restores`: the version whose definition this is, for the audit.
 */
export async function updateRelay(
  tx: Writer,
  context: UpdateContext,
  name: string,
  input: DefinitionInput & { version: number; origin: SaveOrigin; restores?: number },
): Promise<Saved> {
  const { environment, nowMs } = context;
  const before = await requireRelay(tx, environment.id, name);
  const { definition, warnings } = check(input, nowMs);
  requireSameName(name, definition);
  requireRelayVersion(before, input.version);
  requireSameKind(context, before, definition);
  const made = await adaptSecret(tx, context, before, definition);
  const signing = adaptSigningSecret(context, before, definition);
  const samePeriods = hasSamePeriods(before.definition, definition);
  if (!samePeriods && before.definition.trigger.kind === "schedule")
    await context.recordDue(tx, before.id, nowMs);
  const next: RelayRow = {
    ...before,
    definition,
    version: before.version + 1,
    originKind: input.origin.kind,
    originAt: nowMs,
    syncedAt: input.origin.synced ? nowMs : before.syncedAt,
    sourceName: sourceNameOf(definition),
    ...promotedAs(input.origin, before.version + 1),
    activeSince: samePeriods ? before.activeSince : nowMs,
    updatedAt: nowMs,
    ...signing?.columns,
  };
  const after = made === null ? next : withSecret(next, made.columns, nowMs);
  await RELAY.update(tx, after);
  if (made !== null && before.secret !== null) await updateSignatureRetention(tx, { before, after, nowMs });
  // The opt-in's warning appears when a save adds or widens the opt-in, not at every save.
  const hiddenCode = widensUnsigned(before.definition, definition) ? null : "unsigned_events";
  const { restores } = input;
  const { commit } = input.origin;
  return await finishSave(tx, context, { before, after, made, signing, restores, commit }, [
    ...warnings.filter(({ code }) => code !== hiddenCode),
    ...(made?.warnings ?? listSecretWarnings(definition, after.secretKind, environment)),
    ...(signing?.warnings ?? []),
  ]);
}

/** Creates the relay of this name for version 0 if it does not exist. Otherwise replaces its definition. Throws what both throw. */
export async function saveRelay(
  tx: Writer,
  context: UpdateContext,
  name: string,
  input: DefinitionInput & { version: number; origin: SaveOrigin },
): Promise<Saved> {
  const isNew = input.version === 0 && (await findRelay(tx, context.environment.id, name)) === null;
  if (!isNew) return await updateRelay(tx, context, name, input);
  const checked = check(input, context.nowMs);
  if (checked.definition.name !== name) {
    const message = `\`name\` must be ${name}, as in the path: use one name in both places.`;
    throw rejectDefinition([{ field: "name", message }]);
  }
  return await createRelay(tx, context, { checked, secret: null, signingSecret: null, origin: input.origin });
}

interface SavedChange {
  before: RelayRow | null;
  after: RelayRow;
  made: MadeSecret | null;
  signing: MadeSigningSecret | null;
  /** The version whose definition was saved again. */
  restores?: number | undefined;
  /** The git commit of the synced folder. */
  commit?: string | undefined;
}

async function finishSave(
  tx: Writer,
  context: RelayContext,
  { before, after, made, signing, restores, commit }: SavedChange,
  warnings: readonly Warning[],
): Promise<Saved> {
  const { environmentId, definition } = after;
  const lookup = makeCatalogLookup(tx, environmentId);
  const unfit = [
    ...checkSigningSecret(after, context.sealer, before === null),
    ...(await checkWrites(lookup, definition)),
  ];
  if (unfit.length > 0) throw rejectDefinition(unfit);
  await requireSellingRelays(tx, environmentId, definition);
  await requireSpace(tx, environmentId, definition);
  const following = await checkFollowing(tx, {
    environmentId,
    before: before?.definition ?? null,
    after: definition,
  });
  const hadSpace = before !== null && explainSpace(before.definition) === null;
  const lostSpace =
    hadSpace && explainSpace(definition) !== null
      ? await warnLostSpace(tx, environmentId, definition.name)
      : [];
  const found = await updateRuleProblems(tx, after, context.sealer, context.nowMs, before === null);
  const change = before === null ? "relay.created" : "relay.updated";
  await auditRelay(tx, context, change, before, after, {
    ...(restores === undefined ? {} : { restores }),
    ...(commit === undefined ? {} : { commit }),
  });
  // Deleting a relay deletes its problems, so a new relay has none.
  if (before !== null) await refreshMisfitProblem(tx, { environmentId, nowMs: context.nowMs }, definition);
  return {
    row: after,
    receiverSecret: made?.minted ?? null,
    signingSecret: signing?.shown ?? null,
    warnings: [
      ...dropAllowedUrls(warnings, definition, context.allowPrivate ?? []),
      ...following,
      ...lostSpace,
      ...warnEndedUrl(before?.definition ?? null, definition, (name) =>
        receiverUrl(context.baseUrl, context.environment.appId, name),
      ),
      ...warnOwnHost(definition, context.baseUrl),
    ],
    misfits: await listReferenceWarnings(lookup, definition),
    problems: before === null ? found.map(({ code, message }) => ({ code, message })) : undefined,
  };
}

async function requireFreeName(tx: Reader, context: RelayContext, name: string): Promise<void> {
  if ((await findRelay(tx, context.environment.id, name)) === null) return;
  throw new Refusal(
    "name_taken",
    `A relay named ${name} exists in this environment: choose another name, or save that relay.`,
  );
}

async function requireRelayCapacity(tx: Reader, context: RelayContext): Promise<void> {
  const limit = context.limits.relaysPerEnvironment;
  const count = await countRelays(tx, context.environment.id);
  if (count < limit) return;
  throw new Refusal(
    "relay_capped",
    `This environment has ${count} relays, and its limit is ${limit}: delete one that is no longer used, or raise the limit in the server's configuration.`,
  );
}

function promotedAs({ promotedFrom }: SaveOrigin, version: number) {
  return promotedFrom === undefined
    ? { promotedFrom: null, promotedVersion: null }
    : { promotedFrom, promotedVersion: version };
}

function requireSameName(name: string, definition: Definition): void {
  if (definition.name === name) return;
  const message = `\`name\` is fixed once the relay is created: keep ${name}, or create a relay with the new name and delete this one.`;
  throw rejectDefinition([{ field: "name", message }]);
}

function requireSameKind(context: RelayContext, before: RelayRow, after: Definition): void {
  if (before.syncedAt === null || context.environment.name === "local") return;
  const { kind } = before.definition.trigger;
  if (kind === after.trigger.kind) return;
  const way =
    context.environment.name === "production"
      ? `delete it in production's dashboard, because only development can be pruned, and sync it to production again`
      : "remove its file, run relay sync --prune in development, put the file back and sync again";
  throw new Refusal(
    "trigger_kind_fixed",
    `The relay ${before.name} was synced as a ${kind}, and its trigger kind cannot change: rename the relay, or ${way}.`,
  );
}

/** A hold or a pause needs no key. */
type StateContext = Omit<RelayContext, "sealer" | "limits">;

/** Pauses the relay; changes nothing if it is paused already. Throws `not_found`. */
export function pauseRelay(tx: Writer, context: StateContext, name: string): Promise<RelayView> {
  return setState(tx, context, name, "paused");
}

/** Reports whether both triggers have the same periods, even in different notations. Then ticks that are due stay due. */
function hasSamePeriods({ trigger: before }: Definition, { trigger: after }: Definition): boolean {
  if (before.kind === "schedule" && after.kind === "schedule") return cronOf(before) === cronOf(after);
  return writeCanonicalJson(before) === writeCanonicalJson(after);
}

/** Resumes the relay: waiting events run in order. Throws `not_found`. */
export function resumeRelay(tx: Writer, context: StateContext, name: string): Promise<RelayView> {
  return setState(tx, context, name, "active");
}

async function setState(
  tx: Writer,
  context: StateContext,
  name: string,
  state: RelayRow["state"],
): Promise<RelayView> {
  const before = await requireRelay(tx, context.environment.id, name);
  if (before.state === state) return await showRelay(tx, context, before);
  const { nowMs } = context;
  const activeSince = state === "active" ? nowMs : before.activeSince;
  const after: RelayRow = { ...before, state, activeSince, updatedAt: nowMs };
  await RELAY.update(tx, after);
  const { environmentId } = after;
  if (state === "active") await clearExpiringProblems(tx, environmentId, nowMs);
  await auditRelay(tx, context, state === "paused" ? "relay.paused" : "relay.resumed", before, after);
  return await showRelay(tx, context, after);
}

/** Deletes the relay with its secrets. Throws `not_found`, or `receiver_followed` while other relays follow it. */
export async function deleteRelay(
  tx: Writer,
  context: Pick<RelayContext, "environment" | "actor" | "nowMs">,
  name: string,
): Promise<void> {
  const row = await requireRelay(tx, context.environment.id, name);
  await requireUnfollowed(tx, row.environmentId, name, "delete it");
  await RELAY.delete(tx, row);
  await updateSignatureRetention(tx, { before: row, after: null, nowMs: context.nowMs });
  await clearProblemsOf(tx, row.environmentId, relayTarget(name), context.nowMs);
  await auditRelay(tx, context, "relay.deleted", row, null);
}
