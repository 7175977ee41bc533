/** Finds events, records and people by a text, for the dashboard's search field. */
import { Type } from "typebox";
import { fields, oneOf } from "../../base/schema.ts";
import { findEventSeq } from "../../engine/event/event.ts";
import { findPersons } from "../../shop/people/person-list.ts";
import { findRecordCollection } from "../../shop/records/record.ts";
import { environmentRoute } from "../http/route.ts";

const MAX_PEOPLE = 8;

const thing = Type.Object({
  kind: oneOf(["event", "record", "person"]),
  id: Type.String(),
  name: Type.String({ description: "a person's address, or otherwise the id" }),
  collection: Type.Optional(Type.String({ description: "a record's" })),
});

export const findRoutes = [
  environmentRoute({
    method: "GET",
    path: "/find",
    needs: "read",
    summary:
      "Finds the event, the record or the people for a text: a whole id, a store account token, an address or its start.",
    query: fields({ q: Type.String({ maxLength: 200, description: "text of at most 200 characters" }) }),
    answer: Type.Object({ found: Type.Array(thing) }),
    async read(tx, { environmentId, query }) {
      const id = query.q.trim();
      if (id.startsWith("evt_")) {
        const isThere = (await findEventSeq(tx, environmentId, id)) !== null;
        return { found: isThere ? [{ kind: "event" as const, id, name: id }] : [] };
      }
      if (id.startsWith("rec_")) {
        const collection = await findRecordCollection(tx, environmentId, id);
        return { found: collection === null ? [] : [{ kind: "record" as const, id, name: id, collection }] };
      }
      const people = await findPersons(tx, environmentId, { limit: MAX_PEOPLE, after: null }, id);
      const found = people.items.map(({ id, email }) => ({ kind: "person" as const, id, name: email ?? id }));
      return { found };
    },
  }),
];
