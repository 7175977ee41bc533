/**
 * Collections, which define the shape of the app's data, and their records. A key acts as the app: its writes fire data_change, and the record
 * names it. An owner's edits at the dashboard also fire data_change and are audited. The audit has only field names, because it outlives an
 * erasure.
 */
import { Type } from "typebox";
import type { Json } from "../../base/json.ts";
import { fields, json, oneOf, orNull, readTime, savedFile, warningView } from "../../base/schema.ts";
import { trackCatalogEdit } from "../../rules/relay/catalog-edit.ts";
import { readPersonId } from "../../shop/people/person.ts";
import {
  collectionView,
  createCollection,
  deleteCollection,
  deleteRecordsOf,
  listCollections,
  listenerView,
  listListeners,
  requireCollection,
  updateCollection,
  viewCollection,
} from "../../shop/records/collection.ts";
import { COLLECTION_KINDS, requireCollectionDefinition } from "../../shop/records/collection-definition.ts";
import {
  deleteRecord,
  type NewRecord,
  recordItem,
  requireRecord,
  updateRecord,
  viewRecordItem,
  writeRecord,
} from "../../shop/records/record.ts";
import { auditRecord } from "../../shop/records/record-audit.ts";
import { appStorer, withinStorage } from "../../shop/records/record-budget.ts";
import { listRecords } from "../../shop/records/record-right.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Writer } from "../../store/port.ts";
import type { HttpDeps } from "../http/deps.ts";
import { requirePayloads } from "../http/payload-mask.ts";
import { type EnvironmentCall, environmentRoute, listRoute } from "../http/route.ts";

const written = {
  data: Type.Unknown({ description: "an object with the collection's fields" }),
  owner: Type.Optional(orNull(Type.String({ description: "a person's id" }))),
  to: Type.Optional(orNull(Type.String({ description: "a person's id" }))),
};

/** The effects of the change on relays. */
const followed = { warnings: Type.Array(warningView), ...savedFile };

const MAX_SOUGHT_CHARS = 200;

/** Audits the change of an owner. A key acts as the app, and only the record names it. */
async function auditOwner(
  tx: Writer,
  { actor, change }: Pick<EnvironmentCall, "actor" | "change">,
  ...of: [action: Parameters<typeof auditRecord>[2], row: NewRecord]
): Promise<void> {
  if (actor.kind !== "key") await auditRecord(tx, change, ...of);
}

type CollectionCall = Pick<EnvironmentCall, "environment" | "origin"> & { deps: HttpDeps };

/**
 * Deletes the records in steps, so that a large collection does not block other requests. If it is interrupted, the collection remains with fewer
 * records.
 */
async function emptyCollection({ deps, environment, origin }: CollectionCall, name: string): Promise<number> {
  for (let deleted = 0; ; await yieldToEventLoop()) {
    const step = await deps.store.write(
      origin,
      (tx) => deleteRecordsOf(tx, environment.id, name),
      environment.id,
    );
    deleted += step.deleted;
    if (step.ended) return deleted;
  }
}

export const recordRoutes = [
  listRoute({
    path: "/collections/:name/records",
    needs: "read",
    summary: "Lists a collection's records, newest first. Filter by owner, recipient or text.",
    filter: {
      owner: Type.Optional(Type.String({ description: "a person's id, address or token" })),
      to: Type.Optional(Type.String({ description: "a person's id, address or token" })),
      q: Type.Optional(
        Type.String({
          maxLength: MAX_SOUGHT_CHARS,
          description: "text of at most 200 characters anywhere in the data, in any case",
        }),
      ),
    },
    item: recordItem,
    large: true,
    async list(tx, call, page, filter) {
      const { environmentId, params } = call;
      if ((filter.q ?? "") !== "") requirePayloads(call, "A search in records (q)");
      const collection = await requireCollection(tx, environmentId, params.name);
      const owner = await readPersonId(tx, environmentId, "owner", filter.owner);
      const to = await readPersonId(tx, environmentId, "to", filter.to);
      return await listRecords(tx, environmentId, collection, page, viewRecordItem, { ...filter, owner, to });
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/collections/:name/records",
    needs: "edit_records",
    summary: "Creates a record. Depending on the collection's kind, it needs an owner or a recipient.",
    body: fields(written),
    answer: Type.Object({ record: recordItem }),
    status: 201,
    async write(tx, call) {
      const { deps, environmentId, change, params, body } = call;
      const { data, owner = null, to = null } = body;
      const address = { collection: params.name, ownerId: owner, recipientId: to };
      const row = await withinStorage(tx, appStorer(environmentId), deps.config.limits, () =>
        writeRecord(tx, { ...change, ...address, data: data as Json }),
      );
      await auditOwner(tx, call, "record.created", row);
      return { record: viewRecordItem(row) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/collections/:name/records/:id",
    needs: "read",
    summary: "Shows one record.",
    answer: Type.Object({ record: recordItem }),
    read: async (tx, { environmentId, params }) => ({
      record: viewRecordItem(await requireRecord(tx, environmentId, params.name, params.id)),
    }),
  }),
  environmentRoute({
    method: "PUT",
    path: "/collections/:name/records/:id",
    needs: "edit_records",
    summary:
      "Replaces a record's data. Owner and recipient stay unless you give them. With updatedAt, the request fails if the record changed since then.",
    body: fields({
      ...written,
      updatedAt: Type.Optional(
        Type.String({
          description:
            "the record's updatedAt as you read it; the request fails if the record changed since then",
        }),
      ),
    }),
    answer: Type.Object({ record: recordItem }),
    async write(tx, call) {
      const { deps, environmentId, change, params, body } = call;
      const address = { collection: params.name, ownerId: body.owner, recipientId: body.to };
      const readAt = readTime("updatedAt", body.updatedAt);
      const { after } = await withinStorage(tx, appStorer(environmentId), deps.config.limits, () =>
        updateRecord(tx, { ...change, ...address, recordId: params.id, readAt, data: body.data as Json }),
      );
      await auditOwner(tx, call, "record.changed", after);
      return { record: viewRecordItem(after) };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/collections/:name/records/:id",
    needs: "edit_records",
    summary: "Deletes a record.",
    answer: null,
    async write(tx, call) {
      const { environmentId, params } = call;
      const at = { environmentId, collection: params.name, recordId: params.id };
      await auditOwner(tx, call, "record.deleted", await deleteRecord(tx, at));
    },
  }),
  listRoute({
    path: "/collections",
    needs: "read",
    summary: "Lists collections, newest first.",
    item: collectionView,
    list: (tx, { environmentId }, page) => listCollections(tx, environmentId, page),
  }),
  environmentRoute({
    method: "POST",
    path: "/collections",
    needs: "edit_definitions",
    saves: "catalog",
    summary: "Creates a collection.",
    body: fields({ name: Type.String(), kind: oneOf(COLLECTION_KINDS), fields: json }),
    answer: Type.Object({ collection: collectionView, ...followed }),
    status: 201,
    async handle({ deps, environmentId, origin, audit, body, nowMs }) {
      const definition = requireCollectionDefinition(body);
      return await deps.store.write(origin, async (tx) => {
        const { result, warnings } = await trackCatalogEdit(
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
    needs: "read",
    summary: "Shows one collection, with the relays that its changes trigger.",
    answer: Type.Object({ collection: collectionView, listeners: Type.Array(listenerView) }),
    read: async (tx, { environmentId, params }) => ({
      collection: viewCollection(await requireCollection(tx, environmentId, params.name)),
      listeners: await listListeners(tx, environmentId, params.name),
    }),
  }),
  environmentRoute({
    method: "PUT",
    path: "/collections/:name",
    needs: "edit_definitions",
    saves: "catalog",
    summary: "Changes a collection. Its kind cannot change while it has records.",
    body: fields({ kind: oneOf(COLLECTION_KINDS), fields: json, version: Type.Optional(Type.Integer()) }),
    answer: Type.Object({ collection: collectionView, ...followed }),
    async handle({ deps, environmentId, origin, audit, params, body, nowMs }) {
      const { version = null, ...shape } = body;
      const definition = requireCollectionDefinition({ name: params.name, ...shape });
      return await deps.store.write(origin, async (tx) => {
        const { result, warnings } = await trackCatalogEdit(
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
    needs: "edit_definitions",
    saves: "catalog",
    summary: "Deletes a collection. If it has records, force=true is required and deletes them too.",
    query: fields({ force: Type.Optional(oneOf(["true", "false"])) }),
    answer: Type.Object(followed),
    async handle(call) {
      const { deps, environment, environmentId, origin, audit, params, query, nowMs } = call;
      const options = { force: query.force === "true" };
      const emptied = options.force ? await emptyCollection(call, params.name) : 0;
      return await deps.store.write(origin, async (tx) => {
        const { result: deleted, warnings } = await trackCatalogEdit(
          tx,
          { environmentId, nowMs },
          params.name,
          () => deleteCollection(tx, environment.id, params.name, options),
        );
        await audit(tx, {
          action: "collection.deleted",
          target: `collection:${params.name}`,
          before: viewCollection(deleted.before),
          after: { recordsDeleted: emptied + deleted.recordsDeleted },
        });
        return { warnings };
      });
    },
  }),
];
