/**
 * Finds time limits in a test's source by their text: assertions that compare a measured time with a number, and waits under two minutes. A slow or
 * busy machine would fail such a test although the program is right. Reads only the given text.
 */
import { PATIENCE_MS, TEST_MS } from "../kit/patience.ts";

interface TimeLimit {
  /** Counts from 1. */
  line: number;
  text: string;
  /** Says what to do instead. */
  todo: string;
}

const ASSERT =
  "assert a count (rows, statements, bytes, turns, calls), an order of events, or the clock that the test moves; measure times in scripts/bench";
const WAIT = "wait for PATIENCE_MS of test/kit/patience.ts (poll, until), or move the virtual clock where the deadline is what is tested";
const OWN_LIMIT = "leave the limit of a test and of its hooks to test/kit/test-patience.ts";

/** Matches reads of a real clock. */
const CLOCK = /\bperformance\.now\(|\bDate\.now\(|\bcpuUsage\(|\bsystemClock\.(?:monotonicMs|now)\(|\bhrtime\b|\bBun\.nanoseconds\(/;
const COMPARES = /^\s*(?:\.not)?\.toBe(?:LessThan|GreaterThan|CloseTo|Within)\w*\(/;
/** Matches a number or a constant: `500`, `2 * MOST_MS`. */
const FIXED = /^[\d_.\s*+/()-]*(?:[A-Z][A-Z0-9_]{2,}[\d_.\s*+/()-]*)*$/;
const COMPARED = /[<>]=?\s*(?:[\d_.]+|[A-Z][A-Z0-9_]{2,})/;
/** Matches names of times. */
const TIME_NAME = /(?<![."'\w])[a-z]\w*(?:Ms|Millis|Seconds)\b|(?<![."'\w])(?:seconds|elapsed|took|latency|duration)\b/;
const DEADLINE_NAME = /WITHIN|PATIENCE|DEADLINE|TIMEOUT|GIVE_UP|STUCK|UNTIL|WAIT/;
const RUNNER = /(?:\btest|\bit|\bbeforeAll|\bafterAll|\bbeforeEach|\bafterEach|\btestOfFile|\))\s*$/;

/** Finds every time limit of the text, in order of its lines. */
export function findTimeLimits(source: string): TimeLimit[] {
  const code = blankTexts(source);
  const found: TimeLimit[] = [];
  const note = (at: number, todo: string): void => {
    const line = source.slice(0, at).split("\n").length;
    const text = source.split("\n")[line - 1]?.trim() ?? "";
    if (!found.some((one) => one.line === line)) found.push({ line, text, todo });
  };
  const readMs = makeValues(code);
  const isShort = (words: string, least = PATIENCE_MS): boolean => {
    const ms = readMs(words);
    return ms !== null && ms > 0 && ms < least;
  };

  const timed = listTimed(code);
  for (const { index } of code.matchAll(/\bexpect\(/g)) {
    const open = index + "expect".length;
    const close = closeOf(code, open);
    const asserted = code.slice(open + 1, close);
    const compares = COMPARES.exec(code.slice(close + 1));
    const isTime = CLOCK.test(asserted) || timed.some((name) => hasName(asserted, name));
    if (isTime && COMPARED.test(asserted)) note(index, ASSERT);
    if (compares === null) continue;
    const bound = close + compares[0].length;
    const isFixed = FIXED.test(code.slice(bound + 1, closeOf(code, bound)));
    if (isFixed && (isTime || TIME_NAME.test(asserted))) note(index, ASSERT);
  }
  for (const { index, 1: ms = "" } of code.matchAll(/(?:performance\.now|systemClock\.monotonicMs)\(\)\s*\+\s*([\w.]+)/g))
    if (isShort(ms)) note(index, WAIT);
  for (const { index, 1: ms = "" } of code.matchAll(/\b(?:timeout|withinMs|timeoutMs)\s*[:=]\s*([\w.]+)/g)) if (isShort(ms)) note(index, WAIT);
  for (const { index, 1: ms = "" } of code.matchAll(/\b(?:setDefault(?:Navigation)?Timeout|AbortSignal\.timeout)\(\s*([\w.]+)\s*\)/g))
    if (isShort(ms)) note(index, WAIT);
  for (const { index, 1: name = "" } of code.matchAll(/^(?:export )?const ([A-Z][A-Z0-9_]*)\b/gm))
    if (DEADLINE_NAME.test(name) && /_(?:MS|S|SECONDS)$/.test(name) && isShort(name)) note(index, WAIT);
  for (const { index, 1: ms = "" } of code.matchAll(/\},\s*([\d_]+),?\s*\)/g)) {
    const close = index + code.slice(index).indexOf(")");
    // A test contains waits, and each may take PATIENCE_MS.
    if (isShort(ms, TEST_MS) && RUNNER.test(code.slice(0, openOf(code, close)))) note(index + 1, OWN_LIMIT);
  }
  const turns =
    /\bfor \(let (\w+) = (?:0;(?<before>[^;]*)\1 < (?<up>[\d_]+)(?<more>[^;]*); \1\+\+|(?<down>[\d_]+);(?<until>[^;]*); \1--)\)(?<work>[\s\S]{0,300}?)Bun\.sleep\((?<ms>[\d_]+)\)(?<behind>[\s\S]{0,60})/g;
  for (const { index, groups = {} } of code.matchAll(turns)) {
    const { before = "", up, more = "", down = "", until = "", work = "", ms = "", behind = "" } = groups;
    const isWait = (before + more + until).includes("&&") || /\b(?:return|break)\b/.test(work + behind.split("}")[0]);
    if (isWait && numberOf(up ?? down) * numberOf(ms) < PATIENCE_MS) note(index, WAIT);
  }
  return found.toSorted((one, other) => one.line - other.line);
}

/** Replaces quoted text and comments with blanks, so that all other characters keep their position. */
function blankTexts(source: string): string {
  const parts =
    /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\[\s\S])*`|(?<=[=(,:!&|?[{;>]\s*)\/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\//g;
  return source.replace(parts, (part) => part.replace(/[^\n]/g, " "));
}

function closeOf(code: string, open: number): number {
  let depth = 0;
  for (let at = open; at < code.length; at++) {
    if (code[at] === "(") depth += 1;
    if (code[at] === ")" && --depth === 0) return at;
  }
  return code.length;
}

function openOf(code: string, close: number): number {
  let depth = 0;
  for (let at = close; at > 0; at--) {
    if (code[at] === ")") depth += 1;
    if (code[at] === "(" && --depth === 0) return at;
  }
  return 0;
}

/** Checks for the name itself or a spread of it, but not for a property with that name. */
const hasName = (code: string, name: string): boolean => new RegExp(`(?<!\\w|(?<!\\.\\.)\\.)${name}\\b`).test(code);

/** Lists variables that hold a measured time: read from a clock, or computed from such a variable. */
function listTimed(code: string): string[] {
  const names = new Set<string>();
  const assigned = [
    ...[...code.matchAll(/\b(?:const|let)\s+(\w+)[^=;\n]*=\s*([^;]*)/g)].map(([, name = "", value = ""]) => [name, value]),
    ...[...code.matchAll(/\b(?:const|let)\s+[{[]([^=;]*)[}\]]\s*=\s*([^;]*)/g)].flatMap(([, names = "", value = ""]) =>
      names.split(",").map((one) => [one.split(":").at(-1)?.trim() ?? "", value] as const),
    ),
    ...[...code.matchAll(/(?<![.\w])(\w+)(?:\.\w+|\[[^\]]*\])*\??\.push\(([^;]*)/g)].map(([, name = "", value = ""]) => [name, value]),
    ...[...code.matchAll(/(?<![.\w])(\w+)\s*[+-]?=(?![=>])\s*([^;]*)/g)].map(([, name = "", value = ""]) => [name, value]),
  ] as const;
  // Passing a clock on, or reading it later in a function, gives no measured time.
  const isRead = (value = ""): boolean => CLOCK.test(value) && !/=>|\bnew \w|\bawait\b|\{/.test(value);
  for (let size = -1; size < names.size; ) {
    names.delete("");
    size = names.size;
    for (const [name = "", value = ""] of assigned) {
      const isLeft = [...names].some((one) => hasName(value, one)) && /-|Math\.|\.sort|\.map/.test(value);
      if (isRead(value) || (isLeft && !/\bawait\b|\{/.test(value))) names.add(name);
    }
  }
  return [...names];
}

const numberOf = (words: string): number => Number(words.replaceAll("_", ""));

/** Returns a function that reads a number or a constant of the text in milliseconds, or null if the text does not define it. */
function makeValues(code: string): (words: string) => number | null {
  return (words) => {
    if (/^[\d_]+$/.test(words)) return numberOf(words);
    const value = new RegExp(`\\bconst ${words.replaceAll(".", "\\.")}\\b[^=\\n]*=\\s*([\\d_ *]+);`).exec(code)?.[1];
    if (value === undefined) return null;
    const product = value.split("*").reduce((sum, part) => sum * numberOf(part.trim()), 1);
    return /_(?:S|SECONDS)$/.test(words) ? product * 1_000 : product;
  };
}
