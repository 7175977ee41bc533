/**
 * Sign-in of a command through the dashboard, similar to RFC 8628. The command begins a login and polls. An owner finds it by the code that the
 * command shows, and allows or denies it. The resulting key belongs to the owner, is for one environment and expires. Its token is returned once.
 */
import { Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { DAY_MS, LOGIN_POLL_SECONDS, MAX_LOGIN_KEY_DAYS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, oneOf, time } from "../../base/schema.ts";
import { mintApiKey, revokeApiKey } from "../../platform/account/api-key.ts";
import {
  ENVIRONMENT_NAMES,
  findEnvironmentById,
  rejectUnknownEnvironment,
  requireEnvironment,
} from "../../platform/account/environment.ts";
import {
  answerLogin,
  beginLogin,
  type Login,
  loginView,
  markLoginUsed,
  requireApprovedLogin,
  requireWaitingLogin,
  viewLogin,
} from "../../platform/account/login.ts";
import { findOwnerById } from "../../platform/account/owner.ts";
import { SERVER_SCOPE, writeAudit } from "../../platform/audit/audit.ts";
import type { Writer } from "../../store/port.ts";
import type { Owner } from "../http/admission.ts";
import { requireCookieHome } from "../http/cookie.ts";
import type { HttpDeps } from "../http/deps.ts";
import { openRoute, ownerRoute } from "../http/route.ts";

const MAX_CODE_CHARS = 100;
const code = Type.String({ maxLength: MAX_CODE_CHARS, description: "the code that the command shows" });
const name = (what: string) => Type.String({ maxLength: 200, description: what });

export const loginRoutes = [
  openRoute({
    method: "POST",
    path: "/api/login",
    summary:
      "Starts the login of a command. It returns the code to poll with, and the code that an owner types in the dashboard.",
    body: fields({
      machine: name("the name of the machine"),
      account: Type.Optional(name("the user of the machine")),
      days: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: MAX_LOGIN_KEY_DAYS,
          description: `the life of the key in days, an integer from 1 to ${MAX_LOGIN_KEY_DAYS}`,
        }),
      ),
    }),
    answer: Type.Object({
      deviceCode: Type.String(),
      userCode: Type.String(),
      verificationUri: Type.String(),
      expiresAt: time,
      interval: Type.Integer({ description: "seconds between two polls" }),
    }),
    async handle({ deps, body, source, nowMs }) {
      // An owner needs cookies to sign in and allow the login.
      requireCookieHome(deps.config);
      await deps.loginCap.countLogin(source);
      const { machine, account = "", days } = body;
      const digest = (text: string): Uint8Array => deps.sealer.digest(text);
      const { login, ...codes } = await deps.store.write("app", (tx) =>
        beginLogin(tx, { machine, account, source, days, digest, nowMs }),
      );
      const { expiresAt } = viewLogin(login);
      return {
        ...codes,
        verificationUri: `${deps.baseUrl()}/login`,
        expiresAt,
        interval: LOGIN_POLL_SECONDS,
      };
    },
  }),
  openRoute({
    method: "POST",
    path: "/api/login/token",
    summary:
      "Returns the key of an approved login, once. Until then, it answers authorization_pending, slow_down, access_denied or expired_token.",
    body: fields({
      deviceCode: Type.String({ maxLength: MAX_CODE_CHARS, description: "the device code of the login" }),
    }),
    answer: Type.Object({
      token: Type.String(),
      key: Type.Object({ id: Type.String(), name: Type.String() }),
      app: Type.String(),
      environment: oneOf(ENVIRONMENT_NAMES),
      owner: Type.String(),
      expiresAt: time,
    }),
    async handle({ deps, body, nowMs }) {
      const { deviceCode } = body;
      await deps.store
        .read((tx) => requireApprovedLogin(tx, deviceCode, nowMs))
        .catch((error: unknown) => {
          if (error instanceof Refusal && error.code === "authorization_pending")
            deps.loginCap.countPoll(deviceCode);
          throw error;
        });
      const done = await deps.store.write("app", async (tx) => {
        const login = await requireApprovedLogin(tx, deviceCode, nowMs);
        return login.state === "used"
          ? await endTwiceFetched(tx, login, nowMs)
          : await makeKey(tx, login, nowMs);
      });
      if (done !== null) return done;
      throw new Refusal(
        "login_used",
        "The key of this login was fetched before. A second fetch may come from a stranger, so Relay revoked the key. Run relay login again.",
      );
    },
  }),
  ownerRoute({
    method: "POST",
    path: "/api/login/look",
    needs: null,
    summary: "Shows an owner the waiting login with a code: which machine asks, from where and since when.",
    body: fields({ code }),
    answer: Type.Object({
      login: loginView,
      here: Type.Boolean({ description: "whether the login began at the address of this request" }),
    }),
    async handle({ deps, body, owner, source, nowMs }) {
      const login = await findWaiting(deps, owner, body.code, nowMs);
      return { login: viewLogin(login), here: login.source === source };
    },
  }),
  ownerRoute({
    method: "POST",
    path: "/api/login/approve",
    needs: null,
    sensitive: true,
    summary:
      "Approves the login with a code. The command that started it then gets a key of this environment.",
    body: fields({ code, app: Type.String(), environment: Type.String() }),
    answer: Type.Object({ login: loginView }),
    async handle({ deps, body, owner, nowMs }) {
      await findWaiting(deps, owner, body.code, nowMs);
      const login = await deps.store.write("dashboard", async (tx) => {
        const one = await requireWaitingLogin(tx, { code: body.code, digest: digestOf(deps), nowMs });
        const environment = await requireEnvironment(tx, body.app, body.environment);
        if (!owner.permissionsIn(environment).has("read")) throw rejectUnknownEnvironment();
        const environmentId = environment.id;
        await answerLogin(tx, one, { ownerId: owner.id, environmentId });
        await writeAudit(tx, {
          environmentId,
          nowMs,
          by: `owner:${owner.email}`,
          action: "login.approved",
          target: `login:${one.id}`,
          after: auditedLogin(one),
        });
        return one;
      });
      return { login: viewLogin(login) };
    },
  }),
  ownerRoute({
    method: "POST",
    path: "/api/login/deny",
    needs: null,
    summary: "Denies the login with a code.",
    body: fields({ code }),
    answer: null,
    async handle({ deps, body, owner, nowMs }) {
      await findWaiting(deps, owner, body.code, nowMs);
      await deps.store.write("dashboard", async (tx) => {
        const login = await requireWaitingLogin(tx, { code: body.code, digest: digestOf(deps), nowMs });
        await answerLogin(tx, login, { ownerId: owner.id, environmentId: null });
        await writeAudit(tx, {
          environmentId: SERVER_SCOPE,
          nowMs,
          by: `owner:${owner.email}`,
          action: "login.denied",
          target: `login:${login.id}`,
          after: auditedLogin(login),
        });
      });
    },
  }),
];

function digestOf(deps: HttpDeps): (text: string) => Uint8Array {
  return (text) => deps.sealer.digest(text);
}

/** Finds a waiting login by its code. An unknown code counts as a guess. */
async function findWaiting(deps: HttpDeps, owner: Owner, given: string, nowMs: number): Promise<Login> {
  await deps.loginCap.countTry(owner.id);
  try {
    const login = await deps.store.read((tx) =>
      requireWaitingLogin(tx, { code: given, digest: digestOf(deps), nowMs }),
    );
    deps.loginCap.releaseTry(owner.id);
    return login;
  } catch (error) {
    if (!(error instanceof Refusal && error.code === "not_found")) deps.loginCap.releaseTry(owner.id);
    throw error;
  }
}

function auditedLogin({ machine, account, source, days }: Login) {
  return { machine, account, source, days };
}

async function makeKey(tx: Writer, login: Login, nowMs: number) {
  const environment = await findEnvironmentById(tx, login.environmentId ?? 0);
  const owner = await findOwnerById(tx, login.ownerId ?? "");
  if (environment === null || owner === null)
    throw new Refusal(
      "access_denied",
      "The owner or the environment of this login no longer exists: run relay login again.",
    );
  const { machine, account } = login;
  const expiresAt = nowMs + login.days * DAY_MS;
  const { key, token } = await mintApiKey(tx, {
    environment,
    kind: "secret",
    name: `relay login on ${machine}${account === "" ? "" : ` by ${account}`}`,
    login: { owner, expiresAt },
    nowMs,
  });
  await markLoginUsed(tx, login, key.id);
  await writeAudit(tx, {
    environmentId: environment.id,
    nowMs,
    by: `owner:${owner.email}`,
    action: "key.created",
    target: `key:${key.id}`,
    after: {
      kind: key.kind,
      name: key.name,
      hint: key.hint,
      origins: key.origins,
      expiresAt,
      login: login.id,
    },
  });
  const { id, name } = key;
  return {
    token,
    key: { id, name },
    app: environment.appId,
    environment: environment.name,
    owner: owner.email,
    expiresAt: toIso(expiresAt),
  };
}

/** Revokes a key that is fetched a second time. The caller either lost the first response or is a different caller, so the key is not safe. */
async function endTwiceFetched(tx: Writer, login: Login, nowMs: number): Promise<null> {
  const [environmentId, keyId] = [login.environmentId ?? 0, login.keyId ?? ""];
  try {
    const key = await revokeApiKey(tx, environmentId, keyId, nowMs);
    await writeAudit(tx, {
      environmentId,
      nowMs,
      by: "relay login",
      action: "key.revoked",
      target: `key:${key.id}`,
      before: { kind: key.kind, name: key.name, hint: key.hint, why: "fetched twice" },
    });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
  return null;
}
