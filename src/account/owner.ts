/**
 * The people who sign in to the dashboard, and their passwords. A password is hashed (argon2id) OUTSIDE any transaction and only
 * its hash is handed to the functions that write; nothing here ever stores, compares or shows a password itself.
 */
import { newId } from "../ground/id.ts";
import { Refusal } from "../ground/refusal.ts";
import { type Reader, UniqueViolation, type Writer } from "../store/port.ts";

export interface Owner {
  id: string;
  email: string;
  createdAt: number;
}

/** An owner with what signing in needs. */
export interface OwnerWithPassword extends Owner {
  passwordHash: string | null;
}

const MIN_PASSWORD_CHARS = 10;
const MAX_PASSWORD_CHARS = 256;
const EMAIL = /^[^\s@]+@[^\s@]+$/;
const MAX_EMAIL_CHARS = 254;

/** OWASP's first choice for argon2id: 19 MiB, two passes. Modest memory, as the whole service fits in 200 MiB. */
const ARGON2 = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;

/** One hash at a time, so that a burst of sign-ins cannot fill the memory or the cores. */
let lastHash: Promise<unknown> = Promise.resolve();

/** The argon2id hash of a new password. Refuses with `invalid_input` one that is too short or too long. Never inside a transaction. */
export async function hashPassword(password: string): Promise<string> {
  if (password.length < MIN_PASSWORD_CHARS || password.length > MAX_PASSWORD_CHARS) {
    throw new Refusal(
      "invalid_input",
      `password is not valid: use ${MIN_PASSWORD_CHARS} to ${MAX_PASSWORD_CHARS} characters.`,
    );
  }
  return await inTurn(() => Bun.password.hash(password, ARGON2));
}

/** Whether the password is the hash's. A null hash (no such owner, none set) costs the same time and is never right. */
export async function verifyPassword(password: string, hash: string | null): Promise<boolean> {
  if (password.length > MAX_PASSWORD_CHARS) return false;
  decoy ??= inTurn(() => Bun.password.hash("nobody's password", ARGON2));
  const against = hash ?? (await decoy);
  const right = await inTurn(() => Bun.password.verify(password, against).catch(() => false));
  return right && hash !== null;
}

let decoy: Promise<string> | undefined;

function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
  const result = lastHash.then(work);
  lastHash = result.catch(() => undefined);
  return result;
}

/**
 * Creates an owner, and ends every set-up link with it, whoever makes the owner and however: a link that would make the first one
 * must not outlive the first one. Refuses with `invalid_input` (no address) or `name_taken` (the address has one).
 */
export async function createOwner(
  tx: Writer,
  input: { email: string; passwordHash: string | null; nowMs: number },
): Promise<Owner> {
  const owner: Owner = {
    id: newId("own", input.nowMs),
    email: readEmail(input.email),
    createdAt: input.nowMs,
  };
  const sql = "INSERT INTO owner (id, email, password_hash, created_at) VALUES (?1, ?2, ?3, ?4)";
  try {
    await tx.attempt(() => tx.run(sql, owner.id, owner.email, input.passwordHash, owner.createdAt));
  } catch (error) {
    if (!(error instanceof UniqueViolation)) throw error;
    throw new Refusal(
      "name_taken",
      "An owner with this e-mail address exists: sign in, or reset the password.",
    );
  }
  await tx.run("DELETE FROM signin_link WHERE kind = 'setup'");
  return owner;
}

/** Gives the owner a new password and signs out every session made under the old one. */
export async function setOwnerPassword(tx: Writer, ownerId: string, passwordHash: string): Promise<void> {
  const changed = await tx.run("UPDATE owner SET password_hash = ?2 WHERE id = ?1", ownerId, passwordHash);
  if (changed === 0)
    throw new Refusal("not_found", "There is no such owner; relay admin create makes the first one.");
  await tx.run("DELETE FROM session WHERE owner_id = ?1", ownerId);
}

/** The owner of this address (compared without regard to case), or null. */
export function findOwnerByEmail(tx: Reader, email: string): Promise<OwnerWithPassword | null> {
  const sql =
    "SELECT id, email, password_hash AS passwordHash, created_at AS createdAt FROM owner WHERE email = ?1";
  return tx.get<OwnerWithPassword>(sql, email.trim());
}

/** Every owner, oldest first. */
export function listOwners(tx: Reader): Promise<Owner[]> {
  return tx.all<Owner>("SELECT id, email, created_at AS createdAt FROM owner ORDER BY created_at, id");
}

function readEmail(email: string): string {
  const trimmed = email.trim();
  if (EMAIL.test(trimmed) && trimmed.length <= MAX_EMAIL_CHARS) return trimmed;
  throw new Refusal("invalid_input", "email is not valid: write an address such as you@example.com.");
}
