/** Finds where a text stops being JSON, and says what to write. It reports only the first place, because anything after it is a guess. */

interface JsonProblem {
  message: string;
  from: number;
  to: number;
}

interface Open {
  mark: "{" | "[";
  at: number;
}

type Awaits = "value" | "first value" | "name" | "first name" | "colon" | "comma" | "nothing";

interface Token {
  kind: "mark" | "text" | "word";
  text: string;
  from: number;
  to: number;
}

/** Matches the next token. A string ends at the end of its line if it is not closed. */
const TOKEN = /\s*(?:([{}[\],:])|("(?:[^"\\\n]|\\.)*"?)|([^\s{}[\],:"]+))/y;
const ESCAPES = /^(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*$/;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const MAX_SHOWN = 30;

/** Returns null for valid JSON. */
export function findJsonProblem(text: string): JsonProblem | null {
  if (text.trim() === "")
    return { message: "The definition is empty: write one JSON object.", from: 0, to: 0 };
  const reader = new Reader(text);
  TOKEN.lastIndex = 0;
  let read = 0;
  for (let found = TOKEN.exec(text); found !== null; found = TOKEN.exec(text)) {
    const [match, mark, quoted, word = ""] = found;
    read = found.index + match.length;
    const shown = mark ?? quoted ?? word;
    const kind = mark !== undefined ? "mark" : quoted !== undefined ? "text" : "word";
    const problem = reader.take({ kind, text: shown, from: read - shown.length, to: read });
    if (problem !== null) return problem;
    // Restores the position, which another search with the same expression can change.
    TOKEN.lastIndex = read;
  }
  return reader.end() ?? findRest(text);
}

/** Reports what this reader accepts and JSON does not. */
function findRest(text: string): JsonProblem | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return { message: `This is not JSON: ${(error as Error).message}.`, from: 0, to: 0 };
  }
}

class Reader {
  readonly #text: string;
  readonly #open: Open[] = [];
  #awaits: Awaits = "value";
  #last: Token | null = null;

  constructor(text: string) {
    this.#text = text;
  }

  take(token: Token): JsonProblem | null {
    const problem = token.kind === "mark" ? this.#takeMark(token) : this.#takeScalar(token);
    this.#last = token;
    return problem;
  }

  /** Returns why the text must not end here. */
  end(): JsonProblem | null {
    const open = this.#open.at(-1);
    if (open !== undefined) {
      const close = open.mark === "{" ? "}" : "]";
      return say(`The ${open.mark} of line ${this.#line(open.at)} is not closed: write its ${close}.`, {
        from: open.at,
        to: open.at + 1,
      });
    }
    return null;
  }

  #takeMark(token: Token): JsonProblem | null {
    const { text, from } = token;
    if (text === "{" || text === "[") {
      const problem = this.#rejectValue(token);
      if (problem !== null) return problem;
      this.#open.push({ mark: text, at: from });
      this.#awaits = text === "{" ? "first name" : "first value";
      return null;
    }
    if (text === ":") return this.#takeColon(token);
    return text === "," ? this.#takeComma(token) : this.#takeClose(token);
  }

  #takeColon(token: Token): JsonProblem | null {
    if (this.#awaits !== "colon") return say("No : can be here: remove it.", token);
    this.#awaits = "value";
    return null;
  }

  #takeComma(token: Token): JsonProblem | null {
    if (this.#awaits === "comma") {
      this.#awaits = this.#open.at(-1)?.mark === "{" ? "name" : "value";
      return null;
    }
    if (this.#last?.text === ",") return say("There are two commas here: remove one.", token);
    if (this.#last?.text === ":") return say("The value is missing before this comma: write it.", token);
    return say("No comma can be here: remove it.", token);
  }

  #takeClose(token: Token): JsonProblem | null {
    const { text } = token;
    const open = this.#open.at(-1);
    const wanted = open?.mark === "{" ? "}" : "]";
    if (open === undefined) return say(`This ${text} closes nothing: remove it.`, token);
    if (text !== wanted) {
      const place = `${open.mark} of line ${this.#line(open.at)}`;
      return say(`The ${place} is still open here: write ${wanted} before this ${text}.`, token);
    }
    if (this.#last?.text === ",")
      return say(`The comma before this ${text} is one too many: remove it.`, this.#last);
    if (this.#awaits === "colon" || this.#awaits === "value")
      return say("The value is missing here: write it after a colon.", this.#last ?? token);
    this.#open.pop();
    this.#awaits = this.#open.length === 0 ? "nothing" : "comma";
    return null;
  }

  #takeScalar(token: Token): JsonProblem | null {
    const { kind, text } = token;
    if (/^(\/\/|\/\*|#)/.test(text)) return say("JSON has no comments: remove this.", token);
    if (/^[“”„]/.test(text)) return say('JSON does not allow curly quotes: write straight quotes, ".', token);
    const isName = this.#awaits === "name" || this.#awaits === "first name";
    if (isName && kind === "word")
      return say(`A field’s name needs double quotes: write "${show(text.replaceAll("'", ""))}".`, token);
    const problem = (isName ? null : this.#rejectValue(token)) ?? checkScalar(token);
    if (problem !== null) return problem;
    this.#awaits = isName ? "colon" : this.#open.length === 0 ? "nothing" : "comma";
    return null;
  }

  /** Returns why no value may appear here. */
  #rejectValue(token: Token): JsonProblem | null {
    const before = this.#last ?? token;
    switch (this.#awaits) {
      case "comma":
        return say("A comma is missing after this.", before);
      case "colon":
        return say(`A colon is missing after this name: write ${show(before.text)}: and the value.`, before);
      case "name":
      case "first name":
        return say('A field\'s name is missing here: write "name": before the value.', token);
      case "nothing":
        return say("The definition ends before this: remove the rest.", token);
      default:
        return null;
    }
  }

  #line(at: number): number {
    return this.#text.slice(0, at).split("\n").length;
  }
}

function checkScalar(token: Token): JsonProblem | null {
  const { kind, text } = token;
  if (kind === "text") {
    if (text.length < 2 || !/[^\\](?:\\\\)*"$|^""$/.test(text))
      return say('This text is not closed: write a " at its end.', token);
    if (ESCAPES.test(text.slice(1, -1)) && !hasControl(text)) return null;
    return say(
      "This text contains a backslash or a control character that JSON does not allow: write \\\\ for a backslash, \\n for a new line and \\t for a tab.",
      token,
    );
  }
  if (text === "true" || text === "false" || text === "null" || NUMBER.test(text)) return null;
  if (text.startsWith("'")) return say("JSON allows only double quotes: write \"…\" instead of '…'.", token);
  if (/^[-+.\d]/.test(text))
    return say(`${show(text)} is not a JSON number: write it like 12, 0.5 or -3.`, token);
  return say(
    `${show(text)} is not a JSON value: put a text in double quotes, or write a number, true, false or null.`,
    token,
  );
}

function hasControl(text: string): boolean {
  return [...text].some((char) => char < " ");
}

function show(text: string): string {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

function say(message: string, { from, to }: { from: number; to: number }): JsonProblem {
  return { message, from, to };
}
