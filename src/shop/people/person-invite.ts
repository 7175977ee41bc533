/**
 * Creates people: by an invite, by an event whose map names `person_email`, or by signing up with a code. Invites and events share one daily
 * cap per environment and UTC day. Sign-ups have another, so that strangers who sign up never block a buyer's event. Each new person is
 * audited. This file sends no mail and never changes an existing person.
 */
import { toIso } from "../../base/clock.ts";
import { newId } from "../../base/id.ts";
import { DAY_MS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { writeAudit } from "../../platform/audit/audit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { findPersonByEmail, PERSON, type PersonRow, parseEmailAddress, toEmailKey } from "./person.ts";

interface NewPerson {
  environmentId: number;
  email: string;
  /** The formatted actor: `relay:<name>`, `key:<id>`, `owner:<email>`. */
  createdBy: string;
  nowMs: number;
}

/** A daily counter: its column, its cap, and the error of the cap. */
interface DayCount {
  column: "count" | "signups";
  perDay: number;
  code: "invite_capped" | "signup_capped";
  sentence: string;
}

/**
 * Finds the person with this address, or creates one with status `invited`. Throws `invalid_input` (not an address) and `invite_capped` (with
 * `resetAt`), before it writes anything.
 */
export function invitePerson(
  tx: Writer,
  { invitesPerDay, ...invite }: NewPerson & { invitesPerDay: number },
): Promise<{ person: PersonRow; created: boolean }> {
  return findOrCreate(tx, invite, {
    column: "count",
    perDay: invitesPerDay,
    code: "invite_capped",
    sentence: `This environment created ${invitesPerDay} people by address today, which is its limit`,
  });
}

/** Finds or creates a person who proved that the address is theirs. Throws `signup_capped`. */
export function signUpPerson(
  tx: Writer,
  { signupsPerDay, ...person }: NewPerson & { signupsPerDay: number },
): Promise<{ person: PersonRow; created: boolean }> {
  return findOrCreate(tx, person, {
    column: "signups",
    perDay: signupsPerDay,
    code: "signup_capped",
    sentence: `${signupsPerDay} people signed up here today, which is the limit`,
  });
}

async function findOrCreate(
  tx: Writer,
  invite: NewPerson,
  count: DayCount,
): Promise<{ person: PersonRow; created: boolean }> {
  const { environmentId, createdBy, nowMs } = invite;
  const email = parseEmailAddress(invite.email);
  if (email === null) {
    throw new Refusal("invalid_input", "`email` is not an email address: use one such as name@example.com.");
  }
  const existing = await findPersonByEmail(tx, environmentId, email);
  if (existing !== null) return { person: existing, created: false };
  await countOne(tx, environmentId, nowMs, count);
  const person: PersonRow = {
    id: newId("per", nowMs),
    environmentId,
    email,
    emailKey: toEmailKey(email),
    status: "invited",
    attributes: {},
    createdBy,
    createdAt: nowMs,
    updatedAt: nowMs,
  };
  await PERSON.insert(tx, person);
  // The audit names only the id, because it outlives an erasure and an address must not.
  await writeAudit(tx, {
    environmentId,
    nowMs,
    by: createdBy,
    action: "person.invited",
    target: `person:${person.id}`,
    after: { status: person.status },
  });
  return { person, created: true };
}

async function countOne(
  tx: Writer,
  environmentId: number,
  nowMs: number,
  { column, perDay, code, sentence }: DayCount,
): Promise<void> {
  const utcDay = toUtcDay(nowMs);
  const today = await countNewPeople(tx, environmentId, nowMs);
  if ((column === "count" ? today.invites : today.signups) >= perDay) {
    throw new Refusal(
      code,
      `${sentence}: wait until the next UTC day or raise the limit in the server's configuration.`,
      { resetAtMs: (Math.floor(nowMs / DAY_MS) + 1) * DAY_MS },
    );
  }
  const invites = column === "count" ? 1 : 0;
  await tx.run(
    `INSERT INTO invite_count (environment_id, utc_day, count, signups)
     VALUES ($environmentId, $utcDay, $invites, $signups)
     ON CONFLICT (environment_id, utc_day) DO UPDATE SET ${column} = invite_count.${column} + 1`,
    { environmentId, utcDay, invites, signups: 1 - invites },
  );
  // Old counts are useless; two days stay in case the clock is set back.
  const sql = "DELETE FROM invite_count WHERE environment_id = ?1 AND utc_day < ?2";
  await tx.run(sql, environmentId, toUtcDay(nowMs - 2 * DAY_MS));
}

/** Counts the people that the environment created in the UTC day, by address and by sign-up. */
export async function countNewPeople(
  tx: Reader,
  environmentId: number,
  nowMs: number,
): Promise<{ invites: number; signups: number }> {
  const today = await tx.get<{ invites: number; signups: number }>(
    "SELECT count AS invites, signups FROM invite_count WHERE environment_id = $environmentId AND utc_day = $utcDay",
    { environmentId, utcDay: toUtcDay(nowMs) },
  );
  return today ?? { invites: 0, signups: 0 };
}

function toUtcDay(ms: number): string {
  return toIso(ms).slice(0, 10);
}
