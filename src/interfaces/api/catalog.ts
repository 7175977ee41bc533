/** The complete catalog in the form of catalog.json, with its version: read and saved as one. */
import { Type } from "typebox";
import type { JsonObject } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, savedFile, warningView } from "../../base/schema.ts";
import { showCatalog } from "../../operator/sync/environment-files.ts";
import { saveCatalog } from "../../operator/sync/plan-apply.ts";
import { environmentRoute } from "../http/route.ts";
import { relayContext } from "./relay-context.ts";
import { readSent } from "./sync.ts";

const catalogView = {
  catalog: Type.Unsafe<JsonObject>({ type: "object", description: "in the form of catalog.json" }),
  version: Type.String({ description: "names this content; every save of an item changes it" }),
};

export const catalogRoutes = [
  environmentRoute({
    method: "GET",
    path: "/catalog",
    needs: "read",
    summary:
      "Shows the complete catalog in the form of catalog.json: collections, access, products and plans.",
    answer: Type.Object(catalogView),
    read: (tx, { environmentId }) => showCatalog(tx, environmentId),
  }),
  environmentRoute({
    method: "PUT",
    path: "/catalog",
    needs: "edit_definitions",
    saves: "catalog",
    summary:
      "Saves the items of a catalog in one transaction, except in production. version must be the version that you read. Items that you leave out stay.",
    body: fields({
      catalog: Type.Unsafe<JsonObject>({
        type: "object",
        description: "an object with the items to save, in the form of catalog.json",
      }),
      version: Type.String({ maxLength: 100, description: "the version of the catalog that you read" }),
    }),
    answer: Type.Object({
      ...catalogView,
      changes: Type.Integer({ description: "how many items were created or changed" }),
      warnings: Type.Array(warningView),
      ...savedFile,
    }),
    async handle(call) {
      const { deps, environment, origin, body, nowMs } = call;
      if (environment.name === "production")
        throw new Refusal(
          "approval_needed",
          "Production accepts no complete catalog without an owner's approval: save it in development, then run relay promote.",
        );
      const sent = { relays: [], catalog: body.catalog };
      const { files, warnings } = await readSent(sent, false, nowMs);
      const cap = deps.syncCap.makeCap(environment, nowMs);
      return await deps.store.write(origin, async (tx) => {
        const saved = await saveCatalog(tx, relayContext(call), files, body.version, cap);
        const shown = await showCatalog(tx, environment.id);
        return { ...shown, changes: saved.changes, warnings: [...warnings, ...saved.warnings] };
      });
    },
  }),
];
