/** The session: the signed-in owner with the apps they can open, a new password, and sign-out. */
import { type Static, Type } from "typebox";
import { servesCookies } from "../../base/config.ts";
import { Refusal } from "../../base/refusal.ts";
import { VERSION } from "../../base/release/version.ts";
import { fields, oneOf, orNull } from "../../base/schema.ts";
import { listApps } from "../../platform/account/app.ts";
import { ENVIRONMENT_NAMES, listEnvironments } from "../../platform/account/environment.ts";
import {
  findOwnerByEmail,
  hashPassword,
  hasSamePassword,
  listOwners,
  setOwnerPassword,
} from "../../platform/account/owner.ts";
import {
  EVERY,
  isMemberOf,
  type Membership,
  PERMISSION_NAMES,
  permissionsIn,
  SERVER_PLACE,
} from "../../platform/account/permission.ts";
import { createSession, findFactorTime, findSession, signOut } from "../../platform/account/session.ts";
import { SERVER_SCOPE, writeAudit } from "../../platform/audit/audit.ts";
import { isProviderSession } from "../../platform/oidc/admitted-identity.ts";
import { findSigninWays, requirePasswordSignin } from "../../platform/oidc/provider.ts";
import type { Reader } from "../../store/port.ts";
import { lacksFactor, requireRecentAuthentication, seenFrom } from "../http/caller.ts";
import {
  clearSessionCookie,
  dashboardOrigin,
  readSessionCookie,
  writeSessionCookie,
} from "../http/cookie.ts";
import { openRoute, ownerRoute } from "../http/route.ts";
import { requirePassword } from "./confirm.ts";

const environmentName = oneOf(ENVIRONMENT_NAMES);
const app = Type.Object({
  id: Type.String(),
  name: Type.String(),
  environments: Type.Array(environmentName),
  may: Type.Record(Type.String(), Type.Array(oneOf(PERMISSION_NAMES)), {
    description: "the permissions by the name of the environment; * is the app itself",
  }),
});

const sessionView = Type.Object({
  owner: orNull(Type.Object({ email: Type.String() })),
  setupNeeded: Type.Boolean(),
  mode: oneOf(["local", "server"]),
  address: orNull(Type.String({ description: "the dashboard's only address, if the server knows it" })),
  cookies: Type.Boolean({
    description: "whether sign-in works: not on the network without a base URL",
  }),
  /** The ways in which members sign in. */
  signin: Type.Object({
    passwords: Type.Boolean(),
    provider: orNull(Type.String({ description: "the name of the OpenID provider" })),
  }),
  /** True if this session began at the OpenID provider, so that a sign-out can end it there too. */
  ofProvider: Type.Boolean(),
  version: orNull(Type.String()),
  apps: Type.Array(app),
  may: Type.Array(oneOf(PERMISSION_NAMES), { description: "the permissions on the server" }),
  needsFactor: Type.Boolean({
    description: "true if the person must add a second factor before anything else",
  }),
});
export type SessionView = Static<typeof sessionView>;

/** Lists the apps and environments that the person may read. */
async function listOpenApps(tx: Reader, memberships: readonly Membership[]) {
  const environments = await listEnvironments(tx, null);
  const apps = (await listApps(tx)).filter(({ id }) => isMemberOf(memberships, id));
  const mayIn = (appId: string, name: string) => [...permissionsIn(memberships, { appId, name })];
  return apps.map(({ id, name }) => {
    const names = environments
      .filter((one) => one.appId === id && mayIn(id, one.name).includes("read"))
      .map((environment) => environment.name);
    const may = Object.fromEntries([EVERY, ...names].map((one) => [one, mayIn(id, one)]));
    return { id, name, environments: names, may };
  });
}

export const sessionRoutes = [
  openRoute({
    method: "GET",
    path: "/api/session",
    summary: "Returns the signed-in owner, with the apps and environments that they can open.",
    answer: sessionView,
    async read(tx, { deps, request, nowMs }) {
      const { mode } = deps.config;
      const signin = await findSigninWays(tx);
      const where = {
        signin,
        mode,
        address: dashboardOrigin(deps.config),
        cookies: servesCookies(deps.config),
      };
      const token = readSessionCookie(deps, request);
      const session = token === null ? null : await findSession(tx, token, nowMs);
      if (session === null) {
        const setupNeeded = mode === "server" && (await listOwners(tx)).length === 0;
        return {
          owner: null,
          setupNeeded,
          ...where,
          ofProvider: false,
          version: null,
          apps: [],
          may: [],
          needsFactor: false,
        };
      }
      const owner = { email: session.ownerEmail };
      if (await lacksFactor(tx, deps, { kind: "owner", session }))
        return {
          owner,
          setupNeeded: false,
          ...where,
          ofProvider: false,
          version: VERSION,
          apps: [],
          may: [],
          needsFactor: true,
        };
      const { memberships } = session;
      const apps = await listOpenApps(tx, memberships);
      const may = [...permissionsIn(memberships, SERVER_PLACE)];
      const ofProvider = await isProviderSession(tx, session.id);
      return {
        owner,
        setupNeeded: false,
        ...where,
        ofProvider,
        version: VERSION,
        apps,
        may,
        needsFactor: false,
      };
    },
  }),
  ownerRoute({
    method: "DELETE",
    path: "/api/session",
    needs: null,
    enrolls: true,
    summary: "Signs out.",
    answer: null,
    async handle({ deps, owner, headers }) {
      await deps.store.write("dashboard", (tx) => signOut(tx, owner.sessionId));
      headers.append("set-cookie", clearSessionCookie(deps));
    },
  }),
  ownerRoute({
    method: "PUT",
    path: "/api/session/password",
    needs: null,
    summary: "Changes the owner's password and ends every other session.",
    body: fields({
      current: Type.String(),
      password: Type.String({ description: "a password of 10 to 256 characters" }),
    }),
    answer: null,
    async handle({ deps, owner, request, source, body, headers, nowMs }) {
      await deps.store.read(requirePasswordSignin);
      const known = await deps.store.read((tx) => findOwnerByEmail(tx, owner.email));
      // A person without a password has no current one to give.
      if (known?.passwordHash == null) await requireRecentAuthentication(deps, request);
      else await requirePassword({ deps, owner, source, nowMs }, body.current, "current");
      const passwordHash = await hashPassword(body.password);
      const session = await deps.store.write("dashboard", async (tx) => {
        const now = await findOwnerByEmail(tx, owner.email);
        if (!hasSamePassword(now, known))
          throw new Refusal("forbidden", "The password changed meanwhile: sign in with the new password.");
        // The new session proved no factor again.
        const proof = { twoFactor: owner.twoFactor, factorAt: await findFactorTime(tx, owner.sessionId) };
        await setOwnerPassword(tx, owner.id, passwordHash, nowMs);
        await writeAudit(tx, {
          environmentId: SERVER_SCOPE,
          nowMs,
          by: `owner:${owner.email}`,
          action: "owner.password_changed",
          target: `owner:${owner.email}`,
        });
        return await createSession(tx, owner.id, nowMs, seenFrom(request, source), proof);
      });
      headers.append("set-cookie", writeSessionCookie(deps, session.token, session.expiresAt));
    },
  }),
];
