/**
 * Dashboard sessions: a random token in the owner's cookie, its SHA-256 in the store. It decides when a session ends; the cookie
 * itself is http's. A token is never stored or shown again.
 */
import { newId } from "../ground/id.ts";
import { DAY_MS } from "../ground/limit.ts";
import type { Reader, Writer } from "../store/port.ts";
import { hashToken, newToken } from "./token.ts";

/** A session ends this long after it was last used. */
export const SESSION_LIFE_MS = 30 * DAY_MS;
/** Sliding costs a write, so it happens at most this often. */
const SLIDE_EVERY_MS = DAY_MS;
const TOKEN_CHARS = 43;

export interface Session {
  id: string;
  ownerId: string;
  ownerEmail: string;
  createdAt: number;
  expiresAt: number;
}

/** Starts a session; the token is for the cookie and stands nowhere else. */
export async function createSession(
  tx: Writer,
  ownerId: string,
  nowMs: number,
): Promise<{ token: string; expiresAt: number }> {
  const token = newToken(TOKEN_CHARS);
  const expiresAt = nowMs + SESSION_LIFE_MS;
  const sql =
    "INSERT INTO session (token_hash, id, owner_id, created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)";
  await tx.run(sql, hashToken(token), newId("ses", nowMs), ownerId, nowMs, expiresAt);
  return { token, expiresAt };
}

/** The live session of a cookie's token, or null. */
export async function findSession(tx: Reader, token: string, nowMs: number): Promise<Session | null> {
  if (token.length !== TOKEN_CHARS) return null;
  const sql = `SELECT session.id, owner_id AS ownerId, owner.email AS ownerEmail, session.created_at AS createdAt,
    expires_at AS expiresAt FROM session JOIN owner ON owner.id = owner_id WHERE token_hash = ?1 AND expires_at > ?2`;
  return await tx.get<Session>(sql, hashToken(token), nowMs);
}

/** Whether the session has been used for so long since its end was last moved that `slideSession` is due. */
export function sessionSlides(session: Session, nowMs: number): boolean {
  return session.expiresAt - nowMs <= SESSION_LIFE_MS - SLIDE_EVERY_MS;
}

/** Moves the session's end to 30 days from now. Answers the new end; the cookie's age follows it. */
export async function slideSession(tx: Writer, session: Session, nowMs: number): Promise<number> {
  const expiresAt = nowMs + SESSION_LIFE_MS;
  await tx.run("UPDATE session SET expires_at = ?2 WHERE id = ?1 AND expires_at < ?2", session.id, expiresAt);
  return expiresAt;
}

/** Ends one session. */
export async function signOut(tx: Writer, sessionId: string): Promise<void> {
  await tx.run("DELETE FROM session WHERE id = ?1", sessionId);
}

/** Ends every session of the owner; answers how many. */
export function signOutAll(tx: Writer, ownerId: string): Promise<number> {
  return tx.run("DELETE FROM session WHERE owner_id = ?1", ownerId);
}

/** Forgets sessions and one-time links that have ended; for the daily cleaning. */
export async function forgetEndedSessions(tx: Writer, nowMs: number): Promise<void> {
  await tx.run("DELETE FROM session WHERE expires_at <= ?1", nowMs);
  await tx.run("DELETE FROM signin_link WHERE expires_at <= ?1", nowMs);
}
