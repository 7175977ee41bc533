/** Parser of incomplete JSON that records the position of every part while the user types. It reports no errors. */

export interface JsonNode {
  kind: "object" | "list" | "text" | "word";
  from: number;
  /** Offset after the last character. For an unclosed value, the end of what was read. */
  to: number;
  isClosed: boolean;
  /** Text without quotes, or the word as written. */
  value: string;
  members: JsonMember[];
  items: JsonNode[];
}

interface JsonMember {
  name: string;
  /** Range of the name with its quotes. */
  from: number;
  to: number;
  /** Offset after the colon; null without a colon. */
  valueFrom: number | null;
  value: JsonNode | null;
}

const TOKEN = /\s*(?:([{}[\],:])|("(?:[^"\\\n]|\\.)*"?)|([^\s{}[\],:"]+))/y;

interface Open {
  node: JsonNode;
  member: JsonMember | null;
}

/** Returns the first value of the text, or null. Adjacent values without a comma count as separate. */
export function readTree(text: string): JsonNode | null {
  let root: JsonNode | null = null;
  const open: Open[] = [];
  TOKEN.lastIndex = 0;
  for (let token = TOKEN.exec(text); token !== null; token = TOKEN.exec(text)) {
    const [match, mark, quoted, word] = token;
    const to = token.index + match.length;
    const from = to - (mark ?? quoted ?? word ?? "").length;
    const top = open.at(-1);
    if (mark === "}" || mark === "]") {
      const kind = mark === "}" ? "object" : "list";
      const at = open.findLastIndex(({ node }) => node.kind === kind);
      if (at < 0) continue;
      for (const { node } of open.splice(at)) Object.assign(node, { to, isClosed: node.kind === kind });
    } else if (mark === ",") {
      if (top !== undefined) top.member = null;
    } else if (mark === ":") {
      if (top?.member?.valueFrom === null) top.member.valueFrom = to;
    } else if (
      top?.node.kind === "object" &&
      (top.member === null || top.member.value !== null) &&
      quoted !== undefined
    ) {
      top.member = { name: unquote(quoted), from, to, valueFrom: null, value: null };
      top.node.members.push(top.member);
    } else {
      const node = makeNode({ mark, quoted, word }, from, to);
      if (top === undefined) root ??= node;
      else if (top.node.kind === "list") top.node.items.push(node);
      else if (top.member !== null && top.member.value === null) top.member.value = node;
      else continue;
      if (mark !== undefined) open.push({ node, member: null });
    }
  }
  for (const { node } of open) node.to = text.length;
  return root;
}

interface Token {
  mark: string | undefined;
  quoted: string | undefined;
  word: string | undefined;
}

function makeNode({ mark, quoted, word = "" }: Token, from: number, to: number): JsonNode {
  const rest = { from, to, members: [], items: [] };
  if (mark !== undefined)
    return { ...rest, kind: mark === "{" ? "object" : "list", isClosed: false, value: "" };
  if (quoted === undefined) return { ...rest, kind: "word", isClosed: true, value: word };
  return {
    ...rest,
    kind: "text",
    isClosed: quoted.length > 1 && quoted.endsWith('"'),
    value: unquote(quoted),
  };
}

function unquote(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return quoted.slice(1).replace(/"$/, "");
  }
}

/** Step into a value: a field's name or an item's index. */
export type Step = string | number;

/** Returns the node at the end of the steps, or null. */
export function nodeAt(root: JsonNode | null, steps: readonly Step[]): JsonNode | null {
  let node = root;
  for (const step of steps) {
    if (node === null) return null;
    node = typeof step === "number" ? (node.items[step] ?? null) : childOf(node, step);
  }
  return node;
}

export function childOf(node: JsonNode, name: string): JsonNode | null {
  return node.members.find((member) => member.name === name)?.value ?? null;
}

interface Range {
  from: number;
  to: number;
}

/** Returns the range of a problem's field (`trigger.map.event_id`, `actions.0`), or of its nearest existing parent. */
export function placeOf(root: JsonNode | null, field: string): Range {
  if (root === null) return { from: 0, to: 0 };
  const names = field === "" ? [] : field.replaceAll(/\[(\d+)\]/g, ".$1").split(".");
  let [node, place]: [JsonNode, Range] = [root, { from: root.from, to: root.from + 1 }];
  for (let at = 0; at < names.length; ) {
    const step = stepInto(node, names.slice(at));
    if (step === null) break;
    place = step.place;
    at += step.names;
    if (step.node === null) break;
    node = step.node;
  }
  return place;
}

/** A name may itself contain dots, so the longest existing name is used. */
function stepInto(
  { kind, items, members }: JsonNode,
  names: readonly string[],
): { node: JsonNode | null; place: Range; names: number } | null {
  if (kind === "list") {
    const item = items[Number(names[0])];
    return item === undefined ? null : { node: item, place: rangeOf(item), names: 1 };
  }
  for (let length = names.length; length > 0; length--) {
    const name = names.slice(0, length).join(".");
    const member = members.find((one) => one.name === name);
    if (member === undefined) continue;
    const { value } = member;
    const isPlain = value !== null && value.kind !== "object" && value.kind !== "list";
    return {
      node: value,
      place: { from: member.from, to: isPlain ? value.to : member.to },
      names: length,
    };
  }
  return null;
}

function rangeOf({ kind, from, to }: JsonNode): Range {
  return kind === "object" || kind === "list" ? { from, to: from + 1 } : { from, to };
}

export interface JsonSpot {
  /** Kind of the text at this place: a field's name or a value. */
  is: "name" | "value";
  /** Steps to the value, or to the object that contains the name. */
  steps: Step[];
  /** Range of the existing text; empty if there is none. */
  from: number;
  to: number;
  /** Existing name or value. */
  node: JsonNode | null;
  /** True if a colon follows the name. */
  hasValue: boolean;
}

/** Returns what the place in the text is for; null outside the root value. */
export function spotAt(root: JsonNode | null, at: number): JsonSpot | null {
  let node = root;
  const steps: Step[] = [];
  while (node !== null) {
    const { kind, from, to, isClosed } = node;
    if (at < from || at > to) return null;
    if (kind === "text" || kind === "word") return valueSpot(steps, node);
    if (at === from || (isClosed && at === to)) return null;
    const inner = kind === "list" ? itemAt(node, at) : memberAt(node, at);
    if (inner === null) {
      const empty = { steps, from: at, to: at, node: null, hasValue: false };
      return kind === "list"
        ? { ...empty, is: "value", steps: [...steps, node.items.length] }
        : { ...empty, is: "name" };
    }
    if (typeof inner === "number") {
      steps.push(inner);
      node = node.items[inner] ?? null;
      continue;
    }
    if (inner.valueFrom === null || at <= inner.to)
      return {
        is: "name",
        steps,
        from: inner.from,
        to: inner.to,
        node: null,
        hasValue: inner.valueFrom !== null,
      };
    steps.push(inner.name);
    if (inner.value === null || at < inner.value.from || at > inner.value.to)
      return { is: "value", steps, from: at, to: at, node: null, hasValue: false };
    node = inner.value;
  }
  return null;
}

function valueSpot(steps: Step[], node: JsonNode): JsonSpot {
  return { is: "value", steps, from: node.from, to: node.to, node, hasValue: false };
}

function itemAt({ items }: JsonNode, at: number): number | null {
  const found = items.findIndex(({ from, to }) => at >= from && at <= to);
  return found < 0 ? null : found;
}

/** Returns the member whose name or value contains the place, or whose value is missing there. */
function memberAt({ members }: JsonNode, at: number): JsonMember | null {
  const found = members.findLast(({ from }) => from <= at);
  if (found === undefined) return null;
  if (at <= found.to) return found;
  if (found.value === null) return found.valueFrom !== null && at >= found.valueFrom ? found : null;
  return at >= (found.valueFrom ?? found.value.from) && at <= found.value.to ? found : null;
}
