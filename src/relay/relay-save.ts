/**
 * Saving a relay: creating it and replacing its definition, with the secrets that follow from either, its warnings, its problems and its
 * audit row, all in one transaction. Every path that saves (dashboard, API, command line, sync, promote) goes through here.
 */
import { newId } from "../ground/id.ts";
import { writeJson } from "../ground/json.ts";
import { refuseDefinition } from "../ground/refusal.ts";
import type { Writer } from "../store/port.ts";
import { type Definition, requireDefinition } from "./definition.ts";
import { warnOwnHost } from "./definition-warning.ts";
import { type MadeSecret, makeFirstSecret, NO_SECRET } from "./receiver-secret.ts";
import { auditRelay } from "./relay-audit.ts";
import type { RelayContext } from "./relay-context.ts";
import { refuseKeptElsewhere } from "./relay-environment-secret.ts";
import { settleRelayProblems } from "./relay-problem.ts";
import { requireSellingRelays, warnOfReferences } from "./relay-reference.ts";
import { type OriginKind, RELAY, type RelayRow, requireRelay, requireRelayVersion } from "./relay-row.ts";
import { forgetSignaturesLater, withSecret } from "./relay-secret.ts";
import { type RelayView, showRelay } from "./relay-view.ts";
import { refuseCapped, refuseNameTaken, refuseOtherKind, refuseOtherName } from "./save-refusal.ts";
import { followSecret, type SecretChange, warnOfSecret } from "./secret-change.ts";
import { callsUrl, makeSigningSecret, refuseWithoutCallUrl } from "./signing-secret.ts";
import { unsignedWarning, widensUnsigned } from "./unsigned-rule.ts";
import { checkWrites } from "./write-reference.ts";

/** Where a save comes from. `synced`: a sync or promote wrote it, after which the trigger's kind is fixed. */
interface SaveOrigin {
  kind: OriginKind;
  synced: boolean;
}

export interface NewRelay {
  /** Checked here. */
  definition: unknown;
  /** A pasted secret or public key; null mints one where the scheme has one. */
  secret: string | null;
  /** A signing secret of one's own; null mints one where there is a call_url. */
  signingSecret: string | null;
  origin: SaveOrigin;
}

export interface SavedRelay {
  relay: RelayView;
  receiverUrl?: string;
  /** Minted by this save; it stands in no later answer. */
  receiverSecret?: string;
  /** Made by this save; it stands in no later answer. */
  signingSecret?: string;
  /** One sentence each. */
  warnings: string[];
}

interface Shown {
  receiverSecret: string | null;
  signingSecret: string | null;
}

/**
 * Creates a relay. Refuses with `invalid_definition`, `name_taken`, `relay_capped`, `invalid_input` (a secret that does not fit),
 * `no_call_url` (a signing secret for nothing to sign) or `relay_missing` (a sale bound to a relay that does not exist).
 */
export async function createRelay(tx: Writer, context: RelayContext, input: NewRelay): Promise<SavedRelay> {
  const { definition, warnings } = requireDefinition(input.definition, context.nowMs);
  await refuseNameTaken(tx, context, definition.name);
  await refuseCapped(tx, context);
  const { nowMs, sealer } = context;
  const relayId = newId("rly", nowMs);
  const made = makeFirstSecret({ relayId, definition, sealer, nowMs }, input.secret);
  await refuseKeptElsewhere(tx, context, definition.name, made.kept);
  const calls = callsUrl(definition);
  if (!calls && input.signingSecret !== null) throw refuseWithoutCallUrl();
  const signing = calls ? makeSigningSecret(relayId, input.signingSecret, sealer) : null;
  const row = newRow(context, relayId, definition, input.origin, made, signing?.sealed ?? null);
  await RELAY.insert(tx, row);
  const todo = warnOfSecret(definition, made.kept.kind, context.environment);
  return await finish(tx, context, null, row, [...warnings, ...listed(todo)], {
    receiverSecret: made.minted,
    signingSecret: signing?.shown ?? null,
  });
}

/**
 * Replaces the definition of a relay that was read at `version`. Refuses with `invalid_definition` (also another name), `not_found`,
 * `version_conflict` (the current version in `details.version`), `trigger_kind_fixed` or `relay_missing`.
 */
export async function updateRelay(
  tx: Writer,
  context: RelayContext,
  name: string,
  input: { definition: unknown; version: number; origin: SaveOrigin },
): Promise<SavedRelay> {
  const before = await requireRelay(tx, context.environment.id, name);
  const { definition, warnings } = requireDefinition(input.definition, context.nowMs);
  refuseOtherName(name, definition);
  requireRelayVersion(before, input.version);
  const earlier = before.definition;
  refuseOtherKind(context, before, earlier, definition);
  const secret = await followSecret(tx, context, before, earlier, definition);
  const signing = followSigning(context, before, definition);
  const after = nextRow(context, before, earlier, definition, input.origin, secret, signing);
  await RELAY.update(tx, after);
  if (secret !== null && before.secret !== null) await forgetSignaturesLater(tx, before, context.nowMs);
  const told = [
    ...quietUnlessWider(warnings, earlier, definition),
    ...listed(
      secret === null ? warnOfSecret(definition, after.secretKind, context.environment) : secret.warning,
    ),
    ...listed(signing?.warning ?? null),
  ];
  return await finish(tx, context, before, after, told, {
    receiverSecret: secret?.minted ?? null,
    signingSecret: signing?.shown ?? null,
  });
}

async function finish(
  tx: Writer,
  context: RelayContext,
  before: RelayRow | null,
  after: RelayRow,
  warnings: readonly string[],
  shown: Shown,
): Promise<SavedRelay> {
  const unfit = await checkWrites(tx, after.environmentId, after.definition);
  if (unfit.length > 0) throw refuseDefinition(unfit);
  await requireSellingRelays(tx, after.environmentId, after.definition);
  await settleRelayProblems(tx, after, context.sealer, context.nowMs);
  await auditRelay(tx, context, before === null ? "relay.created" : "relay.updated", before, after);
  const references = await warnOfReferences(tx, after.environmentId, after.definition);
  const relay = await showRelay(tx, context, after);
  return {
    relay,
    ...(relay.receiverUrl === undefined ? {} : { receiverUrl: relay.receiverUrl }),
    ...(shown.receiverSecret === null ? {} : { receiverSecret: shown.receiverSecret }),
    ...(shown.signingSecret === null ? {} : { signingSecret: shown.signingSecret }),
    warnings: [...warnings, ...warnOwnHost(after.definition, context.baseUrl), ...references],
  };
}

/** The opt-in's warning is told when it is taken and whenever a save widens what it buys, not at every save. */
function quietUnlessWider(warnings: readonly string[], before: Definition, after: Definition): string[] {
  if (widensUnsigned(before, after)) return [...warnings];
  const optIn = unsignedWarning(after);
  return warnings.filter((warning) => warning !== optIn);
}

function listed(warning: string | null): string[] {
  return warning === null ? [] : [warning];
}

interface SigningChange {
  sealed: Uint8Array | null;
  shown: string | null;
  warning: string | null;
}

/** null: the signing secret stays as it is. */
function followSigning(context: RelayContext, row: RelayRow, definition: Definition): SigningChange | null {
  const calls = callsUrl(definition);
  if (calls === (row.signingSecret !== null)) return null;
  if (!calls) {
    const warning =
      "The relay has no call_url any more, so its signing secret was removed; a later call_url gets a new one.";
    return { sealed: null, shown: null, warning };
  }
  const { sealed, shown } = makeSigningSecret(row.id, null, context.sealer);
  return { sealed, shown, warning: null };
}

function newRow(
  context: RelayContext,
  id: string,
  definition: Definition,
  origin: SaveOrigin,
  made: MadeSecret,
  signingSecret: Uint8Array | null,
): RelayRow {
  const { nowMs } = context;
  const bare: RelayRow = {
    id,
    environmentId: context.environment.id,
    name: definition.name,
    definition,
    version: 1,
    state: "active",
    originKind: origin.kind,
    originAt: nowMs,
    syncedAt: origin.synced ? nowMs : null,
    secretKind: NO_SECRET.kind,
    secret: null,
    secretFingerprint: null,
    secretDigest: null,
    secretSetAt: null,
    previousSecret: null,
    previousSecretDigest: null,
    previousSecretUntil: null,
    signingSecret,
    signingSecretSetAt: signingSecret === null ? null : nowMs,
    activeSince: nowMs,
    createdAt: nowMs,
    updatedAt: nowMs,
  };
  return withSecret(bare, made.kept, nowMs);
}

function nextRow(
  context: RelayContext,
  before: RelayRow,
  earlier: Definition,
  definition: Definition,
  origin: SaveOrigin,
  secret: SecretChange | null,
  signing: SigningChange | null,
): RelayRow {
  const { nowMs } = context;
  const sameTrigger = writeJson(earlier.trigger) === writeJson(definition.trigger);
  const next: RelayRow = {
    ...before,
    definition,
    version: before.version + 1,
    originKind: origin.kind,
    originAt: nowMs,
    syncedAt: origin.synced ? nowMs : before.syncedAt,
    activeSince: sameTrigger ? before.activeSince : nowMs,
    updatedAt: nowMs,
    ...(signing === null
      ? {}
      : { signingSecret: signing.sealed, signingSecretSetAt: signing.sealed === null ? null : nowMs }),
  };
  return secret === null ? next : withSecret(next, secret.kept, nowMs);
}
