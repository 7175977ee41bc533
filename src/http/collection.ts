/** Collections: the shapes of what the app stores. */
import { Type } from "typebox";
import { fields, json, oneOf } from "../ground/schema.ts";
import {
  collectionView,
  createCollection,
  deleteCollection,
  deleteRecordsOf,
  listCollections,
  requireCollection,
  updateCollection,
  viewCollection,
} from "../records/collection.ts";
import { COLLECTION_KINDS, requireCollectionDefinition } from "../records/collection-definition.ts";
import { turnLoop } from "../store/walk.ts";
import type { HttpDeps } from "./deps.ts";
import { type EnvironmentCall, environmentRoute, listRoute } from "./route.ts";

type CollectionCall = Pick<EnvironmentCall, "environment" | "origin"> & { deps: HttpDeps };

/** Deletes the records in steps, so that a large collection holds nobody up; cut off in the middle, it has fewer records and stands. */
async function emptyCollection({ deps, environment, origin }: CollectionCall, name: string): Promise<number> {
  for (let deleted = 0; ; await turnLoop()) {
    const step = await deps.store.write(origin, (tx) => deleteRecordsOf(tx, environment.id, name));
    deleted += step.deleted;
    if (step.ended) return deleted;
  }
}

export const collectionRoutes = [
  listRoute({
    path: "/collections",
    summary: "Lists collections, newest first.",
    item: collectionView,
    list: (tx, { environmentId }, page) => listCollections(tx, environmentId, page),
  }),
  environmentRoute({
    method: "POST",
    path: "/collections",
    summary: "Makes a collection.",
    body: fields({ name: Type.String(), kind: oneOf(COLLECTION_KINDS), fields: json }),
    answer: Type.Object({ collection: collectionView }),
    status: 201,
    async handle({ deps, environmentId, origin, audit, body, nowMs }) {
      const definition = requireCollectionDefinition(body);
      return await deps.store.write(origin, async (tx) => {
        const collection = viewCollection(await createCollection(tx, environmentId, definition, nowMs));
        const target = `collection:${collection.name}`;
        await audit(tx, { action: "collection.created", target, after: collection });
        return { collection };
      });
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/collections/:name",
    summary: "Shows one collection.",
    answer: Type.Object({ collection: collectionView }),
    read: async (tx, { environmentId, params }) => ({
      collection: viewCollection(await requireCollection(tx, environmentId, params.name)),
    }),
  }),
  environmentRoute({
    method: "PUT",
    path: "/collections/:name",
    summary: "Changes a collection; its kind is fixed while it holds records.",
    body: fields({ kind: oneOf(COLLECTION_KINDS), fields: json, version: Type.Optional(Type.Integer()) }),
    answer: Type.Object({ collection: collectionView }),
    async handle({ deps, environmentId, origin, audit, params, body, nowMs }) {
      const { version = null, ...shape } = body;
      const definition = requireCollectionDefinition({ name: params.name, ...shape });
      return await deps.store.write(origin, async (tx) => {
        const { before, after } = await updateCollection(tx, environmentId, definition, version, nowMs);
        const collection = viewCollection(after);
        if (before.version !== after.version) {
          const shown = { before: viewCollection(before), after: collection };
          await audit(tx, { action: "collection.changed", target: `collection:${after.name}`, ...shown });
        }
        return { collection };
      });
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/collections/:name",
    summary: "Deletes a collection; one that holds records only with force=true, and they go with it.",
    query: fields({ force: Type.Optional(oneOf(["true", "false"])) }),
    answer: null,
    async handle(call) {
      const { deps, environment, origin, audit, params, query } = call;
      const options = { force: query.force === "true" };
      const emptied = options.force ? await emptyCollection(call, params.name) : 0;
      await deps.store.write(origin, async (tx) => {
        const gone = await deleteCollection(tx, environment.id, params.name, options);
        await audit(tx, {
          action: "collection.deleted",
          target: `collection:${params.name}`,
          before: viewCollection(gone.before),
          after: { recordsDeleted: emptied + gone.recordsDeleted },
        });
      });
    },
  }),
];
