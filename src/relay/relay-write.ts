/** The two statements that write a relay's row whole. They decide nothing. */
import type { Writer } from "../store/port.ts";
import type { RelayRow } from "./relay-row.ts";

/** Adds the row; its name must be free. */
export async function insertRelay(tx: Writer, row: RelayRow): Promise<void> {
  const sql = `INSERT INTO relay (id, environment_id, name, definition, version, state, origin_kind, origin_at, synced_at,
      secret_kind, secret, secret_fingerprint, secret_digest, secret_set_at, signing_secret, signing_secret_set_at,
      active_since, created_at, updated_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)`;
  await tx.run(
    sql,
    row.id,
    row.environmentId,
    row.name,
    row.definition,
    row.version,
    row.state,
    row.originKind,
    row.originAt,
    row.syncedAt,
    row.secretKind,
    row.secret,
    row.secretFingerprint,
    row.secretDigest,
    row.secretSetAt,
    row.signingSecret,
    row.signingSecretSetAt,
    row.activeSince,
    row.createdAt,
    row.updatedAt,
  );
}

/** Writes the row over the one with its id. */
export async function updateRelayRow(tx: Writer, row: RelayRow): Promise<void> {
  const sql = `UPDATE relay SET definition = ?2, version = ?3, origin_kind = ?4, origin_at = ?5, synced_at = ?6, secret_kind = ?7,
    secret = ?8, secret_fingerprint = ?9, secret_digest = ?10, secret_set_at = ?11, signing_secret = ?12,
    signing_secret_set_at = ?13, active_since = ?14, updated_at = ?15, previous_secret = ?16, previous_secret_digest = ?17,
    previous_secret_until = ?18 WHERE id = ?1`;
  await tx.run(
    sql,
    row.id,
    row.definition,
    row.version,
    row.originKind,
    row.originAt,
    row.syncedAt,
    row.secretKind,
    row.secret,
    row.secretFingerprint,
    row.secretDigest,
    row.secretSetAt,
    row.signingSecret,
    row.signingSecretSetAt,
    row.activeSince,
    row.updatedAt,
    row.previousSecret,
    row.previousSecretDigest,
    row.previousSecretUntil,
  );
}
