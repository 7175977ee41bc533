/**
 * Collections, the shapes of what the app stores; their records, and the files that they may hold: uploaded as raw bytes, always handed out
 * as a download, never as a page. A key is the app, so its writes fire data_change and say so on the record; an owner edits at the dashboard,
 * which fires too and is audited besides, by field names alone, since an audit row outlives an erasure.
 */
import { Type } from "typebox";
import type { Json } from "../ground/json.ts";
import { MAX_FILE_BYTES } from "../ground/limit.ts";
import { fields, json, oneOf, orNull, savedFile, warningView } from "../ground/schema.ts";
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
import { deleteFile, fileView, listFiles, readFile, uploadFile, viewFile } from "../records/file.ts";
import {
  deleteRecord,
  type NewRecord,
  recordView,
  requireRecord,
  updateRecord,
  viewRecord,
  writeRecord,
} from "../records/record.ts";
import { type Storer, withinStorage } from "../records/record-budget.ts";
import { listRecords } from "../records/record-right.ts";
import { followCatalogEdit } from "../relay/catalog-edit.ts";
import type { Writer } from "../store/port.ts";
import { turnLoop } from "../store/walk.ts";
import { DATA_HEADERS } from "./answer.ts";
import type { HttpDeps } from "./deps.ts";
import { type EnvironmentCall, environmentRoute, listRoute } from "./route.ts";

const written = {
  data: Type.Unknown({ description: "an object with the collection's fields" }),
  owner: Type.Optional(orNull(Type.String({ description: "a person's id" }))),
  to: Type.Optional(orNull(Type.String({ description: "a person's id" }))),
};

/** What the change broke of the relays. */
const followed = { warnings: Type.Array(warningView), ...savedFile };

type AuditCall = Pick<EnvironmentCall, "actor" | "audit">;

async function auditRecord(
  tx: Writer,
  { actor, audit }: AuditCall,
  action: string,
  row: NewRecord,
): Promise<void> {
  if (actor.kind === "key") return;
  await audit(tx, {
    action,
    target: `record:${row.id}`,
    after: { collection: row.collection, fields: Object.keys(row.data) },
  });
}

/** The app itself: the environment's room bounds it, and no person's. */
function storerOf(environmentId: number): Storer {
  return { environmentId, personId: null };
}

type CollectionCall = Pick<EnvironmentCall, "environment" | "origin"> & { deps: HttpDeps };

/** Deletes the records in steps, so that a large collection holds nobody up; cut off in the middle, it has fewer records and stands. */
async function emptyCollection({ deps, environment, origin }: CollectionCall, name: string): Promise<number> {
  for (let deleted = 0; ; await turnLoop()) {
    const step = await deps.store.write(origin, (tx) => deleteRecordsOf(tx, environment.id, name));
    deleted += step.deleted;
    if (step.ended) return deleted;
  }
}

export const recordRoutes = [
  listRoute({
    path: "/collections/:name/records",
    summary: "Lists a collection's records, newest first.",
    filter: { owner: Type.Optional(Type.String()), to: Type.Optional(Type.String()) },
    item: recordView,
    large: true,
    async list(tx, { environmentId, params }, page, filter) {
      const collection = await requireCollection(tx, environmentId, params.name);
      return await listRecords(tx, environmentId, collection, page, filter);
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/collections/:name/records",
    summary:
      "Writes a record, for an owner or addressed to a person where the collection's kind asks for one.",
    body: fields(written),
    answer: Type.Object({ record: recordView }),
    status: 201,
    async write(tx, call) {
      const { deps, environmentId, change, params, body } = call;
      const { data, owner = null, to = null } = body;
      const address = { collection: params.name, ownerId: owner, recipientId: to };
      const row = await withinStorage(tx, storerOf(environmentId), deps.config.limits, () =>
        writeRecord(tx, { ...change, ...address, data: data as Json }),
      );
      await auditRecord(tx, call, "record.created", row);
      return { record: viewRecord(row) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/collections/:name/records/:id",
    summary: "Shows one record.",
    answer: Type.Object({ record: recordView }),
    read: async (tx, { environmentId, params }) => ({
      record: viewRecord(await requireRecord(tx, environmentId, params.name, params.id)),
    }),
  }),
  environmentRoute({
    method: "PUT",
    path: "/collections/:name/records/:id",
    summary: "Replaces a record's data; owner and recipient stay unless given.",
    body: fields(written),
    answer: Type.Object({ record: recordView }),
    async write(tx, call) {
      const { deps, environmentId, change, params, body } = call;
      const address = { collection: params.name, ownerId: body.owner, recipientId: body.to };
      const { after } = await withinStorage(tx, storerOf(environmentId), deps.config.limits, () =>
        updateRecord(tx, { ...change, ...address, recordId: params.id, data: body.data as Json }),
      );
      await auditRecord(tx, call, "record.changed", after);
      return { record: viewRecord(after) };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/collections/:name/records/:id",
    summary: "Deletes a record.",
    answer: null,
    async write(tx, call) {
      const { environmentId, params } = call;
      const at = { environmentId, collection: params.name, recordId: params.id };
      await auditRecord(tx, call, "record.deleted", await deleteRecord(tx, at));
    },
  }),
  listRoute({
    path: "/files",
    summary: "Lists files without their bytes, newest first.",
    item: fileView,
    list: (tx, { environmentId }, page) => listFiles(tx, environmentId, page),
  }),
  environmentRoute({
    method: "POST",
    path: "/files",
    summary: "Keeps the body's bytes as a file; its media type is the content-type header's.",
    query: fields({ name: Type.String({ description: "the file's name" }) }),
    rawBytes: MAX_FILE_BYTES,
    answer: Type.Object({ file: fileView }),
    status: 201,
    async write(tx, { deps, environmentId, request, query, bytes: content, nowMs }) {
      const mediaType = request.headers.get("content-type");
      const upload = { environmentId, name: query.name, mediaType, content, nowMs };
      const row = await withinStorage(tx, storerOf(environmentId), deps.config.limits, () =>
        uploadFile(tx, upload),
      );
      return { file: viewFile(row) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/files/:id",
    summary: "Downloads a file's bytes.",
    answer: Type.String(),
    async handle({ deps, environment, params }) {
      const found = await deps.store.read((tx) => readFile(tx, environment.id, params.id));
      return new Response(new Uint8Array(found.content), {
        headers: {
          ...DATA_HEADERS,
          "cache-control": "private, no-store",
          "content-type": found.mediaType,
          "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(found.name)}`,
        },
      });
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/files/:id",
    summary: "Deletes a file that no record holds.",
    answer: null,
    write: (tx, { environmentId, params }) => deleteFile(tx, environmentId, params.id),
  }),
  listRoute({
    path: "/collections",
    summary: "Lists collections, newest first.",
    item: collectionView,
    list: (tx, { environmentId }, page) => listCollections(tx, environmentId, page),
  }),
  environmentRoute({
    method: "POST",
    path: "/collections",
    saves: "catalog",
    summary: "Makes a collection.",
    body: fields({ name: Type.String(), kind: oneOf(COLLECTION_KINDS), fields: json }),
    answer: Type.Object({ collection: collectionView, ...followed }),
    status: 201,
    async handle({ deps, environmentId, origin, audit, body, nowMs }) {
      const definition = requireCollectionDefinition(body);
      return await deps.store.write(origin, async (tx) => {
        const { result, warnings } = await followCatalogEdit(
          tx,
          { environmentId, nowMs },
          definition.name,
          () => createCollection(tx, environmentId, definition, nowMs),
        );
        const collection = viewCollection(result);
        const target = `collection:${collection.name}`;
        await audit(tx, { action: "collection.created", target, after: collection });
        return { collection, warnings };
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
    saves: "catalog",
    summary: "Changes a collection; its kind is fixed while it holds records.",
    body: fields({ kind: oneOf(COLLECTION_KINDS), fields: json, version: Type.Optional(Type.Integer()) }),
    answer: Type.Object({ collection: collectionView, ...followed }),
    async handle({ deps, environmentId, origin, audit, params, body, nowMs }) {
      const { version = null, ...shape } = body;
      const definition = requireCollectionDefinition({ name: params.name, ...shape });
      return await deps.store.write(origin, async (tx) => {
        const { result, warnings } = await followCatalogEdit(
          tx,
          { environmentId, nowMs },
          definition.name,
          () => updateCollection(tx, environmentId, definition, version, nowMs),
        );
        const { before, after } = result;
        const collection = viewCollection(after);
        if (before.version !== after.version) {
          const shown = { before: viewCollection(before), after: collection };
          await audit(tx, { action: "collection.changed", target: `collection:${after.name}`, ...shown });
        }
        return { collection, warnings };
      });
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/collections/:name",
    saves: "catalog",
    summary: "Deletes a collection; one that holds records only with force=true, and they go with it.",
    query: fields({ force: Type.Optional(oneOf(["true", "false"])) }),
    answer: Type.Object(followed),
    async handle(call) {
      const { deps, environment, environmentId, origin, audit, params, query, nowMs } = call;
      const options = { force: query.force === "true" };
      const emptied = options.force ? await emptyCollection(call, params.name) : 0;
      return await deps.store.write(origin, async (tx) => {
        const { result: gone, warnings } = await followCatalogEdit(
          tx,
          { environmentId, nowMs },
          params.name,
          () => deleteCollection(tx, environment.id, params.name, options),
        );
        await audit(tx, {
          action: "collection.deleted",
          target: `collection:${params.name}`,
          before: viewCollection(gone.before),
          after: { recordsDeleted: emptied + gone.recordsDeleted },
        });
        return { warnings };
      });
    },
  }),
];
