/** Extracts the sentences that people read from Markdown, JSON and TypeScript. It judges nothing. */

export interface Sentence {
  /** Relative to the project's root. */
  path: string;
  line: number;
  text: string;
}

const CODE_BLOCK = /^(```|~~~)/;
/** The blank between two sentences. An end mark precedes it; a capital or a quotation mark follows. */
const END = /(?<=[.!?:][)"”]?)\s+(?=["“([*]*(?:[A-Z]|`))/;
const STRING = /"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g;
const COMMENT = /\/\*\*?([\s\S]*?)\*\/|(?<=^|\s)\/\/ ?(.*)$/gm;
const TEST_NAME = /\b(?:test|describe|it)(?:\.each\([\s\S]*?\))?\(\s*"((?:[^"\\\n]|\\.)*)"/g;
/** A string with at least this many words is text for people. */
const MIN_WORDS = 3;
const NO_PROSE =
  /\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE|PRAGMA|FROM|WHERE|ORDER BY|VALUES|IS NULL|__relay_complete)\b|^[.#/\w-]+$|[{};]\s*$|^\s*[a-z-]+:\s|=>|&&|\|\|/;

/** Reads the sentences of a Markdown page without code blocks, rules of tables, front matter and inline code. */
export function readMarkdown(path: string, text: string): Sentence[] {
  const found: Sentence[] = [];
  let isCode = false;
  let isHead = text.startsWith("---\n");
  let paragraph: { line: number; text: string } | null = null;
  const close = (): void => {
    if (paragraph !== null) found.push(...split(path, paragraph.line, paragraph.text));
    paragraph = null;
  };
  for (const [index, raw] of text.split("\n").entries()) {
    if (isHead) {
      if (index > 0 && raw === "---") isHead = false;
      continue;
    }
    if (CODE_BLOCK.test(raw)) {
      isCode = !isCode;
      close();
      continue;
    }
    if (isCode || raw.trim() === "" || raw.startsWith("<!--")) {
      close();
      continue;
    }
    if (/^(#|\||[-*] |\d+\. |>)/.test(raw.trim())) {
      close();
      for (const cell of raw.trim().startsWith("|") ? raw.split("|") : [raw]) {
        const plain = cell.replace(/^[#>*\s-]*(\d+\. )?/, "").trim();
        if (plain !== "") found.push(...split(path, index + 1, plain));
      }
      continue;
    }
    if (paragraph === null) paragraph = { line: index + 1, text: raw.trim() };
    else paragraph.text += ` ${raw.trim()}`;
  }
  close();
  return found;
}

/** Reads the string literals of a source that are text for people, without SQL, selectors and code. */
export function readStrings(path: string, source: string): Sentence[] {
  const code = source.replace(COMMENT, (comment) => comment.replace(/[^\n]/g, " "));
  return [...code.matchAll(STRING)].flatMap((match) => {
    const text = (match[1] ?? match[2] ?? "")
      .replace(/\$\{[^}]*\}/g, "X")
      .replace(/\\n/g, " ")
      .replace(/\\(.)/g, "$1");
    const line = lineOf(code, match.index);
    return splitMarkup(text).flatMap((part) =>
      countWords(part) < MIN_WORDS || NO_PROSE.test(part) ? [] : split(path, line, part),
    );
  });
}

/** Returns the texts between the elements of HTML. Elements within a sentence, such as `<b>`, do not end it. */
function splitMarkup(text: string): string[] {
  return text
    .replace(/<\/?(?:a|b|code|em|i|kbd|span|strong)\b[^>]*>/g, "")
    .split(/<[^>]*>/)
    .map((part) => part.trim());
}

/** Reads the comments of a source. */
export function readComments(path: string, source: string): Sentence[] {
  return [...source.matchAll(COMMENT)].flatMap((match) => {
    const text = (match[1] ?? match[2] ?? "")
      .split("\n")
      .map((line) => line.replace(/^\s*\*? ?/, "").trim())
      .filter((line) => !/^@|^\s{4}/.test(line))
      .join(" ")
      .trim();
    return countWords(text) < MIN_WORDS || /^(biome-ignore|@ts-)/.test(text)
      ? []
      : split(path, lineOf(source, match.index), text);
  });
}

/** Reads the names of a file's tests. */
export function readTestNames(path: string, source: string): Sentence[] {
  return [...source.matchAll(TEST_NAME)].flatMap((match) =>
    countWords(match[1] ?? "") < MIN_WORDS
      ? []
      : [{ path, line: lineOf(source, match.index), text: match[1] ?? "" }],
  );
}

/** Reads the strings of a JSON value, each with its line in the text. */
export function readJsonStrings(path: string, text: string): Sentence[] {
  return [...text.matchAll(/"(?:[^"\\\n]|\\.)*"(\s*:)?/g)].flatMap(([match, isKey], index, all) => {
    if (isKey !== undefined) return [];
    const value = JSON.parse(match) as string;
    return countWords(value) < MIN_WORDS ? [] : split(path, lineOf(text, all[index]?.index ?? 0), value);
  });
}

export function countWords(text: string): number {
  return text.split(/\s+/).filter((word) => /[A-Za-z]/.test(word)).length;
}

/** Returns a sentence without inline code, quoted field names and links' targets, which are not prose. */
export function withoutCode(text: string): string {
  return text
    .replace(/`[^`]*`/g, "X")
    .replace(/\]\([^)]*\)/g, "]")
    .replace(/https?:\S+/g, "X");
}

function split(path: string, line: number, text: string): Sentence[] {
  return text
    .split(END)
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part) => ({ path, line, text: part }));
}

function lineOf(text: string, index: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < index; at = text.indexOf("\n", at + 1)) line++;
  return line;
}
