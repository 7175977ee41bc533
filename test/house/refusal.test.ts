/**
 * Checks that the code registries (refusals, results, problems, requests, warnings, mails) match the codes in the sources. `relay help` and a docs page must explain
 * every code that a person can see.
 */
import { describe, expect, test } from "bun:test";
import { findMeaning, listMeanings } from "../../src/base/code/code.ts";
import type { CodeEntry } from "../../src/base/code/code-entry.ts";
import { MAIL_FAILURES } from "../../src/base/code/mail-code.ts";
import { PROBLEMS } from "../../src/base/code/problem-code.ts";
import { REFUSALS } from "../../src/base/code/refusal-code.ts";
import { REQUESTS } from "../../src/base/code/request-code.ts";
import { RESULTS } from "../../src/base/code/result-code.ts";
import { WARNINGS } from "../../src/base/code/warning-code.ts";
import { CODES } from "../../src/engine/health/condition.ts";
import { ALERT_CODES } from "../../src/platform/audit/alert.ts";
import { codeOf, readSources } from "./source-tree.ts";

const code = readSources("src")
  .filter(({ path }) => !path.startsWith("src/base/code/"))
  .map(codeOf)
  .join("\n");
const registered = Object.keys(REFUSALS);

/** Each field of an entry is one or more whole sentences. */
function expectSentences({ what, why = what, todo, next = what }: CodeEntry): void {
  for (const text of [what, why, todo, next]) expect(text).toMatch(/^([A-Z]|`).*\.$/s);
}

describe("the refusal codes", () => {
  test("every code that is thrown is registered", () => {
    const thrown = [...code.matchAll(/new Refusal\(\s*"([^"]+)"/g)].map(([, name = ""]) => name);
    expect([...new Set(thrown)].filter((name) => !registered.includes(name))).toEqual([]);
    expect(thrown.length).toBeGreaterThan(0);
  });

  test("every registered code is used", () => {
    expect(registered.filter((name) => !code.includes(`"${name}"`) && !code.includes(`.${name}`))).toEqual([]);
  });

  test.each(Object.entries(REFUSALS))("%s says what happened and what to do, in sentences", (name, entry) => {
    expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expectSentences(entry);
    expect(entry.status).toBeGreaterThanOrEqual(400);
    expect(entry.status).toBeLessThan(600);
  });
});

describe("the codes of an event's results", () => {
  const results = Object.keys(RESULTS);
  const known = new Set([...registered, ...results, ...Object.keys(WARNINGS)]);
  /** Lists codes of alerts and mail failures, which occur next to results in these modules. */
  const others = new Set([...Object.keys(PROBLEMS), ...Object.keys(REQUESTS), ...Object.keys(MAIL_FAILURES)]);
  const rooms = readSources("src").filter(({ path }) => /\/(action|selling|runner|outbound|event)\//.test(path));

  test("every code that an action, a sale, a run or a call can end with has a page", () => {
    const used = rooms.flatMap((source) => [
      ...codeOf(source).matchAll(/\b(?:code|reason): (?:[\w.!? ]*[?:] )*"([a-z_]+)"/g),
      ...codeOf(source).matchAll(/\b(?:fail|failFinally|failForNow|refuse)\(\s*"([a-z_]+)"/g),
    ]);
    const codes = new Set(used.map(([, name = ""]) => name).filter((name) => !others.has(name)));
    expect([...codes].filter((name) => !known.has(name))).toEqual([]);
    expect(codes.size).toBeGreaterThan(20);
  });

  test("every result code is used, and none is also a refusal", () => {
    expect(results.filter((name) => !code.includes(`"${name}"`))).toEqual([]);
    expect(results.filter((name) => registered.includes(name))).toEqual([]);
  });

  test.each(Object.entries(RESULTS))("%s says what happened and what to do, in sentences", (name, entry) => {
    expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expectSentences(entry);
  });
});

describe("the codes of warnings", () => {
  test.each(Object.entries(WARNINGS))("%s is used, and says what happened and what to do, in sentences", (name, entry) => {
    expect(code).toContain(`"${name}"`);
    expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expectSentences(entry);
  });
});

describe("the codes of problems, alerts, requests and mails", () => {
  test.each(Object.entries({ ...PROBLEMS, ...REQUESTS, ...MAIL_FAILURES }))(
    "%s is used, and says what happened and what to do, in sentences",
    (name, entry) => {
      expect(code).toMatch(new RegExp(`"${name}"|\\b${name}:`));
      expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/);
      expectSentences(entry);
    },
  );

  test("none is also a result, and one that is also a warning or a refusal has both explanations", () => {
    const others = [...Object.keys(RESULTS), ...Object.keys(WARNINGS)];
    expect(Object.keys(PROBLEMS).filter((name) => others.includes(name))).toEqual(["secret_missing"]);
    expect(listMeanings("secret_missing").map(({ kinds }) => kinds)).toEqual([["problem", "alert"], ["warning"]]);
    const shared = Object.keys(PROBLEMS).filter((name) => registered.includes(name));
    expect(shared).toEqual(["relay_capped", "writes_capped"]);
    for (const name of shared) expect(listMeanings(name).map(({ kinds }) => kinds.includes("alert"))).toEqual([false, true]);
  });
});

/** Lists types and an outcome that the pattern also matches. */
const NO_CODES = new Set(["failed", "number", "string"]);

test("relay help <code> and /docs/errors/<code> explain every code in the sources", () => {
  const shown = readSources("src").flatMap((source) => [
    ...codeOf(source).matchAll(/\b(?:code|reason|endOf)(?:\?\?=|: | = | === | !== )(?:[\w.!? ()]*[?:] )*"([a-z]+(?:_[a-z]+)*)"/g),
    ...codeOf(source).matchAll(/\b[A-Z_]*(?:CODE|BROKEN|EXPIRING|PROXY) = "([a-z_]+)"/g),
  ]);
  const codes = [...shown.map(([, name = ""]) => name), ...ALERT_CODES, ...CODES, ...registered, ...Object.keys(MAIL_FAILURES)];
  expect([...new Set(codes)].filter((name) => !NO_CODES.has(name) && findMeaning(name) === null)).toEqual([]);
  expect(new Set(codes).size).toBeGreaterThan(100);
});
