/**
 * Where things stand in a JSON text: the line and column of every field, of the first mistake, and of names written twice. JSON.parse
 * stays the judge of what is JSON; this file only says where, for people who read it in an editor.
 */

export interface Place {
  /** Both count from 1; a column counts UTF-16 units, as editors do. */
  line: number;
  column: number;
}

interface JsonMistake extends Place {
  /** The middle of a sentence: "a comma or } was expected, and a name begins here". */
  message: string;
}

export interface JsonPlaces {
  /** By dotted path: `trigger.map.0`; "" is the whole value. */
  places: ReadonlyMap<string, Place>;
  /** The first mistake; null where the text is JSON. */
  mistake: JsonMistake | null;
  /** Paths whose name stands twice in one object; JSON keeps the last. */
  twice: readonly string[];
}

/** Deeper than any definition may be; beyond it nothing is placed. */
const MAX_DEPTH = 64;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const TEXT = /"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const WORD = /true|false|null/y;
const SPACE = /[ \t\r\n]*/y;

/** Reads the text once. Never throws. */
export function placeJson(text: string): JsonPlaces {
  const scan = new Scan(text);
  const mistake = scan.run();
  return { places: scan.places, mistake, twice: scan.twice };
}

class Mistake extends Error {}

class Scan {
  readonly places = new Map<string, Place>();
  readonly twice: string[] = [];
  readonly #text: string;
  #at = 0;
  /** How far lines were counted: the place moves only forward, so each character is looked at once. */
  #line = 1;
  #lineStart = 0;
  #lineEnd: number;

  constructor(text: string) {
    this.#text = text;
    this.#lineEnd = this.#findLineEnd();
  }

  run(): JsonMistake | null {
    try {
      this.#value("", 0);
      this.#skip(SPACE);
      if (this.#at < this.#text.length) throw new Mistake("the end was expected");
      return null;
    } catch (error) {
      if (!(error instanceof Mistake)) throw error;
      return { ...this.#place(), message: `${error.message}, and ${this.#here()}` };
    }
  }

  #value(path: string, depth: number): void {
    this.#skip(SPACE);
    if (depth > MAX_DEPTH) throw new Mistake(`at most ${MAX_DEPTH} levels were expected`);
    if (!this.places.has(path)) this.places.set(path, this.#place());
    const first = this.#text[this.#at];
    if (first === "{") this.#object(path, depth);
    else if (first === "[") this.#list(path, depth);
    else if (!this.#skip(first === '"' ? TEXT : WORD) && !this.#skip(NUMBER)) {
      throw new Mistake(first === '"' ? "a text that ends on its line was expected" : "a value was expected");
    }
  }

  #object(path: string, depth: number): void {
    const names = new Set<string>();
    this.#at += 1;
    for (let first = true; !this.#takes("}"); first = false) {
      if (!first && !this.#takes(",")) throw new Mistake("a comma or } was expected");
      this.#skip(SPACE);
      const start = this.#at;
      if (!this.#skip(TEXT)) throw new Mistake('a name in "quotes" was expected');
      const name = JSON.parse(this.#text.slice(start, this.#at)) as string;
      const place = path === "" ? name : `${path}.${name}`;
      if (names.has(name)) this.twice.push(place);
      names.add(name);
      if (!this.#takes(":")) throw new Mistake("a colon was expected");
      this.#value(place, depth + 1);
    }
  }

  #list(path: string, depth: number): void {
    this.#at += 1;
    for (let index = 0; !this.#takes("]"); index++) {
      if (index > 0 && !this.#takes(",")) throw new Mistake("a comma or ] was expected");
      this.#value(path === "" ? String(index) : `${path}.${index}`, depth + 1);
    }
  }

  #takes(sign: string): boolean {
    this.#skip(SPACE);
    if (this.#text[this.#at] !== sign) return false;
    this.#at += 1;
    return true;
  }

  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found === undefined) return false;
    this.#at += found.length;
    return true;
  }

  #here(): string {
    const sign = this.#text[this.#at];
    if (sign === undefined) return "the file ends here";
    if (sign === '"') return "a text begins here";
    if (sign === "/") return "a comment begins here, which JSON does not have";
    return `${JSON.stringify(sign)} stands here`;
  }

  #place(): Place {
    while (this.#lineEnd < this.#at) {
      this.#line += 1;
      this.#lineStart = this.#lineEnd + 1;
      this.#lineEnd = this.#findLineEnd();
    }
    return { line: this.#line, column: this.#at - this.#lineStart + 1 };
  }

  #findLineEnd(): number {
    const end = this.#text.indexOf("\n", this.#lineStart);
    return end < 0 ? this.#text.length : end;
  }
}
