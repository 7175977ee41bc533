/**
 * Owners of this server, who all have the same rights, and their sessions. An owner sees and ends only their own sessions. A new owner sets their
 * password with a one-time link that the inviting owner passes on. No owner can set another owner's password once it exists.
 */
import { Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { MAX_EMAIL_CHARS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, oneOf, time } from "../../base/schema.ts";
import {
  createOwner,
  findOwnerById,
  listOwnerViews,
  ownerView,
  removeOwner,
} from "../../platform/account/owner.ts";
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
  entry: Pick<AuditEntry, "action" | "target" | "after">,
): Promise<void> {
  await writeAudit(tx, { environmentId: SERVER_SCOPE, nowMs, by: `owner:${owner.email}`, ...entry });
}

/** Refuses an owner who was removed after their session was checked. */
async function requireStill(tx: Reader, owner: Owner): Promise<void> {
  if ((await findOwnerById(tx, owner.id)) !== null) return;
  throw new Refusal(
    "unauthenticated",
    "You are no longer an owner of this server, because another owner removed you. Ask an owner to add you again.",
  );
}

function requireServer({ config }: HttpDeps): void {
  if (config.mode === "server") return;
  throw new Refusal(
    "forbidden",
    "Local development has one owner and no passwords: for more owners, start a server with relay serve.",
  );
}

const link = Type.Object({
  url: Type.String({ description: "a one-time link that sets the password" }),
  expiresAt: time,
});

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
      "Lists the owners of this server, oldest first, each with how often and when they last signed in.",
    answer: Type.Object({ owners: Type.Array(ownerView) }),
    read: async (tx, { nowMs }) => ({ owners: await listOwnerViews(tx, nowMs) }),
  }),
  ownerRoute({
    method: "POST",
    path: "/api/owners",
    needs: "manage_server",
    summary:
      "Creates an owner, and a one-time link that sets their password. Only this response contains the link.",
    body: fields({
      email: Type.String({ maxLength: MAX_EMAIL_CHARS, description: "an email address" }),
    }),
    answer: Type.Object({ owner: ownerView, link }),
    status: 201,
    async handle({ deps, owner, body, nowMs }) {
      requireServer(deps);
      return await deps.store.write("dashboard", async (tx) => {
        await requireStill(tx, owner);
        const made = await createOwner(tx, { email: body.email, passwordHash: null, nowMs });
        await audit(tx, { owner, nowMs }, { action: "owner.created", target: `owner:${made.email}` });
        const view = { ...made, createdAt: toIso(nowMs), hasPassword: false, sessions: 0, seenAt: null };
        return { owner: view, link: await makeInvite(tx, deps, made.id, nowMs) };
      });
    },
  }),
  ownerRoute({
    method: "POST",
    path: "/api/owners/:id/link",
    needs: "manage_server",
    summary: "Creates a new one-time link for an owner without a password. The previous link stops working.",
    answer: Type.Object({ link }),
    status: 201,
    async handle({ deps, owner, params, nowMs }) {
      requireServer(deps);
      return await deps.store.write("dashboard", async (tx) => {
        await requireStill(tx, owner);
        const found = (await listOwnerViews(tx, nowMs)).find(({ id }) => id === params.id);
        if (found === undefined)
          throw new Refusal("not_found", "There is no owner with this id: GET /api/owners lists the owners.");
        if (found.hasPassword)
          throw new Refusal(
            "in_use",
            `${found.email} already has a password, and no other owner can set it. Create a reset link on the server: relay admin reset.`,
          );
        await audit(tx, { owner, nowMs }, { action: "owner.invited", target: `owner:${found.email}` });
        return { link: await makeInvite(tx, deps, found.id, nowMs) };
      });
    },
  }),
  ownerRoute({
    method: "DELETE",
    path: "/api/owners/:id",
    needs: "manage_server",
    summary: "Removes another owner at once, with their sessions, one-time links and login keys.",
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
