/** The relay's row and finding it. It decides the names under which a relay's secrets are sealed and its audit rows stand, nothing else. */
import { parseJson } from "../ground/json.ts";
import { parseNameKey } from "../ground/name-key.ts";
import type { PageRequest } from "../ground/page.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Reader } from "../store/port.ts";
import type { Definition } from "./definition.ts";

export type SecretKind = "minted" | "pasted" | "public_key" | "processor" | "none";
export type OriginKind = "file" | "dashboard";

export interface RelayRow {
  id: string;
  environmentId: number;
  name: string;
  /** JSON text, as saved; `readDefinition` parses it. */
  definition: string;
  /** Counts the saves of the definition. */
  version: number;
  state: "active" | "paused";
  originKind: OriginKind;
  originAt: number;
  /** When a sync last wrote it; null where none ever did. */
  syncedAt: number | null;
  secretKind: SecretKind;
  /** Sealed under `receiverSecretContext`. */
  secret: Uint8Array | null;
  secretFingerprint: string | null;
  secretDigest: Uint8Array | null;
  secretSetAt: number | null;
  /** The secret before the last rotation, sealed as the present one; it verifies until then. null: there is no overlap. */
  previousSecret: Uint8Array | null;
  previousSecretDigest: Uint8Array | null;
  previousSecretUntil: number | null;
  /** Sealed under `signingSecretContext`. */
  signingSecret: Uint8Array | null;
  signingSecretSetAt: number | null;
  /** Since when a schedule counts: creation, resume, or the last change of the trigger. */
  activeSince: number;
  createdAt: number;
  updatedAt: number;
}

export const RELAY_COLUMNS = `id, environment_id AS environmentId, name, definition, version, state, origin_kind AS originKind,
  origin_at AS originAt, synced_at AS syncedAt, secret_kind AS secretKind, secret, secret_fingerprint AS secretFingerprint,
  secret_digest AS secretDigest, secret_set_at AS secretSetAt, previous_secret AS previousSecret,
  previous_secret_digest AS previousSecretDigest, previous_secret_until AS previousSecretUntil, signing_secret AS signingSecret,
  signing_secret_set_at AS signingSecretSetAt, active_since AS activeSince, created_at AS createdAt, updated_at AS updatedAt`;

/** The environment's relay of this name, or null. */
export function findRelay(tx: Reader, environmentId: number, name: string): Promise<RelayRow | null> {
  const sql = `SELECT ${RELAY_COLUMNS} FROM relay WHERE environment_id = ?1 AND name = ?2`;
  return tx.get<RelayRow>(sql, environmentId, name);
}

/** As `findRelay`; refuses with `not_found`. */
export async function requireRelay(tx: Reader, environmentId: number, name: string): Promise<RelayRow> {
  const row = await findRelay(tx, environmentId, name);
  if (row !== null) return row;
  throw new Refusal("not_found", "There is no relay with this name in this environment.");
}

/** Every relay of the environment, by name; there are never many. */
export function listRelayRows(tx: Reader, environmentId: number): Promise<RelayRow[]> {
  const sql = `SELECT ${RELAY_COLUMNS} FROM relay WHERE environment_id = ?1 ORDER BY name`;
  return tx.all<RelayRow>(sql, environmentId);
}

/** The rows of a page and one more, newest first. */
export function pageRelayRows(tx: Reader, environmentId: number, request: PageRequest): Promise<RelayRow[]> {
  const after = parseNameKey(request.after);
  const sql = `SELECT ${RELAY_COLUMNS} FROM relay
    WHERE environment_id = ?1 AND (?2 IS NULL OR created_at < ?2 OR (created_at = ?2 AND name > ?3))
    ORDER BY created_at DESC, name LIMIT ?4`;
  return tx.all<RelayRow>(sql, environmentId, after.createdAt, after.name, request.limit + 1);
}

/** The stored definition. One saved under an older version's rules may name a scheme that no longer exists. */
export function readDefinition(row: Pick<RelayRow, "definition">): Definition {
  return parseJson(row.definition) as unknown as Definition;
}

/** Refuses with `version_conflict` unless `version` is the row's; the current one is in `details.version`. */
export function requireRelayVersion(row: Pick<RelayRow, "version" | "name">, version: number): void {
  if (version === row.version) return;
  throw new Refusal(
    "version_conflict",
    `The relay ${row.name} is at version ${row.version} and you read version ${version}: read it again, apply your change to it and save.`,
    { details: { version: row.version } },
  );
}

/** Whether the secret before the last rotation still verifies. */
export function overlaps<Row extends Pick<RelayRow, "previousSecretUntil">>(
  row: Row,
  nowMs: number,
): row is Row & { previousSecretUntil: number } {
  return row.previousSecretUntil !== null && nowMs < row.previousSecretUntil;
}

/** What a relay is called in audit rows, problems and alerts. */
export function relayTarget(name: string): string {
  return `relay:${name}`;
}

/** The contexts under which secrets are sealed: a sealed value copied to another row does not open there. */
export function receiverSecretContext(relayId: string): string {
  return `relay:${relayId}:receiver`;
}

export function signingSecretContext(relayId: string): string {
  return `relay:${relayId}:signing`;
}

export function processorSecretContext(environmentId: number): string {
  return `environment:${environmentId}:processor`;
}

/** The address a provider posts to; it names no environment. `baseUrl` has no trailing slash. */
export function receiverUrl(baseUrl: string, appId: string, name: string): string {
  return `${baseUrl}/hooks/${appId}/${name}`;
}
