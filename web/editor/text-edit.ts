/**
 * Edits one place of a JSON text. All other characters stay as they are, and new parts follow the text's layout. A text
 * that is not JSON never changes.
 */
import { isObject, type Json, parseExact, writeExact } from "../base/exact-json.ts";
import { type JsonNode, readTree, type Step } from "./json-tree.ts";

/** Replaces the value at the steps, or adds it with the parents that are missing. An equal value changes nothing. */
export function setValue(text: string, steps: readonly Step[], value: Json): string {
  const root = readValid(text);
  if (root === null) return text;
  const layout = readLayout(text, root);
  let [node, isOnLines] = [root, true];
  for (const [at, step] of steps.entries()) {
    const slots = slotsOf(node, step);
    const inner = slots === null ? null : findSlot(slots, step);
    if (slots === null) return replace(text, node, wrap(steps.slice(at), value), layout, isOnLines);
    isOnLines = isLaidOnLines(text, node, slots, isOnLines, layout);
    if (inner === null) {
      const added = { name: typeof step === "string" ? step : null, value: wrap(steps.slice(at + 1), value) };
      return add(text, node, slots, slots.length, added, layout, isOnLines);
    }
    node = inner.node;
  }
  return replace(text, node, value, layout, isOnLines);
}

/** Removes a member or an item with its comma. Does nothing if it does not exist. */
export function removeAt(text: string, steps: readonly Step[]): string {
  const step = steps.at(-1);
  const holder = findNode(text, steps.slice(0, -1));
  const slots = holder === null || step === undefined ? null : slotsOf(holder, step);
  const slot = slots === null || step === undefined ? null : findSlot(slots, step);
  if (holder === null || slots === null || slot === null || step === undefined) return text;
  const at = slots.indexOf(slot);
  const [before, after] = [slots[at - 1], slots[at + 1]];
  const cut = (from: number, to: number): string => text.slice(0, from) + text.slice(to);
  const edited =
    before !== undefined
      ? cut(before.node.to, slot.node.to)
      : after === undefined
        ? cut(holder.from + 1, holder.to - 1)
        : cut(slot.from, after.from);
  const hasTwin = typeof step === "string" && slots.some((one) => one !== slot && one.name === step);
  return hasTwin ? removeAt(edited, steps) : edited;
}

/** Inserts an item before the index, and creates the list if it does not exist. */
export function insertItem(text: string, list: readonly Step[], index: number, value: Json): string {
  const found = findPath(text, list);
  if (found === null || found.node.kind !== "list") return setValue(text, list, [value]);
  const { root, node } = found;
  const slots = slotsOf(node, 0) ?? [];
  const layout = readLayout(text, root);
  const isOnLines = isLaidOnLines(text, node, slots, found.isOnLines, layout);
  return add(text, node, slots, Math.min(index, slots.length), { name: null, value }, layout, isOnLines);
}

/** Moves an item to another index. The white space between the items stays. */
export function moveItem(text: string, list: readonly Step[], from: number, to: number): string {
  const items = findNode(text, list)?.items ?? [];
  const moved = [...items];
  const [item] = moved.splice(from, 1);
  if (item === undefined || items[from] === undefined || items[to] === undefined) return text;
  moved.splice(to, 0, item);
  let [edited, end] = ["", 0];
  for (const [at, slot] of items.entries()) {
    const { from: start, to: stop } = moved[at] ?? slot;
    edited += text.slice(end, slot.from) + text.slice(start, stop);
    end = slot.to;
  }
  return edited + text.slice(end);
}

/** Renames a member. Does nothing if it does not exist or if another member has the name. */
export function renameMember(text: string, steps: readonly Step[], name: string): string {
  const step = steps.at(-1);
  const members = findNode(text, steps.slice(0, -1))?.members ?? [];
  const member = members.findLast((one) => one.name === step);
  if (member === undefined || members.some((one) => one.name === name)) return text;
  return text.slice(0, member.from) + JSON.stringify(name) + text.slice(member.to);
}

function readValid(text: string): JsonNode | null {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  return readTree(text);
}

/** Member or item with the place where it begins. */
interface Slot {
  name: string | null;
  from: number;
  node: JsonNode;
}

/** Returns null if the value cannot contain such a step. */
function slotsOf({ kind, members, items }: JsonNode, step: Step): Slot[] | null {
  if (typeof step === "number")
    return kind === "list" ? items.map((node) => ({ name: null, from: node.from, node })) : null;
  if (kind !== "object") return null;
  return members.flatMap(({ name, from, value }) => (value === null ? [] : [{ name, from, node: value }]));
}

/** The last of several members with one name counts, as for JSON.parse. */
function findSlot(slots: readonly Slot[], step: Step): Slot | null {
  if (typeof step === "number") return slots[step] ?? null;
  return slots.findLast(({ name }) => name === step) ?? null;
}

function findNode(text: string, steps: readonly Step[]): JsonNode | null {
  return findPath(text, steps)?.node ?? null;
}

/** Returns an existing value. `isOnLines` is true if its parent has each part on a separate line. */
function findPath(
  text: string,
  steps: readonly Step[],
): { root: JsonNode; node: JsonNode; isOnLines: boolean } | null {
  const root = readValid(text);
  if (root === null) return null;
  const layout = readLayout(text, root);
  let [node, isOnLines] = [root, true];
  for (const step of steps) {
    const slots = slotsOf(node, step);
    const slot = slots === null ? null : findSlot(slots, step);
    if (slots === null || slot === null) return null;
    isOnLines = isLaidOnLines(text, node, slots, isOnLines, layout);
    node = slot.node;
  }
  return { root, node, isOnLines };
}

function wrap(steps: readonly Step[], value: Json): Json {
  return steps.reduceRight<Json>(
    (inner, step) => (typeof step === "number" ? [inner] : { [step]: inner }),
    value,
  );
}

interface Layout {
  hasLines: boolean;
  /** One step of indentation. */
  step: string;
  lineEnd: string;
  /** White space after a colon, and after a comma on one line. */
  space: string;
}

function readLayout(text: string, root: JsonNode): Layout {
  const hasLines = text.trim().includes("\n");
  const [first] = root.members;
  const space = first === undefined ? " " : text.slice(first.valueFrom ?? first.to, first.value?.from);
  return {
    hasLines: hasLines || root.members.length === 0,
    step: /\n([ \t]+)\S/.exec(text)?.[1] ?? "  ",
    lineEnd: text.includes("\r\n") ? "\r\n" : "\n",
    space: space.includes("\n") ? " " : space,
  };
}

/** An empty object or list is laid out as its parent is. */
function isLaidOnLines(
  text: string,
  node: JsonNode,
  [first]: readonly Slot[],
  isParent: boolean,
  { hasLines }: Layout,
): boolean {
  if (first === undefined) return hasLines && isParent;
  return text.slice(node.from, first.from).includes("\n");
}

function replace(
  text: string,
  node: JsonNode,
  value: Json,
  layout: Layout,
  isParentOnLines: boolean,
): string {
  const before = text.slice(node.from, node.to);
  if (writeExact(parseExact(before)) === writeExact(value)) return text;
  const isFull = node.members.length + node.items.length > 0;
  const isOnLines = isFull ? before.includes("\n") : layout.hasLines && isParentOnLines;
  const written = write(value, isOnLines ? indentAt(text, node.from) : null, layout);
  return text.slice(0, node.from) + written + text.slice(node.to);
}

function add(
  text: string,
  node: JsonNode,
  slots: readonly Slot[],
  index: number,
  { name, value }: { name: string | null; value: Json },
  layout: Layout,
  isOnLines: boolean,
): string {
  const { lineEnd, step, space } = layout;
  const last = slots.at(-1);
  const outer = indentAt(text, node.from);
  const indent = last === undefined ? outer + step : indentAt(text, last.from);
  const key = name === null ? "" : `${JSON.stringify(name)}:${space}`;
  const part = key + write(value, isOnLines ? indent : null, layout);
  const put = (from: number, added: string, to = from): string =>
    text.slice(0, from) + added + text.slice(to);
  if (last === undefined) {
    const pad = name === null ? "" : space;
    const inner = isOnLines ? `${lineEnd}${indent}${part}${lineEnd}${outer}` : pad + part + pad;
    return put(node.from + 1, inner, node.to - 1);
  }
  const next = slots[index];
  if (next !== undefined) return put(next.from, `${part},${leadOf(text, node, slots, index, layout)}`);
  const lead = isOnLines ? `${lineEnd}${indent}` : leadOf(text, node, slots, slots.length - 1, layout);
  return put(last.node.to, `,${lead}${part}`);
}

/** Returns the white space between a slot and the comma or bracket before it. */
function leadOf(text: string, node: JsonNode, slots: readonly Slot[], at: number, { space }: Layout): string {
  const from = slots[at]?.from ?? node.to;
  const lead = text.slice(at === 0 ? node.from + 1 : text.lastIndexOf(",", from) + 1, from);
  return at > 0 || lead.includes("\n") ? lead : secondLead(text, slots, space);
}

/** The first slot on one line follows a bracket, so the second one shows the white space after a comma. */
function secondLead(text: string, [, second]: readonly Slot[], space: string): string {
  return second === undefined ? space : text.slice(text.lastIndexOf(",", second.from) + 1, second.from);
}

/** Returns the indentation of the line that contains the place. */
function indentAt(text: string, place: number): string {
  return /^[ \t]*/.exec(text.slice(text.lastIndexOf("\n", place - 1) + 1, place))?.[0] ?? "";
}

/** Writes a value on lines with this indentation, or on one line for null. */
function write(value: Json, indent: string | null, { step, lineEnd, space }: Layout): string {
  if (indent === null) return writeOnOneLine(value, space);
  return writeExact(value, 2).replace(
    /\n((?: {2})*)/g,
    (_line, spaces: string) => `${lineEnd}${indent}${step.repeat(spaces.length / 2)}`,
  );
}

function writeOnOneLine(value: Json, space: string): string {
  if (Array.isArray(value)) return `[${value.map((one) => writeOnOneLine(one, space)).join(`,${space}`)}]`;
  if (!isObject(value)) return writeExact(value);
  const members = Object.entries(value).map(
    ([name, inner]) => `${JSON.stringify(name)}:${space}${writeOnOneLine(inner, space)}`,
  );
  return members.length === 0 ? "{}" : `{${space}${members.join(`,${space}`)}${space}}`;
}
