/** JSON is parsed exactly and in linear time, and large input is counted before it is parsed. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { measureJson, parseJson, writeJson } from "../../src/base/json.ts";

const raw = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;

/** Parses a text with the runtime's own reviver, which gets each number's characters. It is exact and slow. */
function parseSlowly(text: string): unknown {
  const keep = (_key: string, value: unknown, { source }: { source?: string }) => {
    if (typeof value !== "number" || source === undefined) return value;
    if (/^-?\d+$/.test(source)) {
      if (Number.isSafeInteger(value)) return value;
      return source.length > 1_000 ? raw(source) : BigInt(source);
    }
    const lost = !Number.isFinite(value) || (value === 0 && /^[^eE]*[1-9]/.test(source));
    return lost ? raw(source) : value;
  };
  return JSON.parse(text, keep as never);
}

const number = fc.oneof(
  fc.bigInt().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc
    .tuple(fc.bigInt(), fc.constantFrom("", ".5", "e2", "E-3", ".25e+1", "e400", ".1E-999", "0".repeat(1_001)))
    .map(([left, right]) => `${left}${right}`),
);
const text = fc.string({ unit: "binary" }).map((value) => JSON.stringify(value));
const quoted = fc.bigInt().map((value) => JSON.stringify(`${value}": ${value}, \\"${value}`));
const { value: json } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    number,
    text,
    quoted,
    fc.constantFrom("true", "null", " 12345678901234567 "),
    fc.array(tie("value"), { maxLength: 4 }).map((items) => `[ ${items.join(" ,")}]`),
    fc
      .array(fc.tuple(fc.oneof(text, quoted, fc.constant('"__proto__"')), tie("value")), { maxLength: 4 })
      .map((entries) => `{${entries.map(([name, value]) => `${name} :${value}`).join(", ")}}`),
  ),
}));

test("every JSON text is parsed as the runtime parses it, with exact integers", () => {
  fc.assert(
    fc.property(json, (written) => {
      expect(parseJson(written)).toEqual(parseSlowly(written) as never);
    }),
    { seed: 7, numRuns: 400 },
  );
});

test("invalid JSON is refused, wherever its digits are", () => {
  const broken = fc.tuple(json, fc.nat(), fc.constantFrom("", "1234567890123456789", '"', ":", "-", "0", ",", "\\"));
  fc.assert(
    fc.property(broken, ([written, at, inserted]) => {
      const place = at % (written.length + 1);
      const changed = written.slice(0, place) + inserted + written.slice(place + (inserted === "" ? 1 : 0));
      const read = (parse: (text: string) => unknown): unknown => {
        try {
          return parse(changed);
        } catch (error) {
          return (error as Error).name;
        }
      };
      expect(read(parseJson)).toEqual(read(parseSlowly) as never);
    }),
    { seed: 7, numRuns: 1_000 },
  );
});

for (const [name, written, depth, values] of [
  ["an empty body is one value", "", 0, 1],
  ["brackets and commas in a text do not count", '"[[[,,,\\"[,"', 0, 1],
  ["every further item, list and object counts", '[1,{"a":2,"b":[3]}]', 3, 6],
  ["counting stops past the bound", `[${"1,".repeat(1_000)}1]`, 1, 101],
  ["nesting stops past the bound too", "[".repeat(1_000), 11, 12],
] as const) {
  test(name, () => {
    const bytes = new TextEncoder().encode(written);
    expect(measureJson(bytes, { depth: 10, values: 100 })).toEqual({ depth, values });
  });
}

test("an integer stays the same through reading and writing", () => {
  const written = '{"id":12345678901234567890,"list":[-98765432109876543210,1]}';
  expect(writeJson(parseJson(written))).toBe(written);
});
