import { describe, expect, test } from "bun:test";
import { readPageRequest } from "../../src/base/page.ts";
import {
  createCollection,
  deleteCollection,
  findCollection,
  listCollections,
  putCollection,
  updateCollection,
  viewCollection,
} from "../../src/shop/records/collection.ts";
import { parseCollection, requireCollectionDefinition } from "../../src/shop/records/collection-definition.ts";
import { requireRecord, updateRecord, viewRecord, writeRecord } from "../../src/shop/records/record.ts";
import { refusalOf } from "../kit/fresh-store.ts";
import { openTown } from "../kit/people.ts";

const town = await openTown();
const { store, clock, environmentId, otherEnvironmentId } = town;

const make = (name: string, kind = "shared", fields: object = { title: "text" }, at = environmentId) =>
  store.write("app", (tx) => createCollection(tx, at, requireCollectionDefinition({ name, kind, fields: { ...fields } }), clock.now()));
const change = (name: string, kind: string, fields: object, version: number | null = null) =>
  store.write("app", (tx) => {
    const definition = requireCollectionDefinition({ name, kind, fields: { ...fields } });
    return updateCollection(tx, environmentId, definition, version, clock.now());
  });
const write = (collection: string, data: object) =>
  store.write("app", (tx) =>
    writeRecord(tx, {
      environmentId,
      collection,
      data: { ...data },
      ownerId: null,
      recipientId: null,
      by: "key:test",
      nowMs: clock.now(),
    }),
  );

describe("a collection's definition", () => {
  const fine = { name: "orders", kind: "shared", fields: { number: { type: "text" } } };
  const bad: [string, unknown, string[]][] = [
    ["no object", 7, [""]],
    ["no name", { ...fine, name: undefined }, ["name"]],
    ["a name with capitals", { ...fine, name: "Orders" }, ["name"]],
    ["an unknown kind", { ...fine, kind: "public" }, ["kind"]],
    ["an unknown name", { ...fine, owner: "x" }, ["owner"]],
    ["fields that are a list", { ...fine, fields: [] }, ["fields"]],
    ["an unknown type", { ...fine, fields: { a: "string" } }, ["fields.a.type"]],
    ["a field name with a dot", { ...fine, fields: { "a.b": "text" } }, ["fields.a.b"]],
    ["a rule with an unknown name", { ...fine, fields: { a: { type: "text", min: 1 } } }, ["fields.a.min"]],
    ["required that is text", { ...fine, fields: { a: { type: "text", required: "yes" } } }, ["fields.a.required"]],
    ["max on a boolean", { ...fine, fields: { a: { type: "boolean", max: 3 } } }, ["fields.a.max"]],
    ["max on a date", { ...fine, fields: { a: { type: "date", max: 3 } } }, ["fields.a.max"]],
    ["max 0 on a text", { ...fine, fields: { a: { type: "text", max: 0 } } }, ["fields.a.max"]],
    ["max 1.5 on a json", { ...fine, fields: { a: { type: "json", max: 1.5 } } }, ["fields.a.max"]],
    ["a field that is a number", { ...fine, fields: { a: 7 } }, ["fields.a"]],
    [
      "101 fields",
      {
        ...fine,
        fields: Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`f${index}`, "text"])),
      },
      ["fields"],
    ],
    [
      "several problems at once, and reports each",
      { name: "", kind: 1, fields: { a: { type: "x" }, b: { type: "date", max: 1 } } },
      ["name", "kind", "fields.a.type", "fields.b.max"],
    ],
  ];
  test.each(bad)("refuses %s", (_what, value, fields) => {
    const { definition, problems } = parseCollection(value);
    expect(definition).toBeNull();
    expect(problems.map((problem) => problem.field)).toEqual(fields);
    for (const { message } of problems) expect(message).toEndWith(".");
  });

  test("refuses a field named __proto__, which JSON can contain", () => {
    const value = JSON.parse('{"name":"a","kind":"shared","fields":{"__proto__":{"type":"text"}}}');
    expect(parseCollection(value).problems.map((problem) => problem.field)).toEqual(["fields.__proto__"]);
  });

  test("accepts a type as a field's rule, and shows rules in full", async () => {
    await make("rules", "private", {
      title: { type: "text", required: true, max: 200 },
      price: { type: "number", max: -1.5 },
      paid: "boolean",
      on: "date",
      raw: { type: "json", max: 1000 },
      scan: { type: "file", required: false },
    });
    const row = await store.read((tx) => findCollection(tx, environmentId, "rules"));
    expect(row === null ? null : viewCollection(row)).toEqual({
      name: "rules",
      kind: "private",
      version: 1,
      createdAt: "2026-01-15T12:00:00.000Z",
      updatedAt: "2026-01-15T12:00:00.000Z",
      fields: {
        title: { type: "text", required: true, max: 200 },
        price: { type: "number", max: -1.5 },
        paid: { type: "boolean" },
        on: { type: "date" },
        raw: { type: "json", max: 1000 },
        scan: { type: "file" },
      },
    });
  });
});

describe("a collection", () => {
  test("has a unique name in its environment", async () => {
    await make("once");
    expect((await refusalOf(() => make("once"))).code).toBe("name_taken");
    expect((await make("once", "shared", {}, otherEnvironmentId)).version).toBe(1);
  });

  test("counts its versions, and refuses a save against an older version with version_conflict and the current version", async () => {
    await make("moved");
    expect((await change("moved", "shared", { title: "text", price: "number" }, 1)).after.version).toBe(2);
    const refusal = await refusalOf(() => change("moved", "shared", { title: "text" }, 1));
    expect([refusal.code, refusal.extra.details]).toEqual(["version_conflict", { version: 2 }]);
    expect((await change("moved", "private", { title: "text" })).after.version).toBe(3);
  });

  test("keeps its version when it is saved without a change", async () => {
    await make("same");
    expect((await change("same", "shared", { title: { type: "text", required: false } })).after.version).toBe(1);
  });

  test("keeps its old records when its fields change, and applies the new rules to the next write", async () => {
    await make("changing");
    const record = await write("changing", { title: "old" });
    await change("changing", "shared", { price: { type: "number", required: true } });
    const at = { environmentId, collection: "changing", recordId: record.id };
    const kept = await store.read((tx) => requireRecord(tx, environmentId, "changing", record.id));
    expect(viewRecord(kept).data).toEqual({ title: "old" });
    const again = (data: object) => store.write("app", (tx) => updateRecord(tx, { ...at, data: { ...data }, by: "key:test", nowMs: clock.now() }));
    const refusal = await refusalOf(() => again({ title: "old" }));
    expect(refusal.extra.problems?.map((problem) => problem.field)).toEqual(["data.title", "data.price"]);
    expect(viewRecord((await again({ price: 3 })).after).data).toEqual({ price: 3 });
  });

  test("keeps its kind while it holds records", async () => {
    await make("kindly");
    await write("kindly", { title: "one" });
    expect((await refusalOf(() => change("kindly", "private", { title: "text" }))).code).toBe("in_use");
  });

  test("is deleted when empty, refused as in_use with records, and deleted with its records when forced", async () => {
    const remove = (name: string, force = false) => store.write("app", (tx) => deleteCollection(tx, environmentId, name, { force }));
    await make("empty");
    expect((await remove("empty")).recordsDeleted).toBe(0);
    await make("full");
    await write("full", { title: "one" });
    expect((await refusalOf(() => remove("full"))).code).toBe("in_use");
    expect((await remove("full", true)).recordsDeleted).toBe(1);
    expect((await refusalOf(() => remove("full"))).code).toBe("not_found");
  });

  test("from a catalog is created the first time and changed later", async () => {
    const put = (fields: object) =>
      store.write("app", (tx) => {
        const definition = requireCollectionDefinition({
          name: "catalogued",
          kind: "shared",
          fields: { ...fields },
        });
        return putCollection(tx, environmentId, definition, clock.now());
      });
    expect((await put({ a: "text" })).before).toBeNull();
    expect([(await put({ b: "text" })).before?.version, (await put({ b: "text" })).after.version]).toEqual([1, 2]);
  });

  test("is listed in pages, newest first, and by name for the same time", async () => {
    await clock.advance(1);
    const newest = requireCollectionDefinition({ name: "zenith", kind: "shared", fields: {} });
    await store.write("app", (tx) => createCollection(tx, environmentId, newest, clock.now()));
    const names: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await store.read((tx) => listCollections(tx, environmentId, readPageRequest({ limit: "2", cursor })));
      names.push(...page.items.map((item) => item.name));
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
    expect(names).toEqual(["zenith", ...names.slice(1).sort()]);
    expect(names).toContain("catalogued");
    expect(new Set(names).size).toBe(names.length);
  });
});
