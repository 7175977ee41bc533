/**
 * An app's environments: versioned settings, the hold, and the sealed secret of the payment processor. The version decides which concurrent
 * change wins. This file neither interprets a settings section nor opens a secret.
 */
import { isJsonObject, type Json, type JsonObject, writeJson } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { bytes, defineTable, given, integer, json, orNull, type RowOf, text } from "../../store/table.ts";

/** Reports whether the environment is the one of local development. */
export function isLocalEnvironment({ name }: { name: string }): boolean {
  return name === "local";
}

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
    /** Sections by name; the module that reads a section defines its shape: `base`, `mail`, `alerts`, … */
    settings: json<JsonObject>(),
    /** Increases with every change of the settings, the hold or the processor secret. */
    version: integer(),
    /** The time when the environment was put on hold; null: events run. */
    heldAt: orNull(integer()),
    /** The newest event at the time the hold was released, while the held events still run; otherwise null. */
    releasedThrough: orNull(integer()),
    /** The sealed secret; see secret/seal.ts. */
    processorSecret: orNull(bytes()),
    processorSecretFingerprint: orNull(text()),
    /** A keyed hash, which compares the secrets of two environments without opening them. */
    processorSecretDigest: orNull(bytes()),
    processorSecretSetAt: orNull(integer()),
    createdAt: integer(),
    /** The time when the app was deleted; null: the app exists. No finder returns an environment of a deleted app. */
    deletedAt: orNull(integer()),
  },
});

const LIVE = "deleted_at IS NULL";

export type Environment = RowOf<typeof ENVIRONMENT>;

export function findEnvironment(tx: Reader, appId: string, name: string): Promise<Environment | null> {
  return ENVIRONMENT.get(tx, `WHERE app_id = $appId AND name = $name AND ${LIVE}`, { appId, name });
}

/** Finds the environment. Throws `not_found`. */
export async function requireEnvironment(tx: Reader, appId: string, name: string): Promise<Environment> {
  const environment = await findEnvironment(tx, appId, name);
  if (environment === null) throw rejectUnknownEnvironment();
  return environment;
}

/** Returns the refusal of an environment that does not exist, or that the caller is no member of. */
export function rejectUnknownEnvironment(): Refusal {
  return new Refusal(
    "not_found",
    "There is no such app with such an environment; relay apps list shows the ones that exist.",
  );
}

/** Finds an environment by its row id; null also if its app is deleted. */
export function findEnvironmentById(tx: Reader, id: number): Promise<Environment | null> {
  return ENVIRONMENT.get(tx, `WHERE id = $id AND ${LIVE}`, { id });
}

/** Finds the environment with the next row id; null after the last. */
export function findEnvironmentAfter(tx: Reader, id: number): Promise<Environment | null> {
  return ENVIRONMENT.get(tx, `WHERE id > $id AND ${LIVE} ORDER BY id LIMIT 1`, { id });
}

/** Lists the environments of one app, or of all apps for null, oldest first. */
export function listEnvironments(tx: Reader, appId: string | null): Promise<Environment[]> {
  return ENVIRONMENT.all(tx, `WHERE ($appId IS NULL OR app_id = $appId) AND ${LIVE} ORDER BY id`, { appId });
}

/** Finds the environment of local development. A server's data directory has none. */
export async function findLocalEnvironment(tx: Reader): Promise<Environment | null> {
  return (await listEnvironments(tx, null)).find(({ name }) => name === "local") ?? null;
}

/** Returns the app's environment of this name, and creates it with empty settings if needed. The app must exist. */
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

/** Reads one section of the settings; an empty object if it was never saved. */
export function readSettingsSection(environment: Pick<Environment, "settings">, name: string): JsonObject {
  const section = Object.hasOwn(environment.settings, name) ? environment.settings[name] : undefined;
  return isJsonObject(section) ? section : {};
}

export const APPROVALS_SECTION = "approvals";

/** Reports whether a change of the definitions in production needs a second person; off by default. */
export function needsSecondPerson({ name, settings }: Pick<Environment, "name" | "settings">): boolean {
  return name === "production" && readSettingsSection({ settings }, APPROVALS_SECTION).secondPerson === true;
}

/** Reports whether alerts of this code are enabled. Every code is enabled until the owner switches it off. */
export function isAlertEnabled(environment: Pick<Environment, "settings">, code: string): boolean {
  const alerts = readSettingsSection(environment, "alerts");
  return !(Object.hasOwn(alerts, code) && alerts[code] === false);
}

/**
 * Replaces the named sections and keeps the others; null removes a section. `version` is the version that the caller read. Throws
 * `version_conflict` for an outdated version, with the current one in `details.version`.
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
  tx.notify("environment", environment.id);
  return { ...environment, settings, version: environment.version + 1 };
}

/** Throws `version_conflict` unless `version` is the environment's current version. */
export function requireVersion(environment: Pick<Environment, "version">, version: number): void {
  if (version === environment.version) return;
  throw new Refusal(
    "version_conflict",
    `The settings are at version ${environment.version} and you read version ${version}: read them again, apply your change and save.`,
    { details: { version: environment.version } },
  );
}

/**
 * Puts the environment on hold, or releases it, and returns whether that changed anything. After a release, schedules count from now, so that
 * ticks missed during the hold do not run. `newestArrival` is the newest event: until the release reaches it, events of all relays run in
 * order of arrival.
 */
export async function setHold(
  tx: Writer,
  environmentId: number,
  held: boolean,
  { newestArrival, nowMs }: { newestArrival: number; nowMs: number },
): Promise<boolean> {
  const sql = `UPDATE environment SET held_at = ?2, released_through = coalesce(?3, released_through), version = version + 1
    WHERE id = ?1 AND (held_at IS NULL) <> (?2 IS NULL)`;
  tx.notify("environment", environmentId);
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

/** Finds the event up to which a release of the hold is in progress. Returns null if no release is in progress or the environment is on hold. */
export async function findHoldRelease(tx: Reader, environmentId: number): Promise<number | null> {
  const environment = await findEnvironmentById(tx, environmentId);
  return environment?.heldAt === null ? environment.releasedThrough : null;
}

/** Ends the release of a hold once it reached this event. */
export async function endHoldRelease(tx: Writer, environmentId: number, through: number): Promise<void> {
  const sql = "UPDATE environment SET released_through = NULL WHERE id = ?1 AND released_through = ?2";
  await tx.run(sql, environmentId, through);
  tx.notify("environment", environmentId);
}

/** A stored processor secret: sealed, with its fingerprint for display and its keyed hash for comparison. */
export interface SealedProcessorSecret {
  sealed: Uint8Array;
  fingerprint: string;
  digest: Uint8Array;
}

/**
 * Stores the payment processor's secret; null removes it. Throws `invalid_input` if another environment of the app has the same secret, because only
 * the secret decides which environment a request belongs to.
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
  tx.notify("environment", environment.id);
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
    `The environment ${other.name} already uses this processor secret, and the secret decides which environment receives a request. Create a separate webhook endpoint for ${environment.name} at the processor, and paste its secret.`,
  );
}
