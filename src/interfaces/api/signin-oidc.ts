/**
 * Sign-in at the OpenID provider of the server. The dashboard begins a sign-in, the provider sends the browser back to a page of the
 * dashboard, and this page sends the provider's response here. So each step is a request of the dashboard's own page, with its origin and cookie.
 */
import { Type } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import { fields, orNull } from "../../base/schema.ts";
import { findSessionOwner, recordAuthentication, signOut } from "../../platform/account/session.ts";
import { type AuditEntry, SERVER_SCOPE, writeAudit } from "../../platform/audit/audit.ts";
import {
  type Admittance,
  admitIdentity,
  findLinkedMember,
  findProviderSession,
  recordProviderSession,
} from "../../platform/oidc/admitted-identity.ts";
import type { ProvedIdentity } from "../../platform/oidc/oidc-client.ts";
import { openProvider, type Provider, requireProvider } from "../../platform/oidc/provider.ts";
import {
  beginSignin,
  chooseBrowserToken,
  type PendingSignin,
  readReturnPath,
  takeSignin,
} from "../../platform/oidc/signin-state.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { clearSessionCookie, readOidcCookie, requireSameOrigin, writeOidcCookie } from "../http/cookie.ts";
import type { HttpDeps } from "../http/deps.ts";
import { openRoute, ownerRoute } from "../http/route.ts";
import { requireServer } from "./account.ts";
import { answerSession, type SigninCall, signinAnswer, startSession } from "./signin-session.ts";

/** The actor of audit rows about a person who is not a member, or not yet. */
const PROVIDER_ACTOR = "OpenID provider";
const MAX_RESPONSE_CHARS = 2_600;
const MAX_PATH_CHARS = 1_000;

async function auditRefused(
  tx: Writer,
  nowMs: number,
  email: string | null,
  after: { why: string; message: string },
): Promise<void> {
  const target = email === null ? "server" : `owner:${email}`;
  const action = "owner.signin_refused";
  await writeAudit(tx, { environmentId: SERVER_SCOPE, nowMs, by: PROVIDER_ACTOR, action, target, after });
}

/** Takes the sign-in of a response. A response without one is counted and audited, and refused. */
async function requirePending(
  { deps, request, source, nowMs }: SigninCall,
  state: string | null,
): Promise<PendingSignin> {
  const { store, sealer, signinCap } = deps;
  const browserToken = readOidcCookie(deps, request);
  const pending =
    state === null
      ? null
      : await store.write("dashboard", (tx) => takeSignin(tx, sealer, { state, browserToken, nowMs }));
  if (pending !== null) return pending;
  const message =
    "This sign-in was completed before, has expired, or began in another browser: sign in again.";
  await signinCap.countInvalidLink(source);
  await store.write("dashboard", (tx) => auditRefused(tx, nowMs, null, { why: "unknown_state", message }));
  throw new Refusal("oidc_failed", message);
}

/** Checks the response with the provider. A failure is audited. */
async function proveIdentity(
  { deps, nowMs }: SigninCall,
  pending: PendingSignin,
  response: string,
): Promise<ProvedIdentity> {
  try {
    const provider = await deps.store.read((tx) => requireSameProvider(deps, tx, pending));
    return await deps.oidc.proveIdentity(provider, pending, response, nowMs);
  } catch (error) {
    if (error instanceof Refusal) {
      const { code: why, message } = error;
      await deps.store.write("dashboard", (tx) => auditRefused(tx, nowMs, null, { why, message }));
    }
    throw error;
  }
}

/** Returns the provider if it is the one where the sign-in began. */
async function requireSameProvider(deps: HttpDeps, tx: Reader, pending: PendingSignin): Promise<Provider> {
  const provider = await requireProvider(tx, deps.sealer);
  if (provider.issuer === pending.issuer && provider.clientId === pending.clientId) return provider;
  throw new Refusal(
    "oidc_failed",
    "The OpenID provider of this server was changed meanwhile: sign in again.",
  );
}

/** Writes what a sign-in changed about its member. */
async function auditMember(
  tx: Writer,
  nowMs: number,
  provider: Provider,
  found: Admittance,
  email: string | null,
): Promise<void> {
  const row = { environmentId: SERVER_SCOPE, nowMs, by: PROVIDER_ACTOR, target: `owner:${email}` };
  const write = (entry: Pick<AuditEntry, "action" | "before" | "after">) =>
    writeAudit(tx, { ...row, ...entry });
  const how = "owner" in found ? found.how : "refused";
  const { roles } = found;
  if (how === "created") await write({ action: "owner.created", after: { memberships: roles?.after ?? [] } });
  else if (roles !== null)
    await write({
      action: "owner.roles_changed",
      before: { groupMemberships: roles.before },
      after: { groupMemberships: roles.after },
    });
  if (how === "created" || how === "linked")
    await write({ action: "owner.linked", after: { issuer: provider.issuer } });
}

/** Admits the identity and starts a session, or confirms the one that asked. Returns the refusal if it was audited. */
async function enter(call: SigninCall, pending: PendingSignin, proved: ProvedIdentity) {
  const { deps, nowMs } = call;
  return await deps.store.write("dashboard", async (tx) => {
    const provider = await requireSameProvider(deps, tx, pending);
    const { sessionId: confirmed } = pending;
    if (confirmed !== null && !(await isPersonOf(tx, provider, confirmed, proved.identity.subject, nowMs))) {
      const message = `You signed in at ${provider.name} as another person than here, or your session has ended: sign in again.`;
      await auditRefused(tx, nowMs, null, { why: "another_person", message });
      return new Refusal("oidc_refused", message);
    }
    const found = await admitIdentity(tx, provider, proved.identity, nowMs);
    const email = "owner" in found ? found.owner.email : found.refused.email;
    await auditMember(tx, nowMs, provider, found, email);
    if (!("owner" in found)) {
      const { why, message } = found.refused;
      await auditRefused(tx, nowMs, email, { why, message });
      return new Refusal("oidc_refused", message);
    }
    if (confirmed !== null) {
      await recordAuthentication(tx, confirmed, { nowMs, withFactor: true });
      const who = `owner:${found.owner.email}`;
      const row = { environmentId: SERVER_SCOPE, nowMs, by: who, target: who, after: { method: "oidc" } };
      await writeAudit(tx, { ...row, action: "owner.confirmed" });
      return { owner: found.owner, session: null };
    }
    // The provider is responsible for the second factor.
    const started = await startSession(tx, found.owner, { how: "OpenID Connect", twoFactor: true }, call);
    const { issuer } = provider;
    const sessionId = started.session.id;
    await recordProviderSession(tx, deps.sealer, { sessionId, issuer, idToken: proved.idToken });
    return started;
  });
}

/** Reports whether the identity is of the person of the session. */
async function isPersonOf(
  tx: Reader,
  provider: Provider,
  sessionId: string,
  subject: string,
  nowMs: number,
): Promise<boolean> {
  const ownerId = await findSessionOwner(tx, sessionId, nowMs);
  return ownerId !== null && ownerId === (await findLinkedMember(tx, provider, subject));
}

const returnTo = Type.Optional(
  Type.String({
    maxLength: MAX_PATH_CHARS,
    description: "the path of the dashboard to open afterwards; / if it is absent",
  }),
);

export const oidcSigninRoutes = [
  openRoute({
    method: "POST",
    path: "/api/session/oidc/start",
    summary:
      "Begins a sign-in at the OpenID provider. It returns the provider's address for the browser, and sets a cookie for ten minutes.",
    body: fields({ returnTo }),
    answer: Type.Object({ url: Type.String() }),
    async handle({ deps, request, source, body, headers, nowMs }) {
      requireSameOrigin(deps.config, request.headers);
      requireServer(deps);
      await deps.signinCap.countOidcSignin(source);
      const path = readReturnPath(body.returnTo ?? "/");
      return { url: await beginAtProvider({ deps, request, source, nowMs }, headers, path, null) };
    },
  }),
  ownerRoute({
    method: "POST",
    path: "/api/session/confirm/oidc",
    needs: null,
    summary:
      "Begins a confirmation at the OpenID provider, where the person signs in again. It ends as a sign-in does, and confirms this session.",
    body: fields({ returnTo }),
    answer: Type.Object({ url: Type.String() }),
    async handle({ deps, request, source, owner, body, headers, nowMs }) {
      await deps.signinCap.countOidcSignin(source);
      const path = readReturnPath(body.returnTo ?? "/");
      const call = { deps, request, source, nowMs };
      return { url: await beginAtProvider(call, headers, path, owner.sessionId) };
    },
  }),
  openRoute({
    method: "POST",
    path: "/api/session/oidc",
    summary:
      "Completes a sign-in with the response of the OpenID provider. The response works once, in the browser that began the sign-in.",
    body: fields({
      response: Type.String({
        maxLength: MAX_RESPONSE_CHARS,
        description: "the query that the provider appended to the redirect address",
      }),
    }),
    answer: Type.Object({ ...signinAnswer.properties, returnTo: Type.String() }),
    async handle({ deps, request, source, body, headers, nowMs }) {
      requireSameOrigin(deps.config, request.headers);
      requireServer(deps);
      const call = { deps, request, source, nowMs };
      const pending = await requirePending(call, new URLSearchParams(body.response).get("state"));
      const proved = await proveIdentity(call, pending, body.response);
      const started = await enter(call, pending, proved);
      if (started instanceof Refusal) throw started;
      const { owner, session } = started;
      const answer =
        session === null
          ? { owner: { email: owner.email } }
          : answerSession(deps, headers, { owner, session });
      return { ...answer, returnTo: pending.returnTo };
    },
  }),
  ownerRoute({
    method: "POST",
    path: "/api/session/oidc/end",
    needs: null,
    summary:
      "Signs out, and returns the address that ends the session at the OpenID provider too. Null: the session did not begin there, or the provider has none.",
    answer: Type.Object({ url: orNull(Type.String()) }),
    async handle({ deps, owner, headers }) {
      const { store, sealer, oidc, log } = deps;
      const { provider, session } = await store.read(async (tx) => ({
        provider: await openProvider(tx, sealer),
        session: await findProviderSession(tx, sealer, owner.sessionId),
      }));
      await store.write("dashboard", (tx) => signOut(tx, owner.sessionId));
      headers.append("set-cookie", clearSessionCookie(deps));
      if (provider === null || session?.issuer !== provider.issuer) return { url: null };
      try {
        return { url: await oidc.makeSignOutUrl(provider, session.idToken) };
      } catch (error) {
        // The session here has ended, whether or not the provider can be reached.
        log.warn("The sign-out address of the OpenID provider is not known.", { error });
        return { url: null };
      }
    },
  }),
];

/** Stores a sign-in of this browser and sets its cookie. Returns the address at the provider. `sessionId` is the session to confirm, or null. */
async function beginAtProvider(
  { deps, request, nowMs }: SigninCall,
  headers: Headers,
  returnTo: string,
  sessionId: string | null,
): Promise<string> {
  const { store, sealer, oidc } = deps;
  const provider = await store.read((tx) => requireProvider(tx, deps.sealer));
  const browserToken = chooseBrowserToken(readOidcCookie(deps, request));
  const secrets = await store.write("dashboard", (tx) =>
    beginSignin(tx, sealer, { provider, browserToken, sessionId, returnTo, nowMs }),
  );
  const url = await oidc.makeSigninUrl(provider, secrets, sessionId !== null);
  headers.append("set-cookie", writeOidcCookie(deps, browserToken));
  return url;
}
