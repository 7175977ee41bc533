/** Sign-in with email and password, by a one-time link, and for the first time. Each creates a new session with its cookie. */
import { Type } from "typebox";
import { MAX_EMAIL_CHARS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, oneOf } from "../../base/schema.ts";
import {
  createOwner,
  findOwnerByEmail,
  hashPassword,
  hasSamePassword,
  listOwners,
  passwordQueue,
  setOwnerPassword,
  verifyPassword,
} from "../../platform/account/owner.ts";
import {
  findRefusedLink,
  findSigninLink,
  recordRefusedLink,
  redeemSigninLink,
  rejectEndedLink,
  type SigninLinkKind,
} from "../../platform/account/session.ts";
import { SERVER_SCOPE, writeAudit } from "../../platform/audit/audit.ts";
import { requirePasswordSignin } from "../../platform/oidc/provider.ts";
import { requireSameOrigin } from "../http/cookie.ts";
import type { HttpDeps } from "../http/deps.ts";
import { openRoute } from "../http/route.ts";
import {
  answerSession,
  continueSignin,
  findKnownPlace,
  type SigninCall,
  signinAnswer,
  startSession,
} from "./signin-session.ts";

/** The owner of the local dashboard if none was set up. Local development has no passwords. */
const LOCAL_OWNER = "owner@localhost";

const password = Type.String({ description: "a password of 10 to 256 characters" });
/** The length has a limit, because attempts are counted by email address, and a counter's name must be short. */
const email = Type.String({ maxLength: MAX_EMAIL_CHARS, description: "an email address" });
const token = Type.String({ maxLength: 100, description: "the token of a one-time link" });

/**
 * Returns the owner of an email address and password. The attempt counts before the password is checked, but only after it has a slot among the
 * checks. So a request that is refused as excess does not count.
 */
async function checkPassword(
  { deps, request, source, nowMs }: SigninCall,
  given: { email: string; password: string },
): Promise<NonNullable<Awaited<ReturnType<typeof findOwnerByEmail>>>> {
  const { signinCap } = deps;
  const place = await findKnownPlace({ deps, request, source, nowMs }, given.email);
  using slot = passwordQueue.take(place === null ? "stranger" : "known");
  await signinCap.countAttempt(source, given.email, place);
  const owner = await deps.store.read((tx) => findOwnerByEmail(tx, given.email));
  const right = await verifyPassword(given.password, owner?.passwordHash ?? null, slot);
  if (owner === null || !right) throw rejectPassword(deps, source);
  signinCap.releaseAttempt(source, given.email, place);
  return owner;
}

function rejectPassword({ log }: HttpDeps, source: string): Refusal {
  log.warn("A sign-in attempt failed.", { source });
  return new Refusal(
    "unauthenticated",
    "The email address or the password is wrong. Type them again, or reset the password with relay admin reset.",
  );
}

export const signinRoutes = [
  openRoute({
    method: "POST",
    path: "/api/session",
    summary:
      "Signs a member in with an email address and a password. With a second factor, the answer has a token for POST /api/session/factor.",
    body: fields({ email, password }),
    answer: signinAnswer,
    async handle({ deps, request, source, body, headers, nowMs }) {
      requireSameOrigin(deps.config, request.headers);
      await deps.store.read(requirePasswordSignin);
      const owner = await checkPassword({ deps, request, source, nowMs }, body);
      return answerSession(
        deps,
        headers,
        await deps.store.write("dashboard", async (tx) => {
          // The password may have been changed, or its owner removed, while the check waited for its slot.
          const now = await findOwnerByEmail(tx, owner.email);
          if (!hasSamePassword(now, owner)) throw rejectPassword(deps, source);
          return await continueSignin(tx, owner, "password", { deps, request, source, nowMs });
        }),
      );
    },
  }),
  openRoute({
    method: "POST",
    path: "/api/session/link",
    summary: "Signs in to the local dashboard with a one-time link.",
    body: fields({ token }),
    answer: signinAnswer,
    async handle({ deps, request, source, body, headers, nowMs }) {
      requireSameOrigin(deps.config, request.headers);
      await requireLink(deps, source, body.token, "local", nowMs);
      const started = await deps.store.write("dashboard", async (tx) => {
        await redeemSigninLink(tx, { token: body.token, kind: "local", nowMs });
        const first = (await listOwners(tx))[0];
        const owner = first ?? (await createOwner(tx, { email: LOCAL_OWNER, passwordHash: null, nowMs }));
        return await startSession(
          tx,
          owner,
          { how: "local link", twoFactor: false },
          { deps, request, source, nowMs },
        );
      });
      return answerSession(deps, headers, started);
    },
  }),
  openRoute({
    method: "POST",
    path: "/api/link",
    summary:
      "Returns whether a one-time link still works. It does not use the link, and does not show its owner.",
    body: fields({ kind: oneOf(["setup", "reset", "local"]), token }),
    answer: Type.Object({ live: Type.Boolean() }),
    async handle({ deps, request, source, body, nowMs }) {
      requireSameOrigin(deps.config, request.headers);
      return { live: await isLinkLive(deps, source, body.token, body.kind, nowMs) };
    },
  }),
  openRoute({
    method: "POST",
    path: "/api/setup",
    summary: "Creates the first owner with the one-time setup link, and signs in.",
    body: fields({ token, email, password }),
    answer: signinAnswer,
    status: 201,
    async handle({ deps, request, source, body, headers, nowMs }) {
      requireSameOrigin(deps.config, request.headers);
      await requireLink(deps, source, body.token, "setup", nowMs);
      const passwordHash = await hashPassword(body.password);
      const started = await deps.store.write("dashboard", async (tx) => {
        await redeemSigninLink(tx, { token: body.token, kind: "setup", nowMs });
        const owner = await createOwner(tx, { email: body.email, passwordHash, nowMs });
        return await startSession(
          tx,
          owner,
          { how: "set-up link", twoFactor: false },
          { deps, request, source, nowMs },
        );
      });
      return answerSession(deps, headers, started);
    },
  }),
  openRoute({
    method: "POST",
    path: "/api/session/reset",
    summary:
      "Sets a new password with a one-time reset link, ends every older session, and signs in. A second factor is still needed.",
    body: fields({ token, password }),
    answer: signinAnswer,
    async handle({ deps, request, source, body, headers, nowMs }) {
      requireSameOrigin(deps.config, request.headers);
      await deps.store.read(requirePasswordSignin);
      await requireLink(deps, source, body.token, "reset", nowMs);
      const passwordHash = await hashPassword(body.password);
      const started = await deps.store.write("dashboard", async (tx) => {
        const link = await redeemSigninLink(tx, { token: body.token, kind: "reset", nowMs });
        const owner = (await listOwners(tx)).find(({ id }) => id === link.ownerId);
        if (owner === undefined)
          throw new Refusal(
            "not_found",
            "The owner of this link no longer exists: sign in as another owner.",
          );
        await setOwnerPassword(tx, owner.id, passwordHash, nowMs);
        return await continueSignin(tx, owner, "reset link", { deps, request, source, nowMs });
      });
      return answerSession(deps, headers, started);
    },
  }),
];

/** Checks the link without using it. Only invalid links count, and too many of them are refused. */
async function isLinkLive(
  deps: HttpDeps,
  source: string,
  given: string,
  kind: SigninLinkKind,
  nowMs: number,
): Promise<boolean> {
  const link = await deps.store.read((tx) => findSigninLink(tx, given, nowMs));
  if (link?.kind === kind) return true;
  await deps.signinCap.countInvalidLink(source);
  if (kind === "reset") await auditRefused(deps, given, nowMs);
  return false;
}

/** Audits the use of a member's link after its end, once for each link. A stranger without a real link writes nothing. */
async function auditRefused({ store }: HttpDeps, given: string, nowMs: number): Promise<void> {
  if ((await store.read((tx) => findRefusedLink(tx, given, nowMs))) === null) return;
  await store.write("dashboard", async (tx) => {
    const refused = await findRefusedLink(tx, given, nowMs);
    if (refused === null) return;
    await recordRefusedLink(tx, given, nowMs);
    await writeAudit(tx, {
      environmentId: SERVER_SCOPE,
      nowMs,
      by: "one-time link",
      action: "owner.link_refused",
      target: `owner:${refused.email}`,
      after: { why: refused.why },
    });
  });
}

/** Checks the link before the expensive hash. The transaction uses it later. */
async function requireLink(
  deps: HttpDeps,
  source: string,
  given: string,
  kind: SigninLinkKind,
  nowMs: number,
): Promise<void> {
  if (!(await isLinkLive(deps, source, given, kind, nowMs))) throw rejectEndedLink(kind);
}
