/**
 * Finds characters that deceive the owner who approves a definition: blanks other than the space, and letters of other
 * scripts that look Latin. Such a letter counts only among Latin letters or in a word that reads as Latin.
 */
import { hexOf, TRICKY } from "./tricky.ts";

/** Pairs of a letter and the Latin letter that it looks like. They are escapes, because a reader cannot tell the letters apart. */
const PAIRS: Readonly<Record<string, string>> = {
  Cyrillic:
    "\u0430a\u0432B\u0435e\u043ak\u043cM\u043dH\u043eo\u0440p\u0441c\u0442T\u0443y\u0445x\u0455s\u0456i\u0458j\u04bbh\u04cfl\u0501d\u051bq\u051dw\u0475v\u0410A\u0412B\u0415E\u041aK\u041cM\u041dH\u041eO\u0420P\u0421C\u0422T\u0423Y\u0425X\u0405S\u0406I\u0408J\u04c0I\u050cG\u051aQ\u051cW",
  Greek:
    "\u03b1a\u03b3y\u03b5e\u03b7n\u03b9i\u03bak\u03bdv\u03bfo\u03c1p\u03c4t\u03c5u\u03c7x\u03c9w\u03f2c\u03f3j\u0391A\u0392B\u0395E\u0396Z\u0397H\u0399I\u039aK\u039cM\u039dN\u039fO\u03a1P\u03a4T\u03a5Y\u03a7X",
  Armenian: "\u0570h\u0578n\u057du\u0585o\u0581g\u0566q\u0555O\u054dU",
  Cherokee: "\u13aaA\u13acE\u13a1R\u13a2T\u13b3W\u13bbH\u13c0G\u13c3Z\u13dfC\u13e2P",
  /** Latin letters that pass for another letter. */
  Latin: "\u0131i\u0251a\u0261g\u017fs\u0269i\u01c0l",
  Mark: "\u2024.\u2044/\u2215/\u2010-\u2011-\u02d0:\ua789:\u0589:\u2236:\u2039<\u203a>",
};
const LOOKS: ReadonlyMap<string, { script: string; like: string }> = new Map(
  Object.entries(PAIRS).flatMap(([script, pairs]) =>
    [...pairs.matchAll(/(.)(.)/gu)].map(([, letter = "", like = ""]) => [letter, { script, like }] as const),
  ),
);
/** Wide and mathematical forms of ASCII, and numerals that are letters. */
const FORMS = /^[\uff01-\uff5e\u2160-\u217f\u{1d400}-\u{1d7ff}]$/u;
const BLANK = /[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/gu;
/** Unit that people read as one word. Only quotes and blanks separate words, because an address contains dots and slashes. */
const WORD = /[^\s"]+/gu;

/** Deceptive character and its offset in the text. */
interface Deceptive {
  at: number;
  text: string;
  why: string;
}

/** Lists the deceptive characters of the text in order. */
export function findDeceptive(text: string): Deceptive[] {
  const found: Deceptive[] = [];
  const add = (at: number, character: string, why: string): void =>
    void found.push({
      at,
      text: character,
      why: `U+${hexOf(character).toUpperCase().padStart(4, "0")}, ${why}`,
    });
  for (const match of text.matchAll(TRICKY)) add(match.index, match[0], "which can hide or reverse text");
  for (const match of text.matchAll(BLANK))
    add(match.index, match[0], "a blank character that is not a space");
  for (const { at, character, like, script } of findLookAlikes(text))
    add(at, character, `${SCRIPT_WORDS[script] ?? "another form"} that looks like ${like}`);
  return found.sort((one, other) => one.at - other.at);
}

/** Lists every character that is not ASCII, to compare two texts that look the same. */
export function listBeyondAscii(text: string): Deceptive[] {
  return [...text.matchAll(/[^\0-\x7f]/gu)].map((match) => ({
    at: match.index,
    text: match[0],
    why: `U+${hexOf(match[0]).toUpperCase().padStart(4, "0")}`,
  }));
}

const SCRIPT_WORDS: Readonly<Record<string, string>> = {
  Cyrillic: "a Cyrillic letter",
  Greek: "a Greek letter",
  Armenian: "an Armenian letter",
  Cherokee: "a Cherokee letter",
  Mark: "another character",
};

interface LookAlike {
  at: number;
  character: string;
  like: string;
  script: string;
}

function findLookAlikes(text: string): LookAlike[] {
  if (!/[^\0-\x7f]/.test(text)) return [];
  const words = [...text.matchAll(WORD)].map((match) => readWord(match[0], match.index));
  const written = new Set(words.flatMap(({ hasLatin, foreign }) => (hasLatin ? [] : [...foreign])));
  return words.flatMap(({ looks, hasLatin, foreign }) =>
    looks.filter(({ script }) => {
      if (hasLatin || script === "Latin" || script === "Mark" || script === "") return true;
      // A word with only such letters reads as Latin, unless other words of the text use their script.
      return foreign.size === 0 && !written.has(script);
    }),
  );
}

interface Word {
  looks: LookAlike[];
  /** True if the word has a plain Latin letter. */
  hasLatin: boolean;
  /** Scripts of the letters that do not look Latin. */
  foreign: Set<string>;
}

function readWord(word: string, from: number): Word {
  const read: Word = { looks: [], hasLatin: false, foreign: new Set() };
  let at = from;
  for (const character of word) {
    const lookAlike = lookOf(character);
    if (lookAlike !== null) read.looks.push({ at, character, ...lookAlike });
    else if (/\p{Script=Latin}/u.test(character)) read.hasLatin = true;
    else if (/\p{L}/u.test(character)) read.foreign.add(scriptOf(character));
    at += character.length;
  }
  return read;
}

function lookOf(character: string): { script: string; like: string } | null {
  const known = LOOKS.get(character);
  if (known !== undefined) return known;
  const plain = FORMS.test(character) ? character.normalize("NFKC") : "";
  return /^[!-~]+$/.test(plain) ? { script: "", like: plain } : null;
}

function scriptOf(letter: string): string {
  if (/\p{Script=Cyrillic}/u.test(letter)) return "Cyrillic";
  if (/\p{Script=Greek}/u.test(letter)) return "Greek";
  if (/\p{Script=Armenian}/u.test(letter)) return "Armenian";
  return "other";
}
