/** Invitations: the one-time link of a member who has no password yet, and the result of the mail with it. The link itself is never read again. */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { hashToken } from "../../base/id.ts";
import { DAY_MS } from "../../base/limit.ts";
import { oneOf, orNull, show, textOrNull, time } from "../../base/schema.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { createSigninLink, signinLinkUrl } from "./session.ts";

/** Time that a new member has to set a first password. */
const INVITATION_LIFE_MS = DAY_MS;

/** `unknown`: the mail server may have accepted the mail. */
const MAIL_STATES = ["sent", "failed", "unknown"] as const;

/** The result of a mail. */
export const invitationMail = Type.Object({
  state: oneOf(MAIL_STATES),
  message: textOrNull,
});
export type InvitationMail = Static<typeof invitationMail>;

export const invitationView = Type.Object({
  expiresAt: time,
  /** Null: the link was not mailed, so the person who made it gives it to the member. */
  mail: orNull(invitationMail),
});
type InvitationView = Static<typeof invitationView>;

/** A new link. */
export interface Invitation {
  token: string;
  url: string;
  expiresAt: string;
}

/** Creates the link of an invitation. An earlier link of the member stops working. */
export async function createInvitation(
  tx: Writer,
  { ownerId, baseUrl, nowMs }: { ownerId: string; baseUrl: string; nowMs: number },
): Promise<Invitation> {
  const link = { kind: "reset", ownerId, nowMs, lifeMs: INVITATION_LIFE_MS } as const;
  const { token, expiresAt } = await createSigninLink(tx, link);
  return { token, url: signinLinkUrl(baseUrl, "reset", token), expiresAt: toIso(expiresAt) };
}

/** Records the result of the mail with the link. A link that was used or replaced meanwhile has no row any more. */
export async function recordInvitationMail(
  tx: Writer,
  { token }: Pick<Invitation, "token">,
  { state, message }: InvitationMail,
): Promise<void> {
  const sql = "UPDATE signin_link SET mail_state = ?2, mail_message = ?3 WHERE token_hash = ?1";
  await tx.run(sql, hashToken(token), state, message);
}

/** Lists the live links of members by the member's id. */
export async function listInvitations(tx: Reader, nowMs: number): Promise<Map<string, InvitationView>> {
  const rows = await tx.all<{
    ownerId: string;
    expiresAt: number;
    state: InvitationMail["state"] | null;
    message: string | null;
  }>(
    `SELECT owner_id AS ownerId, expires_at AS expiresAt, mail_state AS state, mail_message AS message
     FROM signin_link WHERE kind = 'reset' AND expires_at > ?1 ORDER BY expires_at`,
    nowMs,
  );
  return new Map(
    rows.map(({ ownerId, expiresAt, state, message }) => [
      ownerId,
      show(invitationView, { expiresAt, mail: state === null ? null : { state, message } }),
    ]),
  );
}
