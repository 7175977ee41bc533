/** Defines a live grant: neither revoked nor expired. One definition for rows and for SQL, so that no query shows access that another one denies. */
import type { Reader } from "../../store/port.ts";

/** Reports whether a grant is live; it is not live at the moment it expires. Times in milliseconds since the epoch. */
export function isLive(
  { revokedAt, expiresAt }: { revokedAt: number | null; expiresAt: number | null },
  nowMs: number,
): boolean {
  return revokedAt === null && (expiresAt === null || expiresAt > nowMs);
}

/** SQL of both conditions. `now`: the parameter that holds the time, such as `$nowMs`. */
export const UNREVOKED = "revoked_at IS NULL";
export const ENDLESS = "expires_at IS NULL";
export function endsLaterSql(now: string): string {
  return `expires_at > ${now}`;
}

/** Returns the SQL of an unexpired grant. */
export function unexpiredSql(now: string): string {
  return `(${ENDLESS} OR ${endsLaterSql(now)})`;
}

/** Returns the SQL of a live grant. */
export function liveSql(now: string): string {
  return `${UNREVOKED} AND ${unexpiredSql(now)}`;
}

/** Counts the live grants of one purchase, and reports whether the person holds a live one from another source. */
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
): Promise<{ fromSource: number; hasOther: boolean }> {
  const row = await tx.get<{ own: number; other: number }>(
    `SELECT (SELECT count(*) FROM access_grant INDEXED BY access_grant_by_source
         WHERE source_ref = $sourceRef AND source = $source AND environment_id = $environmentId AND ${liveSql("$nowMs")}) AS own,
       EXISTS (SELECT 1 FROM access_grant INDEXED BY access_grant_live
         WHERE person_id = $personId AND environment_id = $environmentId AND entitlement = $entitlement AND ${liveSql("$nowMs")}
           AND (source <> $source OR source_ref <> $sourceRef)) AS other`,
    of,
  );
  return { fromSource: row?.own ?? 0, hasOther: row?.other === 1 };
}

/** The expiry of a set of unrevoked grants, from an index: whether one never expires (1 or 0), and the last expiry. */
export interface Ends {
  endless: number;
  until: number | null;
}

/** Returns the SQL of `Ends` over `grants`, a FROM clause whose WHERE selects unrevoked grants. */
export function endsSql(grants: string): string {
  return `EXISTS (SELECT 1 FROM ${grants} AND ${ENDLESS}) AS endless, (SELECT max(expires_at) FROM ${grants}) AS until`;
}

/** Reports whether one of the grants is live, and until when. `until` is null if a grant never expires or none is live. */
export function readEnds(ends: Ends | null, nowMs: number): { granted: boolean; until: number | null } {
  if (ends?.endless === 1) return { granted: true, until: null };
  const until = ends?.until ?? null;
  const granted = until !== null && isLive({ revokedAt: null, expiresAt: until }, nowMs);
  return { granted, until: granted ? until : null };
}
