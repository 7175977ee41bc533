/** Edits of a JSON file's text: unchanged parts keep their characters. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Json, parseJson, writeJson } from "../../src/base/json.ts";
import { editJson } from "../../src/operator/sync/json-edit.ts";

const FILE = `{
    "name": "checkout",
    "trigger": { "kind": "receiver", "map": {"event_id": "id",   "order": "data.id"} },

    "actions": [
        { "type": "write_record",
          "data": { "big": 12345678901234567890, "x": 1.0 } },
        { "type": "call_url" }
    ]
}
`;
// biome-ignore lint/suspicious/noExplicitAny: values are edited freely
type Any = any;
const value = () => parseJson(FILE) as Any;

const rows: readonly [what: string, edit: (value: Any) => unknown, from: string, to: string][] = [
  ["of a text", (v) => (v.name = "other"), '"checkout"', '"other"'],
  ["that adds a field on one line", (v) => (v.trigger.map.email = "a.b"), '"data.id"}', '"data.id",   "email": "a.b"}'],
  ["that removes a field on one line", (v) => delete v.trigger.map.order, ',   "order": "data.id"', ""],
  ["that removes the first field on one line", (v) => delete v.trigger.map.event_id, '"event_id": "id",   ', ""],
  ["that replaces an object by a text", (v) => (v.trigger.map = "x"), '{"event_id": "id",   "order": "data.id"}', '"x"'],
  [
    "that adds a field of several lines",
    (v) => (v.extra = { a: [1] }),
    "\n    ]\n}",
    '\n    ],\n    "extra": {\n        "a": [\n            1\n        ]\n    }\n}',
  ],
  [
    "that removes a field with its lines",
    (v) => delete v.trigger,
    '\n    "trigger": { "kind": "receiver", "map": {"event_id": "id",   "order": "data.id"} },\n',
    "\n",
  ],
  ["that removes an item", (v) => v.actions.pop(), ',\n        { "type": "call_url" }', ""],
  [
    "that adds an item at the start",
    (v) => v.actions.unshift({ a: 1 }),
    '"actions": [\n',
    '"actions": [\n        {\n            "a": 1\n        },\n',
  ],
  ["of an item between others", (v) => (v.actions[0].data.x = 2), "1.0", "2"],
];

describe("an edit of a file's text", () => {
  test.each(rows)("%s changes nothing else", (_what, edit, from, to) => {
    const wanted = value();
    edit(wanted);
    const edited = editJson(FILE, wanted as Json);
    expect(FILE.split(from)).toHaveLength(2);
    expect(edited).toBe(FILE.replace(from, to));
    expect(writeJson(parseJson(edited))).toBe(writeJson(wanted));
  });

  test("changes nothing if the value equals the file's", () => {
    for (const text of [FILE, FILE.replaceAll("\n", "\r\n"), `\uFEFF${FILE}`, '{"a":1}', "[ ]", "3 "])
      expect(editJson(text, parseJson(text.replace(/^\uFEFF/, "")))).toBe(text);
  });

  test("keeps tabs, line endings and a byte order mark", () => {
    const text = '\uFEFF{\r\n\t"a": {\r\n\t\t"b": 1\r\n\t},\r\n\t"c": {}\r\n}';
    expect(editJson(text, { a: { b: 1, d: [{}] }, c: { e: 1 } })).toBe(
      '\uFEFF{\r\n\t"a": {\r\n\t\t"b": 1,\r\n\t\t"d": [\r\n\t\t\t{}\r\n\t\t]\r\n\t},\r\n\t"c": {\r\n\t\t"e": 1\r\n\t}\r\n}',
    );
  });

  test("follows the value's order", () => {
    expect(editJson('{\n  "a": 1,\n  "b": { "c":2 }\n}\n', { b: { c: 2 }, a: 1 })).toBe('{\n  "b": { "c":2 },\n  "a": 1\n}\n');
    expect(editJson('{"a":1,"b":2}', { b: 2, a: 1 })).toBe('{"b":2,"a":1}');
  });

  test.each([
    ["no JSON", "{ nope"],
    ["nothing", ""],
    ["too deep a text", `${"[".repeat(90)}${"]".repeat(90)}`],
  ])("of %s writes it again in full", (_what, text) => {
    expect(editJson(text, { a: 3 })).toBe('{\n  "a": 3\n}\n');
  });

  test("removes a name that appeared twice", () => {
    expect(editJson('{ "a": 1, "a": 2 }', { a: 3 })).toBe('{ "a": 3 }');
    expect(editJson('{ "a": "b", "a": { "c": [] } }', { a: { c: [1] } })).toBe('{ "a": { "c": [\n  1\n] } }');
  });

  test("results in exactly the value, for any text and value", () => {
    const json = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>;
    const layout = fc.constantFrom(undefined, 1, 2, 4, "\t");
    fc.assert(
      fc.property(json, json, layout, (before, after, indent) => {
        const edited = editJson(JSON.stringify(before, null, indent), after);
        expect(writeJson(parseJson(edited))).toBe(writeJson(after));
      }),
      { numRuns: 2_000 },
    );
  });
});
