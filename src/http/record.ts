/**
 * Records of a collection, and the files that they may hold: uploaded as raw bytes, always handed out as a download, never as a page.
 * A key is the app, so its writes fire data_change and say so on the record; an owner edits at the dashboard, which fires too and is audited
 * besides, by field names alone, since an audit row outlives an erasure.
 */
import { Type } from "typebox";
import type { Environment } from "../account/environment.ts";
import type { Json } from "../ground/json.ts";
import { MAX_FILE_BYTES } from "../ground/limit.ts";
import { type PageRequest, readPageRequest } from "../ground/page.ts";
import { fields, orNull, pageOf, pageQuery } from "../ground/schema.ts";
import { requireCollection } from "../records/collection.ts";
import { deleteFile, fileView, listFiles, readFile, uploadFile, viewFile } from "../records/file.ts";
import {
  deleteRecord,
  type RecordRow,
  recordView,
  requireRecord,
  updateRecord,
  viewRecord,
  writeRecord,
} from "../records/record.ts";
import { type Storer, withinStorage } from "../records/record-budget.ts";
import { listRecords } from "../records/record-right.ts";
import type { Reader, Writer } from "../store/port.ts";
import { readPage } from "../store/walk.ts";
import { DATA_HEADERS } from "./answer.ts";
import { type EnvironmentCall, environmentRoute } from "./route.ts";

const written = {
  data: Type.Unknown({ description: "an object with the collection's fields" }),
  owner: Type.Optional(orNull(Type.String({ description: "a person's id" }))),
  to: Type.Optional(orNull(Type.String({ description: "a person's id" }))),
};

type AuditCall = Pick<EnvironmentCall, "actor" | "audit">;

async function auditRecord(
  tx: Writer,
  { actor, audit }: AuditCall,
  action: string,
  row: RecordRow,
): Promise<void> {
  if (actor.kind === "key") return;
  await audit(tx, {
    action,
    target: `record:${row.id}`,
    after: { collection: row.collection, fields: Object.keys(row.data) },
  });
}

/** The app itself: the environment's room bounds it, and no person's. */
function storerOf(environment: Environment): Storer {
  return { environmentId: environment.id, personId: null };
}

export const recordRoutes = [
  environmentRoute({
    method: "GET",
    path: "/collections/:name/records",
    summary: "Lists a collection's records, newest first.",
    query: fields({ ...pageQuery, owner: Type.Optional(Type.String()), to: Type.Optional(Type.String()) }),
    answer: pageOf(recordView),
    handle({ deps, environment, params, query }) {
      const { limit, cursor, ...filter } = query;
      const page = readPageRequest({ limit, cursor });
      const step = async (tx: Reader, part: PageRequest) => {
        const collection = await requireCollection(tx, environment.id, params.name);
        return await listRecords(tx, environment.id, collection, part, filter);
      };
      return readPage(deps.store, page, step, { large: true });
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
    async handle({ deps, environment, actor, by, origin, audit, params, body, nowMs }) {
      const row = await deps.store.write(origin, async (tx) => {
        const made = await withinStorage(tx, storerOf(environment), deps.config.limits, () =>
          writeRecord(tx, {
            environmentId: environment.id,
            collection: params.name,
            data: body.data as Json,
            ownerId: body.owner ?? null,
            recipientId: body.to ?? null,
            by,
            nowMs,
          }),
        );
        await auditRecord(tx, { actor, audit }, "record.created", made);
        return made;
      });
      return { record: viewRecord(row) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/collections/:name/records/:id",
    summary: "Shows one record.",
    answer: Type.Object({ record: recordView }),
    async handle({ deps, environment, params }) {
      const row = await deps.store.read((tx) => requireRecord(tx, environment.id, params.name, params.id));
      return { record: viewRecord(row) };
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/collections/:name/records/:id",
    summary: "Replaces a record's data; owner and recipient stay unless given.",
    body: fields(written),
    answer: Type.Object({ record: recordView }),
    async handle({ deps, environment, actor, by, origin, audit, params, body, nowMs }) {
      const row = await deps.store.write(origin, async (tx) => {
        const { after } = await withinStorage(tx, storerOf(environment), deps.config.limits, () =>
          updateRecord(tx, {
            environmentId: environment.id,
            collection: params.name,
            recordId: params.id,
            data: body.data as Json,
            ownerId: body.owner,
            recipientId: body.to,
            by,
            nowMs,
          }),
        );
        await auditRecord(tx, { actor, audit }, "record.changed", after);
        return after;
      });
      return { record: viewRecord(row) };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/collections/:name/records/:id",
    summary: "Deletes a record.",
    answer: null,
    async handle({ deps, environment, actor, origin, audit, params }) {
      await deps.store.write(origin, async (tx) => {
        const at = { environmentId: environment.id, collection: params.name, recordId: params.id };
        await auditRecord(tx, { actor, audit }, "record.deleted", await deleteRecord(tx, at));
      });
      return undefined;
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/files",
    summary: "Lists files without their bytes, newest first.",
    query: fields(pageQuery),
    answer: pageOf(fileView),
    handle({ deps, environment, query }) {
      const page = readPageRequest(query);
      return deps.store.read((tx) => listFiles(tx, environment.id, page));
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/files",
    summary: "Keeps the body's bytes as a file; its media type is the content-type header's.",
    query: fields({ name: Type.String({ description: "the file's name" }) }),
    rawBytes: MAX_FILE_BYTES,
    answer: Type.Object({ file: fileView }),
    status: 201,
    async handle({ deps, environment, origin, request, query, bytes, nowMs }) {
      const upload = {
        environmentId: environment.id,
        name: query.name,
        mediaType: request.headers.get("content-type"),
        content: bytes,
        nowMs,
      };
      const storer = { environmentId: environment.id, personId: null };
      const row = await deps.store.write(origin, (tx) =>
        withinStorage(tx, storer, deps.config.limits, () => uploadFile(tx, upload)),
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
    async handle({ deps, environment, origin, params }) {
      await deps.store.write(origin, (tx) => deleteFile(tx, environment.id, params.id));
      return undefined;
    },
  }),
];
