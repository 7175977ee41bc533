/**
 * Apps, which owners list and create, and the API keys of an environment. A key's token is shown once, when it is created. A key can only list
 * keys. If it could create one, that key would outlive its own revocation. If it could revoke, it could lock the owner's servers out.
 */
import { Type } from "typebox";
import { toIso, toIsoOrNull } from "../../base/clock.ts";
import { readPageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import {
  fields,
  oneOf,
  pageOf,
  pageQuery,
  textOrNull,
  time,
  timeOrNull,
  warningView,
} from "../../base/schema.ts";
import {
  API_KEY_KINDS,
  type ApiKey,
  formatActor,
  keyView,
  listApiKeys,
  mintApiKey,
  type PresentedKey,
  revokeApiKey,
  viewKey,
} from "../../platform/account/api-key.ts";
import { appView, createApp, pageApps, renameApp, viewApp } from "../../platform/account/app.ts";
import { ENVIRONMENT_NAMES } from "../../platform/account/environment.ts";
import { listOriginWarnings } from "../../platform/account/key-origin.ts";
import { KEY_PERMISSIONS, PERMISSION_NAMES, type Permission } from "../../platform/account/permission.ts";
import { SERVER_SCOPE, writeAudit } from "../../platform/audit/audit.ts";
import { identifyKey, readBearer } from "../http/caller.ts";
import type { HttpDeps } from "../http/deps.ts";
import { type EnvironmentCall, environmentRoute, listRoute, openRoute, ownerRoute } from "../http/route.ts";

/** Returns the fields of a key for the audit, which never has its token or hash. */
function auditedKey({ kind, name, hint, origins, scopes }: ApiKey) {
  return { kind, name, hint, origins, ...(scopes === null ? {} : { scopes }) };
}

/** Returns the scopes of a new secret key, which never has more permissions than its creator. Null: what every secret key may do. */
function chooseScopes(
  { may: mayHere, mayIn }: Pick<EnvironmentCall, "may" | "mayIn">,
  wanted: readonly Permission[] | undefined,
): Permission[] | null {
  // The key reads production, and requests changes of it.
  const may = (name: Permission) =>
    mayHere(name) && (name !== "request_changes" || mayIn("production", name));
  const most = [...KEY_PERMISSIONS].filter(may);
  // A key without scopes reads production with its payloads.
  if (wanted === undefined)
    return [...KEY_PERMISSIONS].every((name) => may(name) && mayIn("production", name)) ? null : most;
  const missing = wanted.find((name) => KEY_PERMISSIONS.has(name) && !may(name));
  if (missing === undefined) return [...wanted];
  throw new Refusal(
    "forbidden",
    `scopes has ${missing}, which you do not have in this environment: leave it out, or ask an owner to create the key.`,
  );
}

async function requireSecretKey(deps: HttpDeps, request: Request): Promise<PresentedKey> {
  const { key } = await identifyKey(deps, request, readBearer(request));
  if (key.kind === "secret") return key;
  throw new Refusal("forbidden", "An app key works only on the client routes: use a secret key.");
}

export const appRoutes = [
  ownerRoute({
    method: "GET",
    path: "/api/apps",
    needs: null,
    summary: "Lists the apps of the signed-in member, newest first.",
    query: fields(pageQuery),
    answer: pageOf(appView),
    read: (tx, { owner, query }) => pageApps(tx, readPageRequest(query), owner.id),
  }),
  ownerRoute({
    method: "POST",
    path: "/api/apps",
    needs: "manage_server",
    summary: "Creates an app with its development and production environments.",
    body: fields({ id: Type.Optional(Type.String()), name: Type.String() }),
    answer: Type.Object({ app: appView, environments: Type.Array(oneOf(ENVIRONMENT_NAMES)) }),
    status: 201,
    async handle({ deps, owner, body, nowMs }) {
      if (deps.config.mode === "local") {
        throw new Refusal(
          "forbidden",
          "Local development has one app: for more apps, start a server with relay serve.",
        );
      }
      const made = await deps.store.write("dashboard", async (tx) => {
        const created = await createApp(tx, { ...body, environments: ["development", "production"], nowMs });
        await writeAudit(tx, {
          environmentId: SERVER_SCOPE,
          nowMs,
          by: `owner:${owner.email}`,
          action: "app.created",
          target: `app:${created.app.id}`,
          after: { name: created.app.name },
        });
        return created;
      });
      return {
        app: viewApp(made.app),
        environments: made.environments.map(({ name }) => name),
      };
    },
  }),
  ownerRoute({
    method: "PATCH",
    path: "/api/apps/:appId",
    needs: "manage_server",
    summary: "Renames an app. The id, which is part of every receiver URL, stays.",
    body: fields({ name: Type.String() }),
    answer: Type.Object({ app: appView }),
    async write(tx, { owner, params, body, nowMs }) {
      const { before, after } = await renameApp(tx, params.appId, body.name);
      if (before.name !== after.name)
        await writeAudit(tx, {
          environmentId: SERVER_SCOPE,
          nowMs,
          by: `owner:${owner.email}`,
          action: "app.renamed",
          target: `app:${after.id}`,
          before: { name: before.name },
          after: { name: after.name },
        });
      return { app: viewApp(after) };
    },
  }),
  openRoute({
    method: "GET",
    path: "/api/key",
    summary: "Shows the app and environment of the request's secret key, and the login that created it.",
    answer: Type.Object({
      app: Type.String(),
      environment: oneOf(ENVIRONMENT_NAMES),
      key: Type.Object({ id: Type.String(), name: Type.String() }),
      owner: textOrNull,
      createdAt: time,
      expiresAt: timeOrNull,
    }),
    async handle({ deps, request }) {
      const { id, name, appId, environmentName, owner, ...rest } = await requireSecretKey(deps, request);
      const times = { createdAt: toIso(rest.createdAt), expiresAt: toIsoOrNull(rest.expiresAt) };
      return { app: appId, environment: environmentName, key: { id, name }, owner, ...times };
    },
  }),
  openRoute({
    method: "DELETE",
    path: "/api/key",
    summary: "Revokes the key of the request itself if a login created it. relay logout does this.",
    answer: null,
    async handle({ deps, request, nowMs }) {
      const { id, environmentId, owner } = await requireSecretKey(deps, request);
      if (owner === null)
        throw new Refusal(
          "forbidden",
          "No login created this key. Revoke it in the dashboard, under Settings, Keys, or with relay keys revoke on the server.",
        );
      await deps.store.write("app", async (tx) => {
        const revoked = await revokeApiKey(tx, environmentId, id, nowMs);
        const by = formatActor({ kind: "key", id, owner });
        const row = { environmentId, nowMs, by, action: "key.revoked" as const, target: `key:${id}` };
        await writeAudit(tx, { ...row, before: auditedKey(revoked) });
      });
    },
  }),
  listRoute({
    path: "/keys",
    needs: "read",
    summary: "Lists the environment's keys, newest first, including revoked keys.",
    item: keyView,
    async list(tx, { environmentId }, page) {
      const { items, next } = await listApiKeys(tx, environmentId, page);
      return { items: items.map(viewKey), next };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/keys",
    needs: "manage_keys",
    summary:
      "Creates a key, by default a secret key. A key cannot do this. Only this response contains the token.",
    body: fields({
      kind: Type.Optional(oneOf(API_KEY_KINDS)),
      name: Type.String(),
      origins: Type.Optional(Type.Array(Type.String(), { description: "a list of https origins" })),
      scopes: Type.Optional(
        Type.Array(oneOf(PERMISSION_NAMES), {
          minItems: 1,
          maxItems: PERMISSION_NAMES.length,
          description: "the permissions of a secret key; without it, all that a key of yours can have",
        }),
      ),
    }),
    answer: Type.Object({ key: keyView, token: Type.String(), warnings: Type.Array(warningView) }),
    status: 201,
    async handle(call) {
      const { deps, environment, origin, audit, body, nowMs } = call;
      const { kind = "secret" } = body;
      const scopes = kind === "secret" || body.scopes !== undefined ? chooseScopes(call, body.scopes) : null;
      return await deps.store.write(origin, async (tx) => {
        const { key, token } = await mintApiKey(tx, { ...body, scopes, kind, environment, nowMs });
        await audit(tx, { action: "key.created", target: `key:${key.id}`, after: auditedKey(key) });
        return { key: viewKey(key), token, warnings: listOriginWarnings(key.origins) };
      });
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/keys/:id",
    needs: "manage_keys",
    summary: "Revokes a key at once and permanently. A key cannot do this.",
    answer: null,
    async handle({ deps, environmentId, origin, audit, params, nowMs }) {
      await deps.store.write(origin, async (tx) => {
        const revoked = await revokeApiKey(tx, environmentId, params.id, nowMs);
        await audit(tx, { action: "key.revoked", target: `key:${params.id}`, before: auditedKey(revoked) });
      });
    },
  }),
];
