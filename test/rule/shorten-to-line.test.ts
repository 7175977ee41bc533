/** Tests that a shortened line says so, and counts characters as people see them. */
import { expect, test } from "bun:test";
import { shortenToLine } from "../../src/base/text.ts";

const ROWS: readonly [name: string, text: string, max: number, line: string][] = [
  ["a short line stays", "remove it", 9, "remove it"],
  ["a long line ends with an ellipsis", "remove it, or add it", 10, "remove it…"],
  ["white space before the cut disappears", "remove it", 8, "remove…"],
  ["several lines become one", "one\ntwo", 20, "one two"],
  ["a character of several code points is not split", "a👨‍👩‍👧b", 3, "a…"],
];
test.each(ROWS)("%s", (_name, text, max, line) => {
  expect(shortenToLine(text, max)).toBe(line);
});
