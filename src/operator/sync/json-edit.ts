/**
 * Writes a value into the text of a JSON file. Unchanged parts keep their characters, and changed parts follow the file's indentation.
 * The result means exactly the value, in the value's order.
 */
import { isJsonObject, type Json, type JsonObject, parseJson, writeJson } from "../../base/json.ts";
import { type JsonMember, type JsonNode, scanJson } from "./json-position.ts";

const BYTE_ORDER_MARK = "\uFEFF";

/** Writes a value as a new file. */
export function writeFileText(value: Json): string {
  return `${writeJson(value, 2)}\n`;
}

/** Replaces the text's value; writes a new text where it is not JSON. Never throws. */
export function editJson(text: string, value: Json): string {
  const mark = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : "";
  const body = text.slice(mark.length);
  const { root, mistake } = scanJson(body);
  if (mistake !== null) return writeFileText(value);
  const edited = mark + body.slice(0, root.start) + new Edit(body).write(root, value) + body.slice(root.end);
  // A duplicate name in an unchanged part would change the meaning.
  return writeJson(parseJson(edited.slice(mark.length))) === writeJson(value) ? edited : writeFileText(value);
}

class Edit {
  readonly #text: string;
  /** One step of indentation, and the line ending. */
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

  /** Items at the beginning and at the end that are equal in both lists are the same items. The ones between are matched in order. */
  #items(node: JsonNode, before: readonly Json[], value: readonly Json[]): Part[] {
    const [was, is] = [before.map((one) => writeJson(one)), value.map((one) => writeJson(one))];
    const shorter = Math.min(was.length, is.length);
    let begin = 0;
    while (begin < shorter && was[begin] === is[begin]) begin += 1;
    let end = 0;
    while (end < shorter - begin && was.at(-1 - end) === is.at(-1 - end)) end += 1;
    return value.map((wanted, at) => {
      const fromEnd = value.length - at;
      const isMatched = fromEnd <= end || at < was.length - end;
      const place = fromEnd <= end ? was.length - fromEnd : at;
      return { member: (isMatched ? node.members[place] : null) ?? null, name: null, wanted };
    });
  }

  #parts(node: JsonNode, parts: readonly Part[]): string {
    const open = this.#text.charAt(node.start);
    const close = this.#text.charAt(node.end - 1);
    if (parts.length === 0) return `${open}${close}`;
    const [first] = node.members;
    const lead = first === undefined ? this.#firstLead(node) : this.#text.slice(first.lead, first.start);
    const indent = /\n([ \t]*)$/.exec(lead)?.[1] ?? null;
    const isOneLine = indent === null;
    const written = parts.map(({ member, name, wanted }, at) => {
      const before = this.#spaceBefore(member, node, { at, lead, isOneLine });
      if (member !== null)
        return `${before}${this.#text.slice(member.start, member.node.start)}${this.write(member.node, wanted)}`;
      const key = name === null ? "" : `${JSON.stringify(name)}: `;
      return `${before}${key}${this.#new(wanted, indent ?? "", isOneLine)}`;
    });
    return `${open}${written.join(",")}${this.#spaceAtEnd(node, lead, isOneLine)}${close}`;
  }

  /** In a list on one line, a space follows a comma. In a list on several lines, each item begins its own line. */
  #spaceBefore(
    member: JsonMember | null,
    node: JsonNode,
    { at, lead, isOneLine }: { at: number; lead: string; isOneLine: boolean },
  ): string {
    if (member !== null && (isOneLine || this.#text.slice(member.lead, member.start).includes("\n")))
      return this.#leadOf(member, node, at);
    return isOneLine && at > 0 ? this.#gap(node) : lead;
  }

  #spaceAtEnd(node: JsonNode, lead: string, isOneLine: boolean): string {
    const last = node.members.at(-1);
    if (last !== undefined) return this.#text.slice(last.node.end, node.end - 1);
    return isOneLine ? lead : `${this.#lineEnd}${this.#indentAt(node.start)}`;
  }

  /** Keeps the member's white space unless it moves from or to the first place. */
  #leadOf(member: JsonMember, node: JsonNode, at: number): string {
    const own = this.#text.slice(member.lead, member.start);
    const wasFirst = node.members[0] === member;
    if (own.includes("\n") || wasFirst === (at === 0)) return own;
    const first = node.members[0];
    return at > 0 ? this.#gap(node) : first === undefined ? "" : this.#text.slice(first.lead, first.start);
  }

  /** The white space between two members on one line. */
  #gap(node: JsonNode): string {
    const second = node.members[1];
    return second === undefined ? " " : this.#text.slice(second.lead, second.start);
  }

  /** The white space before the first member of an empty list or object. */
  #firstLead(node: JsonNode): string {
    return `${this.#lineEnd}${this.#indentAt(node.start)}${this.#step}`;
  }

  #new(value: Json, indent: string, inline: boolean): string {
    if (inline) return writeInline(value);
    return writeJson(value, 2).replace(/\n((?: {2})*)/g, (_line, spaces: string) => {
      return `${this.#lineEnd}${indent}${this.#step.repeat(spaces.length / 2)}`;
    });
  }

  /** The indentation of the line at this place. */
  #indentAt(place: number): string {
    const line = this.#text.slice(this.#text.lastIndexOf("\n", place) + 1, place);
    return /^[ \t]*/.exec(line)?.[0] ?? "";
  }
}

/** A member or item of the new text. `member` is the old one; null for a new one. */
interface Part {
  member: JsonMember | null;
  /** The name; null in a list. */
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
