/** Collections: the shapes of what the app stores. */
import { Type } from "typebox";
import { readPageRequest } from "../ground/page.ts";
import { fields, json, oneOf, pageOf, pageQuery, time } from "../ground/schema.ts";
import {
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
import type { Visit } from "./admission.ts";
import type { HttpRooms } from "./rooms.ts";
import { environmentRoute } from "./route.ts";
import { auditVisit } from "./visit-audit.ts";

const collection = Type.Object({
  name: Type.String(),
  kind: oneOf(COLLECTION_KINDS),
  fields: json,
  version: Type.Integer(),
  createdAt: time,
  updatedAt: time,
});

/** Deletes the records in steps, so that a large collection holds nobody up; cut off in the middle, it has fewer records and stands. */
async function emptyCollection(rooms: HttpRooms, visit: Visit, name: string): Promise<number> {
  for (let deleted = 0; ; await turnLoop()) {
    const step = await rooms.store.write(visit.origin, (tx) =>
      deleteRecordsOf(tx, visit.environment.id, name),
    );
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
    answer: pageOf(collection),
    handle({ rooms, visit, query }) {
      const page = readPageRequest(query);
      return rooms.store.read((tx) => listCollections(tx, visit.environment.id, page));
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/collections",
    summary: "Makes a collection.",
    body: fields({ name: Type.String(), kind: oneOf(COLLECTION_KINDS), fields: json }),
    answer: Type.Object({ collection }),
    status: 201,
    async handle({ rooms, visit, body, nowMs }) {
      const definition = requireCollectionDefinition(body);
      const row = await rooms.store.write(visit.origin, async (tx) => {
        const made = await createCollection(tx, visit.environment.id, definition, nowMs);
        await auditVisit(tx, visit, nowMs, {
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
    answer: Type.Object({ collection }),
    async handle({ rooms, visit, params }) {
      const row = await rooms.store.read((tx) => requireCollection(tx, visit.environment.id, params.name));
      return { collection: viewCollection(row) };
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/collections/:name",
    summary: "Changes a collection; its kind is fixed while it holds records.",
    body: fields({ kind: oneOf(COLLECTION_KINDS), fields: json, version: Type.Optional(Type.Integer()) }),
    answer: Type.Object({ collection }),
    async handle({ rooms, visit, params, body, nowMs }) {
      const definition = requireCollectionDefinition({
        name: params.name,
        kind: body.kind,
        fields: body.fields,
      });
      const row = await rooms.store.write(visit.origin, async (tx) => {
        const version = body.version ?? null;
        const { before, after } = await updateCollection(
          tx,
          visit.environment.id,
          definition,
          version,
          nowMs,
        );
        if (before.version !== after.version) {
          await auditVisit(tx, visit, nowMs, {
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
    async handle({ rooms, visit, params, query, nowMs }) {
      const options = { force: query.force === "true" };
      const emptied = options.force ? await emptyCollection(rooms, visit, params.name) : 0;
      await rooms.store.write(visit.origin, async (tx) => {
        const gone = await deleteCollection(tx, visit.environment.id, params.name, options);
        await auditVisit(tx, visit, nowMs, {
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
