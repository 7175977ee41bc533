/** The facts that the dashboard's editor knows while the user types: the first JSON error, the position of a field, and the completions. */
import { describe, expect, test } from "bun:test";
import { makeDefinitionSchema } from "../../src/rules/relay/definition-shape.ts";
import { findJsonProblem } from "../../web/editor/json-problem.ts";
import { placeOf, readTree, spotAt } from "../../web/editor/json-tree.ts";
import { describePlace } from "../../web/editor/place-words.ts";
import { allowedAt, choicesAt, type Known, namesFor, type Schema, templateChoices } from "../../web/editor/schema.ts";

describe("the editor reports the first JSON error with its position in a sentence", () => {
  const rows: [text: string, at: string, words: RegExp][] = [
    ['{"a":1,}', ",", /comma before this } is one too many/],
    ['{"a":1\n"b":2}', "1", /A comma is missing/],
    ['{"a" 1}', '"a"', /A colon is missing after this name/],
    ["{a:1}", "a", /needs double quotes: write "a"/],
    [`{"a":'x'}`, "'x'", /only double quotes/],
    ['{"a":"x\n}', '"x', /not closed: write a "/],
    ['{"a":{"b":1', '{"b', /The { of line 1 is not closed/],
    ['{"a":[1}', "}", /write ] before this }/],
    ['{"a":1}}', "}", /closes nothing/],
    ['{"a":01}', "01", /not a JSON number/],
    ['{"a":yes}', "yes", /not a JSON value/],
    ['{"a":1,,"b":2}', ",", /two commas/],
    ['{"a":}', ":", /The value is missing/],
    ["// why\n{}", "//", /no comments/],
    ['{"a":"\\q"}', '"\\q"', /backslash/],
    ["{“a”:1}", "“a”", /curly quotes/],
    ["{} {}", "{", /ends before this/],
    ["", "", /is empty/],
  ];
  test.each(rows)("%j", (text, at, words) => {
    const problem = findJsonProblem(text);
    expect(problem?.message).toMatch(words);
    expect(text.slice(problem?.from)).toStartWith(at);
  });

  test("the editor reports no error for valid JSON", () => {
    for (const text of ['{"a":"\\\\"}', '["\\u0041\\"",1e9,-0.5,true,null]', '"x"', "[]", '{"a":{},"b":[[]]}'])
      expect(findJsonProblem(text)).toBeNull();
  });

  test("unlimited nesting does not overflow the stack", () => {
    const deep = "[".repeat(100_000);
    expect(findJsonProblem(deep)?.message).toContain("not closed");
    expect(readTree(deep)?.kind).toBe("list");
  });
});

describe("the editor finds a field in the text, or the part that contains it", () => {
  const text = '{"trigger":{"map":{"a.b":"x"}},"actions":[{"type":"call_url"},{"type":"x"}]}';
  const rows: [field: string, shown: string][] = [
    ["trigger.map.a.b", '"a.b":"x"'],
    ["trigger.map.missing", '"map"'],
    ["actions.1.type", '"type":"x"'],
    ["actions.1", "{"],
    ["actions.7", '"actions"'],
    ["", "{"],
  ];
  test.each(rows)("%s", (field, shown) => {
    const { from, to } = placeOf(readTree(text), field);
    expect(text.slice(from, to)).toBe(shown);
  });
});

const schema = makeDefinitionSchema() as unknown as Schema;
const catalog = {
  collections: [{ name: "orders", fields: ["status", "total"] }],
  products: ["premium"],
  plans: ["pro"],
  access: ["members"],
  relays: ["stripe"],
};

/** `|` marks the caret. */
function at(marked: string): { known: Known; spot: ReturnType<typeof spotAt> } {
  const caret = marked.indexOf("|");
  const text = marked.replace("|", "");
  const root = readTree(text);
  return { known: { schema, catalog, root }, spot: spotAt(root, caret) };
}

describe("completions at the caret", () => {
  const names = (marked: string): string[] => {
    const { known, spot } = at(marked);
    expect(spot?.is).toBe("name");
    return Object.keys(allowedAt(known, spot?.steps ?? [])?.schema.properties ?? {});
  };
  const values = (marked: string): unknown[] => {
    const { known, spot } = at(marked);
    expect(spot?.is).toBe("value");
    return choicesAt(known, spot?.steps ?? []).map(({ value }) => value);
  };

  test("offer fields by the trigger's kind, the scheme and the action's type", () => {
    expect(names('{"|"}')).toEqual(["name", "trigger", "actions"]);
    expect(names('{"trigger":{"kind":"schedule","|"}}')).toEqual(["kind", "every", "at", "on"]);
    expect(names('{"trigger":{"|"}}')).toEqual(["kind"]);
    expect(names('{"trigger":{"kind":"receiver","verify":{"scheme":"signature","|"}}}')).toContain("signedPayload");
    expect(names('{"actions":[{"|", "type":"grant_access"}]}')).toEqual(["type", "entitlement", "expiresAt", "reason"]);
  });

  test("offer values from the schema, the catalog and the definition", () => {
    expect(values('{"trigger":{"kind":"|"}}')).toEqual(["receiver", "schedule", "data_change"]);
    expect(values('{"trigger":{"kind":"schedule","every":|}}')).toContain("15m");
    expect(values('{"trigger":{"kind":"receiver","trustUnsignedEvents":|}}')).toEqual([true, false]);
    expect(values('{"trigger":{"kind":"data_change","collection":"|"}}')).toEqual(["orders"]);
    expect(values('{"actions":[{"type":"grant_access","entitlement":"|"}]}')).toEqual(["pro", "premium", "access:members"]);
    expect(values('{"actions":[{"type":"write_record","collection":"|"}]}')).toEqual(["orders"]);
    expect(values('{"actions":[{"type":"fulfil_product","product":"|"}]}')).toEqual(["premium"]);
    expect(values('{"trigger":{"kind":"receiver","verify":{"scheme":"receiver","receiver":"|"}}}')).toEqual(["stripe"]);
    expect(values('{"actions":[|]}')[0]).toMatchObject({ type: "write_record" });
  });

  test("offer names of another part where they are valid", () => {
    const when = at('{"trigger":{"kind":"receiver","map":{"event_type":"type"},"when":{"|"}}}');
    expect(namesFor(when.known, "mapped", when.spot?.steps ?? [])).toEqual(["event_type"]);
    expect(values('{"trigger":{"kind":"receiver","map":{"event_id":"id","customer_id":"customer"},"customer":{"id":"|"}}}')).toEqual([
      "event_id",
      "customer_id",
    ]);
    const data = at('{"actions":[{"type":"write_record","collection":"orders","data":{"|"}}]}');
    expect(namesFor(data.known, "field", data.spot?.steps ?? [])).toEqual(["status", "total"]);
  });

  test("offer template paths that the trigger provides", () => {
    const offered = (text: string) => templateChoices(at(text).known).map(({ value }) => value);
    expect(offered('{"trigger":{"kind":"receiver","map":{"order":"data.id"}}}|')).toEqual([
      "event.data.id",
      "mapped.order",
      "person.email",
      "person.id",
    ]);
    expect(offered('{"trigger":{"kind":"data_change","collection":"orders"}}|')).toContain("record.data.status");
    expect(offered('{"trigger":{"kind":"schedule"}}|')).toEqual(["tick.periodStart"]);
  });

  test("show a field's rule in words, with an example", () => {
    const { known, spot } = at('{"trigger":{"kind":"schedule","every":"1|d"}}');
    expect(spot === null ? null : describePlace(known, spot, null)).toMatchObject({
      field: "trigger.every",
      rule: expect.stringContaining("one of 15m"),
      example: '"1h"',
    });
    const mapped = at('{"trigger":{"kind":"receiver","map":{"event_id|":"id"}}}');
    expect(mapped.spot === null ? null : describePlace(mapped.known, mapped.spot, "event_id")?.rule).toContain("id of the event");
  });
});

test("show a rule for every field of a definition", () => {
  const silent: string[] = [];
  const walk = (part: Schema, place: string, isField: boolean): void => {
    if (isField && part.description === undefined) silent.push(place);
    for (const [name, field] of Object.entries(part.properties ?? {})) {
      // The discriminator has its own text in each variant.
      walk(field, `${place}.${name}`, part.oneOf === undefined);
    }
    for (const field of Object.values(part.patternProperties ?? {})) walk(field, `${place}.*`, true);
    if (part.items !== undefined) walk(part.items, `${place}[]`, part.items.enum === undefined);
    for (const variant of part.oneOf ?? []) walk(variant, place, false);
  };
  walk(schema, "", true);
  expect(silent).toEqual([]);
});
