import { describe, expect, test } from "bun:test";
import { checkShape } from "../../src/base/check-shape.ts";
import type { Json, JsonObject } from "../../src/base/json.ts";
import type { ActionOutcome } from "../../src/rules/action/contract.ts";
import { type WriteRecord, writeRecord } from "../../src/rules/action/write-record.ts";
import type { PersonRow } from "../../src/shop/people/person.ts";
import { uploadFile } from "../../src/shop/records/file.ts";
import { findRecord, type RecordView, viewRecord } from "../../src/shop/records/record.ts";
import { openTown } from "../kit/people.ts";

const town = await openTown();
const { store, clock, environmentId } = town;
await town.newCollection("orders", "shared", {
  number: { type: "text", required: true },
  total: "number",
  paid: "boolean",
  on: "date",
  raw: "json",
  scan: "file",
});
for (const kind of ["private", "addressed", "direct"]) await town.newCollection(kind, kind, { text: "text" });

const act = (action: Omit<WriteRecord, "type">, person: PersonRow | null = null, payload: JsonObject = {}) =>
  town.act(writeRecord, { type: "write_record", ...action }, person, payload);
const countRecords = async () => (await store.read((tx) => tx.get<{ count: number }>("SELECT count(*) AS count FROM record")))?.count;

/** Loads the record that an outcome reports as written. */
async function recordOf(outcome: ActionOutcome, collection: string): Promise<RecordView> {
  const after = outcome.outcome === "failed" ? undefined : (outcome.after as { record: string } | undefined);
  const row = await store.read((tx) => findRecord(tx, environmentId, collection, after?.record ?? ""));
  if (row === null) throw new Error(`No record was written: ${JSON.stringify(outcome)}`);
  return viewRecord(row);
}

describe("write_record", () => {
  test("writes an app-owned record in the relay's name, and reports its id", async () => {
    const outcome = await act({ collection: "orders", data: { number: "Order {{mapped.id}}" } }, await town.newPerson(), { mapped: { id: "7" } });
    const record = await recordOf(outcome, "orders");
    expect(record).toMatchObject({
      data: { number: "Order 7" },
      owner: null,
      recipient: null,
      by: "relay:shop",
    });
    expect(outcome).toEqual({
      outcome: "done",
      before: null,
      after: { collection: "orders", record: record.id, recipient: null },
    });
  });

  test("reads rendered text as the field's type, keeps every digit, and omits paths that resolve to nothing", async () => {
    const payload = parsePayload();
    const data = {
      number: "{{mapped.id}}",
      total: "{{mapped.total}}",
      paid: "{{mapped.paid}}",
      on: "{{mapped.on}}",
      raw: "{{event.data}}",
      scan: "{{mapped.scan}}",
    };
    const record = await recordOf(await act({ collection: "orders", data }, null, payload), "orders");
    expect(record.data).toEqual({
      number: "A-1",
      total: 12345678901234567890n,
      paid: true,
      on: "2026-01-31",
      raw: { items: [1, { n: 2 }] },
    });
  });

  test("takes literal values unchanged, and renders templates inside a json field", async () => {
    const data = {
      number: "n",
      total: 4.5,
      paid: false,
      raw: { who: "{{person.email}}", n: [1, "{{mapped.x}}"] },
    };
    const person = await town.newPerson();
    const record = await recordOf(await act({ collection: "orders", data }, person, { mapped: { x: 9 } }), "orders");
    expect(record.data).toEqual({
      number: "n",
      total: 4.5,
      paid: false,
      raw: { who: person.email, n: [1, "9"] },
    });
  });

  test("applies the rules of file fields", async () => {
    const file = await store.write("app", (tx) =>
      uploadFile(tx, {
        environmentId,
        name: "a.pdf",
        mediaType: null,
        content: new Uint8Array(1),
        nowMs: clock.now(),
      }),
    );
    const data = { number: "n", scan: "{{mapped.file}}" };
    const good = await act({ collection: "orders", data }, null, { mapped: { file: file.id } });
    expect((await recordOf(good, "orders")).data.scan).toBe(file.id);
    const bad = await act({ collection: "orders", data }, null, {
      mapped: { file: file.id.replace(/.$/, "x") },
    });
    expect(bad).toMatchObject({ outcome: "failed", code: "data_invalid", final: true });
  });

  const invalid: [string, JsonObject, JsonObject][] = [
    ["a required field is missing", {}, {}],
    ["an unknown field is named", { number: "n", colour: "red" }, {}],
    ["rendered text is no number", { number: "n", total: "{{mapped.x}}" }, { x: "4,200" }],
    ["rendered text breaks the plain-text rule", { number: "{{mapped.x}}" }, { x: "a\u0000b" }],
    ["rendered text holds half a surrogate pair", { number: "{{mapped.x}}" }, { x: "\ud800" }],
  ];
  test.each(invalid)("fails finally with data_invalid and writes nothing when %s", async (_what, data, mapped) => {
    const before = await countRecords();
    const outcome = await act({ collection: "orders", data }, null, { mapped });
    expect(outcome).toMatchObject({ outcome: "failed", code: "data_invalid", final: true });
    expect(await countRecords()).toBe(before);
  });

  test("fails finally with collection_missing when the collection does not exist", async () => {
    const outcome = await act({ collection: "nowhere", data: {} });
    expect(outcome).toMatchObject({ outcome: "failed", code: "collection_missing", final: true });
  });

  test.each(["addressed", "direct", "private"])("with to: person addresses a record of kind %s", async (kind) => {
    const person = await town.newPerson();
    const outcome = await act({ collection: kind, to: "person", data: { text: "hello" } }, person);
    expect(await recordOf(outcome, kind)).toMatchObject({ owner: null, recipient: person.id });
  });

  test.each(["addressed", "direct"])("fails with data_invalid on kind %s without to", async (kind) => {
    const outcome = await act({ collection: kind, data: { text: "hello" } }, await town.newPerson());
    expect(outcome).toMatchObject({ outcome: "failed", code: "data_invalid", final: true });
    expect(outcome.outcome === "failed" ? outcome.message : "").toContain("`to`");
  });

  test("addressed to a suspended person fails finally with person_suspended, but is written when unaddressed", async () => {
    const person = await town.newPerson({ suspended: true });
    const outcome = await act({ collection: "addressed", to: "person", data: { text: "hello" } }, person);
    expect(outcome).toMatchObject({ outcome: "failed", code: "person_suspended", final: true });
    expect((await act({ collection: "orders", data: { number: "n" } }, person)).outcome).toBe("done");
  });
});

describe("write_record in a definition", () => {
  const check = (action: unknown) => {
    const problems = checkShape(writeRecord.shape, action);
    return problems.length > 0 ? problems : writeRecord.check(action as WriteRecord);
  };

  test.each(writeRecord.examples.map((example) => [example]))("%j is valid", (example) => {
    expect(check(example)).toEqual([]);
  });

  const bad: [string, JsonObject, string][] = [
    ["no collection", { data: {} }, "collection"],
    ["no data", { collection: "a" }, "data"],
    ["data that is a list", { collection: "a", data: [] }, "data"],
    ["a field name with a dot", { collection: "a", data: { "a.b": 1 } }, "data.a.b"],
    ["to anyone else", { collection: "a", data: {}, to: "owner" }, "to"],
    ["an unknown name", { collection: "a", data: {}, table: "b" }, "table"],
    ["a filter in a template", { collection: "a", data: { x: "{{mapped.x | upper}}" } }, "data.x"],
    ["an unclosed template deep inside", { collection: "a", data: { x: { y: ["{{mapped.x"] } } }, "data.x.y.0"],
    ["a control character", { collection: "a", data: { x: "\u0000" } }, "data.x"],
  ];
  test.each(bad)("with %s is refused at the field", (_what, fields, field) => {
    expect(check({ type: "write_record", ...fields }).map((problem) => problem.field)).toEqual([field]);
  });

  test("requires a person only when it is addressed to one, and names its collection", () => {
    const action: WriteRecord = { type: "write_record", collection: "orders", data: {} };
    expect([writeRecord.needsPerson(action), writeRecord.needsPerson({ ...action, to: "person" })]).toEqual([false, true]);
    expect(writeRecord.references(action)).toEqual([{ kind: "collection", name: "orders", field: "collection" }]);
    expect([writeRecord.target(action), writeRecord.effect, writeRecord.sends]).toEqual(["orders", "writes", false]);
  });
});

function parsePayload(): JsonObject {
  const data: Json = { items: [1, { n: 2 }] };
  return {
    event: { data },
    mapped: { id: "A-1", total: 12345678901234567890n, paid: true, on: "2026-01-31" },
  };
}
