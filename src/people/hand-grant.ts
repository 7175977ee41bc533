/**
 * Granting by hand: through the API or the dashboard. Its source is always `hand`; no key and no owner can mint another.
 */
import { MAX_REASON_CHARS } from "../ground/limit.ts";
import { Refusal } from "../ground/refusal.ts";
import { breaksPlainText, countChars } from "../ground/text.ts";
import type { Writer } from "../store/port.ts";
import { type GrantRow, grantAccess } from "./access-grant.ts";
import { requireEntitlement } from "./entitlement.ts";
import { requireActingPerson } from "./person.ts";

export interface HandGrant {
  environmentId: number;
  personId: string;
  /** `access:<slug>`, a product or a plan. */
  entitlement: string;
  reason: string | null;
  /** Milliseconds since the epoch, or null for no end. */
  expiresAtMs: number | null;
  /** Who, in words: `key:<id>`, `owner:<email>`. */
  by: string;
  nowMs: number;
}

/** Refuses with `not_found`, `person_suspended`, `entitlement_unknown` and `invalid_input`. */
export async function grantByHand(tx: Writer, grant: HandGrant): Promise<GrantRow> {
  const { environmentId, personId, reason, expiresAtMs, by, nowMs } = grant;
  if (reason !== null && (countChars(reason) > MAX_REASON_CHARS || breaksPlainText(reason) !== null)) {
    throw new Refusal(
      "invalid_input",
      `\`reason\` is not valid: use at most ${MAX_REASON_CHARS} characters of plain text.`,
    );
  }
  if (expiresAtMs !== null && !(expiresAtMs > nowMs)) {
    throw new Refusal(
      "invalid_input",
      "`expiresAt` is not in the future: give a later moment, or leave it out.",
    );
  }
  await requireActingPerson(tx, environmentId, personId);
  const { key } = await requireEntitlement(tx, environmentId, grant.entitlement);
  return grantAccess(tx, {
    environmentId,
    personId,
    entitlement: key,
    source: "hand",
    sourceRef: by,
    relayName: null,
    eventId: null,
    reason,
    expiresAtMs,
    nowMs,
  });
}
