/**
 * An app's environments: their settings with a version, the hold, and the payment processor's own secret. It decides who may write
 * over whom (the version), and never what a section of the settings means, nor does it seal or unseal anything.
 */
import { isJsonObject, type Json, type JsonObject, writeJson } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { bytes, defineTable, given, integer, json, orNull, type RowOf, text } from "../../store/table.ts";

export const ENVIRONMENT_NAMES = ["development", "production", "local"] as const;
export type EnvironmentName = (typeof ENVIRONMENT_NAMES)[number];

const ENVIRONMENT = defineTable({
  name: "environment",
  key: ["id"],
  topic: "environment",
  columns: {
    id: given(),
    appId: text(),
    name: text<EnvironmentName>(),
    /** Sections by name, each owned by the room that reads it: `base`, `mail`, `alerts`, … */
    settings: json<JsonObject>(),
    /** Counts every change of the settings, the hold and the processor secret. */
    version: integer(),
    /** Since when receivers hold what arrives; null while everything runs. */
    heldAt: orNull(integer()),
    /** While a release is in progress, the newest event when the hold was released; null while none is. */
    releasedThrough: orNull(integer()),
    /** Sealed; see secret/seal.ts. */
    processorSecret: orNull(bytes()),
    processorSecretFingerprint: orNull(text()),
    /** A keyed hash: two environments that hold the same secret are told apart without unsealing. */
    processorSecretDigest: orNull(bytes()),
    processorSecretSetAt: orNull(integer()),
    createdAt: integer(),
    /** Since when its app is deleted: it is nobody's, and is emptied. Null for every other. */
    deletedAt: orNull(integer()),
  },
});

const LIVE = "deleted_at IS NULL";

export type Environment = RowOf<typeof ENVIRONMENT>;

/** The environment of this app and name, or null. */
export function findEnvironment(tx: Reader, appId: string, name: string): Promise<Environment | null> {
  return ENVIRONMENT.get(tx, `WHERE app_id = $appId AND name = $name AND ${LIVE}`, { appId, name });
}

/** As `findEnvironment`; refuses with `not_found`. */
export async function requireEnvironment(tx: Reader, appId: string, name: string): Promise<Environment> {
  const environment = await findEnvironment(tx, appId, name);
  if (environment === null) {
    throw new Refusal(
      "not_found",
      "There is no such app with such an environment; relay apps list shows the ones that exist.",
    );
  }
  return environment;
}

/** The environment with this row id, or null, also where its app is deleted. */
export function findEnvironmentById(tx: Reader, id: number): Promise<Environment | null> {
  return ENVIRONMENT.get(tx, `WHERE id = $id AND ${LIVE}`, { id });
}

/** The environment with the next row id, or null after the last. */
export function findEnvironmentAfter(tx: Reader, id: number): Promise<Environment | null> {
  return ENVIRONMENT.get(tx, `WHERE id > $id AND ${LIVE} ORDER BY id LIMIT 1`, { id });
}

/** Every environment of the app, or of all apps for null, oldest first. */
export function listEnvironments(tx: Reader, appId: string | null): Promise<Environment[]> {
  return ENVIRONMENT.all(tx, `WHERE ($appId IS NULL OR app_id = $appId) AND ${LIVE} ORDER BY id`, { appId });
}

/** The one environment of local development, or null in a server's data directory: no server has an environment of this name. */
export async function findLocalEnvironment(tx: Reader): Promise<Environment | null> {
  return (await listEnvironments(tx, null)).find(({ name }) => name === "local") ?? null;
}

/** Adds an environment with empty settings; the app must exist. A second one of the same name is the same one. */
export async function ensureEnvironment(
  tx: Writer,
  appId: string,
  name: EnvironmentName,
  nowMs: number,
): Promise<Environment> {
  const row = {
    appId,
    name,
    settings: {},
    version: 1,
    heldAt: null,
    releasedThrough: null,
    processorSecret: null,
    processorSecretFingerprint: null,
    processorSecretDigest: null,
    processorSecretSetAt: null,
    createdAt: nowMs,
    deletedAt: null,
  };
  await ENVIRONMENT.insert(tx, row, "ON CONFLICT (app_id, name) DO NOTHING");
  return await requireEnvironment(tx, appId, name);
}

/** One section of the settings; an empty object where it was never written. */
export function readSettingsSection(environment: Pick<Environment, "settings">, name: string): JsonObject {
  const section = Object.hasOwn(environment.settings, name) ? environment.settings[name] : undefined;
  return isJsonObject(section) ? section : {};
}

/** Whether the owner wants alerts of this code: on unless switched off on the Alerts page. */
export function isAlertEnabled(environment: Pick<Environment, "settings">, code: string): boolean {
  const alerts = readSettingsSection(environment, "alerts");
  return !(Object.hasOwn(alerts, code) && alerts[code] === false);
}

/**
 * Replaces the named sections and keeps the others; a section given as null is removed. `version` is the one the caller read:
 * a stale one is refused with `version_conflict`, the current one in `details.version`.
 */
export async function saveSettings(
  tx: Writer,
  environment: Environment,
  sections: Readonly<Record<string, Json>>,
  version: number,
): Promise<Environment> {
  requireVersion(environment, version);
  const settings: JsonObject = { ...environment.settings };
  for (const [name, section] of Object.entries(sections)) {
    if (section === null) delete settings[name];
    else settings[name] = section;
  }
  const sql = "UPDATE environment SET settings = ?2, version = version + 1 WHERE id = ?1";
  await tx.run(sql, environment.id, writeJson(settings));
  tx.touch("environment", environment.id);
  return { ...environment, settings, version: environment.version + 1 };
}

/** Refuses with `version_conflict` unless `version` is the environment's current one. */
export function requireVersion(environment: Pick<Environment, "version">, version: number): void {
  if (version === environment.version) return;
  throw new Refusal(
    "version_conflict",
    `The settings are at version ${environment.version} and you read version ${version}: read them again, apply your change and save.`,
    { details: { version: environment.version } },
  );
}

/**
 * Puts the environment on hold, or releases it: then its schedules count from now, also where nothing ran that could see their periods pass.
 * `newestArrival`: the newest event there is. Until a release reaches it, events of all relays run in the order of their arrival.
 * Answers whether that changed anything.
 */
export async function setHold(
  tx: Writer,
  environmentId: number,
  held: boolean,
  { newestArrival, nowMs }: { newestArrival: number; nowMs: number },
): Promise<boolean> {
  const sql = `UPDATE environment SET held_at = ?2, released_through = coalesce(?3, released_through), version = version + 1
    WHERE id = ?1 AND (held_at IS NULL) <> (?2 IS NULL)`;
  tx.touch("environment", environmentId);
  const values = held ? [nowMs, null] : [null, newestArrival];
  const changed = (await tx.run(sql, environmentId, ...values)) > 0;
  if (changed && !held)
    await tx.run(
      "UPDATE relay SET active_since = ?2 WHERE environment_id = ?1 AND active_since < ?2",
      environmentId,
      nowMs,
    );
  return changed;
}

/** Up to which event a release of the environment's hold is in progress; null: none is, or the environment is on hold again. */
export async function findHoldRelease(tx: Reader, environmentId: number): Promise<number | null> {
  const environment = await findEnvironmentById(tx, environmentId);
  return environment?.heldAt === null ? environment.releasedThrough : null;
}

/** Ends the release that reached this event. */
export async function endHoldRelease(tx: Writer, environmentId: number, through: number): Promise<void> {
  const sql = "UPDATE environment SET released_through = NULL WHERE id = ?1 AND released_through = ?2";
  await tx.run(sql, environmentId, through);
  tx.touch("environment", environmentId);
}

/** A processor secret as it is kept: sealed, what may be shown of it, and the keyed hash that tells equal ones apart. */
export interface SealedProcessorSecret {
  sealed: Uint8Array;
  fingerprint: string;
  digest: Uint8Array;
}

/**
 * Stores the payment processor's secret, or removes it with null. Refuses with `invalid_input` one that another environment of the
 * same app holds: a call to the receiver URL names no environment, its secret alone decides.
 */
export async function setProcessorSecret(
  tx: Writer,
  environment: Environment,
  secret: SealedProcessorSecret | null,
  nowMs: number,
): Promise<void> {
  if (secret !== null) await requireUniqueProcessorSecret(tx, environment, secret.digest);
  const sql = `UPDATE environment SET processor_secret = $sealed, processor_secret_fingerprint = $fingerprint,
    processor_secret_digest = $digest, processor_secret_set_at = $setAt, version = version + 1 WHERE id = $id`;
  const stored = secret ?? { sealed: null, fingerprint: null, digest: null };
  await tx.run(sql, { ...stored, setAt: secret === null ? null : nowMs, id: environment.id });
  tx.touch("environment", environment.id);
}

async function requireUniqueProcessorSecret(
  tx: Reader,
  environment: Environment,
  digest: Uint8Array,
): Promise<void> {
  const sql =
    "SELECT name FROM environment WHERE app_id = ?1 AND id <> ?2 AND processor_secret_digest = ?3 LIMIT 1";
  const other = await tx.get<{ name: string }>(sql, environment.appId, environment.id, digest);
  if (other === null) return;
  throw new Refusal(
    "invalid_input",
    `The processor secret is already the one of ${other.name}, and the secret decides which environment receives: make a webhook endpoint of its own for ${environment.name} at the processor and paste that one's secret.`,
  );
}
