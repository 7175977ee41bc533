/** Deletion of an app by an owner. The owner first sees what is deleted with it, and then types the app's id to confirm. */
import { Type } from "typebox";
import { fields } from "../../base/schema.ts";
import { appContentsView, countApp, deleteApp } from "../../engine/maintenance/app-removal.ts";
import { ownerRoute } from "../http/route.ts";

export const appDeletionRoutes = [
  ownerRoute({
    method: "GET",
    path: "/api/apps/:appId/contents",
    needs: "manage_server",
    summary: "Counts what a deletion of the app would delete, and lists what prevents it.",
    answer: Type.Object({ contents: appContentsView }),
    handle: async ({ deps, params }) => ({ contents: await countApp(deps.store, params.appId) }),
  }),
  ownerRoute({
    method: "DELETE",
    path: "/api/apps/:appId",
    needs: "manage_server",
    summary:
      "Deletes the app with all its data. If production has events, force is required. The response counts what was deleted.",
    body: fields({
      confirm: Type.String({ description: "the app's id" }),
      force: Type.Optional(Type.Boolean()),
    }),
    answer: Type.Object({ deleted: appContentsView }),
    async handle({ deps, owner, params: { appId }, body: { confirm, force = false }, nowMs }) {
      const contents = await countApp(deps.store, appId);
      const by = `owner:${owner.email}`;
      await deps.store.write("dashboard", (tx) =>
        deleteApp(tx, { appId, confirm, force, contents, by, nowMs }),
      );
      return { deleted: contents };
    },
  }),
];
