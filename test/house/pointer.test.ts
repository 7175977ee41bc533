/** Checks that sentences point to existing commands and named places. For example, "in the settings" is too vague to find. */
import { expect, test } from "bun:test";
import { COMMANDS } from "../../src/interfaces/cli/registry.ts";
import { readSources } from "./source-tree.ts";

const sources = [...readSources("src"), ...readSources("web"), ...readSources("scripts")];
const words = COMMANDS.map((command) => command.words.join(" "));
const groups = [...new Set(COMMANDS.filter((command) => command.words.length > 1).map((command) => command.words[0] ?? ""))];

/** Returns the code's lines without comments. */
function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => !/^\s*(\*|\/\*|\/\/)/.test(line));
}

/** Matches prose such as "a relay calls no …" or "with relay keys on the server". */
const PROSE = / (no|on)$/;

test("a command that a sentence names exists", () => {
  const named = new RegExp(`\\brelay (${groups.join("|")}) ([a-z]+(?:-[a-z]+)*)`, "g");
  const found = sources.flatMap(({ path, text }) =>
    linesOf(text).flatMap((line) => [...line.matchAll(named)].map(([, group, word]) => ({ path, command: `${group} ${word}` }))),
  );
  expect(found.length).toBeGreaterThan(40);
  expect(found.filter(({ command }) => !words.includes(command) && !PROSE.test(command))).toEqual([]);
});

const VAGUE =
  /(set (it|one)|turn it on|verify one|create it|check [a-z ]+) in the (mail )?(settings|catalog)|in the environment['’]s settings|see its recent calls|the list of (emails|purchases|persons)/;

test("no sentence names a vague place", () => {
  const vague = sources.flatMap(({ path, text }) => linesOf(text).flatMap((line) => (VAGUE.test(line) ? [`${path}: ${line.trim()}`] : [])));
  expect(vague).toEqual([]);
});
