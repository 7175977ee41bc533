/**
 * Finds the position of each value of a JSON text, and describes the first mistake. It reads positions only: JSON.parse decides what is
 * JSON and gives the values.
 */
/** The greatest depth at which positions are found. No definition may be so deep, and a deeper value counts as a mistake. */
const MAX_PLACED_DEPTH = 64;

export interface TextPosition {
  /** The line. It and the column count from 1. A column counts UTF-16 units, as editors do. */
  line: number;
  column: number;
}

interface JsonMistake extends TextPosition {
  /** The middle of a sentence: "a comma or } was expected, and a name begins here". */
  message: string;
}

export interface JsonPositions {
  /** The positions by dotted path: `trigger.map.0`; "" is the complete value. */
  places: ReadonlyMap<string, TextPosition>;
  /** The first mistake; null if the text is JSON. */
  mistake: JsonMistake | null;
  /** Paths whose name an object has more than once. JSON uses the last. */
  duplicates: ReadonlySet<string>;
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const TEXT = /"(?:[^"\\\p{Cc}]|[\x7f-\x9f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const WORD = /true|false|null/y;
const SPACE = /[ \t\r\n]*/y;
/** Spaces that JSON does not have, direction marks and the like, which are invisible in quotes. */
const INVISIBLE = /[\p{Z}\p{Cf}\p{Cc}]/u;

/** A value's range in the text, with its quotes or brackets. */
export interface JsonNode {
  start: number;
  end: number;
  /** The members of an object or list, in order. */
  members: JsonMember[];
}

export interface JsonMember {
  /** The name of a member, or the index of an item. */
  name: string;
  /** The beginning of the white space before it, then the beginning of its name (in a list, of its value). */
  lead: number;
  start: number;
  node: JsonNode;
}

/** Scans the text up to the first mistake. The text is JSON if it has none. Never throws. */
export function scanJson(text: string): { root: JsonNode; mistake: { at: number; message: string } | null } {
  const scan = new Scan(text);
  const mistake = scan.run();
  return { root: scan.root, mistake };
}

export function locateJson(text: string): JsonPositions {
  const { root, mistake } = scanJson(text);
  const lines = new Lines(text);
  const places = new Map<string, TextPosition>();
  const duplicates = new Set<string>();
  const visit = (path: string, { start, members }: JsonNode): void => {
    const place = lines.placeOf(start);
    if (!places.has(path)) places.set(path, place);
    const names = new Set<string>();
    for (const { name, node } of members) {
      const below = path === "" ? name : `${path}.${name}`;
      if (names.has(name)) duplicates.add(below);
      names.add(name);
      visit(below, node);
    }
  };
  visit("", root);
  return {
    places,
    mistake: mistake && { ...lines.placeOf(mistake.at), message: mistake.message },
    duplicates,
  };
}

class Mistake extends Error {}

class Scan {
  readonly root: JsonNode = { start: 0, end: 0, members: [] };
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  run(): { at: number; message: string } | null {
    try {
      this.#match(SPACE);
      this.root.start = this.#at;
      this.#value(this.root, 0);
      this.#match(SPACE);
      if (this.#at < this.#text.length) throw new Mistake("the end was expected");
      return null;
    } catch (error) {
      if (!(error instanceof Mistake)) throw error;
      return { at: this.#at, message: `${error.message}, and ${this.#describeNext()}` };
    }
  }

  #value(node: JsonNode, depth: number): void {
    const first = this.#text[this.#at];
    if (first === "{") this.#object(node, depth);
    else if (first === "[") this.#list(node, depth);
    else if (!this.#match(first === '"' ? TEXT : WORD) && !this.#match(NUMBER)) {
      throw new Mistake(first === '"' ? "a text that ends on its line was expected" : "a value was expected");
    }
    node.end = this.#at;
  }

  #object(node: JsonNode, depth: number): void {
    this.#at += 1;
    for (let lead = this.#at; !this.#accept("}"); ) {
      if (node.members.length > 0) {
        if (!this.#accept(",")) throw new Mistake("a comma or } was expected");
        lead = this.#at;
      }
      this.#match(SPACE);
      const start = this.#at;
      if (!this.#match(TEXT)) throw new Mistake('a name in "quotes" was expected');
      const name = JSON.parse(this.#text.slice(start, this.#at)) as string;
      if (!this.#accept(":")) throw new Mistake("a colon was expected");
      this.#member(node, { name, lead, start }, depth);
    }
  }

  #list(node: JsonNode, depth: number): void {
    this.#at += 1;
    for (let lead = this.#at; !this.#accept("]"); ) {
      if (node.members.length > 0) {
        if (!this.#accept(",")) throw new Mistake("a comma or ] was expected");
        lead = this.#at;
      }
      this.#match(SPACE);
      this.#member(node, { name: String(node.members.length), lead, start: this.#at }, depth);
    }
  }

  /** Adds the member before reading its value, so that a value with a mistake has a position. */
  #member(parent: JsonNode, member: Omit<JsonMember, "node">, depth: number): void {
    this.#match(SPACE);
    if (depth >= MAX_PLACED_DEPTH) throw new Mistake(`at most ${MAX_PLACED_DEPTH} levels were expected`);
    const node: JsonNode = { start: this.#at, end: this.#at, members: [] };
    parent.members.push({ ...member, node });
    this.#value(node, depth + 1);
  }

  #accept(sign: string): boolean {
    this.#match(SPACE);
    if (this.#text[this.#at] !== sign) return false;
    this.#at += 1;
    return true;
  }

  #match(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found === undefined) return false;
    this.#at += found.length;
    return true;
  }

  #describeNext(): string {
    const sign = this.#text[this.#at];
    if (sign === undefined) return "the file ends here";
    if (sign === '"') return "a text begins here";
    if (sign === "/") return "a comment begins here, which JSON does not have";
    if (INVISIBLE.test(sign)) return `U+${codeOf(sign)}, which shows as nothing or as a space, is here`;
    return `${JSON.stringify(sign)} is here`;
  }
}

function codeOf(sign: string): string {
  return sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
}

/** Finds lines and columns of positions in ascending order, so that each character is read once. */
class Lines {
  readonly #text: string;
  #line = 1;
  #lineStart = 0;
  #lineEnd: number;

  constructor(text: string) {
    this.#text = text;
    this.#lineEnd = this.#findLineEnd();
  }

  placeOf(at: number): TextPosition {
    while (this.#lineEnd < at) {
      this.#line += 1;
      this.#lineStart = this.#lineEnd + 1;
      this.#lineEnd = this.#findLineEnd();
    }
    return { line: this.#line, column: at - this.#lineStart + 1 };
  }

  #findLineEnd(): number {
    const end = this.#text.indexOf("\n", this.#lineStart);
    return end < 0 ? this.#text.length : end;
  }
}
