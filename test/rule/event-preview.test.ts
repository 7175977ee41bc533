/** The preview of an event in a list: its mapped event_type and its first mapped values, with bounded length for any input. */
import { describe, expect, test } from "bun:test";
import { MAX_LINE_CHARS, MAX_TYPE_CHARS, type Preview, previewOf } from "../../src/engine/event/preview.ts";

const of = (mapped: object): Preview => previewOf(JSON.stringify({ event: { secret: "not mapped" }, mapped }), false);

const CASES: Record<string, [payload: string, Preview]> = {
  "a request: the type first, the sender's id last, the rest in mapped order": [
    '{"event":{"x":1},"mapped":{"event_id":"evt_1","event_type":"order.paid","order":"cs_1","amount":9900}}',
    { eventType: "order.paid", preview: "order cs_1 · amount 9900 · event_id evt_1" },
  ],
  "an integer beyond 2^53 keeps every digit": ['{"mapped":{"n":9007199254740993}}', { eventType: null, preview: "n 9007199254740993" }],
  "lists, objects, nulls and empty texts are omitted": [
    '{"mapped":{"a":[1],"b":{"c":1},"d":null,"e":"","f":true}}',
    { eventType: null, preview: "f true" },
  ],
  "a type that is a number": ['{"mapped":{"event_type":7}}', { eventType: "7", preview: null }],
  "a type that is no scalar, or empty": ['{"mapped":{"event_type":["x"]}}', { eventType: null, preview: null }],
  "a truncated event": ['{"event":null,"mapped":{"order":"o1"}}', { eventType: null, preview: "order o1" }],
  "a tick": ['{"tick":{"periodStart":"2026-01-01T00:00:00.000Z"}}', { eventType: null, preview: "since 2026-01-01T00:00:00.000Z" }],
  "a record change": [
    '{"record":{"id":"rec_1","collection":"notes","data":{"text":"hi"}},"previous":null}',
    { eventType: null, preview: "collection notes · text hi" },
  ],
  "an expunged payload": ['{"expunged":"payload_expunged"}', { eventType: null, preview: null }],
  "text that is no JSON": ["nonsense", { eventType: null, preview: null }],
  "line breaks and terminal escapes become a space": [
    '{"mapped":{"event_type":"a\\nb","x":"\\u001b[31mred\\u0007"}}',
    { eventType: "a b", preview: "x [31mred" },
  ],
};

describe("the preview of an event", () => {
  for (const [what, [payload, preview]] of Object.entries(CASES)) test(what, () => expect(previewOf(payload, false)).toEqual(preview));
});

test("a field that identifies a person appears only if no person was found", () => {
  const text = JSON.stringify({ mapped: { person_email: "ada@example.com", order: "o1" } });
  expect(previewOf(text, true).preview).toBe("order o1");
  expect(previewOf(text, false).preview).toBe("person_email ada@example.com · order o1");
});

test("a preview reads only mapped values", () => {
  expect(JSON.stringify(of({ order: "o1" }))).not.toContain("secret");
});

for (const [what, text] of Object.entries({
  latin: "x".repeat(32_768),
  emoji: "👩‍👩‍👧".repeat(4_000),
  marks: `a${"\u0301".repeat(30_000)}`,
  halves: "\ud83d".repeat(32_768),
})) {
  test(`a preview is short for any length of its values: ${what}`, () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`${at}${text.slice(0, 100)}`, text]));
    const { eventType, preview } = of({ event_type: text, first: text, ...many });
    expect(preview?.length ?? 0).toBeLessThanOrEqual(MAX_LINE_CHARS);
    expect([...(eventType ?? "")].length).toBeLessThanOrEqual(MAX_TYPE_CHARS);
    expect(preview?.isWellFormed() ?? true).toBe(true);
    expect(eventType?.isWellFormed() ?? true).toBe(true);
  });
}
