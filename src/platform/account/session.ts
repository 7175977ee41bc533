/**
 * Dashboard sessions and the one-time links that start one (first set-up, password reset, local dashboard). The cookie holds a random token,
 * the store its SHA-256. A link is used up by the POST that follows it and not by opening it, because mail scanners and previews open links.
 */

import { type Static, Type } from "typebox";
import { hashToken, newId, newToken } from "../../base/id.ts";
import { DAY_MS, HOUR_MS, RECENT_AUTHENTICATION_MS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { show, textOrNull, time } from "../../base/schema.ts";
import { cutToLine } from "../../base/text.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { bytes, defineTable, flag, integer, orNull, type RowOf, text } from "../../store/table.ts";
import { listMemberships } from "./membership.ts";
import type { Membership } from "./permission.ts";

/** A session ends this long after it was last used. */
export const SESSION_LIFE_MS = 30 * DAY_MS;
/** Extending a session costs a write, so it happens at most this often. */
const EXTENSION_INTERVAL_MS = DAY_MS;
/** Recording a use costs a write too. */
const USE_INTERVAL_MS = HOUR_MS / 6;
const MAX_AGENT_CHARS = 200;
/** The most sessions that are listed for one owner. */
const MAX_LISTED = 200;
const SESSION_TOKEN_CHARS = 43;

const SESSION = defineTable({
  name: "session",
  key: ["id"],
  columns: {
    tokenHash: bytes(),
    id: text(),
    ownerId: text(),
    createdAt: integer(),
    expiresAt: integer(),
    /** The time when the session was last used, in steps of ten minutes; null: it began in a version that did not record this. */
    seenAt: orNull(integer()),
    /** The caller's network address at that time; null: unknown. */
    source: orNull(text()),
    /** The User-Agent header of the browser. */
    agent: orNull(text()),
    /** The time when the person last proved who they are; null: when the session began, in a version that did not record this. */
    authenticatedAt: orNull(integer()),
    /** True if the session began with a second factor, or with a proof that includes one. */
    twoFactor: flag(),
    /** The time when the person last proved a second factor; null: not in this session, or in a version that did not record this. */
    factorAt: orNull(integer()),
  },
});

const FOUND_SESSION = SESSION.pick(
  "id",
  "ownerId",
  "createdAt",
  "expiresAt",
  "seenAt",
  "authenticatedAt",
  "twoFactor",
);
export type Session = RowOf<typeof FOUND_SESSION> & { ownerEmail: string; memberships: Membership[] };

const LISTED_SESSION = SESSION.pick("id", "createdAt", "expiresAt", "seenAt", "source", "agent");

export const sessionItem = Type.Object({
  id: Type.String(),
  createdAt: time,
  /** The time when the session was last used, rounded to ten minutes. */
  seenAt: time,
  expiresAt: time,
  /** The network address of the last use; an IPv6 address as its /64. */
  source: textOrNull,
  /** The User-Agent header of the browser. */
  agent: textOrNull,
  /** True for the session of this request. */
  current: Type.Boolean(),
});
export type SessionItem = Static<typeof sessionItem>;

/** The network address and user agent of a session's caller. */
export interface SessionClient {
  source: string | null;
  agent: string | null;
}

/** Starts a session and returns its token, which only the cookie holds. */
export async function createSession(
  tx: Writer,
  ownerId: string,
  nowMs: number,
  { source, agent }: SessionClient = { source: null, agent: null },
  { twoFactor, factorAt }: Pick<RowOf<typeof SESSION>, "twoFactor" | "factorAt"> = NO_FACTOR,
): Promise<{ id: string; token: string; expiresAt: number }> {
  const id = newId("ses", nowMs);
  const token = newToken(SESSION_TOKEN_CHARS);
  const expiresAt = nowMs + SESSION_LIFE_MS;
  await SESSION.insert(tx, {
    tokenHash: hashToken(token),
    id,
    ownerId,
    createdAt: nowMs,
    expiresAt,
    seenAt: nowMs,
    source,
    agent: agent === null ? null : cutToLine(agent, MAX_AGENT_CHARS),
    authenticatedAt: nowMs,
    twoFactor,
    factorAt,
  });
  return { id, token, expiresAt };
}

const NO_FACTOR = { twoFactor: false, factorAt: null };

/** Reports whether `recordSessionUse` is due. */
export function isSessionUseDue({ seenAt }: Pick<Session, "seenAt">, nowMs: number): boolean {
  return seenAt === null || nowMs - seenAt >= USE_INTERVAL_MS;
}

/** Records that the session was used, and from where. Only one of several concurrent callers writes. */
export async function recordSessionUse(
  tx: Writer,
  id: string,
  { source, agent }: SessionClient,
  nowMs: number,
): Promise<void> {
  const sql = `UPDATE session SET seen_at = $nowMs, source = $source, agent = $agent
    WHERE id = $id AND (seen_at IS NULL OR seen_at <= $beforeMs)`;
  const shortAgent = agent === null ? null : cutToLine(agent, MAX_AGENT_CHARS);
  await tx.run(sql, { id, nowMs, beforeMs: nowMs - USE_INTERVAL_MS, source, agent: shortAgent });
}

/** Lists the owner's live sessions, the last used first. `currentId` is the session of the request. */
export async function listSessions(
  tx: Reader,
  { ownerId, currentId, nowMs }: { ownerId: string; currentId: string; nowMs: number },
): Promise<SessionItem[]> {
  const rest = `INDEXED BY session_by_owner WHERE owner_id = $ownerId AND expires_at > $nowMs ORDER BY expires_at DESC LIMIT ${MAX_LISTED}`;
  const rows = await LISTED_SESSION.all(tx, rest, { ownerId, nowMs });
  return rows
    .map((row) =>
      show(sessionItem, { ...row, seenAt: row.seenAt ?? row.createdAt, current: row.id === currentId }),
    )
    .sort((one, other) => other.seenAt.localeCompare(one.seenAt));
}

/** Ends one of the owner's sessions. Throws `not_found`. */
export async function endSession(
  tx: Writer,
  { ownerId, id }: { ownerId: string; id: string },
): Promise<void> {
  if ((await tx.run("DELETE FROM session WHERE owner_id = ?1 AND id = ?2", ownerId, id)) > 0) return;
  throw new Refusal("not_found", "There is no such session of yours: it has ended already.");
}

/** Ends all of the owner's sessions except `exceptId`; null ends all. Returns how many it ended. */
export async function endSessions(tx: Writer, ownerId: string, exceptId: string | null): Promise<number> {
  const sql = "DELETE FROM session WHERE owner_id = ?1 AND (?2 IS NULL OR id <> ?2)";
  return await tx.run(sql, ownerId, exceptId);
}

/** Finds the live session of a cookie's token, with the present memberships of its person. */
export async function findSession(tx: Reader, token: string, nowMs: number): Promise<Session | null> {
  if (token.length !== SESSION_TOKEN_CHARS) return null;
  const sql = `SELECT ${FOUND_SESSION.columnsOf("session")}, owner.email AS ownerEmail
    FROM session JOIN owner ON owner.id = owner_id WHERE token_hash = ?1 AND expires_at > ?2`;
  const found = await tx.get<Pick<Session, "ownerEmail">>(sql, hashToken(token), nowMs);
  if (found === null) return null;
  const row = FOUND_SESSION.read(found);
  return { ...row, memberships: await listMemberships(tx, row.ownerId) };
}

/** Reports whether `extendSession` is due. */
export function isSessionExtensionDue(session: Session, nowMs: number): boolean {
  return session.expiresAt - nowMs <= SESSION_LIFE_MS - EXTENSION_INTERVAL_MS;
}

/** Extends the session to 30 days from now. Returns the new end, which also limits the cookie's age. */
export async function extendSession(tx: Writer, session: Session, nowMs: number): Promise<number> {
  const expiresAt = nowMs + SESSION_LIFE_MS;
  await tx.run("UPDATE session SET expires_at = ?2 WHERE id = ?1 AND expires_at < ?2", session.id, expiresAt);
  return expiresAt;
}

/** Reports whether the person proved who they are less than 15 minutes ago. */
export function hasRecentAuthentication(
  { authenticatedAt, createdAt }: Pick<Session, "authenticatedAt" | "createdAt">,
  nowMs: number,
): boolean {
  return nowMs - (authenticatedAt ?? createdAt) < RECENT_AUTHENTICATION_MS;
}

/** Finds when the person of the session last proved a second factor. Null: not in this session. */
export async function findFactorTime(tx: Reader, id: string): Promise<number | null> {
  return (await SESSION.get(tx, "WHERE id = $id", { id }))?.factorAt ?? null;
}

/** Reports whether the person of the session proved a second factor less than 15 minutes ago. */
export async function hasRecentFactor(tx: Reader, id: string, nowMs: number): Promise<boolean> {
  const factorAt = await findFactorTime(tx, id);
  return factorAt !== null && nowMs - factorAt < RECENT_AUTHENTICATION_MS;
}

/**
 * Records that the person of the session proved again who they are, with a second factor or without. Throws `unauthenticated` if the session ended
 * meanwhile.
 */
export async function recordAuthentication(
  tx: Writer,
  id: string,
  { nowMs, withFactor }: { nowMs: number; withFactor: boolean },
): Promise<void> {
  const change = { authenticatedAt: nowMs, ...(withFactor ? { factorAt: nowMs } : {}) };
  if ((await SESSION.change(tx, { id }, change)) > 0) return;
  throw new Refusal("unauthenticated", "This session ended meanwhile: sign in again.");
}

/** Returns the id of the person of a live session, or null. */
export async function findSessionOwner(tx: Reader, id: string, nowMs: number): Promise<string | null> {
  const where = "WHERE id = $id AND expires_at > $nowMs";
  return (await SESSION.get(tx, where, { id, nowMs }))?.ownerId ?? null;
}

/** Ends one session. */
export async function signOut(tx: Writer, sessionId: string): Promise<void> {
  await SESSION.delete(tx, { id: sessionId });
}

/** Deletes expired sessions and one-time links. The daily maintenance calls it. */
export async function deleteEndedSessions(tx: Writer, nowMs: number): Promise<void> {
  await tx.run("DELETE FROM session WHERE expires_at <= ?1", nowMs);
  await tx.run("DELETE FROM ended_link WHERE expires_at <= ?1", nowMs);
  await rememberEnded(tx, "expired", "expires_at <= ?3", nowMs, nowMs);
  await tx.run("DELETE FROM signin_link WHERE expires_at <= ?1", nowMs);
}

export type SigninLinkKind = "setup" | "reset" | "local";

const SIGNIN_LINK = defineTable({
  name: "signin_link",
  key: ["tokenHash"],
  columns: {
    tokenHash: bytes(),
    kind: text<SigninLinkKind>(),
    /** The owner whose password a reset sets; null for set-up and local links. */
    ownerId: orNull(text()),
    expiresAt: integer(),
  },
});

type SigninLink = RowOf<typeof SIGNIN_LINK>;

const PAGES: Record<SigninLinkKind, string> = { setup: "setup", reset: "reset", local: "signin" };

/** Builds the URL of a one-time link. The token is in the fragment, which browsers send to no server. */
export function signinLinkUrl(baseUrl: string, kind: SigninLinkKind, token: string): string {
  return `${baseUrl}/${PAGES[kind]}#${token}`;
}

const LIFE_MS: Record<SigninLinkKind, number> = { setup: 24 * HOUR_MS, reset: HOUR_MS, local: HOUR_MS / 6 };
const LINK_TOKEN_CHARS = 32;

/**
 * Creates a one-time link and returns its token. `lifeMs` defaults to the lifetime of its kind. Earlier reset links of the owner, or earlier
 * set-up links, stop working unless `keepEarlier` is set.
 */
export async function createSigninLink(
  tx: Writer,
  input: {
    kind: SigninLinkKind;
    ownerId: string | null;
    nowMs: number;
    lifeMs?: number;
    keepEarlier?: boolean;
  },
): Promise<{ token: string; expiresAt: number }> {
  const { kind, ownerId, lifeMs = LIFE_MS[input.kind], keepEarlier = false } = input;
  if (kind === "reset" && !keepEarlier)
    await rememberEnded(tx, "replaced", "owner_id = ?3 AND kind = 'reset'", input.nowMs, ownerId);
  if (kind !== "local" && !keepEarlier)
    await tx.run("DELETE FROM signin_link WHERE kind = ?1 AND owner_id IS ?2", kind, ownerId);
  const token = newToken(LINK_TOKEN_CHARS);
  const expiresAt = input.nowMs + lifeMs;
  await SIGNIN_LINK.insert(tx, { tokenHash: hashToken(token), kind, ownerId, expiresAt });
  return { token, expiresAt };
}

/** Finds a link without using it. Returns null for a used, expired or unknown link, and for a set-up link once an owner exists. */
export function findSigninLink(tx: Reader, token: string, nowMs: number): Promise<SigninLink | null> {
  const rest = `WHERE token_hash = $tokenHash AND expires_at > $nowMs
    AND (kind <> 'setup' OR NOT EXISTS (SELECT 1 FROM owner))`;
  return SIGNIN_LINK.get(tx, rest, { tokenHash: hashToken(token), nowMs });
}

/** Uses a link up. Throws `unauthenticated` for a used, expired or unknown link and for a link of another kind. */
export async function redeemSigninLink(
  tx: Writer,
  input: { token: string; kind: SigninLinkKind; nowMs: number },
): Promise<SigninLink> {
  const link = await findSigninLink(tx, input.token, input.nowMs);
  if (link === null || link.kind !== input.kind) throw rejectEndedLink(input.kind);
  if (link.kind === "reset")
    await rememberEnded(tx, "used", "token_hash = ?3", input.nowMs, hashToken(input.token));
  await SIGNIN_LINK.delete(tx, link);
  return link;
}

/** Ends the links of a member who found another way to sign in. */
export async function endSigninLinks(tx: Writer, ownerId: string, nowMs: number): Promise<void> {
  await rememberEnded(tx, "used", "owner_id = ?3", nowMs, ownerId);
  await tx.run("DELETE FROM signin_link WHERE owner_id = ?1", ownerId);
}

/** Time for which a link is known after its end. */
const ENDED_LINK_MS = 30 * DAY_MS;

type EndedWhy = "used" | "replaced" | "expired";

/** Remembers that links of members end. `which` is a condition with ?3. */
async function rememberEnded(
  tx: Writer,
  why: EndedWhy,
  which: string,
  nowMs: number,
  value: string | number | Uint8Array | null,
): Promise<void> {
  await tx.run(
    `INSERT INTO ended_link (token_hash, owner_id, why, expires_at)
     SELECT token_hash, owner_id, ?1, ?2 FROM signin_link WHERE owner_id IS NOT NULL AND ${which}
     ON CONFLICT (token_hash) DO NOTHING`,
    why,
    nowMs + ENDED_LINK_MS,
    value,
  );
}

/** Finds the member of a link that has ended, and why it ended; null for a link that is unknown, or whose use was refused before. */
export async function findRefusedLink(
  tx: Reader,
  token: string,
  nowMs: number,
): Promise<{ email: string; why: EndedWhy } | null> {
  const tokenHash = hashToken(token);
  const ended = await tx.get<{ email: string; why: EndedWhy }>(
    `SELECT owner.email AS email, why FROM ended_link JOIN owner ON owner.id = owner_id
     WHERE token_hash = ?1 AND refused_at IS NULL`,
    tokenHash,
  );
  if (ended !== null) return ended;
  const expired = await tx.get<{ email: string }>(
    `SELECT owner.email AS email FROM signin_link JOIN owner ON owner.id = owner_id WHERE token_hash = ?1 AND expires_at <= ?2`,
    tokenHash,
    nowMs,
  );
  return expired === null ? null : { ...expired, why: "expired" };
}

/** Records that the use of an ended link was refused. A second use is not recorded again. */
export async function recordRefusedLink(tx: Writer, token: string, nowMs: number): Promise<void> {
  const tokenHash = hashToken(token);
  await rememberEnded(tx, "expired", "token_hash = ?3", nowMs, tokenHash);
  await tx.run("DELETE FROM signin_link WHERE token_hash = ?1", tokenHash);
  await tx.run("UPDATE ended_link SET refused_at = ?2 WHERE token_hash = ?1", tokenHash, nowMs);
}

const NEW_LINK: Record<SigninLinkKind, string> = {
  setup: "create an owner on the server with relay admin create",
  reset: "create a new one on the server with relay admin reset",
  local: "stop relay dev and start it again, which creates a new one",
};

/** Returns the rejection of a used, expired or unknown link; its message says how to get a new one. */
export function rejectEndedLink(kind: SigninLinkKind): Refusal {
  return new Refusal("unauthenticated", `This link was used already or has ended: ${NEW_LINK[kind]}.`);
}
