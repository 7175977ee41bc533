/** The JSON Schema for editors accepts what the check accepts, and contains only standard keywords. */
import { describe, expect, test } from "bun:test";
import type { TSchema } from "typebox";
import { Check } from "typebox/value";
import { ACTIONS } from "../../src/rules/action/registry.ts";
import { makeDefinitionSchema } from "../../src/rules/relay/definition-shape.ts";
import { TRIGGERS } from "../../src/rules/trigger/registry.ts";
import { SCHEMES } from "../../src/rules/verify/registry.ts";

const schema = makeDefinitionSchema();
const call = ACTIONS.find((type) => type.type === "call_url")?.examples[0];
const trigger = { kind: "schedule", every: "1d" };

function takes(value: unknown): boolean {
  return Check(schema as unknown as TSchema, value);
}

test("the schema is draft 2020-12", () => {
  expect(schema.$schema).toBe("https://json-schema.org/draft/2020-12/schema");
});

test("the schema contains only standard keywords", () => {
  const words = new Set<string>();
  JSON.stringify(schema, (name, value) => {
    words.add(name);
    return value;
  });
  for (const own of ["expects", "expectsName", "templated", "discriminator", "renamed", "strangers"]) {
    expect(words.has(own)).toBe(false);
  }
  expect(JSON.parse(JSON.stringify(schema))).toEqual(schema);
});

describe("the schema accepts every example", () => {
  const rows = [
    ...TRIGGERS.flatMap(({ kind, examples }) => examples.map((one) => [kind, { trigger: one }] as const)),
    ...ACTIONS.flatMap(({ type, examples }) => examples.map((one) => [type, { actions: [one] }] as const)),
    ...SCHEMES.flatMap(({ name, examples }) => examples.map((verify) => [name, { trigger: { kind: "receiver", verify, map: {} } }] as const)),
  ];
  test.each(rows)("%s", (_title, part) => {
    expect(takes({ name: "paid", trigger, actions: [call], ...part })).toBe(true);
  });
});

describe("the schema refuses", () => {
  const rows: [title: string, part: object][] = [
    ["a bad name", { name: "Paid" }],
    ["an unknown field", { extra: 1 }],
    ["an unknown kind", { trigger: { kind: "cron" } }],
    ["a trigger of another kind's fields", { trigger: { ...trigger, map: {} } }],
    ["an unknown type", { actions: [{ type: "start_run" }] }],
    ["an unknown field of an action", { actions: [{ ...(call as object), method: "GET" }] }],
    ["eleven actions", { actions: Array(11).fill(call) }],
    ["an unknown scheme", { trigger: { kind: "receiver", verify: { scheme: "hmac_sha256_header" }, map: {} } }],
  ];
  test.each(rows)("%s", (_title, part) => {
    expect(takes({ name: "paid", trigger, actions: [call], ...part })).toBe(false);
  });
});

test("the schema names every kind, type and scheme where an editor completes them", () => {
  const text = JSON.stringify(schema);
  for (const name of [...TRIGGERS.map((one) => one.kind), ...ACTIONS.map((one) => one.type), ...SCHEMES.map((one) => one.name)]) {
    expect(text).toContain(`"const":"${name}"`);
  }
});
