/** Records as the signed-in person reaches them. Their writes are the app's own, so they fire data_change. */
import { Type } from "typebox";
import {
  createPersonRecord,
  deletePersonRecord,
  listPersonRecords,
  type PersonAt,
  readPersonRecord,
  updatePersonRecord,
} from "../client/person-record.ts";
import type { Json } from "../ground/json.ts";
import { readPageRequest } from "../ground/page.ts";
import { fields, json, orNull, pageOf, pageQuery, time } from "../ground/schema.ts";
import { type ClientCall, type PersonCall, personRoute } from "./client-route.ts";

const record = Type.Object({
  id: Type.String(),
  collection: Type.String(),
  data: json,
  owner: orNull(Type.String()),
  recipient: orNull(Type.String()),
  createdAt: time,
  updatedAt: time,
});

const data = Type.Unknown({ description: "an object with the collection's fields" });

function at({ client, person }: { client: ClientCall; person: PersonCall }, collection: string): PersonAt {
  return { environmentId: client.environmentId, personId: person.personId, collection };
}

export const clientRecordRoutes = [
  personRoute({
    method: "GET",
    path: "/collections/:name/records",
    summary: "Lists what the signed-in person may read of a collection, newest first.",
    query: fields(pageQuery),
    answer: pageOf(record),
    handle({ deps, query, params, client, person }) {
      const page = readPageRequest(query);
      return deps.store.read((tx) => listPersonRecords(tx, at({ client, person }, params.name), page));
    },
  }),
  personRoute({
    method: "POST",
    path: "/collections/:name/records",
    summary: "Writes a record of the signed-in person's own, in a direct collection to another person.",
    body: fields({ data, to: Type.Optional(orNull(Type.String({ description: "a person's id" }))) }),
    answer: Type.Object({ record }),
    status: 201,
    async handle({ deps, params, body, source, nowMs, client, person }) {
      const given = { data: body.data as Json, to: body.to ?? null };
      const place = at({ client, person }, params.name);
      await deps.clientWrites.count(source, place, "created");
      const made = await deps.clientWrites.store(place, (tx) => createPersonRecord(tx, place, given, nowMs));
      return { record: made };
    },
  }),
  personRoute({
    method: "GET",
    path: "/collections/:name/records/:id",
    summary: "Shows one record that the signed-in person may read.",
    answer: Type.Object({ record }),
    async handle({ deps, params, client, person }) {
      const found = await deps.store.read((tx) =>
        readPersonRecord(tx, at({ client, person }, params.name), params.id),
      );
      return { record: found };
    },
  }),
  personRoute({
    method: "PUT",
    path: "/collections/:name/records/:id",
    summary: "Replaces the data of the signed-in person's own record.",
    body: fields({ data }),
    answer: Type.Object({ record }),
    async handle({ deps, params, body, source, nowMs, client, person }) {
      const place = at({ client, person }, params.name);
      await deps.clientWrites.count(source, place, "updated");
      const changed = await deps.clientWrites.store(place, (tx) =>
        updatePersonRecord(tx, place, params.id, body.data as Json, nowMs),
      );
      return { record: changed };
    },
  }),
  personRoute({
    method: "DELETE",
    path: "/collections/:name/records/:id",
    summary: "Deletes the signed-in person's own record.",
    answer: null,
    async handle({ deps, params, source, client, person }) {
      const place = at({ client, person }, params.name);
      await deps.clientWrites.count(source, place, "deleted");
      await deps.store.write("app", (tx) => deletePersonRecord(tx, place, params.id));
      return undefined;
    },
  }),
];
