import { describe, expect, test } from "bun:test";
import { type Json, parseJson } from "../../src/base/json.ts";
import { MAX_PATH_CHARS, MAX_PATH_SEGMENTS, parsePath, readField, readPath } from "../../src/platform/template/template.ts";

const body = parseJson(
  '{"a":{"b":[{"id":9007199254740993},{"id":null}]},"data[email]":"m","First name":"Ada","__proto__":{"x":1},"$id":"d","x-y_z@1":"ok","0":"zero","a.b":"literal","s":"text"}',
);

describe("a valid path", () => {
  const rows: [string, string, Json | undefined][] = [
    ["finds a nested value by numeric array indexes, with exact integers", "a.b.0.id", 9007199254740993n],
    ["finds a JSON null as null", "a.b.1.id", null],
    ["resolves to nothing past the end of an array", "a.b.2.id", undefined],
    ["resolves to nothing for an index with a leading zero", "a.b.00.id", undefined],
    ["resolves to nothing for the length of an array", "a.b.length", undefined],
    ["resolves to nothing inside a text", "s.0", undefined],
    ["resolves to nothing inside null", "a.b.1.id.x", undefined],
    ["finds a numeric property of an object", "0", "zero"],
    ["finds a property with brackets as forms write it", "data[email]", "m"],
    ["finds a property with a space inside", "First name", "Ada"],
    ["finds properties with $, @, hyphen and underscore", "x-y_z@1", "ok"],
    ["finds a property that starts with $", "$id", "d"],
    ["finds only an own __proto__ of the payload", "__proto__.x", 1],
    ["finds nothing inherited: constructor", "constructor", undefined],
    ["finds nothing inherited: a.__proto__", "a.__proto__", undefined],
    ["finds nothing inherited: a.b.constructor", "a.b.constructor", undefined],
    ["finds nothing inherited: toString", "a.toString", undefined],
  ];
  test.each(rows)("%s: %s", (_rule, text, expected) => {
    const path = parsePath(text);
    expect(path?.text).toBe(text);
    expect(path === null ? "no path" : readPath(body, path)).toEqual(expected as never);
  });
});

describe("a text that is not a path", () => {
  const rows: [string, string][] = [
    ["the empty text", ""],
    ["a lone dot", "."],
    ["an empty segment in the middle", "a..b"],
    ["a leading dot", ".a"],
    ["a trailing dot", "a."],
    ["a brace", "a.{b}"],
    ["a control character", "a.\u0007b"],
    ["white space before a segment", "a. b"],
    ["white space after a segment", "a .b"],
    [
      "too many segments",
      Array(MAX_PATH_SEGMENTS + 1)
        .fill("a")
        .join("."),
    ],
    ["too many characters", "a".repeat(MAX_PATH_CHARS + 1)],
  ];
  test.each(rows)("%s", (_rule, text) => {
    expect(parsePath(text)).toBeNull();
  });
});

test("a form's field whose literal name contains dots wins over the path", () => {
  const path = parsePath("a.b");
  if (path === null) throw new Error("a.b is a path");
  expect(readField(body, path)).toBe("literal");
  expect(readField({ a: { b: 1 } }, path)).toBe(1);
  expect(readField(["a.b"], path)).toBeUndefined();
});
