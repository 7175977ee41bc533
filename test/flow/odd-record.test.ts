/** Tests a record whose data another program corrupted: it blocks no other record, is reported, and can be fixed or deleted. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const deep = (levels: number): string => `{"text":"x","more":${"[".repeat(levels)}${"]".repeat(levels)}}`;
const RECORDS = "/collections/notes/records";

let running: RunningService;
beforeAll(async () => {
  running = await startRunningService();
  const fields = { text: { type: "text" }, more: { type: "json" } };
  expect((await running.api("POST", "/collections", { name: "notes", kind: "shared", fields })).status).toBe(201);
  expect((await running.api("POST", RECORDS, { data: { text: "well" } })).status).toBe(201);
});
afterAll(() => running[Symbol.asyncDispose]());

test.each([
  ["no JSON", "{no"],
  ["null", "null"],
  ["a list", "[1]"],
  ["a text", '"abc"'],
  ["a number", "4"],
  ["nested too deeply to be written", deep(5_000)],
  ["nested even deeper", deep(100_000)],
])("%s", async (_what, data) => {
  const id = `rec_${"0".repeat(32)}`;
  const write = () =>
    running.direct.run(
      `INSERT INTO record (id, environment_id, collection, data, written_by, created_at, updated_at)
       SELECT '${id}', environment_id, 'notes', ?1, 'by hand', 0, 0 FROM collection WHERE name = 'notes'`,
      data,
    );
  await write();
  const told = { id, data: {}, by: "by hand", odd: expect.stringContaining(id) };
  const list = await running.api("GET", RECORDS);
  expect([list.status, list.body.items]).toMatchObject([200, [told, { data: { text: "well" } }]]);
  expect(list.body.items[1].odd).toBe(undefined);
  expect(await running.api("GET", `${RECORDS}/${id}`)).toMatchObject({ status: 200, body: { record: told } });
  expect((await running.api("GET", `${RECORDS}?q=abc`)).status).toBe(200);
  const fixed = await running.api("PUT", `${RECORDS}/${id}`, { data: { text: "fixed" } });
  expect(fixed).toMatchObject({ status: 200, body: { record: { id, data: { text: "fixed" } } } });
  expect(fixed.body.record.odd).toBe(undefined);
  expect((await running.api("DELETE", `${RECORDS}/${id}`)).status).toBe(204);
  await write();
  expect((await running.api("DELETE", `${RECORDS}/${id}`)).status).toBe(204);
});
