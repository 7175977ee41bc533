/** Apps: the owners' list, and making one. */
import { Type } from "typebox";
import { createApp, pageApps } from "../account/app.ts";
import { ENVIRONMENT_NAMES } from "../account/environment.ts";
import { toIso } from "../ground/clock.ts";
import { readPageRequest } from "../ground/page.ts";
import { Refusal } from "../ground/refusal.ts";
import { fields, oneOf, pageOf, pageQuery, time } from "../ground/schema.ts";
import { WHOLE_SERVER, writeAudit } from "../watch/audit.ts";
import { ownerRoute } from "./route.ts";

const app = Type.Object({ id: Type.String(), name: Type.String(), createdAt: time });

export const appRoutes = [
  ownerRoute({
    method: "GET",
    path: "/api/apps",
    summary: "Lists the apps of this server, newest first.",
    query: fields(pageQuery),
    answer: pageOf(app),
    async handle({ deps, query }) {
      const page = readPageRequest(query);
      const { items, next } = await deps.store.read((tx) => pageApps(tx, page));
      return { items: items.map((row) => ({ ...row, createdAt: toIso(row.createdAt) })), next };
    },
  }),
  ownerRoute({
    method: "POST",
    path: "/api/apps",
    summary: "Makes an app with its development and production environments.",
    body: fields({ id: Type.Optional(Type.String()), name: Type.String() }),
    answer: Type.Object({ app, environments: Type.Array(oneOf(ENVIRONMENT_NAMES)) }),
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
          atMs: nowMs,
          actor: `owner:${owner.email}`,
          action: "app.created",
          target: `app:${created.app.id}`,
          after: { name: created.app.name },
        });
        return created;
      });
      return {
        app: { ...made.app, createdAt: toIso(made.app.createdAt) },
        environments: made.environments.map(({ name }) => name),
      };
    },
  }),
];
