/**
 * The grammar of `signedPayload`: what may be written, and the text it makes of a call. One of {body}, {params}, {token} ends it, so
 * the signed text is always a short head and a tail of bytes. It never reads a call itself.
 * Source: the specification's "signedPayload rules" 1 to 3.
 */
import { MAX_SIGNED_PAYLOAD_LITERAL_CHARS } from "../ground/limit.ts";

type Tail = "body" | "params" | "token";

/** A parsed signedPayload: the pieces before the tail, in order. */
export interface SignedPayload {
  head: readonly ({ literal: string } | "timestamp" | "url")[];
  tail: Tail;
  usesTimestamp: boolean;
  usesUrl: boolean;
}

const TAILS: readonly string[] = ["body", "params", "token"] satisfies Tail[];
const PLACEHOLDERS: readonly string[] = ["timestamp", "url", ...TAILS];
const PIECE = /\{([^{}]*)\}|[^{}]+|[{}]/g;
const LITERAL = /^[A-Za-z0-9.:_-]*$/;
const TAIL_WORDS = "{body}, {params} or {token}";

/** The parsed text, or every rule it breaks, one sentence each. */
export function parseSignedPayload(text: string): SignedPayload | { problems: string[] } {
  const pieces = [...text.matchAll(PIECE)].map((match) => ({ text: match[0], name: match[1] ?? null }));
  const names = pieces.flatMap((piece) => (piece.name === null ? [] : [piece.name]));
  const literals = pieces.filter((piece) => piece.name === null).map((piece) => piece.text);
  const problems = [
    ...checkNames(names),
    ...checkTail(names, pieces.at(-1)?.name ?? null),
    ...checkLiterals(literals.join("")),
    ...checkAfterTimestamp(pieces),
  ];
  if (problems.length > 0) return { problems };
  return {
    head: pieces.slice(0, -1).map((piece) => {
      if (piece.name === "timestamp" || piece.name === "url") return piece.name;
      return { literal: piece.text };
    }),
    tail: names.at(-1) as Tail,
    usesTimestamp: names.includes("timestamp"),
    usesUrl: names.includes("url"),
  };
}

/** Which placeholders a text names, well formed or not; for rules that look at other fields too. */
export function namesPlaceholder(text: string, name: string): boolean {
  return text.includes(`{${name}}`);
}

function checkNames(names: readonly string[]): string[] {
  const problems: string[] = [];
  for (const name of new Set(names)) {
    if (!PLACEHOLDERS.includes(name)) {
      problems.push(
        `signedPayload names {${name}}, which is not a placeholder: use {timestamp}, {url} and one of ${TAIL_WORDS}.`,
      );
    } else if (names.filter((other) => other === name).length > 1) {
      problems.push(`signedPayload names {${name}} more than once: name each placeholder once.`);
    }
  }
  return problems;
}

function checkTail(names: readonly string[], last: string | null): string[] {
  const tails = [...new Set(names.filter((name) => TAILS.includes(name)))];
  if (tails.length === 0) {
    return [`signedPayload names none of ${TAIL_WORDS}, so nothing of the event is signed: end it with one.`];
  }
  if (tails.length > 1) {
    const found = tails.map((name) => `{${name}}`).join(" and ");
    return [`signedPayload names ${found}, but a recipe signs one of them: keep the one the sender signs.`];
  }
  if (last === null || !TAILS.includes(last)) {
    return [`signedPayload goes on after {${tails[0]}}, which must end it: move {${tails[0]}} to the end.`];
  }
  return [];
}

function checkLiterals(literal: string): string[] {
  const problems: string[] = [];
  if (!LITERAL.test(literal)) {
    problems.push(
      "signedPayload holds a character that may not surround placeholders: use letters, digits and . : _ - only.",
    );
  }
  if (literal.length > MAX_SIGNED_PAYLOAD_LITERAL_CHARS) {
    problems.push(
      `signedPayload holds ${literal.length} characters around its placeholders: use at most ${MAX_SIGNED_PAYLOAD_LITERAL_CHARS}.`,
    );
  }
  return problems;
}

function checkAfterTimestamp(pieces: readonly { text: string; name: string | null }[]): string[] {
  const problems: string[] = [];
  pieces.forEach((piece, at) => {
    if (piece.name !== "timestamp") return;
    const next = pieces[at + 1];
    if (next?.name === "params") {
      problems.push(
        "signedPayload has {params} right after {timestamp}, so a digit could move from one to the other: put a character such as . between them.",
      );
    } else if (next?.name === null && /^[0-9]/.test(next.text)) {
      problems.push(
        "signedPayload has a digit right after {timestamp}, so the two could not be told apart: put a character such as . between them.",
      );
    }
  });
  return problems;
}
