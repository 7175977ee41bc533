/**
 * Sessions of people who are signed in to an app: the client library keeps a random token, the store its SHA-256. A trigger of the schema ends
 * all sessions of a suspended or erased person. A token is shown once.
 */

import { hashToken, newId, newToken } from "../../base/id.ts";
import { DAY_MS, PERSON_SESSION_LIFE_MS } from "../../base/limit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { bytes, defineTable, integer, type RowOf, text } from "../../store/table.ts";

/** Matches a session's token, which no app key matches. */
export const SESSION_TOKEN = /^ps_[A-Za-z0-9]{43}$/;
const TOKEN_CHARS = 43;
/** Extending a session costs a write, so it happens at most this often. */
const EXTENSION_INTERVAL_MS = DAY_MS;

const PERSON_SESSION = defineTable({
  name: "person_session",
  key: ["id"],
  columns: {
    tokenHash: bytes(),
    id: text(),
    environmentId: integer(),
    personId: text(),
    createdAt: integer(),
    expiresAt: integer(),
  },
});

const FOUND_SESSION = PERSON_SESSION.pick("id", "personId", "expiresAt");
export type PersonSession = RowOf<typeof FOUND_SESSION>;

const PERSON_NETWORK = defineTable({
  name: "person_network",
  key: ["personId", "networkDigest"],
  columns: { personId: text(), networkDigest: bytes(), seenAt: integer() },
});

/** Starts a session and returns its token. It ends 30 days after its last use. */
export async function createPersonSession(
  tx: Writer,
  { environmentId, personId, nowMs }: { environmentId: number; personId: string; nowMs: number },
): Promise<{ token: string; expiresAt: number }> {
  const token = `ps_${newToken(TOKEN_CHARS)}`;
  const expiresAt = nowMs + PERSON_SESSION_LIFE_MS;
  await PERSON_SESSION.insert(tx, {
    tokenHash: hashToken(token),
    id: newId("ses", nowMs),
    environmentId,
    personId,
    createdAt: nowMs,
    expiresAt,
  });
  return { token, expiresAt };
}

/** Finds the live session of a token in this environment, of an active person. */
export async function findPersonSession(
  tx: Reader,
  environmentId: number,
  token: string,
  nowMs: number,
): Promise<PersonSession | null> {
  if (!SESSION_TOKEN.test(token)) return null;
  return tx.get<PersonSession>(
    `SELECT ${FOUND_SESSION.columnsOf("person_session")}
     FROM person_session JOIN person ON person.id = person_id AND person.status = 'active'
     WHERE token_hash = ?1 AND person_session.environment_id = ?2 AND expires_at > ?3`,
    hashToken(token),
    environmentId,
    nowMs,
  );
}

/** Reports whether `extendPersonSession` is due. */
export function isPersonSessionExtensionDue(session: PersonSession, nowMs: number): boolean {
  return session.expiresAt - nowMs <= PERSON_SESSION_LIFE_MS - EXTENSION_INTERVAL_MS;
}

/** Extends the session to 30 days from now, and returns the new end. */
export async function extendPersonSession(
  tx: Writer,
  session: PersonSession,
  nowMs: number,
): Promise<number> {
  const sql = "UPDATE person_session SET expires_at = ?2 WHERE id = ?1 AND expires_at < ?2";
  const expiresAt = nowMs + PERSON_SESSION_LIFE_MS;
  await tx.run(sql, session.id, expiresAt);
  return expiresAt;
}

export async function endPersonSession(tx: Writer, sessionId: string): Promise<void> {
  await PERSON_SESSION.delete(tx, { id: sessionId });
}

/** Ends all sessions of the person. Returns how many. */
export function endPersonSessions(tx: Writer, personId: string): Promise<number> {
  return tx.run("DELETE FROM person_session WHERE person_id = ?1", personId);
}

/** Reports whether the person signed in from this network (its digest) within 30 days. */
export async function isKnownNetwork(
  tx: Reader,
  of: { personId: string; network: Uint8Array; nowMs: number },
): Promise<boolean> {
  const sql = "SELECT 1 FROM person_network WHERE person_id = ?1 AND network_digest = ?2 AND seen_at > ?3";
  return (await tx.get(sql, of.personId, of.network, of.nowMs - PERSON_SESSION_LIFE_MS)) !== null;
}

/** Records that the person signed in from this network. */
export async function recordNetwork(
  tx: Writer,
  of: { personId: string; network: Uint8Array; nowMs: number },
): Promise<void> {
  const row = { personId: of.personId, networkDigest: of.network, seenAt: of.nowMs };
  const onConflict = "ON CONFLICT (person_id, network_digest) DO UPDATE SET seen_at = excluded.seen_at";
  await PERSON_NETWORK.insert(tx, row, onConflict);
}

/** Deletes expired sessions, codes and networks. The daily maintenance calls it. */
export async function deleteEndedPersonSessions(tx: Writer, nowMs: number): Promise<void> {
  await tx.run("DELETE FROM person_session WHERE expires_at <= ?1", nowMs);
  await tx.run("DELETE FROM person_code WHERE expires_at <= ?1", nowMs);
  await tx.run("DELETE FROM person_network WHERE seen_at <= ?1", nowMs - PERSON_SESSION_LIFE_MS);
}
