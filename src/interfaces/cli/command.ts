/** What a command is: its words, its arguments and options, and what it does. One file a command, one line in registry.ts. */
import type { RefusalCode } from "../../base/refusal-code.ts";
import { findNearestName } from "../../base/text.ts";
import type { World } from "./io.ts";

/** What has names of its own, or is a file. */
export type NameKind = "relay" | "profile" | "app" | "file" | "folder";

/** What may stand for a value: one of these words, or a name of something. */
type Known = readonly string[] | NameKind;

export interface Option {
  /** Without the dashes: `data-dir`. */
  name: string;
  /** What stands for the value in help: `<folder>`; absent: the option is a switch. */
  value?: string;
  /** May be given several times, or once with commas. */
  list?: boolean;
  /** The variable that is read when the option is not given. */
  env?: string;
  /** In words, for help: what holds when neither is given. */
  otherwise?: string;
  /** One phrase for help. */
  help: string;
  of?: Known;
}

interface Argument {
  name: string;
  help: string;
  optional?: boolean;
  /** Takes all that follow. */
  many?: boolean;
  of?: Known;
}

export interface Command {
  /** Its words: `["keys", "create"]`. */
  words: readonly string[];
  /** One line for the list of commands: with its words it fits 80 columns. */
  summary: string;
  /** More, for its own help. */
  details?: string;
  arguments?: readonly Argument[];
  options: readonly Option[];
  examples?: readonly string[];
  /** Options of other commands that somebody may expect here, each with why it is none. */
  refuses?: Readonly<Record<string, string>>;
  /** Answers the exit code: 0 done, 1 refused or failed, 3 where what was compared differs; 0 also where it answers none. */
  run(input: Input, world: World): Promise<number> | Promise<void>;
}

/** What a command was given: a flag wins over its variable. */
export class Input {
  readonly positionals: readonly string[];
  readonly #given: ReadonlyMap<string, readonly string[]>;
  readonly #options: readonly Option[];
  readonly #env: World["env"];

  constructor(
    positionals: readonly string[],
    given: ReadonlyMap<string, readonly string[]>,
    options: readonly Option[],
    env: World["env"],
  ) {
    this.positionals = positionals;
    this.#given = given;
    this.#options = options;
    this.#env = env;
  }

  /** The option's text, or null where neither the flag nor its variable says anything. */
  text(name: string): string | null {
    const flag = this.#given.get(name)?.at(-1);
    if (flag !== undefined) return flag;
    const variable = this.#options.find((option) => option.name === name)?.env;
    const value = variable === undefined ? undefined : this.#env[variable];
    return value === undefined || value === "" ? null : value;
  }

  /** Every value of a list option. */
  list(name: string): string[] {
    const flags = this.#given.get(name);
    const texts = flags ?? [this.text(name) ?? ""];
    return texts
      .flatMap((text) => text.split(","))
      .map((text) => text.trim())
      .filter((text) => text !== "");
  }

  /** Whether a switch is on; its variable counts as on unless it is 0, false, no or off. */
  on(name: string): boolean {
    const text = this.text(name);
    return text !== null && !/^(0|false|no|off)$/i.test(text);
  }

  /** Whether the flag itself was given. */
  given(name: string): boolean {
    return this.#given.has(name);
  }

  /** The whole number of an option. Throws UsageError outside its bounds. */
  number(name: string, bounds: { from: number; to: number }): number | null {
    const text = this.text(name);
    if (text === null) return null;
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= bounds.from && value <= bounds.to) return value;
    throw new UsageError(
      `--${name} is ${JSON.stringify(text)}: write a whole number from ${bounds.from} to ${bounds.to}.`,
    );
  }

  /** The option's text, one of `choices`. Throws UsageError. */
  choice<Choice extends string>(name: string, choices: readonly Choice[]): Choice | null {
    const text = this.text(name);
    if (text === null) return null;
    const found = choices.find((choice) => choice === text);
    if (found !== undefined) return found;
    throw new UsageError(refuseChoice(`--${name}`, text, choices));
  }

  /** The names that were given to options, of what has names. */
  named(): { kind: NameKind; name: string }[] {
    return this.#options.flatMap(({ name, of }) => {
      const text = this.text(name);
      return typeof of === "string" && text !== null ? [{ kind: of, name: text }] : [];
    });
  }

  /** The first argument. The parser has made sure that a required one is there. */
  first(): string {
    return this.positionals[0] ?? "";
  }
}

/** The sentence for a word that is none of a few, with the one that was probably meant. */
export function refuseChoice(what: string, given: string, choices: readonly string[]): string {
  const near = findNearestName(given, choices);
  const list = choices.join(", ");
  return `${what} is ${JSON.stringify(given)}: ${near === null ? `write one of ${list}.` : `did you mean ${near}? It is one of ${list}.`}`;
}

/** The command line itself is wrong: exit code 2. */
export class UsageError extends Error {}

/** Refused or failed in one sentence that is meant for a person: exit code 1. */
export class CommandFailure extends Error {
  readonly code: RefusalCode;

  constructor(code: RefusalCode, message: string) {
    super(message);
    this.code = code;
  }
}
