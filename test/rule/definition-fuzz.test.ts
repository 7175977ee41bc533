/** The check of definitions never throws and takes bounded time for any JSON. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { parseJson } from "../../src/base/json.ts";
import { ACTIONS } from "../../src/rules/action/registry.ts";
import { checkDefinition } from "../../src/rules/relay/definition.ts";
import { makeDefinitionSchema } from "../../src/rules/relay/definition-shape.ts";
import { TRIGGERS } from "../../src/rules/trigger/registry.ts";
import { SCHEMES } from "../../src/rules/verify/registry.ts";

const RUNS = Number(process.env.FUZZ_RUNS ?? 300);

/** Replaces any part of valid pieces, so that the check goes deep before it finds an error. */
const piece = fc.constantFrom<unknown>(
  ...TRIGGERS.flatMap((one) => one.examples),
  ...ACTIONS.flatMap((one) => one.examples),
  ...SCHEMES.flatMap((one) => one.examples),
);
const key = fc.oneof(fc.string(), fc.constantFrom("kind", "verify", "scheme", "map", "when", "type", "data", "to", "__proto__", "constructor"));
const mutant = fc.tuple(piece, key, fc.oneof(fc.jsonValue(), fc.bigInt())).map(([base, name, value]) => ({ ...(base as object), [name]: value }));
const anything = fc.oneof(fc.jsonValue({ maxDepth: 6 }), mutant, piece);

function judge(value: unknown): void {
  const checked = checkDefinition(value);
  if (!("problems" in checked)) return;
  expect(checked.problems.length).toBeGreaterThan(0);
  for (const { field, message } of checked.problems) {
    expect(typeof field).toBe("string");
    expect(message).toMatch(/\.$/);
    expect(message.length).toBeLessThan(2_000);
  }
}

test("arbitrary JSON never makes the check throw", () => {
  fc.assert(fc.property(anything, judge), { numRuns: RUNS });
});

test("a definition of arbitrary parts never makes the check throw", () => {
  const definition = fc.record(
    { name: fc.oneof(fc.string(), fc.constant("paid")), trigger: anything, actions: fc.array(anything) },
    { requiredKeys: [] },
  );
  fc.assert(fc.property(definition, judge), { numRuns: RUNS });
});

test("a mutated trigger or action of a valid definition never makes the check throw", () => {
  const definition = fc.record({
    name: fc.constant("paid"),
    trigger: mutant,
    actions: fc.array(mutant, { maxLength: 4 }),
  });
  fc.assert(fc.property(definition, judge), { numRuns: RUNS });
});

test("a value that cannot be converted to text never makes the check throw", () => {
  for (const odd of [{ toString: "" }, [{ toString: "" }], { valueOf: 1, toString: 1 }, [[{ toString: null }]]]) {
    judge({ name: "paid", trigger: { kind: odd, verify: { scheme: "hooks" }, map: {} }, actions: [] });
    judge({
      name: odd,
      trigger: { kind: "receiver", verify: { scheme: odd }, map: { a: odd } },
      actions: [{ type: odd }],
    });
    judge({ name: "paid", trigger: { kind: "schedule", every: odd, at: odd, on: odd }, actions: odd });
    judge({
      name: "paid",
      trigger: { kind: "data_change", collection: odd, on: [odd], where: { a: odd } },
      actions: [],
    });
  }
});

test("a text of a hundred thousand open brackets is refused without parsing it recursively", () => {
  const depth = 5_000;
  judge(parseJson(`${"[".repeat(depth)}${"]".repeat(depth)}`));
  judge({ name: "paid", trigger: parseJson(`${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`), actions: [] });
});

test("hostile texts are checked in linear time", () => {
  const long = "a".repeat(100_000);
  for (const text of [long, `${long}!`, `${"a.".repeat(50_000)}`, "{{".repeat(50_000), `{{${" ".repeat(99_000)}`]) {
    judge({
      name: text,
      trigger: { kind: "receiver", verify: { scheme: text }, map: { a: "b" }, when: { a: "b" } },
      actions: [{ type: "grant_access", entitlement: "pro", reason: "x" }],
    });
    judge({
      name: "paid",
      trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { [text]: text } },
      actions: [{ type: "email_person", subject: "s", text }],
    });
  }
});

test("the JSON Schema is a new object each time", () => {
  const first = makeDefinitionSchema();
  first.title = "changed";
  expect(makeDefinitionSchema().title).toBe("Relay definition");
});
