/**
 * A change of production that hides from its approver: deep inside a long value, behind letters that imitate others, or in invisible characters. The
 * approval page and Promote's card mark the part that differs.
 */
import { describe, expect, test } from "bun:test";
import { findDeceptive } from "../../web/base/look-alike.ts";
import { diffLine, type LinePart } from "../../web/relay/line-diff.ts";
import { diffLines } from "../../web/relay/text-diff.ts";

const shown = (parts: readonly LinePart[]): string =>
  parts.map((part) => (part.kind === "skipped" ? `<${part.characters}>` : part.kind === "changed" ? `[${part.text}]` : part.text)).join("");
const diff = (left: string, right: string): [string, string] => {
  const { left: one, right: other } = diffLine(left, right);
  return [shown(one), shown(other)];
};
const escaped = (text: string): string[] => findDeceptive(text).map(({ at, text: character }) => `${at} ${character}`);

describe("a changed line marks the part that differs", () => {
  const rows: [string, string, string, string, string][] = [
    ["a word", '"url": "https://a.example/x"', '"url": "https://b.example/x"', '"url": "https://[a].example/x"', '"url": "https://[b].example/x"'],
    ["an addition", '"to": "a"', '"to": "a, eve"', '"to": "a"', '"to": "a[, eve]"'],
    ["two parts far from each other", "one a two b three", "one x two y three", "one [a] two [b] three", "one [x] two [y] three"],
    ["a blank", '"a b"', '"a  b"', '"a[ ]b"', '"a[  ]b"'],
    [
      "one letter of a long word",
      `"${"a".repeat(60)}"`,
      `"${"a".repeat(30)}b${"a".repeat(29)}"`,
      `"${"a".repeat(30)}[a]${"a".repeat(29)}"`,
      `"${"a".repeat(30)}[b]${"a".repeat(29)}"`,
    ],
  ];
  test.each(rows)("%s", (_, left, right, leftShown, rightShown) => {
    expect(diff(left, right)).toEqual([leftShown, rightShown]);
  });

  test("8,000 characters deep in a value of 9,000 within 250 characters of the line's beginning", () => {
    const words = Array.from({ length: 1_500 }, (_, n) => `word${n}`);
    const left = `"text": "${words.join(" ")}"`;
    const right = left.replace("word1200", "evil");
    for (const side of diff(left, right)) {
      const at = side.indexOf("[");
      expect(at).toBeGreaterThan(0);
      expect(at).toBeLessThan(250);
      expect(side.length).toBeLessThan(500);
    }
    expect(diff(left, right)[1]).toContain("[evil]");
  });

  test("in a value of 60,000 letters without a blank", () => {
    const left = "x".repeat(60_000);
    const right = `${"x".repeat(40_000)}y${"x".repeat(19_999)}`;
    expect(diff(left, right)[1]).toMatch(/^x{80}<39840>x{80}\[y\]x{80}<19839>x{80}$/);
  });

  test("as one part from the first to the last of many changed letters in such a value", () => {
    const right = [..."x".repeat(60_000)].map((letter, at) => (at % 2 === 0 && at > 9_999 && at < 50_000 ? "y" : letter)).join("");
    const [, other] = diff("x".repeat(60_000), right);
    expect(other.replace(/[xy]{200,}/, "…")).toMatch(/^x{80}<9840>x{80}\[…\]x{80}/);
  });
});

test("lines of the same field are compared, whatever came between them", () => {
  const left = '{\n  "a": 1,\n  "url": "https://x.example/"\n}';
  const right = '{\n  "b": 2,\n  "c": 3,\n  "url": "https://y.example/"\n}';
  const url = diffLines(left, right).filter(({ text }) => text.includes('"url"'));
  expect(url.map(({ kind, parts }) => [kind, shown(parts ?? [])])).toEqual([
    ["left", '  "url": "https://[x].example/"'],
    ["right", '  "url": "https://[y].example/"'],
  ]);
});

test("two spellings of one letter are reported as looking the same", () => {
  expect(diffLines('"caf\u00e9"', '"cafe\u0301"').map(({ looksSame }) => looksSame)).toEqual([true, true]);
  expect(diffLines('"a"', '"b"').map(({ looksSame }) => looksSame)).toEqual([false, false]);
});

describe("an escape is shown for", () => {
  const rows: [string, string, string[]][] = [
    ["a Cyrillic letter in a Latin word", "p\u0430ypal", ["1 \u0430"]],
    ["a Greek letter in a Latin word", "g\u03bfogle", ["1 \u03bf"]],
    ["an Armenian letter in a Latin word", "f\u0585o", ["1 \u0585"]],
    ["each letter of an address that only looks Latin", "https://\u0430\u0440\u0435.example/", ["8 \u0430", "9 \u0440", "10 \u0435"]],
    ["such a letter, though a word of its script is in the same address", "https://\u0430.example/\u043f\u0440", ["8 \u0430", "19 \u0440"]],
    ["a whole word of letters that look Latin", '"\u0441\u043e\u0441\u0430"', ["1 \u0441", "2 \u043e", "3 \u0441", "4 \u0430"]],
    ["a wide letter", "\uff41bc", ["0 \uff41"]],
    ["a mathematical letter", "\u{1d41a}bc", ["0 \u{1d41a}"]],
    ["a dot and a slash that are none", "a\u2024b\u2215c", ["1 \u2024", "3 \u2215"]],
    ["a dotless i", "adm\u0131n", ["3 \u0131"]],
    ["a blank that is no space", "a\u00a0b\u2009c", ["1 \u00a0", "3 \u2009"]],
    ["what shows nothing", "a\u200bb", ["1 \u200b"]],
    ["what turns the direction", "a\u202eb\u2066", ["1 \u202e", "3 \u2066"]],
  ];
  test.each(rows)("%s", (_, text, found) => {
    expect(escaped(text)).toEqual(found);
  });

  const plain: [string, string][] = [
    ["Russian", '"subject": "\u041e\u043f\u043b\u0430\u0442\u0430 \u0441 \u043a\u0430\u0440\u0442\u044b"'],
    ["Greek", '"title": "\u039a\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1 \u03bf \u03ba\u03cc\u03c3\u03bc\u03bf\u03c2"'],
    ["accents", "caf\u00e9 Stra\u00dfe na\u00efve \u0141\u00f3d\u017a"],
    ["Japanese", "\u304a\u652f\u6255\u3044"],
    ["an emoji with a joiner", "\u{1f468}\u200d\u{1f469}"],
    ["plain text", "https://relay.example.com/a?b=c"],
  ];
  test.each(plain)("nothing in %s", (_, text) => {
    expect(escaped(text)).toEqual([]);
  });
});
