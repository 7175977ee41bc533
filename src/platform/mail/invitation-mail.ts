/** Mails the link of an invitation. Neither the mail nor its link is stored, so no page, export or backup shows them. */

import type { Store } from "../../store/port.ts";
import { type Invitation, type InvitationMail, recordInvitationMail } from "../account/invitation.ts";
import { SERVER_SCOPE, writeAudit } from "../audit/audit.ts";
import { type MailOutcome, makeSubject, makeText } from "./mailer.ts";
import type { ServerMail } from "./server-mail.ts";

interface Letter {
  invitation: Invitation;
  /** The member's address. */
  to: string;
  /** The actor, formatted, for the audit. */
  by: string;
  /** The inviting person's address; null: the command line. */
  inviter: string | null;
  /** The origin of the dashboard. */
  baseUrl: string;
  nowMs: number;
}

/** Mails the link and records the result of the mail, audited. Never throws for a mail server. */
export async function mailInvitation(
  store: Store,
  mail: Pick<ServerMail, "send">,
  letter: Letter,
): Promise<InvitationMail> {
  const { invitation, to, by, nowMs } = letter;
  // The state after a crash in the middle of the delivery.
  await store.write("dashboard", (tx) => recordInvitationMail(tx, invitation, INTERRUPTED));
  const ended = toState(await mail.send({ to, ...write(letter) }));
  await store.write("dashboard", async (tx) => {
    await recordInvitationMail(tx, invitation, ended);
    const row = { environmentId: SERVER_SCOPE, nowMs, by, target: `owner:${to}` };
    await writeAudit(tx, { ...row, action: "owner.invitation_mailed", after: { state: ended.state } });
  });
  return ended;
}

const INTERRUPTED: InvitationMail = {
  state: "unknown",
  message: "The server is sending the mail, or stopped while it did: the member may have it.",
};

function toState(outcome: MailOutcome): InvitationMail {
  switch (outcome.kind) {
    case "failed":
    case "unknown":
      return { state: outcome.kind, message: outcome.message };
    default:
      return { state: "sent", message: null };
  }
}

function write({ invitation, inviter, baseUrl }: Letter): { subject: string; text: string } {
  const server = URL.parse(baseUrl)?.host ?? baseUrl;
  const lines = [
    `${inviter ?? "An owner"} invites you to the Relay server ${baseUrl}.`,
    `Open this link to choose how you sign in:\n${invitation.url}`,
    `The link works once, until ${invitation.expiresAt}. If you do not know ${inviter ?? "this server"}, ignore this mail.`,
  ];
  return {
    subject: makeSubject(`Invitation to Relay at ${server}`),
    text: makeText(`${lines.join("\n\n")}\n`),
  };
}
