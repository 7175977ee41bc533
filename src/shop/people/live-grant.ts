/**
 * When a grant is live: neither revoked nor expired. Says so once, for a row at hand and for SQL over `access_grant`, because a grant that one
 * query takes for live and another for ended is access that is shown and refused.
 */
import type { Reader } from "../../store/port.ts";

/** Whether the grant is live; a grant is not live any more at the moment it expires. Times in milliseconds since the epoch. */
export function isLive(
  { revokedAt, expiresAt }: { revokedAt: number | null; expiresAt: number | null },
  nowMs: number,
): boolean {
  return revokedAt === null && (expiresAt === null || expiresAt > nowMs);
}

/** The SQL of both halves. `now`: the parameter that holds the moment, such as `$nowMs`. */
export const UNREVOKED = "revoked_at IS NULL";
export const ENDLESS = "expires_at IS NULL";
export function endsLaterSql(now: string): string {
  return `expires_at > ${now}`;
}

/** The SQL of a grant that has not expired. */
export function unexpiredSql(now: string): string {
  return `(${ENDLESS} OR ${endsLaterSql(now)})`;
}

/** The SQL of a live grant. */
export function liveSql(now: string): string {
  return `${UNREVOKED} AND ${unexpiredSql(now)}`;
}

/** How many live grants of the entitlement one purchase gave, and whether the person holds a live one from elsewhere. */
export async function countGrantsOfSource(
  tx: Reader,
  of: {
    environmentId: number;
    personId: string;
    entitlement: string;
    source: string;
    sourceRef: string;
    nowMs: number;
  },
): Promise<{ own: number; hasOther: boolean }> {
  const row = await tx.get<{ own: number; other: number }>(
    `SELECT (SELECT count(*) FROM access_grant INDEXED BY access_grant_by_source
         WHERE source_ref = $sourceRef AND source = $source AND environment_id = $environmentId AND ${liveSql("$nowMs")}) AS own,
       EXISTS (SELECT 1 FROM access_grant INDEXED BY access_grant_live
         WHERE person_id = $personId AND environment_id = $environmentId AND entitlement = $entitlement AND ${liveSql("$nowMs")}
           AND (source <> $source OR source_ref <> $sourceRef)) AS other`,
    of,
  );
  return { own: row?.own ?? 0, hasOther: row?.other === 1 };
}

/** What some unrevoked grants tell of their ends, as an index answers it: whether one has no end (1) or none such (0), and the last end. */
export interface Ends {
  endless: number;
  until: number | null;
}

/** The SQL of `Ends` over `grants`, a FROM clause whose WHERE takes unrevoked grants. */
export function endsSql(grants: string): string {
  return `EXISTS (SELECT 1 FROM ${grants} AND ${ENDLESS}) AS endless, (SELECT max(expires_at) FROM ${grants}) AS until`;
}

/** Whether one of the grants is live, and until when one is; `until` is null where there is no end, and where none is live. */
export function readEnds(ends: Ends | null, nowMs: number): { granted: boolean; until: number | null } {
  if (ends?.endless === 1) return { granted: true, until: null };
  const until = ends?.until ?? null;
  const granted = until !== null && isLive({ revokedAt: null, expiresAt: until }, nowMs);
  return { granted, until: granted ? until : null };
}
