/**
 * The people who sign in to the dashboard, and their passwords. Their memberships say what they may do. Passwords are hashed (argon2id) outside of transactions, and only the hash
 * reaches the functions that write.
 */

import { type Static, Type } from "typebox";
import { newId } from "../../base/id.ts";
import { MAX_EMAIL_CHARS, MAX_WAITING_PASSWORDS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { orNull as nullOr, show, time, timeOrNull } from "../../base/schema.ts";
import { type Reader, UniqueViolation, type Writer } from "../../store/port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../../store/table.ts";
import { listAuthenticationMethods } from "./authentication.ts";
import { invitationView, listInvitations } from "./invitation.ts";
import {
  FULL_OWNER,
  listMembershipsBySource,
  membershipView,
  requireOtherOwner,
  setMemberships,
  viewMembership,
} from "./membership.ts";
import type { Membership } from "./permission.ts";

const OWNER = defineTable({
  name: "owner",
  key: ["id"],
  columns: { id: text(), email: text(), passwordHash: orNull(text()), createdAt: integer() },
});

/** The columns that may be shown: all but the password hash. */
const SHOWN_OWNER = OWNER.pick("id", "email", "createdAt");
export type Owner = RowOf<typeof SHOWN_OWNER>;

const MIN_PASSWORD_CHARS = 10;
const MAX_PASSWORD_CHARS = 256;
const EMAIL = /^[^\s@]+@[^\s@]+$/;

/** OWASP's first recommendation for argon2id: 19 MiB, two passes. The service must fit into 200 MiB. */
const ARGON2 = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;

/** `known`: a device, session or one-time link of the account. `stranger`: any other caller. */
type PasswordLane = "known" | "stranger";

/**
 * A bounded queue for password hashing. A hash takes about 20 ms of one core on the shared thread pool, so only one runs at a time, which
 * leaves a core for the event loop. A full lane rejects callers at once instead of using memory. Known callers have their own lane, which goes
 * first, so that a flood of strangers never delays an owner.
 */
export class PasswordQueue {
  readonly #taken: Record<PasswordLane, number> = { known: 0, stranger: 0 };
  readonly #waiting: Record<PasswordLane, (() => void)[]> = { known: [], stranger: [] };
  #isRunning = false;

  /** Takes a slot in the queue; disposing the slot gives it back. Throws `signin_busy` if the lane is full. */
  take(lane: PasswordLane): PasswordSlot {
    if (this.#taken[lane] > MAX_WAITING_PASSWORDS) {
      throw new Refusal(
        "signin_busy",
        "The server already checks as many passwords at once as it can: retry in a few seconds.",
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
      // `#isRunning` stays true, so that no new caller overtakes the next waiting one.
      if (next === undefined) this.#isRunning = false;
      else next();
    }
  }
}

interface PasswordSlot extends Disposable {
  /** Runs the work when the queue reaches this slot. */
  run<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** The queue of the process: all callers share its cores. */
export const passwordQueue = new PasswordQueue();

/**
 * Hashes a new password with argon2id. Throws `invalid_input` for a password that is too short or too long. Must not be called inside a
 * transaction.
 */
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

/** Reports whether the password is unchanged since the owner was read before. Compares two hashes of the database. */
export function hasSamePassword(now: WithPassword | null, before: WithPassword | null): boolean {
  return Object.is(now?.passwordHash, before?.passwordHash);
}
type WithPassword = { passwordHash: string | null };

/**
 * Checks a password against a hash. A null hash takes the same time and never matches, so that timing does not show which owners exist. A check
 * without a `slot` waits in the lane of known callers.
 */
export async function verifyPassword(
  password: string,
  hash: string | null,
  slot?: PasswordSlot,
): Promise<boolean> {
  if (password.length > MAX_PASSWORD_CHARS) return false;
  using ownSlot = slot === undefined ? passwordQueue.take("known") : null;
  const right = await (slot ?? ownSlot)?.run(() =>
    Bun.password.verify(password, hash ?? DECOY_HASH).catch(() => false),
  );
  return right === true && hash !== null;
}

/** A hash of the same cost that matches no password. */
const DECOY_HASH =
  "$argon2id$v=19$m=19456,t=2,p=1$kvlxR4zJbYN3NgBEwNBqAZc2eSHcjOu5VInpe5PVAIQ$hLY1ETGzrmogyuzMJ71fbt8lwzz+H3xRGhFfMHaxF1o";

/**
 * Creates a person who signs in, by default as an owner of everything. Deletes every set-up link, because a set-up link must not outlive the first
 * owner. Throws `invalid_input` (not an address, an unknown place) or `name_taken` (the address is a member's).
 */
export async function createOwner(
  tx: Writer,
  input: {
    email: string;
    passwordHash: string | null;
    memberships?: readonly Membership[];
    nowMs: number;
  },
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
      "A member with this email address exists: sign in, or reset the password.",
    );
  }
  await setMemberships(tx, owner.id, input.memberships ?? FULL_OWNER, input.nowMs);
  await tx.run("DELETE FROM signin_link WHERE kind = 'setup'");
  return owner;
}

/**
 * Sets a new password and ends everything that the old one allowed: sessions, one-time links, pending sign-ins and logins, and keys of `relay login`.
 * Throws `not_found`.
 */
export async function setOwnerPassword(
  tx: Writer,
  ownerId: string,
  passwordHash: string,
  nowMs: number,
): Promise<void> {
  if ((await OWNER.change(tx, { id: ownerId }, { passwordHash })) === 0)
    throw new Refusal("not_found", "There is no such owner; relay admin create creates the first one.");
  await tx.run("DELETE FROM session WHERE owner_id = ?1", ownerId);
  await tx.run("DELETE FROM signin_link WHERE owner_id = ?1", ownerId);
  await tx.run("DELETE FROM login_request WHERE owner_id = ?1", ownerId);
  await tx.run("DELETE FROM pending_signin WHERE owner_id = ?1", ownerId);
  const revoke = "UPDATE api_key SET revoked_at = ?2 WHERE owner_id = ?1 AND revoked_at IS NULL";
  await tx.run(revoke, ownerId, nowMs);
}

/** Finds an owner by email address, ignoring case. */
export function findOwnerByEmail(tx: Reader, email: string): Promise<RowOf<typeof OWNER> | null> {
  return OWNER.get(tx, "WHERE lower(email) = lower($email)", { email: email.trim() });
}

export function findOwnerById(tx: Reader, id: string): Promise<Owner | null> {
  return SHOWN_OWNER.get(tx, "WHERE id = $id", { id });
}

export const ownerView = Type.Object({
  id: Type.String(),
  email: Type.String(),
  createdAt: time,
  /** False until the owner sets a first password with their one-time link. */
  hasPassword: Type.Boolean(),
  /** True if the member has a second factor. */
  hasFactor: Type.Boolean(),
  /** True if the member is linked to an account at an OpenID provider. */
  isLinked: Type.Boolean(),
  /** The live one-time link of a member who has no password yet; null: there is none, or it has expired. */
  invitation: nullOr(invitationView),
  /** The number of live sessions. */
  sessions: Type.Integer(),
  /** The time when one of the sessions was last used, rounded to ten minutes; null: there is no session. */
  seenAt: timeOrNull,
  /** The roles that a member gave. */
  memberships: Type.Array(membershipView),
  /** The roles that the groups of the member at the OpenID provider give, since the last sign-in there. */
  groupMemberships: Type.Array(membershipView),
});
export type OwnerView = Static<typeof ownerView>;

/** Lists all owners with their live sessions, oldest first. */
export async function listOwnerViews(tx: Reader, nowMs: number): Promise<OwnerView[]> {
  const rows = await tx.all<
    Owner & {
      hasPassword: number;
      hasFactor: number;
      isLinked: number;
      sessions: number;
      seenAt: number | null;
    }
  >(
    `SELECT owner.id, owner.email, owner.created_at AS createdAt, owner.password_hash IS NOT NULL AS hasPassword,
       EXISTS (SELECT 1 FROM totp WHERE totp.owner_id = owner.id AND confirmed_at IS NOT NULL)
         OR EXISTS (SELECT 1 FROM passkey WHERE passkey.owner_id = owner.id) AS hasFactor,
       EXISTS (SELECT 1 FROM oidc_identity WHERE oidc_identity.owner_id = owner.id) AS isLinked,
       count(session.id) AS sessions, max(coalesce(session.seen_at, session.created_at)) AS seenAt
     FROM owner LEFT JOIN session INDEXED BY session_by_owner ON session.owner_id = owner.id AND session.expires_at > ?1
     GROUP BY owner.id ORDER BY owner.created_at, owner.id`,
    nowMs,
  );
  const { given, groups } = await listMembershipsBySource(tx);
  const invitations = await listInvitations(tx, nowMs);
  return rows.map((row) =>
    show(ownerView, {
      ...row,
      hasPassword: row.hasPassword === 1,
      hasFactor: row.hasFactor === 1,
      isLinked: row.isLinked === 1,
      invitation: row.hasPassword === 1 ? null : (invitations.get(row.id) ?? null),
      memberships: (given.get(row.id) ?? []).map(viewMembership),
      groupMemberships: (groups.get(row.id) ?? []).map(viewMembership),
    }),
  );
}

/** Refuses with `in_use` a member who accepted the invitation: no other person can set their password. */
export async function requireInvited(tx: Reader, { id, email }: Pick<Owner, "id" | "email">): Promise<void> {
  const has = (await OWNER.get(tx, "WHERE id = $id", { id }))?.passwordHash != null;
  const isLinked = (await listAuthenticationMethods(tx, id)).includes("oidc");
  if (!has && !isLinked) return;
  throw new Refusal(
    "in_use",
    `${email} ${has ? "already has a password" : "signs in at the OpenID provider"}, and no other person can set ${has ? "it" : "their password"}. Create a reset link on the server: relay admin reset.`,
  );
}

/** Removes a member with their sessions, one-time links, logins and login keys. Throws `not_found`, and `in_use` for the last owner. */
export async function removeOwner(tx: Writer, id: string): Promise<Owner> {
  const owner = await findOwnerById(tx, id);
  if (owner === null) throw new Refusal("not_found", "There is no such member: they were removed already.");
  await requireOtherOwner(tx, id);
  await OWNER.delete(tx, { id });
  return owner;
}

/** Lists all owners, oldest first. */
export function listOwners(tx: Reader): Promise<Owner[]> {
  return SHOWN_OWNER.all(tx, "ORDER BY created_at, id");
}

function readEmail(email: string): string {
  const trimmed = email.trim();
  if (EMAIL.test(trimmed) && trimmed.length <= MAX_EMAIL_CHARS) return trimmed;
  throw new Refusal("invalid_input", "email is not valid: write an address such as you@example.com.");
}
