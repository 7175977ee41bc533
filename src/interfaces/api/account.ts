/**
 * Members of this server, who sign in, with their roles and sessions. A member sees and ends only their own sessions. A new member sets their
 * password with a one-time link, which Relay mails or the inviting owner passes on. No owner can set another member's password once it exists.
 */
import { Type } from "typebox";
import { MAX_EMAIL_CHARS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, oneOf, orNull, time } from "../../base/schema.ts";
import { createInvitation, type Invitation, invitationMail } from "../../platform/account/invitation.ts";
import {
  FULL_OWNER,
  listMemberships,
  membershipsInput,
  readMemberships,
  setMemberships,
  viewMembership,
} from "../../platform/account/membership.ts";
import {
  createOwner,
  findOwnerByEmail,
  listOwnerViews,
  type OwnerView,
  ownerView,
  removeOwner,
  requireInvited,
} from "../../platform/account/owner.ts";
import { permissionsIn, SERVER_PLACE } from "../../platform/account/permission.ts";
import { endSession, endSessions, listSessions, sessionItem } from "../../platform/account/session.ts";
import { type AuditEntry, SERVER_SCOPE, writeAudit } from "../../platform/audit/audit.ts";
import { mailInvitation } from "../../platform/mail/invitation-mail.ts";
import type { Reader, Writer } from "../../store/port.ts";
import type { Owner } from "../http/admission.ts";
import { clearSessionCookie } from "../http/cookie.ts";
import type { HttpDeps } from "../http/deps.ts";
import { ownerRoute } from "../http/route.ts";

interface Act {
  owner: Owner;
  nowMs: number;
}

async function audit(
  tx: Writer,
  { owner, nowMs }: Act,
  entry: Pick<AuditEntry, "action" | "target" | "before" | "after">,
): Promise<void> {
  await writeAudit(tx, { environmentId: SERVER_SCOPE, nowMs, by: `owner:${owner.email}`, ...entry });
}

/** Refuses an owner who lost the right to manage members after their session was checked. */
export async function requireStill(tx: Reader, owner: Owner): Promise<void> {
  const memberships = await listMemberships(tx, owner.id);
  if (permissionsIn(memberships, SERVER_PLACE).has("manage_server")) return;
  throw new Refusal(
    "unauthenticated",
    "You are no longer an owner of this server, because another owner changed your role or removed you. Ask an owner to add you again.",
  );
}

/** Refuses local development, which has one owner. */
export function requireServer({ config }: HttpDeps): void {
  if (config.mode === "server") return;
  throw new Refusal(
    "forbidden",
    "Local development has one owner and no passwords: for more members, start a server with relay serve.",
  );
}

const link = Type.Object({
  url: Type.String({ description: "a one-time link that sets the password" }),
  expiresAt: time,
});

const memberships = Type.Optional(membershipsInput);

async function findMember(tx: Reader, id: string, nowMs: number): Promise<OwnerView> {
  const found = (await listOwnerViews(tx, nowMs)).find((one) => one.id === id);
  if (found !== undefined) return found;
  throw new Refusal("not_found", "There is no member with this id: GET /api/owners lists the members.");
}

const mailChoice = Type.Optional(
  Type.Boolean({ description: "false: Relay does not mail the link, and the response has it" }),
);

const invited = {
  link: orNull(link),
  mail: orNull(invitationMail),
};

/** Mails the link, unless the caller or the server does not. The answer has the link only if the mail server did not accept it. */
async function sendInvitation(
  { deps, owner, nowMs }: Act & { deps: HttpDeps },
  { to, invitation, wanted = true }: { to: string; invitation: Invitation; wanted: boolean | undefined },
) {
  const { serverMail, store } = deps;
  const { url, expiresAt } = invitation;
  if (serverMail === null || !wanted) return { link: { url, expiresAt }, mail: null };
  const by = `owner:${owner.email}`;
  const letter = { invitation, to, by, inviter: owner.email, baseUrl: deps.baseUrl(), nowMs };
  const mail = await mailInvitation(store, serverMail, letter);
  return { link: mail.state === "sent" ? null : { url, expiresAt }, mail };
}

export const accountRoutes = [
  ownerRoute({
    method: "GET",
    path: "/api/sessions",
    needs: null,
    summary:
      "Lists the sessions of the signed-in owner: when each began, when and from where it was last used.",
    answer: Type.Object({
      sessions: Type.Array(sessionItem),
      hasPassword: Type.Boolean({ description: "false if the owner has no password to give" }),
    }),
    read: async (tx, { owner, nowMs }) => ({
      hasPassword: (await findOwnerByEmail(tx, owner.email))?.passwordHash != null,
      sessions: await listSessions(tx, { ownerId: owner.id, currentId: owner.sessionId, nowMs }),
    }),
  }),
  ownerRoute({
    method: "DELETE",
    path: "/api/sessions/:id",
    needs: null,
    summary: "Ends one session of the signed-in owner at once.",
    answer: null,
    async handle({ deps, owner, params, headers, nowMs }) {
      await deps.store.write("dashboard", async (tx) => {
        await endSession(tx, { ownerId: owner.id, id: params.id });
        await audit(tx, { owner, nowMs }, { action: "session.ended", target: `session:${params.id}` });
      });
      if (params.id === owner.sessionId) headers.append("set-cookie", clearSessionCookie(deps));
    },
  }),
  ownerRoute({
    method: "DELETE",
    path: "/api/sessions",
    needs: null,
    summary: "Ends all sessions of the owner at once. With others=true, this session stays.",
    query: fields({ others: Type.Optional(oneOf(["true", "false"])) }),
    answer: Type.Object({ ended: Type.Integer() }),
    async handle({ deps, owner, query, headers, nowMs }) {
      const keep = query.others === "true" ? owner.sessionId : null;
      const ended = await deps.store.write("dashboard", async (tx) => {
        const count = await endSessions(tx, owner.id, keep);
        if (count > 0)
          await audit(
            tx,
            { owner, nowMs },
            {
              action: "owner.signed_out_everywhere",
              target: `owner:${owner.email}`,
              after: { sessions: count },
            },
          );
        return count;
      });
      if (keep === null) headers.append("set-cookie", clearSessionCookie(deps));
      return { ended };
    },
  }),
  ownerRoute({
    method: "GET",
    path: "/api/owners",
    needs: "manage_server",
    summary:
      "Lists the members of this server, oldest first, each with their roles and with how often and when they last signed in.",
    answer: Type.Object({
      owners: Type.Array(ownerView),
      mailsInvitations: Type.Boolean({ description: "whether the server has a mail server for invitations" }),
    }),
    read: async (tx, { deps, nowMs }) => ({
      owners: await listOwnerViews(tx, nowMs),
      mailsInvitations: deps.serverMail !== null,
    }),
  }),
  ownerRoute({
    method: "POST",
    path: "/api/owners",
    needs: "manage_server",
    summary:
      "Creates a member and a one-time link, which a server with --mail-url mails. Otherwise only this response has the link. Without memberships, an owner.",
    body: fields({
      email: Type.String({ maxLength: MAX_EMAIL_CHARS, description: "an email address" }),
      memberships,
      mail: mailChoice,
    }),
    answer: Type.Object({ owner: ownerView, ...invited }),
    status: 201,
    async handle({ deps, owner, body, nowMs }) {
      requireServer(deps);
      const { id, email, invitation } = await deps.store.write("dashboard", async (tx) => {
        await requireStill(tx, owner);
        const roles = body.memberships === undefined ? FULL_OWNER : readMemberships(body.memberships);
        const made = await createOwner(tx, {
          email: body.email,
          passwordHash: null,
          memberships: roles,
          nowMs,
        });
        await audit(
          tx,
          { owner, nowMs },
          {
            action: "owner.created",
            target: `owner:${made.email}`,
            after: { memberships: roles.map(viewMembership) },
          },
        );
        const link = { ownerId: made.id, baseUrl: deps.baseUrl(), nowMs };
        return { ...made, invitation: await createInvitation(tx, link) };
      });
      const sent = await sendInvitation({ deps, owner, nowMs }, { to: email, invitation, wanted: body.mail });
      return { owner: await deps.store.read((tx) => findMember(tx, id, nowMs)), ...sent };
    },
  }),
  ownerRoute({
    method: "POST",
    path: "/api/owners/:id/link",
    needs: "manage_server",
    summary:
      "Creates a new one-time link for a member without a password, and mails it as the first one. The previous link stops working.",
    body: fields({ mail: mailChoice }),
    answer: Type.Object(invited),
    status: 201,
    async handle({ deps, owner, params, body, nowMs }) {
      requireServer(deps);
      const { email, invitation } = await deps.store.write("dashboard", async (tx) => {
        await requireStill(tx, owner);
        const found = await findMember(tx, params.id, nowMs);
        await requireInvited(tx, found);
        await audit(tx, { owner, nowMs }, { action: "owner.invited", target: `owner:${found.email}` });
        const link = { ownerId: found.id, baseUrl: deps.baseUrl(), nowMs };
        return { email: found.email, invitation: await createInvitation(tx, link) };
      });
      return await sendInvitation({ deps, owner, nowMs }, { to: email, invitation, wanted: body.mail });
    },
  }),
  ownerRoute({
    method: "PUT",
    path: "/api/owners/:id",
    needs: "manage_server",
    summary:
      "Replaces the roles of a member. The change takes effect with the next request of the member. The last owner of everything stays one.",
    body: fields({ memberships: membershipsInput }),
    answer: Type.Object({ owner: ownerView }),
    async handle({ deps, owner, params, body, nowMs }) {
      requireServer(deps);
      return await deps.store.write("dashboard", async (tx) => {
        await requireStill(tx, owner);
        const changed = await findMember(tx, params.id, nowMs);
        await setMemberships(tx, changed.id, readMemberships(body.memberships), nowMs);
        const after = await findMember(tx, params.id, nowMs);
        await audit(
          tx,
          { owner, nowMs },
          {
            action: "owner.roles_changed",
            target: `owner:${changed.email}`,
            before: { memberships: changed.memberships },
            after: { memberships: after.memberships },
          },
        );
        return { owner: after };
      });
    },
  }),
  ownerRoute({
    method: "DELETE",
    path: "/api/owners/:id",
    needs: "manage_server",
    summary: "Removes another member at once, with their sessions, one-time links and login keys.",
    answer: null,
    async write(tx, { owner, params, nowMs }) {
      await requireStill(tx, owner);
      if (params.id === owner.id)
        throw new Refusal(
          "in_use",
          "You cannot remove yourself: ask another owner, or run relay admin remove on the server.",
        );
      const removed = await removeOwner(tx, params.id);
      await audit(tx, { owner, nowMs }, { action: "owner.removed", target: `owner:${removed.email}` });
    },
  }),
];
