/** The form of a definition: every valid definition is expressed, nothing is lost, and an edit changes only its own lines. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Json, parseJson, writeJson } from "../../src/base/json.ts";
import { MAX_JSON_DEPTH } from "../../src/base/limit.ts";
import { makeDefinitionSchema } from "../../src/rules/relay/definition-shape.ts";
import { SENDERS } from "../../src/rules/senders/registry.ts";
import { type GroupPart, listParts, type Part, readForm } from "../../web/builder/form/form-part.ts";
import { formatProblem, placeProblems } from "../../web/builder/form/form-problem.ts";
import { chooseVariant, pathOf, removePart, writeNumber, writeText } from "../../web/builder/form/part-edit.ts";
import { type JsonNode, readTree } from "../../web/editor/json-tree.ts";
import type { Schema } from "../../web/editor/schema.ts";
import { setValue } from "../../web/editor/text-edit.ts";
import { listKnownDefinitions } from "../kit/known-definition.ts";
import { valuesOf } from "../kit/schema-value.ts";

const schema = makeDefinitionSchema() as unknown as Schema;
const known = listKnownDefinitions();

const FORMATS: readonly ((value: Json) => string)[] = [
  (value) => `${writeJson(value, 2)}\n`,
  (value) => writeJson(value, 4),
  (value) => JSON.stringify(value, null, "\t"),
  (value) => writeJson(value),
  (value) => `${writeJson(value, 2)}\n`.replaceAll("\n", "\r\n"),
];

const partsOf = (text: string): Part[] => {
  const form = readForm(schema, text);
  return form === null ? [] : listParts(form);
};

/** Lists the fields that only the JSON can edit. */
const editedInJson = (text: string): string[] =>
  partsOf(text)
    .filter(({ is }) => is === "json")
    .map(({ steps }) => pathOf(steps));

/** Lists the texts and words in the tree that no part contains. A variant's own name is shown by its group. */
function lostIn(text: string): string[] {
  const shown = new Set<number>();
  const show = (node: JsonNode): void => {
    shown.add(node.from);
    for (const one of [...node.items, ...node.members.flatMap(({ value }) => value ?? [])]) show(one);
  };
  for (const part of partsOf(text)) {
    if (part.node === null) continue;
    if (part.is === "group") for (const { name, value } of part.node.members) if (name === part.variants?.name && value !== null) show(value);
    if (part.is !== "group" && part.is !== "rows" && part.is !== "list") show(part.node);
  }
  const lost: string[] = [];
  const walk = (node: JsonNode | null): void => {
    if (node === null) return;
    if ((node.kind === "text" || node.kind === "word") && !shown.has(node.from)) lost.push(node.value);
    for (const one of [...node.items, ...node.members.map(({ value }) => value)]) walk(one);
  };
  walk(readTree(text));
  return lost;
}

test("every known definition is expressed by the form", () => {
  expect(known.length).toBeGreaterThan(SENDERS.length);
  for (const [title, definition] of known)
    for (const write of FORMATS) {
      const text = write(definition);
      expect([title, editedInJson(text), lostIn(text)]).toEqual([title, [], []]);
    }
});

const definitions = valuesOf(schema);
const RUNS = { numRuns: 500 };

test("every definition that the schema allows is expressed by the form", () => {
  fc.assert(
    fc.property(definitions, fc.constantFrom(...FORMATS), (definition, write) => {
      const text = write(definition);
      expect(editedInJson(text)).toEqual([]);
      expect(lostIn(text)).toEqual([]);
    }),
    RUNS,
  );
});

describe("content that the form cannot express is named and stays", () => {
  const rows: [what: string, text: string, paths: string[]][] = [
    ["an unknown field", '{"name":"a","$schema":"x"}', ["$schema"]],
    ["a number for a text", '{"name":7}', ["name"]],
    ["a list for the trigger", '{"trigger":[]}', ["trigger"]],
    ["an unknown kind", '{"trigger":{"kind":"webhook","url":"x"}}', ["trigger.url"]],
    ["a kind that is no text", '{"trigger":{"kind":1}}', ["trigger.kind"]],
    ["a field of another scheme", '{"trigger":{"kind":"receiver","verify":{"scheme":"hooks","header":"x"}}}', ["trigger.verify.header"]],
    ["a condition of a number", '{"trigger":{"kind":"receiver","when":{"a":1}}}', ["trigger.when.a"]],
    ["a condition with an object", '{"trigger":{"kind":"data_change","where":{"a":{}}}}', ["trigger.where.a"]],
    ["a path that is a list", '{"trigger":{"kind":"receiver","map":{"a":["b"]}}}', ["trigger.map.a"]],
    ["a first of two members", '{"name":"a","name":"b"}', ["name"]],
    ["an action that is a text", '{"actions":["call_url"]}', ["actions.0"]],
    ["a text for a number", '{"actions":[{"type":"grant_credits","amount":"5"}]}', ["actions.0.amount"]],
    ["an unknown kind of change", '{"trigger":{"kind":"data_change","on":["moved"]}}', ["trigger.on"]],
  ];
  test.each(rows)("%s", (_what, text, paths) => {
    expect(editedInJson(text)).toEqual(paths);
    expect(lostIn(text)).toEqual([]);
  });

  test("a value that is too large or too deep for a form", () => {
    const data = (value: string) => `{"actions":[{"type":"write_record","collection":"a","data":{"b":${value}}}]}`;
    const deep = (levels: number) => data(`${"[".repeat(levels)}1${"]".repeat(levels)}`);
    expect(editedInJson(deep(MAX_JSON_DEPTH))).toEqual([]);
    expect(editedInJson(deep(5_000))).toEqual(["actions.0.data.b"]);
    expect(editedInJson(data(JSON.stringify(Array(150).fill(1))))).toEqual([]);
    expect(editedInJson(data(JSON.stringify(Array(10_000).fill(1))))).toEqual(["actions.0.data.b"]);
    const members = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`a${at}`, "b"]));
    expect(editedInJson(JSON.stringify({ trigger: { kind: "receiver", map: members } }))).toEqual(["trigger.map"]);
    expect(editedInJson(JSON.stringify({ actions: Array(10_000).fill({ type: "call_url" }) }))).toEqual(["actions"]);
  });

  test("a text that is not JSON has no form", () => {
    expect(readForm(schema, "{ nope")).toBeNull();
    expect(editedInJson("[]")).toEqual([""]);
  });
});

/** Counts the lines that differ, and checks that the text before and after them is equal. */
function changedLines(before: string, after: string): string[] {
  const [was, is] = [before.split("\n"), after.split("\n")];
  const shorter = Math.min(was.length, is.length);
  let begin = 0;
  while (begin < shorter && was[begin] === is[begin]) begin += 1;
  let end = 0;
  while (end < shorter - begin && was.at(-1 - end) === is.at(-1 - end)) end += 1;
  return was.slice(begin, was.length - end);
}

/** Inputs whose edit replaces one text. */
const inputs = (text: string): Part[] =>
  partsOf(text).filter(({ is, node }) => (is === "text" || is === "name" || is === "template") && node !== null);

describe("a form's edit", () => {
  test("that writes what is written changes no byte", () => {
    for (const [, definition] of known)
      for (const write of FORMATS) {
        const text = write(definition);
        for (const part of inputs(text)) expect(writeText(text, part, part.node?.value ?? "")).toBe(text);
      }
  });

  test("of any field changes only the line of the field, and the edit back restores the text", () => {
    fc.assert(
      fc.property(definitions, fc.constantFrom(...FORMATS), fc.nat(), fc.string({ minLength: 1 }), (definition, write, at, typed) => {
        const text = write(definition);
        const all = inputs(text);
        const part = all[at % all.length];
        if (part?.node == null) return;
        const edited = writeText(text, part, typed);
        expect(changedLines(text, edited).length).toBeLessThanOrEqual(1);
        expect(setValue(edited, part.steps, part.node.value)).toBe(text);
      }),
      RUNS,
    );
  });

  test("that removes a field leaves everything else", () => {
    const text =
      '{"trigger":{"kind":"receiver","when":{"a":"b"},"customer":{"id":"x","space":"y"}},"actions":[{"type":"grant_credits","amount":5,"ref":"r"}]}';
    const find = (path: string): Part => {
      const found = partsOf(text).find(({ steps }) => pathOf(steps) === path);
      if (found === undefined) throw new Error(`There is no ${path}.`);
      return found;
    };
    expect(writeText(text, find("actions.0.ref"), "")).toBe(text.replace(',"ref":"r"', ""));
    expect(removePart(text, find("trigger.when.a"))).toBe(text.replace(',"when":{"a":"b"}', ""));
    expect(writeText(text, find("trigger.customer.space"), "")).toBe(text.replace(',"space":"y"', ""));
    expect(writeNumber(text, find("actions.0.amount"), "12345678901234567890")).toBe(text.replace("5", "12345678901234567890"));
    expect(writeNumber(text, find("actions.0.amount"), "1x")).toBeNull();
    expect(writeNumber(text, find("actions.0.amount"), "")).toBeNull();
  });

  test("that chooses another kind keeps the fields that both have", () => {
    const text =
      '{"trigger":{"kind":"receiver","verify":{"scheme":"hooks","handshake":"slack"},"map":{}},"actions":[{"type":"grant_plan","plan":"pro","ref":"r"}]}';
    const group = (path: string) => partsOf(text).find((part): part is GroupPart => part.is === "group" && pathOf(part.steps) === path) as GroupPart;
    const value = (edited: string) => parseJson(edited) as { trigger: Json; actions: Json[] };
    expect(value(chooseVariant(text, group("actions.0"), "revoke_plan")).actions).toEqual([{ type: "revoke_plan", plan: "pro", ref: "r" }]);
    expect(value(chooseVariant(text, group("actions.0"), "grant_credits")).actions).toEqual([{ type: "grant_credits", amount: 1, ref: "r" }]);
    expect(value(chooseVariant(text, group("trigger.verify"), "receiver")).trigger).toMatchObject({ verify: { scheme: "receiver", receiver: "" } });
    expect(value(chooseVariant(text, group("trigger"), "schedule")).trigger).toEqual({ kind: "schedule", every: "1h" });
    expect(value(chooseVariant(text, group("trigger"), "data_change")).trigger).toEqual({ kind: "data_change", collection: "", on: ["created"] });
    expect(chooseVariant(text, group("trigger"), "nothing")).toBe(text);
  });
});

test("a problem is at its field, or at the nearest part around it", () => {
  const text = '{"name":"a","trigger":{"kind":"receiver","map":{"a.b":"x"}},"actions":[{"type":"call_url"},{"type":"call_url","url":5}]}';
  const fields = [
    "name",
    "trigger.verify",
    "trigger.map.a.b",
    "trigger.map.lost",
    "actions[0].url",
    "actions.1.url",
    "actions.1.type",
    "actions.7",
    "nothing",
    "",
  ];
  const found = placeProblems(
    readForm(schema, text),
    fields.map((field) => ({ field, message: field })),
  );
  expect([...found].map(([path, problems]) => [path, problems.map(({ message }) => message)])).toEqual([
    ["name", ["name"]],
    ["trigger.verify", ["trigger.verify"]],
    ["trigger.map.a.b", ["trigger.map.a.b"]],
    ["trigger.map", ["trigger.map.lost"]],
    ["actions.0.url", ["actions[0].url"]],
    ["actions.1.url", ["actions.1.url"]],
    ["actions.1.type", ["actions.1.type"]],
    ["actions", ["actions.7"]],
    ["", ["nothing", ""]],
  ]);
});

test.each([
  ["actions.0.entitlement", "`actions.0.entitlement` is empty: it must be a plan name.", "Entitlement is empty: it must be a plan name."],
  ["actions[1].expiresAt", "`actions[1].expiresAt` is 4.", "Ends is 4."],
  ["actions.0", "`actions.0` (grant_access) acts on the event's person.", "Action 1 acts on the event's person."],
  ["actions", "`actions` is empty.", "The list of actions is empty."],
  ["trigger.map.lost_id", "`trigger.map.lost_id` is empty.", "`lost_id` is empty."],
  ["trigger.at", "`trigger.every` is empty.", "`trigger.every` is empty."],
  ["name", "Write a name.", "Write a name."],
])("the problem of %j is said with the label of its field", (field, message, said) => {
  expect(formatProblem({ field, message })).toBe(said);
});

test("a problem away from its field names the action too", () => {
  const message = "`actions.2.url` is empty.";
  expect(formatProblem({ field: "actions.2.url", message }, true)).toBe("URL of action 3 is empty.");
});
