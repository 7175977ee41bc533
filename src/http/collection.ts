/** Collections: the shapes of what the app stores. */
import { Type } from "typebox";
import { readPageRequest } from "../ground/page.ts";
import { fields, json, oneOf, pageOf, pageQuery } from "../ground/schema.ts";
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
import { type EnvironmentCall, environmentRoute } from "./route.ts";

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
  environmentRoute({
    method: "GET",
    path: "/collections",
    summary: "Lists collections, newest first.",
    query: fields(pageQuery),
    answer: pageOf(collectionView),
    handle({ deps, environment, query }) {
      const page = readPageRequest(query);
      return deps.store.read((tx) => listCollections(tx, environment.id, page));
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/collections",
    summary: "Makes a collection.",
    body: fields({ name: Type.String(), kind: oneOf(COLLECTION_KINDS), fields: json }),
    answer: Type.Object({ collection: collectionView }),
    status: 201,
    async handle({ deps, environment, origin, audit, body, nowMs }) {
      const definition = requireCollectionDefinition(body);
      const row = await deps.store.write(origin, async (tx) => {
        const made = await createCollection(tx, environment.id, definition, nowMs);
        await audit(tx, {
          action: "collection.created",
          target: `collection:${made.name}`,
          after: viewCollection(made),
        });
        return made;
      });
      return { collection: viewCollection(row) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/collections/:name",
    summary: "Shows one collection.",
    answer: Type.Object({ collection: collectionView }),
    async handle({ deps, environment, params }) {
      const row = await deps.store.read((tx) => requireCollection(tx, environment.id, params.name));
      return { collection: viewCollection(row) };
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/collections/:name",
    summary: "Changes a collection; its kind is fixed while it holds records.",
    body: fields({ kind: oneOf(COLLECTION_KINDS), fields: json, version: Type.Optional(Type.Integer()) }),
    answer: Type.Object({ collection: collectionView }),
    async handle({ deps, environment, origin, audit, params, body, nowMs }) {
      const definition = requireCollectionDefinition({
        name: params.name,
        kind: body.kind,
        fields: body.fields,
      });
      const row = await deps.store.write(origin, async (tx) => {
        const version = body.version ?? null;
        const { before, after } = await updateCollection(tx, environment.id, definition, version, nowMs);
        if (before.version !== after.version) {
          await audit(tx, {
            action: "collection.changed",
            target: `collection:${after.name}`,
            before: viewCollection(before),
            after: viewCollection(after),
          });
        }
        return after;
      });
      return { collection: viewCollection(row) };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/collections/:name",
    summary: "Deletes a collection; one that holds records only with force=true, and they go with it.",
    query: fields({ force: Type.Optional(oneOf(["true", "false"])) }),
    answer: null,
    async handle({ deps, environment, origin, audit, params, query }) {
      const options = { force: query.force === "true" };
      const emptied = options.force ? await emptyCollection({ deps, environment, origin }, params.name) : 0;
      await deps.store.write(origin, async (tx) => {
        const gone = await deleteCollection(tx, environment.id, params.name, options);
        await audit(tx, {
          action: "collection.deleted",
          target: `collection:${params.name}`,
          before: viewCollection(gone.before),
          after: { recordsDeleted: emptied + gone.recordsDeleted },
        });
      });
      return undefined;
    },
  }),
];
