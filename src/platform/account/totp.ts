/**
 * Authenticator apps: codes of six digits that change every 30 seconds (RFC 6238). The clocks of the app and the server may differ by one step. A step
 * whose code was accepted is never accepted again, nor is an earlier one. The secrets are sealed.
 */
import type { TOTP } from "otpauth";
import { newId } from "../../base/id.ts";
import { MINUTE_MS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { bytes, defineTable, integer, orNull, text } from "../../store/table.ts";
import type { Sealer } from "../secret/seal.ts";

const TOTP_TABLE = defineTable({
  name: "totp",
  key: ["id"],
  columns: {
    id: text(),
    ownerId: text(),
    name: text(),
    sealedSecret: bytes(),
    lastStep: integer(),
    createdAt: integer(),
    confirmedAt: orNull(integer()),
    usedAt: orNull(integer()),
  },
});

const STEP_MS = 30_000;
const SECRET_BYTES = 20;
/** The time to type the first code of a new app. */
const CONFIRM_MS = 10 * MINUTE_MS;
const TOTP_CODE = /^\d{6}$/;

/** The outcome of a code. `used`: the code is right, but its step was accepted before. */
export type CodeResult = "right" | "wrong" | "used";

/** The library, which only a second factor loads. */
type TotpLibrary = typeof import("otpauth");
export function loadTotp(): Promise<TotpLibrary> {
  return import("otpauth");
}

function makeTotp({ TOTP, Secret }: TotpLibrary, secret: string, email = ""): TOTP {
  return new TOTP({
    issuer: "Relay Service",
    label: email,
    secret: Secret.fromBase32(secret),
    algorithm: "SHA1",
    digits: 6,
    period: STEP_MS / 1000,
  });
}

const contextOf = (id: string): string => `totp:${id}`;

/** Creates an app that has no effect until `confirmTotp`. An earlier unconfirmed app of the person is removed. */
export async function beginTotp(
  tx: Writer,
  library: TotpLibrary,
  {
    owner,
    name,
    sealer,
    nowMs,
  }: { owner: { id: string; email: string }; name: string; sealer: Sealer; nowMs: number },
): Promise<{ id: string; secret: string; uri: string }> {
  const id = newId("fac", nowMs);
  const secret = new library.Secret({ size: SECRET_BYTES }).base32;
  await tx.run("DELETE FROM totp WHERE owner_id = ?1 AND confirmed_at IS NULL", owner.id);
  await TOTP_TABLE.insert(tx, {
    id,
    ownerId: owner.id,
    name,
    sealedSecret: sealer.seal(secret, contextOf(id)),
    lastStep: 0,
    createdAt: nowMs,
    confirmedAt: null,
    usedAt: null,
  });
  return { id, secret, uri: makeTotp(library, secret, owner.email).toString() };
}

/** Makes the app a factor if the code is its own. Throws `not_found` for an app that was confirmed, replaced or begun too long ago. */
export async function confirmTotp(
  tx: Writer,
  library: TotpLibrary,
  {
    ownerId,
    id,
    code,
    sealer,
    nowMs,
  }: { ownerId: string; id: string; code: string; sealer: Sealer; nowMs: number },
): Promise<CodeResult> {
  const found = await TOTP_TABLE.find(tx, { id });
  if (found?.ownerId !== ownerId || found.confirmedAt !== null || nowMs - found.createdAt > CONFIRM_MS)
    throw new Refusal(
      "not_found",
      "No new authenticator app waits for its first code: add the app again, and type its code within ten minutes.",
    );
  const step = findStep(library, sealer, found, code, nowMs);
  if (step === null) return "wrong";
  await TOTP_TABLE.change(tx, { id }, { confirmedAt: nowMs, lastStep: step });
  return "right";
}

/** Accepts a code of one of the person's apps, once. */
export async function useTotp(
  tx: Writer,
  library: TotpLibrary,
  { ownerId, code, sealer, nowMs }: { ownerId: string; code: string; sealer: Sealer; nowMs: number },
): Promise<CodeResult> {
  const apps = await TOTP_TABLE.all(tx, "WHERE owner_id = $ownerId AND confirmed_at IS NOT NULL", {
    ownerId,
  });
  let result: CodeResult = "wrong";
  for (const app of apps) {
    const step = findStep(library, sealer, app, code, nowMs);
    if (step === null) continue;
    // The condition decides between two requests with one code.
    const sql = "UPDATE totp SET last_step = ?2, used_at = ?3 WHERE id = ?1 AND last_step < ?2";
    if ((await tx.run(sql, app.id, step, nowMs)) > 0) return "right";
    result = "used";
  }
  return result;
}

/** Returns the time step of the code, or null if the code belongs to none of the three steps around now. */
function findStep(
  library: TotpLibrary,
  sealer: Sealer,
  { id, sealedSecret }: { id: string; sealedSecret: Uint8Array },
  code: string,
  nowMs: number,
): number | null {
  const totp = makeTotp(library, sealer.unseal(sealedSecret, contextOf(id)));
  const delta = TOTP_CODE.test(code) ? totp.validate({ token: code, timestamp: nowMs, window: 1 }) : null;
  return delta === null ? null : Math.floor(nowMs / STEP_MS) + delta;
}

/** Reports whether the person has a confirmed app. */
export async function hasTotp(tx: Reader, ownerId: string): Promise<boolean> {
  const sql = "SELECT 1 AS one FROM totp WHERE owner_id = ?1 AND confirmed_at IS NOT NULL LIMIT 1";
  return (await tx.get(sql, ownerId)) !== null;
}

/** Deletes apps whose first code did not come in time. The daily maintenance calls it. */
export async function deleteUnconfirmedTotp(tx: Writer, nowMs: number): Promise<void> {
  await tx.run("DELETE FROM totp WHERE confirmed_at IS NULL AND created_at < ?1", nowMs - CONFIRM_MS);
}
