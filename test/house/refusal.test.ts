/** The registry of refusal codes and the code that refuses: neither knows a code the other does not. */
import { describe, expect, test } from "bun:test";
import { REFUSALS } from "../../src/ground/refusal-code.ts";
import { codeOf, readSources } from "./source-tree.ts";

const REGISTRY = "src/ground/refusal-code.ts";
const code = readSources("src")
  .filter((source) => source.path !== REGISTRY)
  .map(codeOf)
  .join("\n");
const registered = Object.keys(REFUSALS);

describe("the refusal codes", () => {
  test("every code that is thrown is registered", () => {
    const thrown = [...code.matchAll(/new Refusal\(\s*"([^"]+)"/g)].map(([, name = ""]) => name);
    expect([...new Set(thrown)].filter((name) => !registered.includes(name))).toEqual([]);
    expect(thrown.length).toBeGreaterThan(0);
  });

  test("every registered code is used", () => {
    expect(registered.filter((name) => !code.includes(`"${name}"`) && !code.includes(`.${name}`))).toEqual(
      [],
    );
  });

  test.each(Object.entries(REFUSALS))(
    "%s says when it happens and what to do, each in a sentence",
    (name, entry) => {
      expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/);
      expect(entry.when).toMatch(/^[A-Z].*\.$/s);
      expect(entry.todo).toMatch(/^[A-Z].*\.$/s);
      expect(entry.status).toBeGreaterThanOrEqual(400);
      expect(entry.status).toBeLessThan(600);
    },
  );
});
