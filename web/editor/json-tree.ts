/** Reads a text as JSON as far as it makes sense, with the place of everything, also while it is being typed. It never says what is wrong. */

export interface JsonNode {
  kind: "object" | "list" | "text" | "word";
  from: number;
  /** Behind its last character; of what is never closed, the end of what was read. */
  to: number;
  isClosed: boolean;
  /** A text without its quotes, a word as it is written. */
  value: string;
  members: JsonMember[];
  items: JsonNode[];
}

interface JsonMember {
  name: string;
  /** Of its name, with the quotes. */
  from: number;
  to: number;
  /** Behind the colon; null: there is none yet. */
  valueFrom: number | null;
  value: JsonNode | null;
}

const TOKEN = /\s*(?:([{}[\],:])|("(?:[^"\\\n]|\\.)*"?)|([^\s{}[\],:"]+))/y;

interface Open {
  node: JsonNode;
  member: JsonMember | null;
}

/** The first value of the text, or null where there is none. Values beside each other without a comma are taken as if there were one. */
export function readTree(text: string): JsonNode | null {
  let root: JsonNode | null = null;
  const open: Open[] = [];
  TOKEN.lastIndex = 0;
  for (let token = TOKEN.exec(text); token !== null; token = TOKEN.exec(text)) {
    const [whole, mark, quoted, word] = token;
    const to = token.index + whole.length;
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

/** A step from the outside in: a field's name, or the number of an item. */
export type Step = string | number;

/** What stands at the end of the steps; null where nothing does. */
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

/** Where the field of a problem stands (`trigger.map.event_id`, `actions.0`), or else the nearest thing around it that does. */
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

/** A name may hold dots itself; the longest one that stands there is meant. */
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
  /** What is written there: a field's name, or a value. */
  is: "name" | "value";
  /** From the outside to the object that the name stands in, or to the value. */
  steps: Step[];
  /** What is there already; empty where nothing is. */
  from: number;
  to: number;
  /** The name or the value that is there. */
  node: JsonNode | null;
  /** Of a name: whether a colon follows it. */
  hasValue: boolean;
}

/** What the place in the text is for; null outside of everything. */
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

/** The member whose name or value the place is in, or whose value is missing there. */
function memberAt({ members }: JsonNode, at: number): JsonMember | null {
  const found = members.findLast(({ from }) => from <= at);
  if (found === undefined) return null;
  if (at <= found.to) return found;
  if (found.value === null) return found.valueFrom !== null && at >= found.valueFrom ? found : null;
  return at >= (found.valueFrom ?? found.value.from) && at <= found.value.to ? found : null;
}
