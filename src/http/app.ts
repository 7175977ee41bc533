/**
 * Apps: the owners' list, and making one; and an environment's API keys: list, mint (the token is shown once, here), revoke. A key may read
 * the list alone: one that mints outlives its own revocation, and one that revokes shuts the owner's servers out.
 */
import { Type } from "typebox";
import {
  type Actor,
  API_KEY_KINDS,
  type ApiKey,
  keyView,
  listApiKeys,
  mintApiKey,
  revokeApiKey,
  viewKey,
  warnOfOrigins,
} from "../account/api-key.ts";
import { appView, createApp, pageApps, viewApp } from "../account/app.ts";
import { ENVIRONMENT_NAMES } from "../account/environment.ts";
import { readPageRequest } from "../ground/page.ts";
import { Refusal } from "../ground/refusal.ts";
import { fields, oneOf, pageOf, pageQuery, warningView } from "../ground/schema.ts";
import { WHOLE_SERVER, writeAudit } from "../watch/audit.ts";
import { requireOwnerActor } from "./admission.ts";
import { environmentRoute, listRoute, ownerRoute } from "./route.ts";

/** What the audit keeps of a key: never its token or hash. */
function auditedKey({ kind, name, hint, origins }: ApiKey) {
  return { kind, name, hint, origins };
}

function requireKeyOwner(actor: Actor): void {
  requireOwnerActor(actor, "Keys are minted and revoked by owners and on the command line alone");
}

export const appRoutes = [
  ownerRoute({
    method: "GET",
    path: "/api/apps",
    summary: "Lists the apps of this server, newest first.",
    query: fields(pageQuery),
    answer: pageOf(appView),
    read: (tx, { query }) => pageApps(tx, readPageRequest(query)),
  }),
  ownerRoute({
    method: "POST",
    path: "/api/apps",
    summary: "Makes an app with its development and production environments.",
    body: fields({ id: Type.Optional(Type.String()), name: Type.String() }),
    answer: Type.Object({ app: appView, environments: Type.Array(oneOf(ENVIRONMENT_NAMES)) }),
    status: 201,
    async handle({ deps, owner, body, nowMs }) {
      if (deps.config.mode === "local") {
        throw new Refusal(
          "forbidden",
          "Local development runs one app: start a server with relay serve for more.",
        );
      }
      const made = await deps.store.write("dashboard", async (tx) => {
        const created = await createApp(tx, { ...body, environments: ["development", "production"], nowMs });
        await writeAudit(tx, {
          environmentId: WHOLE_SERVER,
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
  listRoute({
    path: "/keys",
    summary: "Lists the environment's keys, newest first, revoked ones too.",
    item: keyView,
    async list(tx, { environmentId }, page) {
      const { items, next } = await listApiKeys(tx, environmentId, page);
      return { items: items.map(viewKey), next };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/keys",
    summary:
      "Mints a key, a secret one unless told, for a signed-in owner alone; its token is in this answer and never shown again.",
    body: fields({
      kind: Type.Optional(oneOf(API_KEY_KINDS)),
      name: Type.String(),
      origins: Type.Optional(Type.Array(Type.String(), { description: "a list of https origins" })),
    }),
    answer: Type.Object({ key: keyView, token: Type.String(), warnings: Type.Array(warningView) }),
    status: 201,
    async handle({ deps, environment, actor, origin, audit, body, nowMs }) {
      requireKeyOwner(actor);
      const { kind = "secret" } = body;
      return await deps.store.write(origin, async (tx) => {
        const { key, token } = await mintApiKey(tx, { ...body, kind, environment, nowMs });
        await audit(tx, { action: "key.created", target: `key:${key.id}`, after: auditedKey(key) });
        return { key: viewKey(key), token, warnings: warnOfOrigins(key.origins) };
      });
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/keys/:id",
    summary: "Revokes a key at once and for good, for a signed-in owner alone.",
    answer: null,
    async handle({ deps, environmentId, actor, origin, audit, params, nowMs }) {
      requireKeyOwner(actor);
      await deps.store.write(origin, async (tx) => {
        const revoked = await revokeApiKey(tx, environmentId, params.id, nowMs);
        await audit(tx, { action: "key.revoked", target: `key:${params.id}`, before: auditedKey(revoked) });
      });
    },
  }),
];
