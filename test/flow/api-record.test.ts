/** Tests collections, records and files over HTTP. */
import { expect } from "bun:test";
import { runScenarios } from "../kit/api-scenario.ts";
import type { ApiServer } from "../kit/api-server.ts";

const notes = { name: "notes", kind: "shared", fields: { text: { type: "text", required: true } } };

function withNotes(api: ApiServer) {
  return api.call(`${api.E}/collections`, { method: "POST", key: api.keys.dev, body: notes });
}

let id = "";
async function withNote(api: ApiServer): Promise<void> {
  await withNotes(api);
  const body = { data: { text: "hello" } };
  const reply = await api.call(`${api.E}/collections/notes/records`, {
    method: "POST",
    key: api.keys.dev,
    body,
  });
  id = reply.json.record.id;
}

runScenarios([
  {
    name: "a collection is created and audited",
    request: "POST /collections",
    call: { body: notes },
    status: 201,
    answer: { collection: { name: "notes", version: 1 } },
    changes: { collection: 1, audit: 1 },
  },
  {
    name: "a collection with records is in_use",
    given: withNote,
    request: "DELETE /collections/notes",
    status: 409,
    answer: { code: "in_use" },
  },
  {
    name: "a forced deletion deletes a collection with its records, and announces record changes",
    given: withNote,
    request: "DELETE /collections/notes?force=true",
    status: 200,
    changes: { collection: -1, record: -1, audit: 1 },
    // Counts three wakes: the record's creation, its deletion, and the collection's deletion.
    also: (api) => expect(api.woken.capture).toBe(3),
  },
  {
    name: "a record written by a key names the key and is no management change",
    given: withNotes,
    request: "POST /collections/notes/records",
    call: { body: { data: { text: "hi" } } },
    status: 201,
    answer: {
      record: {
        collection: "notes",
        data: { text: "hi" },
        owner: null,
        recipient: null,
        by: expect.stringMatching(/^key:/),
      },
    },
    changes: { record: 1 },
    also: (api) => expect(api.woken.capture).toBe(1),
  },
  {
    name: "an owner's edit of a record is audited by field names, never values",
    given: withNote,
    request: () => `PUT /collections/notes/records/${id}`,
    call: { session: true, body: { data: { text: "private words" } } },
    status: 200,
    answer: { record: { data: { text: "private words" }, by: "owner:ann@example.com" } },
    changes: { record: 0, audit: 1 },
    also: async (api) => {
      const audit = await api.call(`${api.E}/audit`, { key: api.keys.dev });
      expect(audit.json.items[0]).toMatchObject({
        action: "record.changed",
        after: { collection: "notes", fields: ["text"] },
      });
      expect(audit.text).not.toContain("private words");
    },
  },
  {
    name: "data that breaks the field rules is data_invalid",
    given: withNotes,
    request: "POST /collections/notes/records",
    call: { body: { data: { text: 5 } } },
    status: 400,
    answer: { code: "data_invalid" },
  },
  {
    name: "records are found by any text in their data, in any case, and JSON's punctuation does not match",
    given: async (api) => {
      await withNotes(api);
      for (const text of ["A red Lamp", 'says "50 %"', "a blue one"])
        await api.call(`${api.E}/collections/notes/records`, { method: "POST", key: api.keys.dev, body: { data: { text } } });
    },
    request: "GET /collections/notes/records?q=red lamp",
    status: 200,
    also: async (api, { json }) => {
      const texts = (items: { data: { text: string } }[]) => items.map(({ data }) => data.text);
      expect(texts(json.items)).toEqual(["A red Lamp"]);
      const ask = async (q: string) =>
        texts((await api.call(`${api.E}/collections/notes/records?q=${encodeURIComponent(q)}`, { key: api.keys.dev })).json.items);
      expect([await ask('"50 %"'), await ask("%"), await ask("green")]).toEqual([['says "50 %"'], ['says "50 %"'], []]);
    },
  },
  {
    name: "a record that does not exist is not_found",
    given: withNotes,
    request: "DELETE /collections/notes/records/rec_nobody",
    status: 404,
    answer: { code: "not_found" },
  },
  {
    name: "a file is stored unchanged, and served as a download that no page can run",
    request: "POST /files?name=page.html",
    call: {
      bytes: new TextEncoder().encode("<script>alert(1)</script>"),
      headers: { "content-type": "text/html" },
    },
    status: 201,
    answer: { file: { name: "page.html", mediaType: "text/html", bytes: 25 } },
    changes: { file: 1 },
    also: async (api, { json }) => {
      const got = await api.call(`${api.E}/files/${json.file.id}`, { key: api.keys.dev });
      expect(got.text).toBe("<script>alert(1)</script>");
      expect(got.headers.get("content-disposition")).toBe("attachment; filename*=UTF-8''page.html");
      expect(got.headers.get("content-security-policy")).toBe("default-src 'none'; frame-ancestors 'none'");
      expect(got.headers.get("x-content-type-options")).toBe("nosniff");
    },
  },
]);
