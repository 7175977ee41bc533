/**
 * Checks that each command in a sentence exists and is matched completely. The terminal keeps a command on one line, and the dashboard selects it by
 * a click.
 */
import { expect, test } from "bun:test";
import { NAMED_COMMAND } from "../../src/base/shared/named-command.ts";
import type { Command } from "../../src/interfaces/cli/command.ts";
import { findCommand, HELP, SHOWING } from "../../src/interfaces/cli/line/parse.ts";
import { COMMANDS } from "../../src/interfaces/cli/registry.ts";
import { readSources } from "./source-tree.ts";

const named = (text: string): string[] => text.match(new RegExp(NAMED_COMMAND, "g")) ?? [];
const line = ({ words }: Command): string => `relay ${words.join(" ")}`;

test("the pattern matches every command", () => {
  expect(COMMANDS.filter((command) => named(`Ask ${line(command)}, or wait.`)[0] !== line(command)).map(line)).toEqual([]);
});

test("the pattern includes on and off of each command that takes them", () => {
  const takesOn = COMMANDS.filter(({ arguments: takes = [] }) => takes.some(({ of }) => Array.isArray(of) && of.includes("on")));
  expect(takesOn.length).toBeGreaterThan(0);
  for (const command of takesOn)
    for (const word of ["on", "off"]) expect(named(`Run ${line(command)} ${word}, or wait.`)).toEqual([`${line(command)} ${word}`]);
  expect(named("Run relay members list on the server.")).toEqual(["relay members list"]);
});

test("the pattern matches nothing but commands", () => {
  const [, beginning = ""] = /\(\?:(.*?)\)\(\?!\[\\w-\]\)/.exec(NAMED_COMMAND) ?? [];
  const known = [...beginning.matchAll(/([a-z]+) \(\?:([^)]+)\)/g)].flatMap(([, group, words = ""]) =>
    words.split("|").map((word) => `${group} ${word}`),
  );
  const alone = beginning.slice(beginning.lastIndexOf(")|") + 2).split("|");
  expect([...known, ...alone].sort()).toEqual(COMMANDS.map(({ words }) => words.join(" ")).sort());
});

/** Returns the code's lines without comments, with a word for each inserted value. */
function sentencesOf(text: string): string[] {
  const lines = text.split("\n").filter((one) => !/^\s*(\*|\/\*|\/\/)/.test(one));
  return lines.map((one) => one.replace(/\$\{[^{}]*\}/g, "value"));
}

/** Returns why the command rejects the text's words, or null. */
function findFault(text: string): string | null {
  const { command, rest } = findCommand(text.split(" ").slice(1), COMMANDS) ?? {};
  if (command === undefined || rest === undefined) return "there is no such command";
  const options = [...command.options, HELP, ...SHOWING];
  let given = 0;
  for (let at = 0; at < rest.length; at++) {
    const [name = "", value] = (rest[at] ?? "").split("=");
    if (!name.startsWith("--")) given += 1;
    else {
      const option = options.find((one) => `--${one.name}` === name);
      if (option === undefined) return `it has no ${name}`;
      if (option.value !== undefined && value === undefined) at += 1;
    }
  }
  const takes = command.arguments ?? [];
  return given > takes.length && takes.at(-1)?.many !== true ? `it takes ${takes.length} arguments` : null;
}

test("the pattern matches an example of a command's help completely", () => {
  const examples = COMMANDS.flatMap((command) => command.examples ?? []).filter((example) => /^relay( [\w@/=.:-]+){1,8}$/.test(example));
  expect(examples.length).toBeGreaterThan(80);
  expect(examples.filter((example) => named(example)[0] !== example)).toEqual([]);
});

test("the commands in sentences accept their arguments and options", () => {
  const sources = [...readSources("src"), ...readSources("web")];
  const found = sources.flatMap(({ path, text }) => sentencesOf(text).flatMap((one) => named(one).map((command) => ({ path, command }))));
  expect(found.length).toBeGreaterThan(200);
  expect(found.filter(({ command }) => findFault(command) !== null).map(({ path, command }) => `${path}: ${command}: ${findFault(command)}`)).toEqual(
    [],
  );
});
