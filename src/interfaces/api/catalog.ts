/** The complete catalog in the form of catalog.json, with its version. */
import { Type } from "typebox";
import type { JsonObject } from "../../base/json.ts";
import { showCatalog } from "../../operator/sync/environment-files.ts";
import { environmentRoute } from "../http/route.ts";

const catalogView = Type.Object({
  catalog: Type.Unsafe<JsonObject>({ type: "object", description: "in the form of catalog.json" }),
  version: Type.String({ description: "names this content; every save of an item changes it" }),
});

export const catalogRoutes = [
  environmentRoute({
    method: "GET",
    path: "/catalog",
    summary:
      "Shows the complete catalog in the form of catalog.json: collections, access, products and plans.",
    answer: catalogView,
    read: (tx, { environmentId }) => showCatalog(tx, environmentId),
  }),
];
