/** Edits of one place of a JSON text: every other line keeps its characters. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Json, parseJson, writeJson } from "../../src/base/json.ts";
import { ExactNumber, type Json as WebJson } from "../../web/base/exact-json.ts";
import type { Step } from "../../web/editor/json-tree.ts";
import { insertItem, moveItem, removeAt, renameMember, setValue } from "../../web/editor/text-edit.ts";

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

const rows: readonly [what: string, edit: (text: string) => string, from: string, to: string][] = [
  ["a text is replaced", (t) => setValue(t, ["name"], "other"), '"checkout"', '"other"'],
  ["a member joins its line", (t) => setValue(t, ["trigger", "map", "email"], "a.b"), '"data.id"}', '"data.id",   "email": "a.b"}'],
  [
    "missing parents are created on the line",
    (t) => setValue(t, ["trigger", "when", "order"], ["a"]),
    '"data.id"} }',
    '"data.id"}, "when": { "order": ["a"] } }',
  ],
  [
    "a member gets its own line",
    (t) => setValue(t, ["extra"], { a: [1] }),
    "\n    ]\n}",
    '\n    ],\n    "extra": {\n        "a": [\n            1\n        ]\n    }\n}',
  ],
  ["a member is removed from its line", (t) => removeAt(t, ["trigger", "map", "order"]), ',   "order": "data.id"', ""],
  ["a first member is removed from its line", (t) => removeAt(t, ["trigger", "map", "event_id"]), '"event_id": "id",   ', ""],
  ["an item is removed with its line", (t) => removeAt(t, ["actions", 1]), ',\n        { "type": "call_url" }', ""],
  [
    "an item is inserted before another",
    (t) => insertItem(t, ["actions"], 1, { a: 1 }),
    '{ "type": "call_url" }',
    '{\n            "a": 1\n        },\n        { "type": "call_url" }',
  ],
  ["an item is added at the end", (t) => insertItem(t, ["actions"], 2, 7), '{ "type": "call_url" }', '{ "type": "call_url" },\n        7'],
  ["a member is renamed", (t) => renameMember(t, ["trigger", "map", "order"], "order_id"), '"order":', '"order_id":'],
  [
    "an exact number survives",
    (t) => setValue(t, ["actions", 0, "data", "x"], new ExactNumber("98765432109876543210")),
    "1.0",
    "98765432109876543210",
  ],
  [
    "an object on a line stays on it",
    (t) => setValue(t, ["trigger", "map"], { a: "b", c: {} }),
    '{"event_id": "id",   "order": "data.id"}',
    '{ "a": "b", "c": {} }',
  ],
];

describe("an edit changes one place", () => {
  test.each(rows)("%s", (_what, edit, from, to) => {
    for (const text of [FILE, FILE.replaceAll("\n", "\r\n")]) {
      const lines = (part: string) => (text === FILE ? part : part.replaceAll("\n", "\r\n"));
      expect(text.split(lines(from))).toHaveLength(2);
      expect(edit(text)).toBe(text.replace(lines(from), lines(to)));
    }
  });

  test("an item moves and the white space stays", () => {
    expect(moveItem("[1,  22,\n 3]", [], 0, 2)).toBe("[22,  3,\n 1]");
    for (const [from, to] of [
      [0, 2],
      [2, 0],
      [-1, 0],
      [0, -1],
    ] as const)
      expect(moveItem("[1, 2]", [], from, to)).toBe("[1, 2]");
  });

  test("an empty object or list takes the layout of its parent", () => {
    expect(setValue('{"a":{}}', ["a", "b"], 1)).toBe('{"a":{"b":1}}');
    expect(setValue('{\n  "a": {}\n}', ["a", "b"], 1)).toBe('{\n  "a": {\n    "b": 1\n  }\n}');
    expect(insertItem('{\n\t"a": []\n}\n', ["a"], 0, 1)).toBe('{\n\t"a": [\n\t\t1\n\t]\n}\n');
    expect(setValue("{}", ["a"], 1)).toBe('{\n  "a": 1\n}');
  });

  test("a value of another type gives way to the parents of the new one", () => {
    expect(setValue('{"a":"x"}', ["a", "b", 0], 1)).toBe('{"a":{"b":[1]}}');
    expect(insertItem('{"a":"x"}', ["a"], 3, 1)).toBe('{"a":[1]}');
  });

  test("of two members with one name, the one that counts is edited and both are removed", () => {
    expect(setValue('{"a":1,"a":2}', ["a"], 3)).toBe('{"a":1,"a":3}');
    expect(removeAt('{"a":1,"b":0,"a":2}', ["a"])).toBe('{"b":0}');
  });

  test("nothing changes if there is nothing to edit", () => {
    for (const text of ["", "{ nope", '{"a":1,}']) {
      expect(setValue(text, ["a"], 2)).toBe(text);
      expect(removeAt(text, ["a"])).toBe(text);
      expect(insertItem(text, ["a"], 0, 2)).toBe(text);
      expect(moveItem(text, ["a"], 0, 1)).toBe(text);
    }
    expect(removeAt(FILE, ["nothing", 3])).toBe(FILE);
    expect(removeAt(FILE, [])).toBe(FILE);
    expect(renameMember(FILE, ["trigger"], "name")).toBe(FILE);
    expect(renameMember(FILE, ["nothing"], "other")).toBe(FILE);
  });
});

const json = fc.jsonValue({ maxDepth: 4 }).filter((one) => typeof one === "object" && one !== null) as fc.Arbitrary<Json>;
const format = fc.constantFrom<(value: Json) => string>(
  (value) => `${JSON.stringify(value, null, 2)}\n`,
  (value) => JSON.stringify(value, null, 4),
  (value) => JSON.stringify(value, null, "\t"),
  (value) => JSON.stringify(value),
  (value) => `${JSON.stringify(value, null, 2)}\n`.replaceAll("\n", "\r\n"),
);

/** All places of a value, with the steps to each one. */
function listPlaces(value: Json, steps: Step[] = []): Step[][] {
  if (typeof value !== "object" || value === null) return [steps];
  const inner = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return [steps, ...inner.flatMap(([step, one]) => listPlaces(one, [...steps, step]))];
}

const at = (value: Json, steps: readonly Step[]): Json => steps.reduce<Json>((inner, step) => (inner as Record<Step, Json>)[step] as Json, value);

/** A value, its text in one of the formats, and one place in it. */
const placed = fc
  .tuple(json, format)
  .chain(([value, write]) => fc.tuple(fc.constant(value), fc.constant(write(value)), fc.constantFrom(...listPlaces(value))));

/** Counts the lines of the old text between the lines that both texts share at their beginning and at their end. */
function countChangedLines(before: string, after: string): number {
  const [was, is] = [before.split("\n"), after.split("\n")];
  const shorter = Math.min(was.length, is.length);
  let begin = 0;
  while (begin < shorter && was[begin] === is[begin]) begin += 1;
  let end = 0;
  while (end < shorter - begin && was.at(-1 - end) === is.at(-1 - end)) end += 1;
  return was.length - begin - end;
}

const RUNS = { numRuns: 1_000 };
const same = (one: Json, other: Json) => writeJson(one) === writeJson(other);

describe("for any value, format and place", () => {
  test("the same value changes no byte", () => {
    fc.assert(
      fc.property(placed, ([value, text, steps]) => {
        expect(setValue(text, steps, at(value, steps) as WebJson)).toBe(text);
      }),
      RUNS,
    );
  });

  test("a set value is read back, and its old lines are all that changes", () => {
    fc.assert(
      fc.property(placed, fc.oneof(json, fc.string()), ([value, text, steps], wanted) => {
        const edited = setValue(text, steps, wanted as WebJson);
        const expected = structuredClone({ root: value });
        (at(expected, ["root", ...steps].slice(0, -1)) as Record<Step, Json>)[["root", ...steps].at(-1) as Step] = wanted;
        expect(writeJson(parseJson(edited))).toBe(writeJson(expected.root));
        const lines = JSON.stringify(at(value, steps), null, 2).split("\n").length;
        expect(countChangedLines(text, edited)).toBeLessThanOrEqual(lines);
      }),
      RUNS,
    );
  });

  test("setting a value again restores the text, and so does removing what was added", () => {
    fc.assert(
      fc.property(placed, fc.string(), ([value, text, steps], wanted) => {
        const old = at(value, steps);
        if (typeof old !== "object" || old === null) {
          const back = setValue(setValue(text, steps, wanted), steps, old as WebJson);
          expect(back).toBe(text);
        } else if (Array.isArray(old)) {
          for (const index of [0, old.length]) expect(removeAt(insertItem(text, steps, index, wanted), [...steps, index])).toBe(text);
        } else {
          const added = [...steps, "not there yet"];
          expect(removeAt(setValue(text, added, wanted), added)).toBe(text);
        }
      }),
      RUNS,
    );
  });

  test("a removed part is gone and nothing else is", () => {
    fc.assert(
      fc.property(placed, ([value, text, steps]) => {
        if (steps.length === 0) return;
        const expected = structuredClone(value);
        const holder = at(expected, steps.slice(0, -1));
        if (Array.isArray(holder)) holder.splice(steps.at(-1) as number, 1);
        else delete (holder as Record<Step, Json>)[steps.at(-1) as Step];
        expect(same(parseJson(removeAt(text, steps)), expected)).toBeTrue();
      }),
      RUNS,
    );
  });

  test("a moved item is at its place, and the move back restores the text", () => {
    fc.assert(
      fc.property(fc.array(json, { minLength: 2 }), format, fc.nat(), fc.nat(), (list, write, one, other) => {
        const [from, to] = [one % list.length, other % list.length];
        const text = write({ list });
        const moved = moveItem(text, ["list"], from, to);
        const expected = [...list];
        expected.splice(to, 0, ...expected.splice(from, 1));
        expect(same(parseJson(moved), { list: expected })).toBeTrue();
        expect(moveItem(moved, ["list"], to, from)).toBe(text);
      }),
      RUNS,
    );
  });
});
