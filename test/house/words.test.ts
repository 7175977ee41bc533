/** Checks the English that people read (CONTRIBUTING.md, Style): `npm run words` finds what the style guide bans. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { CLEAN_PLACES, checkSentence, listFindings } from "../../scripts/words/check.ts";
import { readComments, readJsonStrings, readMarkdown, readStrings } from "../../scripts/words/sentences.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

function findingsOf(text: string): string[] {
  return checkSentence({ path: "page.md", line: 1, text }, { read: readMarkdown, isShort: true }).map(({ found }) => found);
}

describe("a sentence", () => {
  test.each([
    ["Relay retries the event after 1 minute.", []],
    ["Create the collection, then mend the relay.", ["mend"]],
    ["The API alone deletes them.", ["alone"]],
    ["The field `alone` is optional.", []],
    ["Whoever has the key reads it.", ["Whoever"]],
    ["What does a code mean?", []],
    ["The event was cancelled.", ["cancelled"]],
    ["The action `fulfil_product` fulfills a product.", []],
    ["A colour behaves as thier colors do.", ["colour", "thier"]],
    ["Stripe’s webhooks can't read camelCase, relay_key, --only, evt_1 or docs/relay.md.", []],
    ["The Adyen terms are known; Xlist is a placeholder.", []],
    [`${"word ".repeat(31)}end.`, ["32 words"]],
  ])("%s", (text, found) => {
    expect(findingsOf(text)).toEqual(found);
  });
});

test.each([
  ["What a read needs.", ["What"]],
  ["Whether the relay verifies.", ["Whether"]],
  ["True if the relay verifies.", []],
])("a comment: %s", (text, found) => {
  const place = { read: readComments, isShort: false };
  expect(checkSentence({ path: "a.ts", line: 1, text }, place).map((finding) => finding.found)).toEqual(found);
});

describe("sentences are read", () => {
  test("from Markdown without code, head and rules of tables", () => {
    const page = "---\ntitle: A title of it\n---\n\n# Two words\n\nOne. Two\nlines.\n\n```sh\nno prose here\n```\n\n| a cell | `b` |\n|---|---|\n";
    expect(readMarkdown("a.md", page).map(({ line, text }) => [line, text])).toEqual([
      [5, "Two words"],
      [7, "One."],
      [7, "Two lines."],
      [14, "a cell"],
      [14, "`b`"],
    ]);
  });

  test("from the strings and the comments of a source", () => {
    const source = '/** Says a thing. */\nconst a = "One sentence for people. Another one.";\nconst b = "SELECT a FROM b";\n';
    expect(readStrings("a.ts", source).map(({ line, text }) => [line, text])).toEqual([
      [2, "One sentence for people."],
      [2, "Another one."],
    ]);
    expect(readComments("a.ts", source).map(({ line, text }) => [line, text])).toEqual([[1, "Says a thing."]]);
  });

  test("from the values of JSON", () => {
    expect(readJsonStrings("a.json", '{\n  "a key of it": "a long value of it"\n}').map(({ line, text }) => [line, text])).toEqual([
      [2, "a long value of it"],
    ]);
  });
});

test("the clean places have no finding", () => {
  const findings = listFindings((path) => readFileSync(join(PROJECT_ROOT, path), "utf8"));
  const wrong = findings.filter(({ place }) => CLEAN_PLACES.includes(place));
  expect(wrong.map(({ path, line, found, instead }) => `${path}:${line}: ${found} → ${instead}`)).toEqual([]);
});
