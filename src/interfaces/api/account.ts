/**
 * Members of this server, who sign in, with their roles and sessions. A member sees and ends only their own sessions. A new member sets their
 * password with a one-time link that the inviting owner passes on. No owner can set another member's password once it exists.
 */
import { Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { MAX_EMAIL_CHARS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, oneOf, time } from "../../base/schema.ts";
import { listAuthenticationMethods } from "../../platform/account/authentication.ts";
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
  listOwnerViews,
  type OwnerView,
  ownerView,
  removeOwner,
} from "../../platform/account/owner.ts";
import { permissionsIn, SERVER_PLACE } from "../../platform/account/permission.ts";
import {
  createSigninLink,
  endSession,
  endSessions,
  INVITE_LIFE_MS,
  listSessions,
  sessionItem,
  signinLinkUrl,
} from "../../platform/account/session.ts";
import { type AuditEntry, SERVER_SCOPE, writeAudit } from "../../platform/audit/audit.ts";
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

async function makeInvite(tx: Writer, deps: HttpDeps, ownerId: string, nowMs: number) {
  const made = await createSigninLink(tx, { kind: "reset", ownerId, nowMs, lifeMs: INVITE_LIFE_MS });
  return { url: signinLinkUrl(deps.baseUrl(), "reset", made.token), expiresAt: toIso(made.expiresAt) };
}

export const accountRoutes = [
  ownerRoute({
    method: "GET",
    path: "/api/sessions",
    needs: null,
    summary:
      "Lists the sessions of the signed-in owner: when each began, when and from where it was last used.",
    answer: Type.Object({ sessions: Type.Array(sessionItem) }),
    read: async (tx, { owner, nowMs }) => ({
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
    answer: Type.Object({ owners: Type.Array(ownerView) }),
    read: async (tx, { nowMs }) => ({ owners: await listOwnerViews(tx, nowMs) }),
  }),
  ownerRoute({
    method: "POST",
    path: "/api/owners",
    needs: "manage_server",
    summary:
      "Creates a member, and a one-time link that sets their password. Only this response contains the link. Without memberships, an owner of everything.",
    body: fields({
      email: Type.String({ maxLength: MAX_EMAIL_CHARS, description: "an email address" }),
      memberships,
    }),
    answer: Type.Object({ owner: ownerView, link }),
    status: 201,
    async handle({ deps, owner, body, nowMs }) {
      requireServer(deps);
      return await deps.store.write("dashboard", async (tx) => {
        await requireStill(tx, owner);
        const roles = body.memberships === undefined ? FULL_OWNER : readMemberships(body.memberships);
        const made = await createOwner(tx, {
          email: body.email,
          passwordHash: null,
          memberships: roles,
          nowMs,
        });
        const shown = roles.map(viewMembership);
        await audit(
          tx,
          { owner, nowMs },
          { action: "owner.created", target: `owner:${made.email}`, after: { memberships: shown } },
        );
        const fresh = {
          hasPassword: false,
          hasFactor: false,
          sessions: 0,
          seenAt: null,
          memberships: shown,
          groupMemberships: [],
        };
        const view = { ...made, createdAt: toIso(nowMs), ...fresh };
        return { owner: view, link: await makeInvite(tx, deps, made.id, nowMs) };
      });
    },
  }),
  ownerRoute({
    method: "POST",
    path: "/api/owners/:id/link",
    needs: "manage_server",
    summary: "Creates a new one-time link for a member without a password. The previous link stops working.",
    answer: Type.Object({ link }),
    status: 201,
    async handle({ deps, owner, params, nowMs }) {
      requireServer(deps);
      return await deps.store.write("dashboard", async (tx) => {
        await requireStill(tx, owner);
        const found = await findMember(tx, params.id, nowMs);
        if (found.hasPassword)
          throw new Refusal(
            "in_use",
            `${found.email} already has a password, and no other person can set it. Create a reset link on the server: relay admin reset.`,
          );
        if ((await listAuthenticationMethods(tx, found.id)).includes("oidc"))
          throw new Refusal(
            "in_use",
            `${found.email} signs in at the OpenID provider, and no other person can set their password. Create a reset link on the server: relay admin reset.`,
          );
        await audit(tx, { owner, nowMs }, { action: "owner.invited", target: `owner:${found.email}` });
        return { link: await makeInvite(tx, deps, found.id, nowMs) };
      });
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
