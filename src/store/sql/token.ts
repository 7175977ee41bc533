/** Splits SQL into tokens and finds tokens among them. It does not know what a statement means. */

type Kind = "space" | "text" | "quoted" | "value" | "word" | "number" | "sign";
export interface Token {
  kind: Kind;
  text: string;
  /** Text to write around a value. */
  around?: readonly [before: string, after: string];
}

/** Matches, in the order of KINDS: spaces and comments, string literals, quoted names, parameters, words, numbers, signs. */
const TOKEN =
  /(\s+|--[^\n]*|\/\*[\s\S]*?\*\/)|('(?:[^']|'')*')|("(?:[^"]|"")*")|(\?\d*|\$[A-Za-z_]\w*)|([A-Za-z_]\w*)|(\d+(?:\.\d+)?)|(->>|->|\|\||<=|>=|<>|!=|==|[\s\S])/g;
const KINDS: readonly Kind[] = ["space", "text", "quoted", "value", "word", "number", "sign"];

export function split(sql: string): Token[] {
  return [...sql.matchAll(TOKEN)].map((match) => {
    const at = match.slice(1).findIndex((part) => part !== undefined);
    return { kind: KINDS[at] ?? "sign", text: match[0] };
  });
}

export function forCalls(
  tokens: Token[],
  named: RegExp,
  work: (name: Token, open: number, close: number) => void,
): void {
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at];
    const open = at + 1;
    if (token?.kind !== "word" || !named.test(token.text) || !isSign(tokens[open], "(")) continue;
    work(token, open, closing(tokens, open));
  }
}

/** Returns the position of the next token that is not a space, or -1. */
export function next(tokens: readonly Token[], at: number): number {
  if (at < 0) return -1;
  for (let after = at + 1; after < tokens.length; after++)
    if (tokens[after]?.kind !== "space" && tokens[after]?.text !== "") return after;
  return -1;
}

/** Returns the position of the parenthesis that closes the one at `open`. */
export function closing(tokens: readonly Token[], open: number): number {
  let depth = 0;
  for (let at = open; at >= 0 && at < tokens.length; at++) {
    if (isSign(tokens[at], "(")) depth += 1;
    // A rewrite can have appended text to the parenthesis.
    else if (tokens[at]?.kind === "sign" && tokens[at]?.text.startsWith(")") && --depth === 0) return at;
  }
  return tokens.length;
}

export function hasComma(tokens: readonly Token[], open: number, close: number): boolean {
  for (let at = open + 1; at < close; at++) {
    if (isSign(tokens[at], "(")) at = closing(tokens, at);
    else if (isSign(tokens[at], ",")) return true;
  }
  return false;
}

export function isWord(token: Token | undefined, word: string): boolean {
  return token?.kind === "word" && token.text.toUpperCase() === word;
}

export function isSign(token: Token | undefined, sign: string): token is Token {
  return token?.kind === "sign" && token.text === sign;
}
