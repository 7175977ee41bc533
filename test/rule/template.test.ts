import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type JsonObject, parseJson } from "../../src/base/json.ts";
import { MAX_RENDERED_CHARS } from "../../src/base/limit.ts";
import { hasTemplate, listTemplateUses, parseTemplate, renderData, renderIdentifier, renderTemplate } from "../../src/platform/template/template.ts";

const scope = parseJson(`{
  "event": { "items": [{ "id": 12345678901234567890 }], "note": "{{person.email}}", "empty": "", "nothing": null, "ok": true, "price": 4.5,
             "a.b": "literal", "a": { "b": "nested" } },
  "mapped": { "plan": "gold", "tags": ["x", 9007199254740993], "shape": { "n": 1 }, "x-y_z": "hyphen" },
  "person": { "id": "per_1", "email": "ada@example.com" },
  "record": { "id": "rec_1", "data": { "title": "Hello" } },
  "tick": { "periodStart": "2026-01-05T09:00:00.000Z" }
}`) as JsonObject;

function rendered(text: string, from: JsonObject = scope): { text: string; missing: string[] } {
  const missing: string[] = [];
  return { text: renderTemplate(text, from, (path) => missing.push(path)), missing };
}

describe("a template renders", () => {
  const rows: [rule: string, template: string, text: string, missing: string[]][] = [
    ["text without braces unchanged", "plain }} text", "plain }} text", []],
    ["a mapped name", "Plan {{mapped.plan}}!", "Plan gold!", []],
    ["a path into the raw body, with numeric array indexes and every digit", "{{event.items.0.id}}", "12345678901234567890", []],
    ["a record's field and id", "{{record.data.title}} {{record.id}}", "Hello rec_1", []],
    ["the person's email and id", "{{person.email}} {{person.id}}", "ada@example.com per_1", []],
    ["the tick's period start", "{{tick.periodStart}}", "2026-01-05T09:00:00.000Z", []],
    ["spaces around the path", "{{  mapped.plan }}", "gold", []],
    ["a name with hyphen and underscore", "{{mapped.x-y_z}}", "hyphen", []],
    ["true and a fraction as their text", "{{event.ok}} {{event.price}}", "true 4.5", []],
    ["an object as JSON", "{{mapped.shape}}", '{"n":1}', []],
    ["an array as JSON with every digit", "{{mapped.tags}}", '["x",9007199254740993]', []],
    ["a path that resolves to nothing as empty, with a warning", "[{{mapped.none}}]", "[]", ["mapped.none"]],
    ["a null as empty, with a warning", "[{{event.nothing}}]", "[]", ["event.nothing"]],
    ["an empty text as empty, without a warning", "[{{event.empty}}]", "[]", []],
    ["nothing inherited", "{{event.constructor}}{{mapped.__proto__}}", "", ["event.constructor", "mapped.__proto__"]],
    ["a root that the event lacks as empty, with a warning", "{{previous.id}}", "", ["previous.id"]],
    ["a value that contains braces unchanged, never a second time", "{{event.note}}", "{{person.email}}", []],
    ["an opening without a closing as plain text", "a {{ mapped.plan", "a {{ mapped.plan", []],
    ["an extra brace after a path as plain text", "{{mapped.plan}}}", "gold}", []],
    ["a path of a JSON body, not a literal name with dots", "{{event.a.b}}", "nested", []],
    ["text that is no template unchanged", "{{mapped.a | upper}}", "{{mapped.a | upper}}", []],
  ];
  test.each(rows)("%s: %s", (_rule, template, text, missing) => {
    expect(rendered(template)).toEqual({ text, missing });
  });

  test("a form's field whose name contains the dots before the path", () => {
    const form: JsonObject = { event: { "item.0": "literal", item: ["first", "second"] } };
    const render = (isForm: boolean) => renderTemplate("{{event.item.0}} {{event.item.1}}", form, () => undefined, isForm);
    expect(render(true)).toBe("literal second");
    expect(render(false)).toBe("first second");
  });

  test("no identifier with half a surrogate pair, because two such identifiers would look equal", () => {
    const half: JsonObject = { event: { id: "a\ud800", whole: "a😀" } };
    expect(renderIdentifier("{{event.id}}", half)).toBeNull();
    expect(renderIdentifier("{{event.whole}}", half)).toBe("a😀");
  });

  test("a text within the limit, cut between characters, in bounded time", () => {
    const large: JsonObject = { event: { big: "😀".repeat(MAX_RENDERED_CHARS) } };
    const { text } = rendered("a{{event.big}}".repeat(500), large);
    expect(text.length).toBeLessThanOrEqual(MAX_RENDERED_CHARS);
    expect(text.length).toBeGreaterThan(MAX_RENDERED_CHARS - 2);
    expect(text.isWellFormed()).toBe(true);
  });
});

describe("a template is refused in one sentence for", () => {
  const rows: [rule: string, template: string, words: string][] = [
    ["a filter", "{{mapped.a | upper}}", "no expressions or filters"],
    ["a filter without spaces", "{{mapped.a|upper}}", "no expressions or filters"],
    ["a sum", "{{mapped.a + 1}}", "no expressions or filters"],
    ["a call", "{{mapped.a.trim()}}", "no expressions or filters"],
    ["a comparison", "{{mapped.a==1}}", "no expressions or filters"],
    ["a quoted name", `{{mapped["a"]}}`, "no expressions or filters"],
    ["two words", "{{mapped.a or mapped.b}}", "no expressions or filters"],
    ["a block", "{{#if mapped.a}}", "no expressions or filters"],
    ["empty braces", "{{ }}", "is empty"],
    ["a third brace", "{{{mapped.a}}}", "is not a path"],
    ["an opening inside", "{{ {{mapped.a}} }}", "is not a path"],
    ["an empty segment", "{{mapped..a}}", "is not a path"],
    ["only a root", "{{mapped}}", "names a whole mapped"],
    ["a path that is too long", `{{mapped.${"a".repeat(600)}}}`, "is too long"],
  ];
  test.each(rows)("%s: %s", (_rule, template, words) => {
    expect(parseTemplate(template)).toContain(words);
    expect(listTemplateUses(template, "text")).toEqual([]);
  });
});

test("paths are listed as written and in order", () => {
  const uses = listTemplateUses("{{ mapped.a }} and {{event.b.0}} and {{mapped.a}}", "text");
  expect(uses).toEqual(["mapped.a", "event.b.0", "mapped.a"].map((path) => ({ field: "text", path })));
});

test("a text contains a template only with an opening and its closing", () => {
  expect(["", "a", "{{", "}} {{", "{ {a} }"].map(hasTemplate)).toEqual([false, false, false, false, false]);
  expect(["{{a.b}}", "x {{ }} y"].map(hasTemplate)).toEqual([true, true]);
});

describe("data", () => {
  test("is rendered in every text, and names, numbers and structure stay", () => {
    const missing: string[] = [];
    const data = parseJson(
      '{"{{mapped.plan}}":"{{mapped.plan}}","n":12345678901234567890,"list":["{{mapped.none}}",null,true],"__proto__":"{{person.id}}"}',
    );
    const result = renderData(data, scope, (path) => missing.push(path));
    expect(result).toEqual(parseJson('{"{{mapped.plan}}":"gold","n":12345678901234567890,"list":["",null,true],"__proto__":"per_1"}'));
    expect(Object.hasOwn(result as JsonObject, "__proto__")).toBe(true);
    expect(missing).toEqual(["mapped.none"]);
  });

  test("has one limit for all of its texts together", () => {
    const large: JsonObject = { event: { big: "x".repeat(30_000) } };
    const result = renderData(Array(100).fill("{{event.big}}"), large, () => {}) as string[];
    expect(result.join("").length).toBe(MAX_RENDERED_CHARS);
  });
});

test("any text renders or is refused in one sentence, and never throws, exceeds the limit or renders twice", () => {
  const piece = fc.constantFrom("{{", "}}", "{", "}", " ", ".", "mapped", "event.note", "a", "|", "\u0000", "😀", "__proto__");
  const text = fc.oneof(
    fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join("")),
    fc.string({ unit: "binary" }),
  );
  fc.assert(
    fc.property(text, (written) => {
      const { text: result } = rendered(written);
      expect(result.length).toBeLessThanOrEqual(MAX_RENDERED_CHARS);
      expect(result).not.toContain("ada@example.com");
      if (!hasTemplate(written)) expect(result).toBe(written);
      const template = parseTemplate(written);
      if (typeof template === "string") expect(template).toEndWith(".");
    }),
    { numRuns: 2_000 },
  );
});
