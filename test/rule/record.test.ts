import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isJsonObject, type Json, parseJson, writeJson } from "../../src/base/json.ts";
import { MAX_FILE_BYTES } from "../../src/base/limit.ts";
import { readPageRequest } from "../../src/base/page.ts";
import { requireCollection } from "../../src/shop/records/collection.ts";
import { requireCollectionDefinition } from "../../src/shop/records/collection-definition.ts";
import { deleteFile, listFiles, readFile, type Upload, uploadFile, viewFile } from "../../src/shop/records/file.ts";
import { deleteRecord, findRecord, type RecordWrite, updateRecord, viewRecord, writeRecord } from "../../src/shop/records/record.ts";
import { readRecordData } from "../../src/shop/records/record-data.ts";
import { addressByPerson, listRecords, listRecordsFor, mayRead, mayWrite } from "../../src/shop/records/record-right.ts";
import { refusalOf } from "../kit/fresh-store.ts";
import { openTown } from "../kit/people.ts";

const town = await openTown();
const { store, clock, environmentId, otherEnvironmentId } = town;

const write = (collection: string, data: Json, more: Partial<RecordWrite> = {}) =>
  store.write("app", (tx) =>
    writeRecord(tx, {
      environmentId,
      collection,
      data,
      ownerId: null,
      recipientId: null,
      by: "key:test",
      nowMs: clock.now(),
      ...more,
    }),
  );
const upload = (more: Partial<Upload> = {}) =>
  store.write("app", (tx) =>
    uploadFile(tx, {
      environmentId,
      name: "scan.png",
      mediaType: "image/png",
      content: new Uint8Array([1, 2, 3]),
      nowMs: clock.now(),
      ...more,
    }),
  );

const rulesOf = (fields: object) => requireCollectionDefinition({ name: "kept", kind: "shared", fields }).fields;
const rules = rulesOf({
  text: { type: "text", max: 5 },
  number: { type: "number", max: 100 },
  big: "number",
  boolean: "boolean",
  date: "date",
  json: { type: "json", max: 100 },
  file: "file",
});
const FILE_ID = "fil_0123456789abcdef0123456789abcdef";
const nested = (levels: number): Json => (levels === 0 ? 1 : [nested(levels - 1)]);

/** Puts the row's sentence first, for the test's name. */
const titled = ([name, value, why]: [string, Json, string]): [string, string, Json] => [`${name}: ${why}`, name, value];
const titledRendered = ([name, text, value, why]: [string, string, Json | undefined, string]): [string, string, string, Json | undefined] => [
  `${name}: ${why}`,
  name,
  text,
  value,
];

describe("a field's value", () => {
  const kept: [string, Json, string][] = [
    ["text", "grü\n\t", "with newline and tab"],
    ["text", "", "that is empty is present"],
    ["text", "👩‍🚀👩‍🚀".slice(0, 5), "counted in Unicode characters"],
    ["text", "<b>", "that looks like markup is text"],
    ["number", 100, "at its max"],
    ["number", -4.25, "below zero and broken"],
    ["big", 9007199254740993n, "beyond 2^53 keeps every digit"],
    ["boolean", false, "that is false is present"],
    ["date", "2028-02-29", "a leap day"],
    ["date", "2026-01-31T23:59:59.123+02:00", "a date-time with an offset"],
    ["json", { a: [1, null, "x"] }, "of any structure"],
    ["json", "just text", "that is a bare text"],
    ["file", FILE_ID, "an id of a file"],
  ];
  test.each(kept.map(titled))("%s is accepted", (_what, name, value) => {
    expect(readRecordData(rules, { [name]: value }, false)).toEqual({
      data: { [name]: value },
      problems: [],
    });
  });

  const refused: [string, Json, string][] = [
    ["text", 7, "a number is not text"],
    ["text", "abcdef", "longer than its max"],
    ["text", "a\u0000", "a null character"],
    ["text", "a\r\nb", "a carriage return"],
    ["text", "a\u007f", "DEL"],
    ["text", "a\u0085", "a C1 control character"],
    ["text", "a\ud83d", "a high surrogate alone"],
    ["text", "\ude00a", "a low surrogate alone"],
    ["number", "7", "text is not a number outside templates"],
    ["number", 101, "over its max"],
    ["number", 9007199254740993n, "a big integer over its max"],
    ["big", Number.POSITIVE_INFINITY, "what JSON reads of 1e999"],
    ["boolean", 1, "1 is not true"],
    ["boolean", "true", "text is not true outside templates"],
    ["date", "2026-02-29", "no leap year"],
    ["date", "31.01.2026", "not ISO"],
    ["date", "2026-01-31T25:00Z", "no such hour"],
    ["date", "2026-01-31T12:00:00", "a time without a zone"],
    ["date", 1767225600, "seconds are not a date"],
    ["json", { a: "\u0000" }, "a control character inside"],
    ["json", { "a\u0000": 1 }, "a control character in a name"],
    ["json", ["x".repeat(100)], "over its max of bytes"],
    ["json", nested(40), "nested too deep"],
    ["file", "scan.png", "not an id"],
    ["file", "rec_0123456789abcdef0123456789abcdef", "an id of something else"],
    ["text", ["a"], "a list is not text"],
  ];
  test.each(refused.map(titled))("%s is refused", (_what, name, value) => {
    const { problems } = readRecordData(rules, { [name]: value }, false);
    expect(problems.map((problem) => problem.field)).toEqual([`data.${name}`]);
    expect(problems[0]?.message).toMatch(/^`data\..+\.$/);
  });

  test.each([
    ["big", "1e999", "too large or too small"],
    ["big", "-1e-999", "too large or too small"],
    ["big", "-1E+999", "too large or too small"],
    ["text", "1e999", "is a number: it must be text"],
    ["boolean", "1e999", "is a number: it must be true or false"],
  ])("a %s field describes a number beyond a double: %s", (name, text, why) => {
    for (const [value, isRendered] of [[parseJson(text), false], ...(name === "big" ? [[text, true] as const] : [])] as const)
      expect(readRecordData(rules, { [name]: value }, isRendered).problems[0]?.message).toContain(why);
  });

  const rendered: [string, string, Json | undefined, string][] = [
    ["number", "42", 42, "an integer's digits"],
    ["number", "-0.5e1", -5, "a JSON number"],
    ["big", "12345678901234567890", 12345678901234567890n, "an integer beyond 2^53"],
    ["boolean", "true", true, "true"],
    ["boolean", "false", false, "false"],
    ["date", "2026-01-31", "2026-01-31", "an ISO date"],
    ["json", '{"id":12345678901234567890}', { id: 12345678901234567890n }, "an object rendered as JSON"],
    ["json", "[1]", [1], "a list rendered as JSON"],
    ["json", "[not json", "[not json", "text that only begins like JSON"],
    ["json", "12", "12", "a bare number stays the text it was"],
    ["text", "a\r\nb", "a\nb", "a form's line ends become newlines"],
    ["text", "", "", "an empty text is present"],
    ["number", "", undefined, "a path that named nothing is absent"],
    ["boolean", "", undefined, "a path that named nothing is absent"],
    ["date", "", undefined, "a path that named nothing is absent"],
    ["json", "", undefined, "a path that named nothing is absent"],
    ["file", "", undefined, "a path that named nothing is absent"],
  ];
  test.each(rendered.map(titledRendered))("rendered: %s", (_what, name, text, value) => {
    const expected = value === undefined ? {} : { [name]: value };
    expect(readRecordData(rules, { [name]: text }, true)).toEqual({ data: expected, problems: [] });
  });

  test.each([
    ["number", "4,200"],
    ["number", " 42"],
    ["number", "042"],
    ["number", "0x10"],
    ["number", "1e999"],
    ["number", "NaN"],
    ["boolean", "TRUE"],
    ["boolean", "yes"],
    ["boolean", "1"],
    ["date", "tomorrow"],
    ["json", '["\\ud800"]'],
  ])("rendered for %s, %j is refused instead of guessed", (name, text) => {
    expect(readRecordData(rules, { [name]: text }, true).problems).toHaveLength(1);
  });
});

describe("a record's data", () => {
  test("with unknown fields is refused with suggestions, and every problem at once", () => {
    const { problems } = readRecordData(rules, { txet: "a", nothingnear: 1, number: 101, boolean: 1 }, false);
    expect(problems.map((problem) => problem.message)).toEqual([
      "`data.txet` is not a field of the collection: did you mean text?",
      "`data.nothingnear` is not a field of the collection: remove it, or add the field to the collection.",
      "`data.number` is greater than 100: lower it.",
      "`data.boolean` is a number: it must be true or false.",
    ]);
  });

  test("is refused without a required field: absent, null, or rendered empty", () => {
    const required = rulesOf({
      a: { type: "text", required: true },
      b: { type: "number", required: true },
    });
    expect(readRecordData(required, { b: 1 }, false).problems[0]?.message).toBe(
      "`data.a` is missing: the collection requires it, so give it a value.",
    );
    expect(readRecordData(required, { a: null, b: 1 }, false).problems).toHaveLength(1);
    expect(readRecordData(required, { a: "", b: "" }, true).problems.map((problem) => problem.field)).toEqual(["data.b"]);
  });

  test("reports a wrong value of a required field once", () => {
    const required = rulesOf({ b: { type: "number", required: true } });
    expect(readRecordData(required, { b: "x" }, false).problems).toHaveLength(1);
  });

  test("is an object of at most 256 KB", () => {
    for (const data of [null, [], "text", 7]) expect(readRecordData(rules, data, false).problems).toHaveLength(1);
    const wide = rulesOf({ a: "text" });
    expect(readRecordData(wide, { a: "x".repeat(262_130) }, false).problems).toEqual([]);
    expect(readRecordData(wide, { a: "x".repeat(262_140) }, false).problems[0]?.field).toBe("data");
  });

  test("with a hundred thousand unknown names is refused in twenty sentences", () => {
    const data = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`n${index}`, 1]));
    expect(readRecordData(rules, data, false).problems).toHaveLength(20);
  });

  test("separates field names from inherited properties", () => {
    const data = parseJson('{"__proto__":{"x":1},"constructor":1,"toString":"a"}');
    expect(readRecordData(rules, data, false).problems).toHaveLength(3);
  });

  test("is either refused or stored exactly as sent, without nulls", () => {
    const value = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.double(),
      fc.integer(),
      fc.bigInt(),
      fc.boolean(),
      fc.constant(null),
      fc.array(fc.string()),
    );
    const free = rulesOf({ text: "text", number: "number", json: "json" });
    fc.assert(
      fc.property(fc.record({ text: value, number: value, json: value }), (data) => {
        const { data: stored, problems } = readRecordData(free, data, false);
        if (problems.length > 0) return;
        const sent = Object.fromEntries(Object.entries(data).filter(([, one]) => one !== null));
        expect(stored).toEqual(sent);
        const back = parseJson(writeJson(stored));
        expect(isJsonObject(back)).toBe(true);
      }),
    );
  });
});

const owner = await town.newPerson();
const friend = await town.newPerson();
const suspended = await town.newPerson({ suspended: true });
const stranger = await town.newPerson({ environmentId: otherEnvironmentId });
for (const kind of ["shared", "private", "addressed", "direct"]) await town.newCollection(kind, kind, { a: "text" });

describe("the owner and recipient of a record", () => {
  const rows: [string, string | null, string | null, string][] = [
    ["shared", null, null, "ok"],
    ["shared", owner.id, null, "ok"],
    ["private", owner.id, null, "ok"],
    ["private", null, null, "ok"],
    ["private", null, friend.id, "ok"],
    ["addressed", null, friend.id, "ok"],
    ["addressed", null, null, "data_invalid"],
    ["addressed", owner.id, friend.id, "data_invalid"],
    ["direct", owner.id, friend.id, "ok"],
    ["direct", null, friend.id, "ok"],
    ["direct", owner.id, null, "data_invalid"],
    ["private", suspended.id, null, "person_suspended"],
    ["addressed", null, suspended.id, "person_suspended"],
    ["private", stranger.id, null, "invalid_input"],
    ["direct", owner.id, "per_nobody", "invalid_input"],
  ];
  test.each(rows)("%s, owner %s, to %s: %s", async (kind, ownerId, recipientId, outcome) => {
    const work = () => write(kind, { a: "x" }, { ownerId, recipientId });
    if (outcome === "ok") {
      expect(viewRecord(await work())).toMatchObject({
        collection: kind,
        owner: ownerId,
        recipient: recipientId,
      });
    } else {
      const before = await store.read((tx) => tx.get("SELECT max(seq) AS seq FROM record"));
      expect((await refusalOf(work)).code as string).toBe(outcome);
      expect(await store.read((tx) => tx.get("SELECT max(seq) AS seq FROM record"))).toEqual(before);
    }
  });

  const rights: ["shared" | "private" | "addressed" | "direct", string, boolean, boolean][] = [
    ["shared", "anyone", true, false],
    ["shared", "owner", true, false],
    ["private", "owner", true, true],
    ["private", "recipient", true, false],
    ["private", "anyone", false, false],
    ["addressed", "recipient", true, false],
    ["addressed", "anyone", false, false],
    ["direct", "owner", true, true],
    ["direct", "recipient", true, false],
    ["direct", "anyone", false, false],
  ];
  test.each(rights)("of kind %s: %s reads %p and writes %p", (kind, who, reads, writes) => {
    const address = { ownerId: "owner", recipientId: "recipient" };
    expect([mayRead(kind, address, who), mayWrite(kind, address, who)]).toEqual([reads, writes]);
  });

  test("name the writing person as owner, only in private and direct collections", async () => {
    expect(addressByPerson("private", "me", null)).toEqual({ ownerId: "me", recipientId: null });
    expect(addressByPerson("direct", "me", "you")).toEqual({ ownerId: "me", recipientId: "you" });
    for (const kind of ["shared", "addressed"] as const) {
      expect((await refusalOf(() => addressByPerson(kind, "me", null))).code).toBe("forbidden");
    }
    expect((await refusalOf(() => addressByPerson("private", "me", "you"))).code).toBe("forbidden");
  });
});

describe("a record", () => {
  test("is shown with its last writer, and replaced completely", async () => {
    await town.newCollection("notes", "shared", { a: "text", n: "number" });
    const record = await write("notes", { a: "one", n: 12345678901234567890n });
    expect(viewRecord(record)).toEqual({
      id: record.id,
      collection: "notes",
      data: { a: "one", n: 12345678901234567890n },
      owner: null,
      recipient: null,
      createdAt: "2026-01-15T12:00:00.000Z",
      updatedAt: "2026-01-15T12:00:00.000Z",
      by: "key:test",
    });
    clock.jump(1500);
    const at = { environmentId, collection: "notes", recordId: record.id };
    const { before, after } = await store.write("dashboard", (tx) =>
      updateRecord(tx, { ...at, data: { a: "two" }, by: "owner:o@example.com", nowMs: clock.now() }),
    );
    expect([viewRecord(before).data.a, viewRecord(after).data]).toEqual(["one", { a: "two" }]);
    expect(await store.read((tx) => findRecord(tx, environmentId, "notes", record.id))).toEqual(after);
    expect([viewRecord(after).by, viewRecord(after).updatedAt]).toEqual(["owner:o@example.com", "2026-01-15T12:00:01.500Z"]);
    expect((await store.write("app", (tx) => deleteRecord(tx, at))).id).toBe(record.id);
    expect((await refusalOf(() => store.write("app", (tx) => deleteRecord(tx, at)))).code).toBe("not_found");
  });

  test("is not found in another collection or environment", async () => {
    const record = await write("notes", { a: "x" });
    expect(await store.read((tx) => findRecord(tx, environmentId, "shared", record.id))).toBeNull();
    expect(await store.read((tx) => findRecord(tx, otherEnvironmentId, "notes", record.id))).toBeNull();
    expect((await refusalOf(() => write("none", {}))).code).toBe("not_found");
  });

  test("is refused with every problem of data, files and address together", async () => {
    await town.newCollection("strict", "addressed", { n: "number", f: "file" });
    const refusal = await refusalOf(() => write("strict", { n: "x", f: FILE_ID, z: 1 }));
    expect(refusal.code).toBe("data_invalid");
    expect(refusal.extra.problems?.map((problem) => problem.field)).toEqual(["data.n", "data.z", "data.f", "to"]);
  });

  test("is listed newest first in pages, by owner, and for a person only if the person can read it", async () => {
    await town.newCollection("letters", "direct", { a: "text" });
    await town.newCollection("board", "shared", { a: "text" });
    const [ada, ben, cleo] = [await town.newPerson(), await town.newPerson(), await town.newPerson()];
    await write("letters", { a: "1" }, { ownerId: ada.id, recipientId: ben.id });
    await write("letters", { a: "2" }, { ownerId: ben.id, recipientId: ada.id });
    await write("letters", { a: "3" }, { ownerId: ben.id, recipientId: cleo.id });
    await write("board", { a: "4" });
    const texts = (items: { data: { [name: string]: Json } }[]) => items.map((item) => item.data.a);
    const seenBy = (personId: string, name: string) =>
      store.read(async (tx) => {
        const collection = await requireCollection(tx, environmentId, name);
        return texts((await listRecordsFor(tx, environmentId, collection, personId, readPageRequest({}))).items);
      });
    expect([await seenBy(ada.id, "letters"), await seenBy(cleo.id, "letters")]).toEqual([["2", "1"], ["3"]]);
    expect(await seenBy(cleo.id, "board")).toEqual(["4"]);
    const page = (cursor?: string) =>
      store.read(async (tx) =>
        listRecords(tx, environmentId, await requireCollection(tx, environmentId, "letters"), readPageRequest({ limit: "1", cursor }), viewRecord, {
          owner: ben.id,
        }),
      );
    const first = await page();
    const second = await page(first.next ?? undefined);
    expect([texts(first.items), texts(second.items), second.next]).toEqual([["3"], ["2"], null]);
  });
});

describe("a file", () => {
  test("is stored with its bytes, its name and its uploader's media type", async () => {
    const file = await upload({ mediaType: "Text/Plain; charset=utf-8" });
    expect(viewFile(file)).toMatchObject({ name: "scan.png", mediaType: "text/plain", bytes: 3 });
    const { content } = await store.read((tx) => readFile(tx, environmentId, file.id));
    expect([...content]).toEqual([1, 2, 3]);
    const page = await store.read((tx) => listFiles(tx, environmentId, readPageRequest({ limit: "1" })));
    expect(page.items).toEqual([viewFile(file)]);
  });

  test("has at most 5 MB and can be empty", async () => {
    expect((await upload({ content: new Uint8Array(MAX_FILE_BYTES) })).bytes).toBe(5_242_880);
    expect((await upload({ content: new Uint8Array(0) })).bytes).toBe(0);
    const refusal = await refusalOf(() => upload({ content: new Uint8Array(MAX_FILE_BYTES + 1) }));
    expect([refusal.code, refusal.status]).toEqual(["body_too_large", 413]);
  });

  test.each([
    { name: "" },
    { name: ".." },
    { name: "../etc/passwd" },
    { name: "a\\b" },
    { name: "a\nb" },
    { name: "x".repeat(201) },
    { mediaType: "text" },
    { mediaType: "text/html\r\nx: y" },
    { mediaType: "" },
  ])("%j is refused with invalid_input", async (more) => {
    expect((await refusalOf(() => upload(more))).code).toBe("invalid_input");
  });

  test("can be named by a record only if it exists in this environment and fits the field's size", async () => {
    await town.newCollection("scans", "shared", { file: { type: "file", max: 3 } });
    const file = await upload();
    expect(viewRecord(await write("scans", { file: file.id })).data).toEqual({ file: file.id });
    const large = await upload({ content: new Uint8Array(4) });
    const elsewhere = await upload({ environmentId: otherEnvironmentId });
    for (const id of [large.id, elsewhere.id, FILE_ID]) {
      expect((await refusalOf(() => write("scans", { file: id }))).code).toBe("data_invalid");
    }
    const remove = () => store.write("app", (tx) => deleteFile(tx, environmentId, file.id));
    expect((await refusalOf(remove)).code).toBe("in_use");
    await store.write("app", (tx) => tx.run("DELETE FROM record WHERE collection = 'scans'"));
    await remove();
    const work = () => store.read((tx) => readFile(tx, environmentId, file.id));
    expect((await refusalOf(work)).code).toBe("not_found");
    expect((await refusalOf(remove)).code).toBe("not_found");
  });
});
