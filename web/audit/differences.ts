/** Lists the fields in which two JSON values differ. A list that differs is one whole value. The view shortens long values. */
import { ExactNumber, isObject, type Json, writeExact } from "../base/exact-json.ts";

export interface Difference {
  field: string;
  /** undefined: the field did not exist. */
  before: string | undefined;
  after: string | undefined;
}

const MAX_FIELDS = 500;
const MAX_DEPTH = 12;

export function listDifferences(before: Json, after: Json): Difference[] {
  const found: Difference[] = [];
  compare(before ?? {}, after ?? {}, "", 0, found);
  return found;
}

function compare(
  before: Json | undefined,
  after: Json | undefined,
  field: string,
  depth: number,
  found: Difference[],
): void {
  if (found.length >= MAX_FIELDS) return;
  if (isBranch(before) && isBranch(after) && depth < MAX_DEPTH) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const place = field === "" ? name : `${field}.${name}`;
      compare(ownOf(before, name), ownOf(after, name), place, depth + 1, found);
    }
    return;
  }
  const [was, is] = [say(before), say(after)];
  if (was !== is) found.push({ field, before: was, after: is });
}

function isBranch(value: Json | undefined): value is { [name: string]: Json } {
  return value !== undefined && isObject(value) && !(value instanceof ExactNumber);
}

function ownOf(value: { [name: string]: Json }, name: string): Json | undefined {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

function say(value: Json | undefined): string | undefined {
  if (value === undefined) return undefined;
  return typeof value === "string" ? value : writeExact(value, 2);
}
