import { describe, expect, test } from "bun:test";
import { type Json, parseJson } from "../../src/base/json.ts";
import { MAX_PATH_CHARS, MAX_PATH_SEGMENTS, parsePath, readField, readPath } from "../../src/platform/template/template.ts";

const body = parseJson(
  '{"a":{"b":[{"id":9007199254740993},{"id":null}]},"data[email]":"m","First name":"Ada","__proto__":{"x":1},"$id":"d","x-y_z@1":"ok","0":"zero","a.b":"literal","s":"text"}',
);

describe("a path that is one", () => {
  const rows: [string, string, Json | undefined][] = [
    ["names a nested value, numeric segments index arrays, integers stay exact", "a.b.0.id", 9007199254740993n],
    ["names a JSON null as null", "a.b.1.id", null],
    ["names nothing past the end of an array", "a.b.2.id", undefined],
    ["names nothing for an index written with a leading zero", "a.b.00.id", undefined],
    ["names nothing for the length of an array", "a.b.length", undefined],
    ["names nothing inside a text", "s.0", undefined],
    ["names nothing inside null", "a.b.1.id.x", undefined],
    ["names a numeric property of an object", "0", "zero"],
    ["names a property with brackets as forms write it", "data[email]", "m"],
    ["names a property with a space inside", "First name", "Ada"],
    ["names properties with $, @, hyphen and underscore", "x-y_z@1", "ok"],
    ["names a property that starts with $", "$id", "d"],
    ["names an own __proto__ of the payload and nothing else", "__proto__.x", 1],
    ["names nothing inherited: constructor", "constructor", undefined],
    ["names nothing inherited: a.__proto__", "a.__proto__", undefined],
    ["names nothing inherited: a.b.constructor", "a.b.constructor", undefined],
    ["names nothing inherited: toString", "a.toString", undefined],
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
