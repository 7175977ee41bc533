/**
 * Records of a collection. A key is the app, so its writes fire data_change and say so on the record; an owner edits at the
 * dashboard, which fires too and is audited besides, by field names alone, since an audit row outlives an erasure.
 */
import { Type } from "typebox";
import type { Environment } from "../account/environment.ts";
import type { Json } from "../ground/json.ts";
import { type PageRequest, readPageRequest } from "../ground/page.ts";
import { fields, orNull, pageOf, pageQuery } from "../ground/schema.ts";
import { requireCollection } from "../records/collection.ts";
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
];
