/**
 * One-time links: the first set-up, a password reset, the local dashboard. A link is a random token, stored as its SHA-256, used up
 * by the POST that follows it (never by opening it, as mail scanners and previews do). It never says who it was for once it is used.
 */
import { Refusal } from "../ground/refusal.ts";
import type { Reader, Writer } from "../store/port.ts";
import { hashToken, newToken } from "./token.ts";

export type SigninLinkKind = "setup" | "reset" | "local";

interface SigninLink {
  kind: SigninLinkKind;
  /** Whose password a reset sets; null for set-up and local. */
  ownerId: string | null;
  expiresAt: number;
}

const HOUR_MS = 3_600_000;
const LIFE_MS: Record<SigninLinkKind, number> = { setup: 24 * HOUR_MS, reset: HOUR_MS, local: HOUR_MS / 6 };
const TOKEN_CHARS = 32;

/** Makes a link's token. Earlier set-up links, and earlier resets of the same owner, stop working. */
export async function createSigninLink(
  tx: Writer,
  input: { kind: SigninLinkKind; ownerId: string | null; nowMs: number },
): Promise<{ token: string; expiresAt: number }> {
  const { kind, ownerId } = input;
  if (kind !== "local")
    await tx.run("DELETE FROM signin_link WHERE kind = ?1 AND owner_id IS ?2", kind, ownerId);
  const token = newToken(TOKEN_CHARS);
  const expiresAt = input.nowMs + LIFE_MS[kind];
  const sql = "INSERT INTO signin_link (token_hash, kind, owner_id, expires_at) VALUES (?1, ?2, ?3, ?4)";
  await tx.run(sql, hashToken(token), kind, ownerId, expiresAt);
  return { token, expiresAt };
}

/** What the link would do, without using it; null when it is used, ended or was never made, and for set-up once there is an owner. */
export function findSigninLink(tx: Reader, token: string, nowMs: number): Promise<SigninLink | null> {
  const sql = `SELECT kind, owner_id AS ownerId, expires_at AS expiresAt FROM signin_link
    WHERE token_hash = ?1 AND expires_at > ?2 AND (kind <> 'setup' OR NOT EXISTS (SELECT 1 FROM owner))`;
  return tx.get<SigninLink>(sql, hashToken(token), nowMs);
}

/** Uses the link up. Refuses with `unauthenticated` one that is used, ended, of another kind, or was never made. */
export async function redeemSigninLink(
  tx: Writer,
  input: { token: string; kind: SigninLinkKind; nowMs: number },
): Promise<SigninLink> {
  const link = await findSigninLink(tx, input.token, input.nowMs);
  if (link === null || link.kind !== input.kind) throw refuseEndedLink(input.kind);
  await tx.run("DELETE FROM signin_link WHERE token_hash = ?1", hashToken(input.token));
  return link;
}

const NEW_LINK: Record<SigninLinkKind, string> = {
  setup: "make an owner on the server with relay admin create",
  reset: "make a new one on the server with relay admin reset",
  local: "stop relay dev and start it again, which makes a new one",
};

/** What is said of a link that is used, ended, or was never made: where the next one comes from. */
export function refuseEndedLink(kind: SigninLinkKind): Refusal {
  return new Refusal("unauthenticated", `This link was used already or has ended: ${NEW_LINK[kind]}.`);
}
