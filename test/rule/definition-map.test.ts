/** The way a receiver reads its event: recipes, "Reading the event" in the specification, and `when` in section 3 of the decisions. */
import { describe, expect, test } from "bun:test";
import { type Json, parseJson, writeJson } from "../../src/base/json.ts";
import { renderTemplate } from "../../src/platform/template/template.ts";
import { compileMap, matchesWhen, readEventId, readMap, type WhenMismatch } from "../../src/rules/relay/live-receiver.ts";
import { type DataChangeTrigger, matchesWhere } from "../../src/rules/trigger/data-change.ts";
import { findPersonKey } from "../../src/rules/trigger/receiver.ts";
import { canHavePerson, describeTrigger, type Trigger } from "../../src/rules/trigger/registry.ts";
import { cronOf, type ScheduleTrigger } from "../../src/rules/trigger/schedule.ts";

function map(paths: Record<string, string>, body: string) {
  return readMap(compileMap(paths), { value: parseJson(body), form: null });
}

describe("a map", () => {
  test("reads dotted paths, numbers as array indexes", () => {
    expect(map({ a: "x.1.y" }, '{"x":[0,{"y":"z"}]}')).toEqual({ a: "z" });
  });
  test("omits a name if its path resolves to nothing, and keeps a null", () => {
    expect(map({ a: "x", b: "y" }, '{"y":null}')).toEqual({ b: null });
  });
  test("keeps integers exactly, also beyond 2^53", () => {
    expect(map({ a: "x" }, '{"x":9007199254740993}')).toEqual({ a: 9007199254740993n });
  });
  const written = [
    ["an integer of sixteen digits", "9007199254740993"],
    ["an integer of a thousand digits", "9".repeat(1_000)],
    ["an integer of a hundred thousand digits", "9".repeat(100_000)],
    ["a negative integer", `-${"9".repeat(100_000)}`],
    ["an exponent too large for a number", "1e999999"],
    ["an exponent too large for a number, written out", "-12.5E+999999"],
    ["an exponent so small that the number is zero", "1e-999999"],
    ["an exponent of a hundred thousand digits", `1e${"9".repeat(100_000)}`],
  ] as const;
  test.each(written)("keeps the text of %s everywhere: in the map, in templates, in `when` and in notices", (_words, text) => {
    for (const body of [`{"x":${text}}`, `{"x": ${text} }`, `{"y":[1,"2",null],"x":\n${text}}`]) {
      const mapped = map({ a: "x" }, body);
      expect(writeJson(mapped)).toBe(`{"a":${text}}`);
      expect(matchesWhen({ a: text }, mapped)).toBeNull();
      expect(renderTemplate("{{mapped.a}}", { mapped }, () => undefined)).toBe(text);
      expect(parseJson(writeJson(mapped))).toEqual(mapped);
    }
  });
  test.each([
    ["0", 0],
    ["-0", -0],
    ["0e-999999", 0],
    ["1e21", 1e21],
    ["1E2", 100],
    ["5e-324", 5e-324],
    ["1234567890123456", 1234567890123456],
    ["1.2345678901234567", 1.2345678901234567],
  ])("reads %s as a number", (text, value) => {
    expect(map({ a: "x" }, `{"x":${text}}`)).toEqual({ a: value });
  });
  test("never reads a number in a text as a number", () => {
    const text = "id:12345678901234567890, [1e999999]";
    expect(map({ a: "x" }, JSON.stringify({ x: text, y: 1e300 }))).toEqual({ a: text });
  });
  test("reads nothing below a number", () => {
    expect(map({ a: "x.rawJSON", b: "x.0" }, '{"x":1e999999}')).toEqual({});
  });
  test("reads only own properties", () => {
    expect(map({ a: "constructor", b: "x.__proto__.y" }, '{"x":{}}')).toEqual({});
  });
  test("in a form, a field whose literal name contains dots wins over the path", () => {
    const compiled = compileMap({ a: "x.y" });
    const value = { "x.y": "literal", x: { y: "path" } };
    expect(readMap(compiled, { value, form: [] })).toEqual({ a: "literal" });
    expect(readMap(compiled, { value, form: null })).toEqual({ a: "path" });
  });
  test("in a form, a repeated name is a list", () => {
    const body = { value: { item: ["a", "b"] }, form: [] };
    expect(readMap(compileMap({ all: "item", last: "item.1" }), body)).toEqual({
      all: ["a", "b"],
      last: "b",
    });
  });
});

describe("when", () => {
  const matching: [mapped: Json, wanted: string][] = [
    ["paid", "paid"],
    [4200, "4200"],
    [true, "true"],
    [12345678901234567890n, "12345678901234567890"],
    ["", ""],
  ];
  test.each(matching)("%p equals the text %p", (value, wanted) => {
    expect(matchesWhen({ a: wanted }, { a: value })).toBeNull();
  });
  const differing: [mapped: Json, wanted: string, found: string | null, instead: WhenMismatch["instead"]][] = [
    ["Paid", "paid", "Paid", null],
    ["paid ", "paid", "paid ", null],
    [null, "null", null, "null"],
    [{}, "[object Object]", null, "an object"],
    [["paid"], "paid", null, "a list"],
  ];
  test.each(differing)("%p does not equal the text %p", (value, wanted, found, instead) => {
    expect(matchesWhen({ a: wanted }, { a: value })).toEqual({ name: "a", wanted, found, instead });
  });
  test.each(["INITIAL_PURCHASE", "RENEWAL"])("accepts %p, which equals an item of a list", (value) => {
    expect(matchesWhen({ a: ["INITIAL_PURCHASE", "RENEWAL"] }, { a: value })).toBeNull();
  });
  test.each<[Json, string | null, WhenMismatch["instead"]]>([
    ["EXPIRATION", "EXPIRATION", null],
    ["RENEW", "RENEW", null],
    [["RENEWAL"], null, "a list"],
    [null, null, "null"],
  ])("refuses %p, which equals no item of a list", (value, found, instead) => {
    const wanted = ["INITIAL_PURCHASE", "RENEWAL", "null"];
    expect(matchesWhen({ a: wanted }, { a: value })).toEqual({ name: "a", wanted, found, instead });
  });
  test("compares numbers and booleans in a list as text", () => {
    expect(matchesWhen({ a: ["1", "true"], b: ["2"] }, { a: true, b: 2 })).toBeNull();
  });
  test("does not match a name that the event lacks", () => {
    expect(matchesWhen({ toString: "x" }, {})).toEqual({ name: "toString", wanted: "x", found: null, instead: "nothing" });
  });
  test("requires every name to match, and reports the first that does not", () => {
    expect(matchesWhen({ a: "1", b: "2", c: "3" }, { a: 1, b: 0, c: 0 })).toEqual({
      name: "b",
      wanted: "2",
      found: "0",
      instead: null,
    });
  });
  test("matches every event if it is absent", () => {
    expect(matchesWhen(undefined, {})).toBeNull();
    expect(matchesWhen(null, {})).toBeNull();
  });
});

describe("event_id", () => {
  const rows: [value: Json, id: string | null][] = [
    ["evt_1", "evt_1"],
    [7, "7"],
    [0, "0"],
    [9007199254740993n, "9007199254740993"],
    ["", null],
    [null, null],
    [1.5, null],
    [true, null],
    [{}, null],
    [["a"], null],
  ];
  test.each(rows)("from %p is %p", (value, id) => {
    expect(readEventId({ event_id: value })).toBe(id);
  });
  test("is null if it is missing", () => {
    expect(readEventId({})).toBeNull();
  });
});

describe("the person of a trigger", () => {
  test.each([["person_email"], ["person_id"], ["person_token"]] as const)("is named by %s", (key) => {
    expect(findPersonKey({ order: "id", [key]: "x" })).toBe(key);
  });
  test("does not exist without a person in the map, or on a schedule", () => {
    expect(findPersonKey({ person: "x" })).toBeNull();
    expect(canHavePerson({ kind: "receiver", verify: { scheme: "hooks" }, map: {} })).toBe(false);
    expect(canHavePerson({ kind: "schedule", every: "1d" })).toBe(false);
    expect(canHavePerson({ kind: "data_change", collection: "a", on: ["created"] })).toBe(true);
  });
});

describe("where", () => {
  const rows: [where: DataChangeTrigger["where"], matches: boolean][] = [
    [undefined, true],
    [{}, true],
    [{ status: "paid", total: 4 }, true],
    [{ total: "4" }, false],
    [{ status: "open" }, false],
    [{ missing: "x" }, false],
    [{ toString: "x" }, false],
  ];
  test.each(rows)("%j", (where, matches) => {
    expect(matchesWhere(where, { status: "paid", total: 4, big: 9007199254740993n })).toBe(matches);
  });
});

test("matches an integer beyond 2^53 exactly", () => {
  expect(matchesWhere({ big: 9007199254740993n }, { big: 9007199254740993n })).toBe(true);
  expect(matchesWhere({ big: 9007199254740993n }, { big: 9007199254740992n })).toBe(false);
});

describe("a trigger in words", () => {
  const verify = { scheme: "hooks" } as const;
  const rows: [trigger: Trigger, words: string][] = [
    [{ kind: "receiver", verify, map: {} }, "when a webhook arrives"],
    [{ kind: "receiver", verify, map: { event_type: "type" }, when: { event_type: "order.paid" } }, "when order.paid arrives"],
    [
      {
        kind: "receiver",
        verify,
        map: { event_type: "type" },
        when: { event_type: ["paid", "renewed", "moved"] },
      },
      "when paid, renewed or moved arrives",
    ],
    [
      { kind: "receiver", verify, map: { a: "a" }, when: { a: ["1", "2", "3", "4", "5", "6"] } },
      "when a webhook arrives with a = 1, 2, 3, 4 or 2 more",
    ],
    [{ kind: "receiver", verify, map: { a: "a", b: "b" }, when: { a: "1", b: "x" } }, "when a webhook arrives with a = 1 and b = x"],
    [
      { kind: "data_change", collection: "orders", on: ["created", "updated"], where: { paid: true } },
      "when a record of orders is created or updated where paid = true",
    ],
  ];
  test.each(rows)("%j is %s", (trigger, words) => expect(describeTrigger(trigger)).toBe(words));
});

describe("a schedule's periods", () => {
  const rows: [trigger: Omit<ScheduleTrigger, "kind">, words: string, cron: string][] = [
    [{ every: "15m" }, "every 15 minutes", "0 */15 * * * *"],
    [{ every: "12h" }, "every 12 hours, at 00:00 and 12:00 UTC", "0 0 */12 * * *"],
    [{ every: "1d" }, "every day at 00:00 UTC", "0 0 0 * * *"],
    [{ every: "1d", at: "06:30" }, "every day at 06:30 UTC", "0 30 6 * * *"],
    [{ every: "1w" }, "every Monday at 00:00 UTC", "0 0 0 * * 1"],
    [{ every: "1w", on: "sunday", at: "23:59" }, "every Sunday at 23:59 UTC", "0 59 23 * * 0"],
    [{ every: "1w", on: "thursday" }, "every Thursday at 00:00 UTC", "0 0 0 * * 4"],
  ];
  test.each(rows)("%j is %s", (trigger, words, cron) => {
    const schedule: Trigger & ScheduleTrigger = { kind: "schedule", ...trigger };
    expect(describeTrigger(schedule)).toBe(words);
    expect(cronOf(schedule)).toBe(cron);
  });
});
