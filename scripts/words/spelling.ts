/** Finds words that the American dictionary of cspell and the project's own list do not have. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { buildITrieFromWords, decodeTrie, type ITrie } from "cspell-trie-lib";

/** The names and terms of the project that no dictionary has, one a line. */
const TERMS = join(import.meta.dir, "terms.txt");

/** A word of lower case letters, or with a capital at its start. Identifiers, addresses, paths, options and placeholders (X) are none. */
const WORD =
  /(?<![\p{L}\p{N}_@.:/#$%&=~{<-])(?!X\p{Ll})\p{Lu}?\p{Ll}+(?:['’]\p{Ll}+)?(?![\p{L}\p{N}_@/=~}>(-]|[.:]\p{L})/gu;

let dictionaries: readonly ITrie[] | null = null;

/** Lists the unknown words of a sentence. */
export function listUnknownWords(text: string): string[] {
  dictionaries ??= readDictionaries();
  const tries = dictionaries;
  return [...text.matchAll(WORD)]
    .map(([word]) => word.replaceAll("’", "'").replace(/'s?$/, ""))
    .filter(
      (word) => word.length > 1 && !tries.some((trie) => trie.has(word) || trie.has(word.toLowerCase())),
    );
}

function readDictionaries(): ITrie[] {
  const american = readPackageFile("@cspell/dict-en_us", "en_US.trie.gz");
  const software = readPackageFile("@cspell/dict-software-terms", "dict", "softwareTerms.txt.gz");
  const terms = readFileSync(TERMS, "utf8");
  return [
    decodeTrie(american.toString()),
    buildITrieFromWords(listLines(software.toString())),
    buildITrieFromWords(listLines(terms)),
  ];
}

function readPackageFile(...path: string[]): Buffer {
  return gunzipSync(readFileSync(join(import.meta.dir, "..", "..", "node_modules", ...path)));
}

function listLines(text: string): string[] {
  return text.split("\n").filter((line) => /^\p{L}/u.test(line));
}
