/** Defines a command: its words, arguments, options and action. Each command has a line in registry.ts. */
import type { RefusalCode } from "../../base/code/refusal-code.ts";
import { findNearestName } from "../../base/text.ts";
import type { Io } from "./io.ts";

/** The kind of thing that a name on the command line refers to. */
export type NameKind = "relay" | "profile" | "app" | "file" | "folder";

/** The kind of value that completion can offer: one of these words, or a name of this kind. */
type Known = readonly string[] | NameKind;

export interface Option {
  /** The name without the dashes, such as `data-dir`. */
  name: string;
  /** The placeholder of the value in help, such as `<folder>`. An option without one is a switch. */
  value?: string;
  /** True if the option can appear several times, or once with commas. */
  list?: boolean;
  /** The variable that applies if the command line does not give the option. */
  env?: string;
  /** The words in help for the value that applies if neither is given. */
  otherwise?: string;
  /** The phrase in help. */
  help: string;
  of?: Known;
}

interface Argument {
  name: string;
  help: string;
  optional?: boolean;
  /** True if the argument takes all words that follow. */
  many?: boolean;
  of?: Known;
}

export interface Command {
  /** The words of the command, such as `["keys", "create"]`. */
  words: readonly string[];
  /** Earlier names of the command, which continue to work. */
  aliases?: readonly (readonly string[])[];
  /** The line in the list of commands. With the words of the command it fits 80 columns. */
  summary: string;
  /** The further text in the command's own help. */
  details?: string;
  arguments?: readonly Argument[];
  options: readonly Option[];
  examples?: readonly string[];
  /** The options of other commands that users may try here, each with the reason why this command has none. */
  refuses?: Readonly<Record<string, string>>;
  /** Returns the exit code: 0 for success, 1 for a refusal or a failure, 3 for a comparison with differences. No value means 0. */
  run(input: Input, io: Io): Promise<number> | Promise<void>;
}

/** The input of a command. A flag takes precedence over its variable. */
export class Input {
  readonly positionals: readonly string[];
  readonly #given: ReadonlyMap<string, readonly string[]>;
  readonly #options: readonly Option[];
  readonly #env: Io["env"];

  constructor(
    positionals: readonly string[],
    given: ReadonlyMap<string, readonly string[]>,
    options: readonly Option[],
    env: Io["env"],
  ) {
    this.positionals = positionals;
    this.#given = given;
    this.#options = options;
    this.#env = env;
  }

  /** Returns the option's text, or null if neither the flag nor its variable has a value. */
  text(name: string): string | null {
    const flag = this.#given.get(name)?.at(-1);
    if (flag !== undefined) return flag;
    const variable = this.#options.find((option) => option.name === name)?.env;
    const value = variable === undefined ? undefined : this.#env[variable];
    return value === undefined || value === "" ? null : value;
  }

  /** Returns every value of a list option. */
  list(name: string): string[] {
    const flags = this.#given.get(name);
    const texts = flags ?? [this.text(name) ?? ""];
    return texts
      .flatMap((text) => text.split(","))
      .map((text) => text.trim())
      .filter((text) => text !== "");
  }

  /** Reports whether a switch is on. Its variable counts as on unless it is 0, false, no or off. */
  on(name: string): boolean {
    const text = this.text(name);
    return text !== null && !/^(0|false|no|off)$/i.test(text);
  }

  /** Reports whether the command line has the flag. */
  given(name: string): boolean {
    return this.#given.has(name);
  }

  /** Returns the whole number of an option. Throws UsageError outside its bounds. */
  number(name: string, bounds: { from: number; to: number }): number | null {
    const text = this.text(name);
    if (text === null) return null;
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= bounds.from && value <= bounds.to) return value;
    throw new UsageError(
      `--${name} is ${JSON.stringify(text)}: write a whole number from ${bounds.from} to ${bounds.to}.`,
    );
  }

  /** Returns the option's text, one of `choices`. Throws UsageError. */
  choice<Choice extends string>(name: string, choices: readonly Choice[]): Choice | null {
    const text = this.text(name);
    if (text === null) return null;
    const found = choices.find((choice) => choice === text);
    if (found !== undefined) return found;
    throw new UsageError(formatUnknownChoice(`--${name}`, text, choices));
  }

  /** Lists the names that options have, with the kind of each. */
  named(): { kind: NameKind; name: string }[] {
    return this.#options.flatMap(({ name, of }) => {
      const text = this.text(name);
      return typeof of === "string" && text !== null ? [{ kind: of, name: text }] : [];
    });
  }

  /** Returns the first argument. The parser ensures that a required one exists. */
  first(): string {
    return this.positionals[0] ?? "";
  }
}

/** Formats the error for a word outside a list of choices, with the choice that the user probably meant. */
export function formatUnknownChoice(what: string, given: string, choices: readonly string[]): string {
  const near = findNearestName(given, choices);
  const list = choices.join(", ");
  return `${what} is ${JSON.stringify(given)}: ${near === null ? `write one of ${list}.` : `did you mean ${near}? The values are ${list}.`}`;
}

/** An error in the command line itself: exit code 2. */
export class UsageError extends Error {}

/** A refusal or a failure, in one sentence for a person: exit code 1. */
export class CommandFailure extends Error {
  readonly code: RefusalCode;

  constructor(code: RefusalCode, message: string) {
    super(message);
    this.code = code;
  }
}
