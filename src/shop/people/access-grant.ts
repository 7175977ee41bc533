/**
 * Grants: which person holds which entitlement, from when, until when, and from what source. Append-only: a grant that ends is marked and
 * never removed.
 */
import { type Static, Type } from "typebox";
import { toIsoOrNull } from "../../base/clock.ts";
import { newId } from "../../base/id.ts";
import { MAX_REASON_CHARS } from "../../base/limit.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import {
  eventText,
  oneOf,
  show,
  orNull as shownOrNull,
  textOrNull,
  time,
  timeOrNull,
} from "../../base/schema.ts";
import { breaksPlainText, countChars } from "../../base/text.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import { equals, walkPage } from "../../store/index-scan.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../../store/table.ts";
import {
  findNewestArrival,
  findRevocationAfter,
  isGrantedBefore,
  type RevokingEvent,
  recordRevocation,
} from "./access-order.ts";
import { requireEntitlement } from "./entitlement.ts";
import { type Ends, endsSql, isLive, liveSql, readEnds, UNREVOKED, unexpiredSql } from "./live-grant.ts";
import { type PersonStatus, requireActingPerson } from "./person.ts";

export const grantSource = oneOf(["relay", "purchase", "plan", "hand"]);
export type GrantSource = Static<typeof grantSource>;

export const ACCESS_GRANT = defineTable({
  name: "access_grant",
  key: ["id"],
  columns: {
    id: text(),
    environmentId: integer(),
    personId: text(),
    /** The granted key: `access:<slug>`, a plan's name, a product's key. */
    entitlement: text(),
    source: text<GrantSource>(),
    /** The relay's name, the id of the purchase or subscription, or the formatted key or owner. */
    sourceRef: orNull(text()),
    relayName: orNull(text()),
    eventId: orNull(text()),
    reason: orNull(text()),
    grantedAt: integer(),
    expiresAt: orNull(integer()),
    revokedAt: orNull(integer()),
    revokedBy: orNull(text()),
    /** The grant's place in the order of arrival (access-order.ts); null: an earlier version granted it. */
    arrival: orNull(integer()),
  },
});
type GrantRow = RowOf<typeof ACCESS_GRANT>;

/** A grant as the API shows it. */
export const grantView = Type.Object({
  id: Type.String(),
  person: Type.String(),
  entitlement: Type.String(),
  source: grantSource,
  sourceRef: textOrNull,
  relay: textOrNull,
  eventId: textOrNull,
  reason: shownOrNull(eventText),
  live: Type.Boolean(),
  grantedAt: time,
  expiresAt: timeOrNull,
  revokedAt: timeOrNull,
  revokedBy: textOrNull,
});
export type GrantView = Static<typeof grantView>;

/** A person's access. `until`: the last expiry of the live grants; null if one never expires or there is none. */
export const accessView = Type.Object({
  granted: Type.Boolean(),
  suspended: Type.Boolean(),
  until: timeOrNull,
  grants: Type.Array(grantView),
});
type AccessSummary = Omit<Static<typeof accessView>, "suspended">;

/** Shows a person's access. A suspended person has no access until they are active again, even with live grants. */
export function viewAccess(status: PersonStatus, held: AccessSummary): Static<typeof accessView> {
  if (status !== "suspended") return { suspended: false, ...held };
  return { suspended: true, granted: false, until: null, grants: held.grants };
}

export function viewGrant(row: GrantRow, nowMs: number): GrantView {
  return show(grantView, {
    ...row,
    person: row.personId,
    relay: row.relayName,
    live: isLive(row, nowMs),
  });
}

export interface Grant extends Pick<GrantRow, GrantOrigin> {
  /** The event's number; without an event, the number of the newest event. */
  arrival: number;
  /** Milliseconds since the epoch; null: never. */
  expiresAtMs: number | null;
  nowMs: number;
}
type GrantOrigin =
  | "environmentId"
  | "personId"
  | "entitlement"
  | "source"
  | "sourceRef"
  | "relayName"
  | "eventId"
  | "reason";

/** A written grant. `endedByEvent`: the event that ended it at once because that event arrived later; null: the grant is live. */
type WrittenGrant = GrantRow & { endedByEvent: string | null };

/**
 * Writes a grant. If a later event revoked the entitlement already, the grant ends at once. `entitlement` is the granted key, as
 * entitlement.ts resolves it.
 */
export async function grantAccess(tx: Writer, grant: Grant): Promise<WrittenGrant> {
  const { environmentId, personId, entitlement, source, sourceRef, relayName, eventId, reason, arrival } =
    grant;
  // A grant without an event comes after every existing event.
  const mark = eventId === null ? null : await findRevocationAfter(tx, grant);
  const row: GrantRow = {
    id: newId("grt", grant.nowMs),
    environmentId,
    personId,
    entitlement,
    source,
    sourceRef,
    relayName,
    eventId,
    reason,
    grantedAt: grant.nowMs,
    expiresAt: grant.expiresAtMs,
    revokedAt: mark === null ? null : grant.nowMs,
    revokedBy: mark?.revokedBy ?? null,
    arrival,
  };
  await ACCESS_GRANT.insert(tx, row);
  return { ...row, endedByEvent: mark?.eventId ?? null };
}

export interface ManualGrant
  extends Pick<Grant, "environmentId" | "personId" | "entitlement" | "reason" | "expiresAtMs" | "nowMs"> {
  /** The formatted actor: `key:<id>`, `owner:<email>`. */
  by: string;
}

/**
 * Grants through the API, the dashboard or a command, by the entitlement's name. Audited without the reason. The source is always `hand`, so
 * that keys and owners cannot fake another one. Throws `not_found`, `person_suspended`, `entitlement_unknown` and `invalid_input`.
 */
export async function grantManually(tx: Writer, { by, ...grant }: ManualGrant): Promise<WrittenGrant> {
  const { environmentId, personId, reason, expiresAtMs, nowMs } = grant;
  if (reason !== null && (countChars(reason) > MAX_REASON_CHARS || breaksPlainText(reason) !== null)) {
    throw new Refusal(
      "invalid_input",
      `\`reason\` is not valid: use at most ${MAX_REASON_CHARS} characters of plain text.`,
    );
  }
  if (expiresAtMs !== null && !(expiresAtMs > nowMs)) {
    throw new Refusal(
      "invalid_input",
      "`expiresAt` is not in the future: give a later moment, or leave it out.",
    );
  }
  await requireActingPerson(tx, environmentId, personId);
  const { key } = await requireEntitlement(tx, environmentId, grant.entitlement);
  const origin = { source: "hand", sourceRef: by, relayName: null, eventId: null } as const;
  const arrival = await findNewestArrival(tx);
  const granted = await grantAccess(tx, { ...grant, ...origin, entitlement: key, arrival });
  const { reason: _, ...after } = viewGrant(granted, nowMs);
  const target = `grant:${granted.id}`;
  await writeAudit(tx, { environmentId, by, nowMs, action: "grant.created", target, after });
  return granted;
}

interface AccessQuery {
  environmentId: number;
  personId: string;
  /** The granted key; null: any. */
  entitlement: string | null;
  nowMs: number;
}

/** The fewest live grants of one entitlement for which the query uses the person's order, because sorting all would be slow. */
const MANY_GRANTS = 500;

/** Lists the live grants, newest first. */
export async function listLiveGrants(tx: Reader, holding: AccessQuery, limit = -1): Promise<GrantRow[]> {
  const { environmentId, personId, entitlement, nowMs } = holding;
  const inOrder = entitlement === null || (limit > 0 && (await hasManyGrants(tx, holding)));
  const index = inOrder ? "access_grant_by_person" : "access_grant_live";
  const named = entitlement === null ? "" : "AND entitlement = $entitlement";
  return await ACCESS_GRANT.all(
    tx,
    `INDEXED BY ${index} WHERE person_id = $personId AND environment_id = $environmentId ${named}
       AND ${liveSql("$nowMs")}
     ORDER BY granted_at DESC, id DESC LIMIT $limit`,
    { environmentId, personId, entitlement, nowMs, limit },
  );
}

async function hasManyGrants(
  tx: Reader,
  { environmentId, personId, entitlement }: AccessQuery,
): Promise<boolean> {
  const row = await tx.get<{ held: number }>(
    `SELECT count(*) AS held FROM (SELECT 1 FROM access_grant INDEXED BY access_grant_ends
       WHERE person_id = $personId AND environment_id = $environmentId AND ${UNREVOKED}
         AND entitlement = $entitlement LIMIT $most) AS few`,
    { environmentId, personId, entitlement, most: MANY_GRANTS },
  );
  return row?.held === MANY_GRANTS;
}

/** The most grants that are shown; `granted` and `until` cover all. */
const MAX_SHOWN_GRANTS = 200;

/** Summarizes the live grants and shows the newest. Ignores whether the person is suspended. */
export async function checkAccess(tx: Reader, holding: AccessQuery): Promise<AccessSummary> {
  const { granted, until } = await findAccess(tx, holding);
  const shown = granted ? await listLiveGrants(tx, holding, MAX_SHOWN_GRANTS) : [];
  return { granted, until, grants: shown.map((row) => viewGrant(row, holding.nowMs)) };
}

/** Summarizes the live grants from an index only, so that it stays fast however many there are. */
export async function findAccess(
  tx: Reader,
  holding: AccessQuery,
): Promise<Pick<AccessSummary, "granted" | "until">> {
  const { personId, environmentId, entitlement, nowMs } = holding;
  const grants = `access_grant INDEXED BY access_grant_ends
    WHERE person_id = $personId AND environment_id = $environmentId AND ${UNREVOKED}
      ${entitlement === null ? "" : "AND entitlement = $entitlement"}`;
  const ends = await tx.get<Ends>(`SELECT ${endsSql(grants)}`, { environmentId, personId, entitlement });
  const { granted, until } = readEnds(ends, nowMs);
  return { granted, until: toIsoOrNull(until) };
}

/** Lists every grant of a person, including ended ones, newest first. */
export async function listGrants(
  tx: Reader,
  at: { environmentId: number; personId: string; nowMs: number },
  request: PageRequest,
): Promise<Page<GrantView>> {
  const led = [equals("person_id", at.personId), equals("environment_id", at.environmentId)];
  const walk = { index: "access_grant_by_person_id", key: "id", led } as const;
  return await walkPage(tx, ACCESS_GRANT, request, walk, (row) => viewGrant(row, at.nowMs));
}

/** Lists the live grants of an entitlement, or of all, newest first. */
export async function listHolders(
  tx: Reader,
  at: { environmentId: number; entitlement: string | undefined; nowMs: number },
  request: PageRequest,
): Promise<Page<GrantView>> {
  const { environmentId, entitlement, nowMs } = at;
  const walk = {
    index: entitlement === undefined ? "access_grant_unrevoked" : "access_grant_by_entitlement",
    key: "id",
    led: [
      equals("environment_id", environmentId),
      { sql: UNREVOKED, values: [] },
      equals("entitlement", entitlement),
    ],
    fits: [{ sql: unexpiredSql("?"), values: [nowMs] }],
  } as const;
  return await walkPage(tx, ACCESS_GRANT, request, walk, (row) => viewGrant(row, nowMs));
}

/**
 * Implements `revoke_access`: records the revocation and ends the live grants of every source that the person got before the event arrived. Returns
 * the ended grants, and the later ones that stay.
 */
export async function revokeAccess(
  tx: Writer,
  {
    by,
    event,
    ...holding
  }: Omit<AccessQuery, "entitlement"> & { entitlement: string; by: string; event: RevokingEvent },
): Promise<{ ended: GrantRow[]; kept: GrantRow[] }> {
  const { environmentId, personId, entitlement, nowMs } = holding;
  const mark = { environmentId, personId, entitlement, revokedBy: by };
  await recordRevocation(tx, { ...mark, arrival: event.arrival, eventId: event.id });
  const held = await listLiveGrants(tx, { ...holding, entitlement });
  const ended = held.filter((row) => isGrantedBefore(row, event));
  for (const row of ended) await endGrant(tx, row.id, by, nowMs);
  return { ended, kept: held.filter((row) => !ended.includes(row)) };
}

/** Ends the live grants of one purchase or subscription. Returns how many. */
export function revokeGrantsOfSource(
  tx: Writer,
  of: { environmentId: number; source: GrantSource; sourceRef: string; by: string; nowMs: number },
): Promise<number> {
  return tx.run(
    `UPDATE access_grant SET revoked_at = $nowMs, revoked_by = $by
     WHERE source_ref = $sourceRef AND source = $source AND environment_id = $environmentId AND revoked_at IS NULL`,
    of,
  );
}

/** Moves a live grant to a later place in the order of arrival, because a later event granted it again. */
export async function updateGrantArrival(tx: Writer, id: string, arrival: number): Promise<void> {
  await tx.post("UPDATE access_grant SET arrival = ?2 WHERE id = ?1", id, arrival);
}

/** Moves the live grants of a source to an earlier arrival, because an earlier event granted the same. Grants that a revocation then follows end. */
export async function reorderGrants(
  tx: Writer,
  of: { environmentId: number; source: GrantSource; sourceRef: string; arrival: number; nowMs: number },
): Promise<void> {
  const { environmentId, source, sourceRef, arrival, nowMs } = of;
  const rest = `INDEXED BY access_grant_by_source
    WHERE source_ref = $sourceRef AND source = $source AND environment_id = $environmentId AND revoked_at IS NULL`;
  for (const row of await ACCESS_GRANT.all(tx, rest, { environmentId, source, sourceRef })) {
    await ACCESS_GRANT.change(tx, { id: row.id }, { arrival });
    const mark = await findRevocationAfter(tx, { ...row, arrival });
    if (mark !== null) await endGrant(tx, row.id, mark.revokedBy, nowMs);
  }
}

/**
 * Ends one grant by id for an owner, a key or a command; audited. The grant may have any source. An ended grant does not change. Returns the grant
 * afterwards. Throws `not_found`.
 */
export async function endGrantManually(tx: Writer, change: Change, grantId: string): Promise<GrantRow> {
  const { environmentId, by, nowMs } = change;
  const key = { id: grantId, environmentId };
  const before = await ACCESS_GRANT.require(tx, key, "No grant with this id exists in this environment.");
  if (before.revokedAt !== null) return before;
  await endGrant(tx, before.id, by, nowMs);
  const { reason: _, ...shown } = viewGrant(before, nowMs);
  await writeAudit(tx, {
    ...change,
    action: "grant.revoked",
    target: `grant:${grantId}`,
    before: shown,
    after: { live: false, revokedBy: by },
  });
  return { ...before, revokedAt: nowMs, revokedBy: by };
}

export async function endGrant(tx: Writer, grantId: string, by: string, nowMs: number): Promise<void> {
  const sql = "UPDATE access_grant SET revoked_at = ?2, revoked_by = ?3 WHERE id = ?1 AND revoked_at IS NULL";
  await tx.run(sql, grantId, nowMs, by);
}
