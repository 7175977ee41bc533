/**
 * Grants: who holds which entitlement, since when, until when, and from what. Append-only: a grant that ends is marked, never removed.
 * A grant is live when it is neither revoked nor expired. Whether the entitlement exists is the caller's question (entitlement.ts).
 */
import { toIso, toIsoOrNull } from "../ground/clock.ts";
import { newId } from "../ground/id.ts";
import type { Page, PageRequest } from "../ground/page.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Reader, Writer } from "../store/port.ts";
import { equals, walkPage } from "../store/walk.ts";

export type GrantSource = "relay" | "purchase" | "plan" | "hand";

export interface GrantRow {
  id: string;
  personId: string;
  /** As held: `access:<slug>`, a plan's name, a product's key. */
  entitlement: string;
  source: GrantSource;
  /** What the source is: the relay's name, the purchase's or subscription's id, the key or owner in words. */
  sourceRef: string | null;
  relayName: string | null;
  eventId: string | null;
  reason: string | null;
  grantedAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
  revokedBy: string | null;
}

interface GrantView {
  id: string;
  person: string;
  entitlement: string;
  source: GrantSource;
  sourceRef: string | null;
  relay: string | null;
  eventId: string | null;
  reason: string | null;
  live: boolean;
  grantedAt: string;
  expiresAt: string | null;
  revokedAt: string | null;
  revokedBy: string | null;
}

/** What a person holds: `until` is the last end of the live grants, null when one has none or nothing is held. */
export interface AccessView {
  granted: boolean;
  until: string | null;
  grants: GrantView[];
}

const COLUMNS = `id, person_id AS personId, entitlement, source, source_ref AS sourceRef, relay_name AS relayName,
  event_id AS eventId, reason, granted_at AS grantedAt, expires_at AS expiresAt, revoked_at AS revokedAt, revoked_by AS revokedBy`;

function isLive(row: GrantRow, nowMs: number): boolean {
  return row.revokedAt === null && (row.expiresAt === null || row.expiresAt > nowMs);
}

/** A grant as the API shows one. */
export function viewGrant(row: GrantRow, nowMs: number): GrantView {
  return {
    id: row.id,
    person: row.personId,
    entitlement: row.entitlement,
    source: row.source,
    sourceRef: row.sourceRef,
    relay: row.relayName,
    eventId: row.eventId,
    reason: row.reason,
    live: isLive(row, nowMs),
    grantedAt: toIso(row.grantedAt),
    expiresAt: toIsoOrNull(row.expiresAt),
    revokedAt: toIsoOrNull(row.revokedAt),
    revokedBy: row.revokedBy,
  };
}

export interface Grant {
  environmentId: number;
  personId: string;
  /** As held: resolved by entitlement.ts. */
  entitlement: string;
  source: GrantSource;
  sourceRef: string | null;
  relayName: string | null;
  eventId: string | null;
  reason: string | null;
  /** Milliseconds since the epoch, or null for no end. */
  expiresAtMs: number | null;
  nowMs: number;
}

/** Writes the grant; it judges nothing. */
export async function grantAccess(tx: Writer, grant: Grant): Promise<GrantRow> {
  const row: GrantRow = {
    id: newId("grt", grant.nowMs),
    personId: grant.personId,
    entitlement: grant.entitlement,
    source: grant.source,
    sourceRef: grant.sourceRef,
    relayName: grant.relayName,
    eventId: grant.eventId,
    reason: grant.reason,
    grantedAt: grant.nowMs,
    expiresAt: grant.expiresAtMs,
    revokedAt: null,
    revokedBy: null,
  };
  await tx.run(
    `INSERT INTO access_grant
       (id, environment_id, person_id, entitlement, source, source_ref, relay_name, event_id, reason, granted_at, expires_at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`,
    row.id,
    grant.environmentId,
    row.personId,
    row.entitlement,
    row.source,
    row.sourceRef,
    row.relayName,
    row.eventId,
    row.reason,
    row.grantedAt,
    row.expiresAt,
  );
  return row;
}

interface Holding {
  environmentId: number;
  personId: string;
  /** As held; null: any. */
  entitlement: string | null;
  nowMs: number;
}

/** The live grants, the newest first. */
export function listLiveGrants(tx: Reader, holding: Holding, limit = -1): Promise<GrantRow[]> {
  return tx.all<GrantRow>(
    `SELECT ${COLUMNS} FROM access_grant INDEXED BY ${holding.entitlement === null ? "access_grant_by_person" : "access_grant_live"}
     WHERE person_id = ?1 AND environment_id = ?2 AND ${holding.entitlement === null ? "?3 IS NULL" : "entitlement = ?3"}
       AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?4)
     ORDER BY granted_at DESC, id DESC LIMIT ?5`,
    holding.personId,
    holding.environmentId,
    holding.entitlement,
    holding.nowMs,
    limit,
  );
}

/** Of someone who holds very many, the newest are shown; `granted` and `until` are of all. */
const MAX_SHOWN_GRANTS = 200;

/** Answers `GET …/access` and `…/access/{entitlement}`: what the live grants amount to, and the newest of them. */
export async function checkAccess(tx: Reader, holding: Holding): Promise<AccessView> {
  const { granted, until } = await findEnd(tx, holding);
  const live = granted ? await listLiveGrants(tx, holding, MAX_SHOWN_GRANTS) : [];
  return { granted, until: toIsoOrNull(until), grants: live.map((row) => viewGrant(row, holding.nowMs)) };
}

/** Out of an index alone, so that it costs little whatever a person was granted. */
async function findEnd(tx: Reader, holding: Holding): Promise<{ granted: boolean; until: number | null }> {
  const { personId, environmentId, entitlement, nowMs } = holding;
  const named = entitlement === null ? "" : "AND entitlement = ?3";
  const values = entitlement === null ? [personId, environmentId] : [personId, environmentId, entitlement];
  const row = await tx.get<{ endless: number; until: number | null }>(
    `SELECT EXISTS (SELECT 1 FROM ${ENDS} ${named} AND expires_at IS NULL) AS endless,
       (SELECT max(expires_at) FROM ${ENDS} ${named}) AS until`,
    ...values,
  );
  if (row?.endless === 1) return { granted: true, until: null };
  const until = row?.until ?? null;
  return until !== null && until > nowMs ? { granted: true, until } : { granted: false, until: null };
}

const ENDS = `access_grant INDEXED BY access_grant_ends
  WHERE person_id = ?1 AND environment_id = ?2 AND revoked_at IS NULL`;

/** How many live grants of the entitlement there are, counted no further than `most`. */
export async function countHolders(
  tx: Reader,
  at: { environmentId: number; entitlement: string; nowMs: number },
  most: number,
): Promise<number> {
  const held = `SELECT person_id FROM access_grant INDEXED BY access_grant_held
    WHERE environment_id = ?1 AND entitlement = ?2 AND revoked_at IS NULL`;
  const row = await tx.get<{ count: number }>(
    `SELECT count(DISTINCT person_id) AS count FROM (
       SELECT * FROM (${held} AND expires_at IS NULL LIMIT ?4)
       UNION ALL SELECT * FROM (${held} AND expires_at > ?3 LIMIT ?4))`,
    at.environmentId,
    at.entitlement,
    at.nowMs,
    most,
  );
  return Math.min(most, row?.count ?? 0);
}

/** Every grant a person ever had, ended ones too, newest first. */
export async function listGrants(
  tx: Reader,
  at: { environmentId: number; personId: string; nowMs: number },
  request: PageRequest,
): Promise<Page<GrantView>> {
  return await walkPage<GrantRow, GrantView>(
    tx,
    {
      from: "access_grant INDEXED BY access_grant_by_person_id",
      columns: COLUMNS,
      key: "id",
      led: [equals("person_id", at.personId), equals("environment_id", at.environmentId)],
      after: request.after,
      limit: request.limit,
    },
    (row) => viewGrant(row, at.nowMs),
  );
}

/** Who holds an entitlement now: its live grants, or all live grants where none is named, newest first. */
export async function listHolders(
  tx: Reader,
  at: { environmentId: number; entitlement: string | undefined; nowMs: number },
  request: PageRequest,
): Promise<Page<GrantView>> {
  const { environmentId, entitlement, nowMs } = at;
  return await walkPage<GrantRow, GrantView>(
    tx,
    {
      from: `access_grant INDEXED BY ${entitlement === undefined ? "access_grant_unrevoked" : "access_grant_by_entitlement"}`,
      columns: COLUMNS,
      key: "id",
      led: [
        equals("environment_id", environmentId),
        { sql: "revoked_at IS NULL", values: [] },
        equals("entitlement", entitlement),
      ],
      fits: [{ sql: "(expires_at IS NULL OR expires_at > ?)", values: [nowMs] }],
      after: request.after,
      limit: request.limit,
    },
    (row) => viewGrant(row, nowMs),
  );
}

/** Ends every live grant of the entitlement the person holds, whatever its source; answers the ones it ended. */
export async function revokeAccess(tx: Writer, holding: Holding & { by: string }): Promise<GrantRow[]> {
  const live = await listLiveGrants(tx, holding);
  for (const row of live) await endGrant(tx, row.id, holding.by, holding.nowMs);
  return live.map((row) => ({ ...row, revokedAt: holding.nowMs, revokedBy: holding.by }));
}

/** Ends the live grants that one purchase or subscription gave, and no others; answers how many. */
export function revokeGrantsOfSource(
  tx: Writer,
  of: { environmentId: number; source: GrantSource; sourceRef: string; by: string; nowMs: number },
): Promise<number> {
  return tx.run(
    `UPDATE access_grant SET revoked_at = ?4, revoked_by = ?5
     WHERE source_ref = ?1 AND source = ?2 AND environment_id = ?3 AND revoked_at IS NULL`,
    of.sourceRef,
    of.source,
    of.environmentId,
    of.nowMs,
    of.by,
  );
}

/** Ends one grant by id; one that ended before stays as it is. Answers it before and after. Refuses with `not_found`. */
export async function revokeGrant(
  tx: Writer,
  at: { environmentId: number; grantId: string; by: string; nowMs: number },
): Promise<{ before: GrantRow; after: GrantRow }> {
  const before = await tx.get<GrantRow>(
    `SELECT ${COLUMNS} FROM access_grant WHERE id = ?1 AND environment_id = ?2`,
    at.grantId,
    at.environmentId,
  );
  if (before === null) throw new Refusal("not_found", "No grant with this id exists in this environment.");
  if (before.revokedAt !== null) return { before, after: before };
  await endGrant(tx, before.id, at.by, at.nowMs);
  return { before, after: { ...before, revokedAt: at.nowMs, revokedBy: at.by } };
}

async function endGrant(tx: Writer, grantId: string, by: string, nowMs: number): Promise<void> {
  await tx.run(
    "UPDATE access_grant SET revoked_at = ?2, revoked_by = ?3 WHERE id = ?1 AND revoked_at IS NULL",
    grantId,
    nowMs,
    by,
  );
}
