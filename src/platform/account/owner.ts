/**
 * The people who sign in to the dashboard, and their passwords. A password is hashed (argon2id) OUTSIDE any transaction and only
 * its hash is handed to the functions that write; nothing here ever stores, compares or shows a password itself.
 */

import { type Static, Type } from "typebox";
import { newId } from "../../base/id.ts";
import { MAX_EMAIL_CHARS, MAX_WAITING_PASSWORDS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { show, time, timeOrNull } from "../../base/schema.ts";
import { type Reader, UniqueViolation, type Writer } from "../../store/port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../../store/table.ts";

const OWNER = defineTable({
  name: "owner",
  key: ["id"],
  columns: { id: text(), email: text(), passwordHash: orNull(text()), createdAt: integer() },
});

/** An owner without what signing in needs. */
const SHOWN_OWNER = OWNER.pick("id", "email", "createdAt");
export type Owner = RowOf<typeof SHOWN_OWNER>;

const MIN_PASSWORD_CHARS = 10;
const MAX_PASSWORD_CHARS = 256;
const EMAIL = /^[^\s@]+@[^\s@]+$/;

/** OWASP's first choice for argon2id: 19 MiB, two passes. Modest memory, as the whole service fits in 200 MiB. */
const ARGON2 = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;

/** Who waits for a hash: an account's own device, session or one-time link, or anybody else. */
type PasswordLane = "known" | "stranger";

/**
 * A bounded queue before the hashing of passwords. A hash takes a core for some 20 ms and runs on the pool of threads that all of the
 * process shares, so one runs at a time: of two cores one is always left for the event loop and the receivers. What waits is bounded, so
 * that a flood is told to come again at once instead of holding memory and every later sign-in; those who are known wait in a lane of
 * their own, which goes first, so that no flood of strangers keeps an owner waiting.
 */
export class PasswordQueue {
  readonly #taken: Record<PasswordLane, number> = { known: 0, stranger: 0 };
  readonly #waiting: Record<PasswordLane, (() => void)[]> = { known: [], stranger: [] };
  #isRunning = false;

  /** A slot in the queue, given back when it is disposed of. Refuses with `signin_busy` where the lane is full. */
  take(lane: PasswordLane): PasswordSlot {
    if (this.#taken[lane] > MAX_WAITING_PASSWORDS) {
      throw new Refusal(
        "signin_busy",
        "The server is checking as many passwords as it can at once: try again in a few seconds.",
      );
    }
    this.#taken[lane] += 1;
    return {
      run: (work) => this.#run(lane, work),
      [Symbol.dispose]: () => {
        this.#taken[lane] -= 1;
      },
    };
  }

  async #run<Result>(lane: PasswordLane, work: () => Promise<Result>): Promise<Result> {
    if (this.#isRunning) await new Promise<void>((resolve) => this.#waiting[lane].push(resolve));
    this.#isRunning = true;
    try {
      return await work();
    } finally {
      const next = this.#waiting.known.shift() ?? this.#waiting.stranger.shift();
      // The turn is handed over still running, so that nobody who comes now slips in between.
      if (next === undefined) this.#isRunning = false;
      else next();
    }
  }
}

interface PasswordSlot extends Disposable {
  /** Does the work when its turn has come. */
  run<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** The process's one queue: its cores are what is shared. */
export const passwordQueue = new PasswordQueue();

/** The argon2id hash of a new password. Refuses with `invalid_input` one that is too short or too long. Never inside a transaction. */
export async function hashPassword(password: string): Promise<string> {
  if (password.length < MIN_PASSWORD_CHARS || password.length > MAX_PASSWORD_CHARS) {
    throw new Refusal(
      "invalid_input",
      `password is not valid: use ${MIN_PASSWORD_CHARS} to ${MAX_PASSWORD_CHARS} characters.`,
    );
  }
  using slot = passwordQueue.take("known");
  return await slot.run(() => Bun.password.hash(password, ARGON2));
}

/** Whether the owner still has the password that they had when they were read before; both hashes are the database's own. */
export function hasSamePassword(now: WithPassword | null, before: WithPassword | null): boolean {
  return Object.is(now?.passwordHash, before?.passwordHash);
}
type WithPassword = { passwordHash: string | null };

/**
 * Whether the password is the hash's. A null hash (no such owner, none set) costs the same time and is never right. `slot` is the
 * caller's, taken before the attempt was counted; without one it waits among the known.
 */
export async function verifyPassword(
  password: string,
  hash: string | null,
  slot?: PasswordSlot,
): Promise<boolean> {
  if (password.length > MAX_PASSWORD_CHARS) return false;
  using own = slot === undefined ? passwordQueue.take("known") : null;
  const right = await (slot ?? own)?.run(() =>
    Bun.password.verify(password, hash ?? DECOY_HASH).catch(() => false),
  );
  return right === true && hash !== null;
}

/** What a password is compared with where there is none: a hash of the same cost that no one's password has. */
const DECOY_HASH =
  "$argon2id$v=19$m=19456,t=2,p=1$kvlxR4zJbYN3NgBEwNBqAZc2eSHcjOu5VInpe5PVAIQ$hLY1ETGzrmogyuzMJ71fbt8lwzz+H3xRGhFfMHaxF1o";

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
  try {
    await tx.attempt(() => OWNER.insert(tx, { ...owner, passwordHash: input.passwordHash }));
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

/** Gives the owner a new password and ends what was begun under the old one: every session, every one-time link, and every key that a login made. */
export async function setOwnerPassword(
  tx: Writer,
  ownerId: string,
  passwordHash: string,
  nowMs: number,
): Promise<void> {
  if ((await OWNER.change(tx, { id: ownerId }, { passwordHash })) === 0)
    throw new Refusal("not_found", "There is no such owner; relay admin create makes the first one.");
  await tx.run("DELETE FROM session WHERE owner_id = ?1", ownerId);
  await tx.run("DELETE FROM signin_link WHERE owner_id = ?1", ownerId);
  await tx.run("DELETE FROM login_request WHERE owner_id = ?1", ownerId);
  const revoke = "UPDATE api_key SET revoked_at = ?2 WHERE owner_id = ?1 AND revoked_at IS NULL";
  await tx.run(revoke, ownerId, nowMs);
}

/** The owner of this address (compared without regard to case), or null. */
export function findOwnerByEmail(tx: Reader, email: string): Promise<RowOf<typeof OWNER> | null> {
  return OWNER.get(tx, "WHERE lower(email) = lower($email)", { email: email.trim() });
}

/** The owner with this id, or null. */
export function findOwnerById(tx: Reader, id: string): Promise<Owner | null> {
  return SHOWN_OWNER.get(tx, "WHERE id = $id", { id });
}

export const ownerView = Type.Object({
  id: Type.String(),
  email: Type.String(),
  createdAt: time,
  /** false: the one-time link that sets the first password was not used yet. */
  hasPassword: Type.Boolean(),
  /** Where they are signed in now. */
  sessions: Type.Integer(),
  /** When one of these was last used, to ten minutes; null: there is none. */
  seenAt: timeOrNull,
});
export type OwnerView = Static<typeof ownerView>;

/** Every owner with where they are signed in, oldest first. */
export async function listOwnerViews(tx: Reader, nowMs: number): Promise<OwnerView[]> {
  const rows = await tx.all<Owner & { hasPassword: number; sessions: number; seenAt: number | null }>(
    `SELECT owner.id, owner.email, owner.created_at AS createdAt, owner.password_hash IS NOT NULL AS hasPassword,
       count(session.id) AS sessions, max(coalesce(session.seen_at, session.created_at)) AS seenAt
     FROM owner LEFT JOIN session INDEXED BY session_by_owner ON session.owner_id = owner.id AND session.expires_at > ?1
     GROUP BY owner.id ORDER BY owner.created_at, owner.id`,
    nowMs,
  );
  return rows.map((row) => show(ownerView, { ...row, hasPassword: row.hasPassword === 1 }));
}

/**
 * Removes an owner with what is theirs: sessions, one-time links, logins and the keys of these. Refuses with `not_found`, and with
 * `in_use` the last one.
 */
export async function removeOwner(tx: Writer, id: string): Promise<Owner> {
  const owner = await findOwnerById(tx, id);
  if (owner === null) throw new Refusal("not_found", "There is no such owner: they were removed already.");
  if ((await listOwners(tx)).length === 1) {
    throw new Refusal(
      "in_use",
      `${owner.email} is the last owner, without whom nobody could sign in: make another one first.`,
    );
  }
  await OWNER.delete(tx, { id });
  return owner;
}

/** Every owner, oldest first. */
export function listOwners(tx: Reader): Promise<Owner[]> {
  return SHOWN_OWNER.all(tx, "ORDER BY created_at, id");
}

function readEmail(email: string): string {
  const trimmed = email.trim();
  if (EMAIL.test(trimmed) && trimmed.length <= MAX_EMAIL_CHARS) return trimmed;
  throw new Refusal("invalid_input", "email is not valid: write an address such as you@example.com.");
}
