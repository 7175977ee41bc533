/** SQL as pieces that mean something, and how one looks through them. It knows nothing of what a statement says. */

type Kind = "space" | "text" | "quoted" | "value" | "word" | "number" | "sign";
export interface Token {
  kind: Kind;
  text: string;
  /** What is put around a value. */
  around?: readonly [before: string, after: string];
}

/** Spaces and comments; texts; quoted names; values; words; numbers; signs. */
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

/** The place of the token that means something after this one; -1: there is none. */
export function next(tokens: readonly Token[], at: number): number {
  if (at < 0) return -1;
  for (let after = at + 1; after < tokens.length; after++)
    if (tokens[after]?.kind !== "space" && tokens[after]?.text !== "") return after;
  return -1;
}

/** The place of the parenthesis that closes this one. */
export function closing(tokens: readonly Token[], open: number): number {
  let depth = 0;
  for (let at = open; at >= 0 && at < tokens.length; at++) {
    if (isSign(tokens[at], "(")) depth += 1;
    // What was added behind it may follow it.
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
