/**
 * Puts a value into the text of a JSON file: what is unchanged keeps its characters, what is changed, added or taken away follows the file's
 * own indentation. The text that comes out means exactly the value, in the value's order.
 */
import { isJsonObject, type Json, type JsonObject, parseJson, writeJson } from "../ground/json.ts";

/** Deeper than anything that is put into a file; a file that is deeper is written anew. */
const MAX_DEPTH = 64;
const BYTE_ORDER_MARK = "\uFEFF";

/** A value as a file of its own says it. */
export function writeFileText(value: Json): string {
  return `${writeJson(value, 2)}\n`;
}

/** The text with this value in the place of its own; written anew where it is no JSON. Never throws. */
export function editJson(text: string, value: Json): string {
  const mark = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : "";
  const body = text.slice(mark.length);
  const root = readTree(body);
  if (root === null) return writeFileText(value);
  const edited = mark + body.slice(0, root.start) + new Edit(body).write(root, value) + body.slice(root.end);
  // Where a name stood twice in what is kept.
  return writeJson(parseJson(edited.slice(mark.length))) === writeJson(value) ? edited : writeFileText(value);
}

interface Node {
  value: Json;
  /** Where it stands, its quotes and brackets with it. */
  start: number;
  end: number;
  /** Of an object, in order; of a list, with names that say nothing. */
  members: Member[];
}

interface Member {
  name: string;
  /** Where the white space before it begins, and where its name (or in a list its value) does. */
  lead: number;
  start: number;
  node: Node;
}

function readTree(text: string): Node | null {
  try {
    return new Reader(text).read();
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Of a text that JSON.parse takes; places alone are found here. */
class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): Node {
    const value = parseJson(this.#text);
    this.#skip();
    return this.#node(value, 0);
  }

  #node(value: Json, depth: number): Node {
    if (depth > MAX_DEPTH) throw new SyntaxError("The text is too deep.");
    const start = this.#at;
    const members: Member[] = [];
    if (isJsonObject(value) || Array.isArray(value)) {
      this.#at += 1;
      for (let index = 0; ; index++) {
        const lead = this.#at;
        this.#skip();
        if (this.#text[this.#at] === "}" || this.#text[this.#at] === "]") break;
        const begin = this.#at;
        const name = Array.isArray(value) ? String(index) : this.#name();
        const inner = Array.isArray(value) ? value[index] : value[name];
        members.push({ name, lead, start: begin, node: this.#node(inner as Json, depth + 1) });
        this.#skip();
        if (this.#text[this.#at] === ",") this.#at += 1;
      }
      this.#at += 1;
    } else if (this.#text[this.#at] === '"') this.#string();
    else while (this.#at < this.#text.length && !/[\s,\]}]/.test(this.#text.charAt(this.#at))) this.#at += 1;
    return { value, start, end: this.#at, members };
  }

  /** The name of a member, up to where its value begins. */
  #name(): string {
    const start = this.#at;
    this.#string();
    const name = JSON.parse(this.#text.slice(start, this.#at)) as string;
    this.#skip();
    this.#at += 1;
    this.#skip();
    return name;
  }

  #string(): void {
    for (this.#at += 1; this.#text[this.#at] !== '"'; this.#at++)
      if (this.#text[this.#at] === "\\") this.#at += 1;
    this.#at += 1;
  }

  #skip(): void {
    while (/[ \t\r\n]/.test(this.#text.charAt(this.#at)) && this.#at < this.#text.length) this.#at += 1;
  }
}

class Edit {
  readonly #text: string;
  /** One step of indentation, and how a line ends. */
  readonly #step: string;
  readonly #lineEnd: string;

  constructor(text: string) {
    this.#text = text;
    this.#step = /\n([ \t]+)\S/.exec(text)?.[1] ?? "  ";
    this.#lineEnd = text.includes("\r\n") ? "\r\n" : "\n";
  }

  write(node: Node, value: Json): string {
    const text = this.#text.slice(node.start, node.end);
    if (writeJson(node.value) === writeJson(value)) return text;
    if (isJsonObject(node.value) && isJsonObject(value)) return this.#parts(node, this.#named(node, value));
    if (Array.isArray(node.value) && Array.isArray(value)) return this.#parts(node, this.#items(node, value));
    return this.#new(value, this.#indentAt(node.start), false);
  }

  #named(node: Node, value: JsonObject): Part[] {
    const standing = new Map(node.members.map((member) => [member.name, member]));
    return Object.entries(value).map(([name, wanted]) => ({
      member: standing.get(name) ?? null,
      name,
      wanted,
    }));
  }

  /** Items that both lists begin or end with are the same ones, and between them the first is edited to the first. */
  #items(node: Node, value: readonly Json[]): Part[] {
    const [was, is] = [
      node.members.map((one) => writeJson(one.node.value)),
      value.map((one) => writeJson(one)),
    ];
    const shorter = Math.min(was.length, is.length);
    let begin = 0;
    while (begin < shorter && was[begin] === is[begin]) begin += 1;
    let end = 0;
    while (end < shorter - begin && was.at(-1 - end) === is.at(-1 - end)) end += 1;
    return value.map((wanted, at) => {
      const fromEnd = value.length - at;
      const place = fromEnd <= end ? was.length - fromEnd : at < was.length - end ? at : -1;
      return { member: node.members[place] ?? null, name: null, wanted };
    });
  }

  #parts(node: Node, parts: readonly Part[]): string {
    const open = this.#text.charAt(node.start);
    const close = this.#text.charAt(node.end - 1);
    if (parts.length === 0) return `${open}${close}`;
    const first = node.members[0];
    const lead = first === undefined ? this.#firstLead(node) : this.#text.slice(first.lead, first.start);
    const own = /\n([ \t]*)$/.exec(lead)?.[1] ?? null;
    const last = node.members.at(-1);
    const tail =
      last !== undefined
        ? this.#text.slice(last.node.end, node.end - 1)
        : own === null
          ? lead
          : `${this.#lineEnd}${this.#indentAt(node.start)}`;
    const written = parts.map(({ member, name, wanted }, at) => {
      // Of one line, what follows a comma is set off from it; of several, each begins its own.
      const before =
        member === null || (own !== null && !this.#text.slice(member.lead, member.start).includes("\n"))
          ? own === null && at > 0
            ? this.#gap(node)
            : lead
          : this.#leadOf(member, node, at);
      const key =
        member === null
          ? name === null
            ? ""
            : `${JSON.stringify(name)}: `
          : this.#text.slice(member.start, member.node.start);
      const value =
        member === null ? this.#new(wanted, own ?? "", own === null) : this.write(member.node, wanted);
      return `${before}${key}${value}`;
    });
    return `${open}${written.join(",")}${tail}${close}`;
  }

  /** Its own white space, unless it moved from or to the place behind the bracket. */
  #leadOf(member: Member, node: Node, at: number): string {
    const own = this.#text.slice(member.lead, member.start);
    const wasFirst = node.members[0] === member;
    if (own.includes("\n") || wasFirst === (at === 0)) return own;
    const first = node.members[0];
    return at > 0 ? this.#gap(node) : first === undefined ? "" : this.#text.slice(first.lead, first.start);
  }

  /** Between two members that stand on one line. */
  #gap(node: Node): string {
    const second = node.members[1];
    return second === undefined ? " " : this.#text.slice(second.lead, second.start);
  }

  /** Before the first member of what was empty. */
  #firstLead(node: Node): string {
    return `${this.#lineEnd}${this.#indentAt(node.start)}${this.#step}`;
  }

  #new(value: Json, indent: string, inline: boolean): string {
    if (inline) return writeInline(value);
    return writeJson(value, 2).replace(/\n((?: {2})*)/g, (_line, spaces: string) => {
      return `${this.#lineEnd}${indent}${this.#step.repeat(spaces.length / 2)}`;
    });
  }

  /** What the line of this place begins with. */
  #indentAt(place: number): string {
    const line = this.#text.slice(this.#text.lastIndexOf("\n", place) + 1, place);
    return /^[ \t]*/.exec(line)?.[0] ?? "";
  }
}

/** A member or item as it is to be; `member`: what it was, null for a new one. */
interface Part {
  member: Member | null;
  /** null in a list. */
  name: string | null;
  wanted: Json;
}

function writeInline(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(writeInline).join(", ")}]`;
  if (!isJsonObject(value)) return writeJson(value);
  const members = Object.entries(value).map(
    ([name, inner]) => `${JSON.stringify(name)}: ${writeInline(inner)}`,
  );
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}
