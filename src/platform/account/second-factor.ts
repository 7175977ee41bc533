/**
 * The second factors of people who sign in: which a person has, what their removal ends, and the rule of the server that each person needs one.
 * A session that began with a factor satisfies the rule.
 */
import { type Static, Type } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import { oneOf, show, time, timeOrNull } from "../../base/schema.ts";
import { cutToLine, plain } from "../../base/text.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, flag, integer } from "../../store/table.ts";
import { hasPasskey } from "./passkey.ts";
import { endPendingSignins } from "./pending-signin.ts";
import { countRecoveryCodes, deleteRecoveryCodes } from "./recovery-code.ts";
import { endSessions } from "./session.ts";
import { hasTotp } from "./totp.ts";

/** The kinds of factors that a person can add. */
const FACTOR_KINDS = ["passkey", "totp"] as const;
/** The ways to complete a sign-in that waits for a second factor. */
export const FACTOR_METHODS = ["passkey", "totp", "recoveryCode"] as const;
export type FactorMethod = (typeof FACTOR_METHODS)[number];

/** The most factors of one person. */
const MAX_FACTORS = 10;
const MAX_NAME_CHARS = 60;

export const factorView = Type.Object({
  id: Type.String(),
  kind: oneOf(FACTOR_KINDS),
  name: Type.String(),
  createdAt: time,
  usedAt: timeOrNull,
});
export type FactorView = Static<typeof factorView>;

/** Lists the person's factors, oldest first. */
export async function listFactors(tx: Reader, ownerId: string): Promise<FactorView[]> {
  const rows = await tx.all<{
    id: string;
    kind: FactorView["kind"];
    name: string;
    createdAt: number;
    usedAt: number | null;
  }>(
    `SELECT id, 'totp' AS kind, name, confirmed_at AS createdAt, used_at AS usedAt
     FROM totp WHERE owner_id = ?1 AND confirmed_at IS NOT NULL
     UNION ALL SELECT id, 'passkey' AS kind, name, created_at AS createdAt, used_at AS usedAt FROM passkey WHERE owner_id = ?1
     ORDER BY createdAt, id`,
    ownerId,
  );
  return rows.map((row) => show(factorView, row));
}

/** Reports whether the person has a factor. */
export async function hasFactor(tx: Reader, ownerId: string): Promise<boolean> {
  return (await hasTotp(tx, ownerId)) || (await hasPasskey(tx, ownerId));
}

/** Lists the ways in which the person can complete a sign-in now; none without a factor. */
export async function listFactorMethods(tx: Reader, ownerId: string): Promise<FactorMethod[]> {
  const methods: FactorMethod[] = [];
  if (await hasPasskey(tx, ownerId)) methods.push("passkey");
  if (await hasTotp(tx, ownerId)) methods.push("totp");
  if (methods.length > 0 && (await countRecoveryCodes(tx, ownerId)) > 0) methods.push("recoveryCode");
  return methods;
}

/** Returns the name of a new factor. Throws `invalid_input` for an empty one, and `in_use` if the person has too many. */
export async function requireFactorName(tx: Reader, ownerId: string, given: string): Promise<string> {
  const name = cutToLine(plain(given), MAX_NAME_CHARS).trim();
  if (name === "")
    throw new Refusal(
      "invalid_input",
      "name is empty: name the device, such as Phone, so that you recognize it later.",
    );
  if ((await listFactors(tx, ownerId)).length >= MAX_FACTORS)
    throw new Refusal(
      "in_use",
      `You have ${MAX_FACTORS} second factors, which is the limit: remove one first.`,
    );
  return name;
}

/**
 * Completes the first factor of a person: this session counts as begun with it, and every other session ends, because it began without one. Returns
 * whether it was the first.
 */
export async function recordFirstFactor(
  tx: Writer,
  { ownerId, sessionId, nowMs }: { ownerId: string; sessionId: string; nowMs: number },
): Promise<boolean> {
  if ((await listFactors(tx, ownerId)).length !== 1) return false;
  await endSessions(tx, ownerId, sessionId);
  await tx.run("UPDATE session SET two_factor = 1, factor_at = ?2 WHERE id = ?1", sessionId, nowMs);
  return true;
}

/**
 * Removes one factor. With the last one, the recovery codes go too. Throws `not_found`, and `in_use` for the last factor where the server requires
 * one.
 */
export async function removeFactor(
  tx: Writer,
  { ownerId, id, isRequired }: { ownerId: string; id: string; isRequired: boolean },
): Promise<FactorView> {
  const all = await listFactors(tx, ownerId);
  const found = all.find((one) => one.id === id);
  if (found === undefined)
    throw new Refusal("not_found", "You have no second factor with this id: it was removed already.");
  if (all.length === 1 && isRequired)
    throw new Refusal(
      "in_use",
      "This server requires a second factor, and this is your only one: add another first, then remove this one.",
    );
  await tx.run("DELETE FROM totp WHERE id = ?1", id);
  await tx.run("DELETE FROM passkey WHERE id = ?1", id);
  if (all.length === 1) await endFactors(tx, ownerId);
  return found;
}

/** Removes all factors of a person and ends the sessions that began with them. Returns how many there were. */
export async function resetFactors(tx: Writer, ownerId: string): Promise<number> {
  const count = (await listFactors(tx, ownerId)).length;
  await tx.run("DELETE FROM totp WHERE owner_id = ?1", ownerId);
  await tx.run("DELETE FROM passkey WHERE owner_id = ?1", ownerId);
  await endFactors(tx, ownerId);
  await endSessions(tx, ownerId, null);
  return count;
}

async function endFactors(tx: Writer, ownerId: string): Promise<void> {
  await deleteRecoveryCodes(tx, ownerId);
  await endPendingSignins(tx, ownerId);
  // A session that began at the OpenID provider keeps the factors of the provider.
  await tx.run(
    "UPDATE session SET two_factor = 0 WHERE owner_id = ?1 AND id NOT IN (SELECT session_id FROM oidc_session)",
    ownerId,
  );
}

const FACTOR_RULE = defineTable({
  name: "factor_rule",
  key: ["one"],
  columns: { one: integer(), required: flag() },
});

/** Reports whether an owner, or the command line, set that each member needs a second factor. */
export async function isFactorRequired(tx: Reader): Promise<boolean> {
  return (await FACTOR_RULE.find(tx, { one: 1 }))?.required ?? false;
}

/** Sets whether each member needs a second factor. Returns the value before. */
export async function setFactorRequired(tx: Writer, required: boolean): Promise<boolean> {
  const before = await FACTOR_RULE.find(tx, { one: 1 });
  if (before === null) await FACTOR_RULE.insert(tx, { one: 1, required });
  else await FACTOR_RULE.update(tx, { one: 1, required });
  return before?.required ?? false;
}
