/** Finds words that the style guide bans, and measures the sentences of each place where people read. */
import {
  BANNED_OPENINGS,
  BANNED_WORDS,
  BRITISH,
  COMMENT_OPENINGS,
  MAX_MEDIAN_WORDS,
  MAX_SENTENCE_WORDS,
  type WordRule,
} from "./rules.ts";
import {
  countWords,
  readComments,
  readJsonStrings,
  readMarkdown,
  readStrings,
  readTestNames,
  type Sentence,
  withoutCode,
} from "./sentences.ts";
import { listUnknownWords } from "./spelling.ts";

export interface Finding extends Sentence {
  /** The name of the place in the table below. */
  place: string;
  /** The matched words. */
  found: string;
  instead: string;
}

interface Place {
  name: string;
  files: readonly string[];
  read(path: string, text: string): Sentence[];
  /** True if sentences of more than `MAX_SENTENCE_WORDS` are findings. */
  isShort: boolean;
}

/** The places where people read, from those for users to those for developers. */
const PLACES: readonly Place[] = [
  {
    name: "documentation",
    files: ["docs/*.md", "README.md", "CONTRIBUTING.md", "SECURITY.md", "client/**/README.md"],
    read: readMarkdown,
    isShort: true,
  },
  {
    name: "architecture",
    files: ["ARCHITECTURE.md", "SPEED.md", "docs/adr/*.md"],
    read: readMarkdown,
    isShort: true,
  },
  { name: "change feed", files: ["changes/*.json"], read: readJsonStrings, isShort: false },
  { name: "senders", files: ["senders/*.json"], read: readJsonStrings, isShort: false },
  { name: "kits", files: ["kits/*.json"], read: readJsonStrings, isShort: false },
  { name: "dashboard", files: ["web/**/*.ts"], read: readStrings, isShort: true },
  { name: "command line and service", files: ["src/**/*.ts"], read: readStrings, isShort: true },
  { name: "comments of src", files: ["src/**/*.ts"], read: readComments, isShort: false },
  { name: "comments of web", files: ["web/**/*.ts", "web/**/*.css"], read: readComments, isShort: false },
  {
    name: "comments of scripts, client and tests",
    files: ["scripts/**/*.ts", "client/**/*.{js,mjs,ts}", "test/**/*.ts"],
    read: readComments,
    isShort: false,
  },
  { name: "test names", files: ["test/**/*.test.ts"], read: readTestNames, isShort: false },
];

/** Places in which every finding is an error. */
export const CLEAN_PLACES: readonly string[] = [
  "documentation",
  "architecture",
  "change feed",
  "senders",
  "kits",
  "dashboard",
  "command line and service",
  "comments of src",
  "comments of web",
  "test names",
];

/** Files that quote what they forbid. */
const QUOTES_RULES = /^scripts\/words\/|^test\/house\/words|named-command\.ts$/;

/** Lists the findings of all places in their order. `read` returns the text of a file. */
export function listFindings(read: (path: string) => string): Finding[] {
  return PLACES.flatMap((place) =>
    sentencesOf(place, read).flatMap((sentence) =>
      checkSentence(sentence, place).map((found) => ({ ...sentence, ...found, place: place.name })),
    ),
  );
}

/** Lists the findings of a sentence by the rules of its place. */
export function checkSentence(
  sentence: Sentence,
  { read, isShort }: Pick<Place, "read" | "isShort">,
): { found: string; instead: string }[] {
  const text = withoutCode(sentence.text);
  const isQuestion = text.endsWith("?");
  const openings = read === readComments ? [...BANNED_OPENINGS, ...COMMENT_OPENINGS] : BANNED_OPENINGS;
  const rules = [...BANNED_WORDS, ...(isQuestion ? [] : openings), ...BRITISH];
  const found = rules.flatMap((rule) => match(rule, text));
  for (const word of listUnknownWords(text))
    found.push({ found: word, instead: "correct the spelling, or add the term to scripts/words/terms.txt" });
  const words = countWords(text);
  if (isShort && words > MAX_SENTENCE_WORDS)
    found.push({ found: `${words} words`, instead: `at most ${MAX_SENTENCE_WORDS}, as several sentences` });
  return found;
}

/** Formats a line for each place: the number of sentences, those with a finding, their share, and the median of their words. */
export function measure(read: (path: string) => string): string {
  const rows = PLACES.map((place) => {
    const all = sentencesOf(place, read);
    const wrong = all.filter((sentence) => checkSentence(sentence, place).length > 0).length;
    const lengths = all.map(({ text }) => countWords(text)).toSorted((one, other) => one - other);
    const median = lengths[Math.floor(lengths.length / 2)] ?? 0;
    const share = all.length === 0 ? 0 : (100 * wrong) / all.length;
    const long = place.isShort && median > MAX_MEDIAN_WORDS ? ` (at most ${MAX_MEDIAN_WORDS})` : "";
    return `${place.name.padEnd(38)} ${String(all.length).padStart(6)} sentences ${String(wrong).padStart(5)} with a finding ${share.toFixed(1).padStart(5)} %  median ${median} words${long}`;
  });
  return rows.join("\n");
}

function match(rule: WordRule, text: string): { found: string; instead: string }[] {
  const found = rule.pattern.exec(text);
  return found === null ? [] : [{ found: found[0], instead: rule.instead }];
}

const cache = new Map<Place, Sentence[]>();

function sentencesOf(place: Place, read: (path: string) => string): Sentence[] {
  let known = cache.get(place);
  if (known === undefined) {
    known = place.files
      .flatMap((pattern) => [...new Bun.Glob(pattern).scanSync()])
      .map((path) => path.replaceAll("\\", "/"))
      .filter((path) => !QUOTES_RULES.test(path))
      .sort()
      .flatMap((path) => place.read(path, read(path)));
    cache.set(place, known);
  }
  return known;
}
