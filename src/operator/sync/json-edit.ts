/**
 * Puts a value into the text of a JSON file: what is unchanged keeps its characters, what is changed, added or taken away follows the file's
 * own indentation. The text that comes out means exactly the value, in the value's order.
 */
import { isJsonObject, type Json, type JsonObject, parseJson, writeJson } from "../../base/json.ts";
import { type JsonMember, type JsonNode, scanJson } from "./json-position.ts";

const BYTE_ORDER_MARK = "\uFEFF";

/** A value as a file of its own says it. */
export function writeFileText(value: Json): string {
  return `${writeJson(value, 2)}\n`;
}

/** The text with this value in the place of its own; written anew where it is no JSON. Never throws. */
export function editJson(text: string, value: Json): string {
  const mark = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : "";
  const body = text.slice(mark.length);
  const { root, mistake } = scanJson(body);
  if (mistake !== null) return writeFileText(value);
  const edited = mark + body.slice(0, root.start) + new Edit(body).write(root, value) + body.slice(root.end);
  // Where a name stood twice in what is kept.
  return writeJson(parseJson(edited.slice(mark.length))) === writeJson(value) ? edited : writeFileText(value);
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

  write(node: JsonNode, value: Json): string {
    const text = this.#text.slice(node.start, node.end);
    const was = parseJson(text);
    if (writeJson(was) === writeJson(value)) return text;
    if (isJsonObject(was) && isJsonObject(value)) return this.#parts(node, this.#named(node, value));
    if (Array.isArray(was) && Array.isArray(value)) return this.#parts(node, this.#items(node, was, value));
    return this.#new(value, this.#indentAt(node.start), false);
  }

  #named(node: JsonNode, value: JsonObject): Part[] {
    const members = new Map(node.members.map((member) => [member.name, member]));
    return Object.entries(value).map(([name, wanted]) => ({
      member: members.get(name) ?? null,
      name,
      wanted,
    }));
  }

  /** Items that both lists begin or end with are the same ones, and between them the first is edited to the first. */
  #items(node: JsonNode, before: readonly Json[], value: readonly Json[]): Part[] {
    const [was, is] = [before.map((one) => writeJson(one)), value.map((one) => writeJson(one))];
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

  #parts(node: JsonNode, parts: readonly Part[]): string {
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
  #leadOf(member: JsonMember, node: JsonNode, at: number): string {
    const own = this.#text.slice(member.lead, member.start);
    const wasFirst = node.members[0] === member;
    if (own.includes("\n") || wasFirst === (at === 0)) return own;
    const first = node.members[0];
    return at > 0 ? this.#gap(node) : first === undefined ? "" : this.#text.slice(first.lead, first.start);
  }

  /** Between two members that stand on one line. */
  #gap(node: JsonNode): string {
    const second = node.members[1];
    return second === undefined ? " " : this.#text.slice(second.lead, second.start);
  }

  /** Before the first member of what was empty. */
  #firstLead(node: JsonNode): string {
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
  member: JsonMember | null;
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
