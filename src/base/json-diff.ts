/** Lists the differences between two JSON values, field by field, in time proportional to their size. */
import { isJsonObject, type Json, writeJson } from "./json.ts";
import { joinField } from "./shape.ts";

/** A field that differs. `before` or `after` is missing if the field does not exist on that side. */
interface Difference {
  field: string;
  before?: Json;
  after?: Json;
}

/** Lists the differences in the order of the fields. Items that both lists begin or end with count as the same items, at whatever index. */
export function listDifferences(before: Json, after: Json, field = ""): Difference[] {
  if (isJsonObject(before) && isJsonObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return names.flatMap((name) => {
      const place = field === "" ? name : joinField(field, name);
      const [was, is] = [ownOf(before, name), ownOf(after, name)];
      if (was === undefined) return is === undefined ? [] : [{ field: place, after: is }];
      return is === undefined ? [{ field: place, before: was }] : listDifferences(was, is, place);
    });
  }
  if (Array.isArray(before) && Array.isArray(after)) return listItems(before, after, field);
  return writeJson(before) === writeJson(after) ? [] : [{ field, before, after }];
}

function listItems(before: readonly Json[], after: readonly Json[], field: string): Difference[] {
  const [was, is] = [before.map((item) => writeJson(item)), after.map((item) => writeJson(item))];
  const shorter = Math.min(was.length, is.length);
  let start = 0;
  while (start < shorter && was[start] === is[start]) start += 1;
  let end = 0;
  while (end < shorter - start && was.at(-1 - end) === is.at(-1 - end)) end += 1;
  const removed = before.slice(start, before.length - end);
  const added = after.slice(start, after.length - end);
  const differences: Difference[] = [];
  for (let at = 0; at < Math.max(removed.length, added.length); at++) {
    const place = joinField(field, String(start + at));
    const [old, made] = [removed[at], added[at]];
    if (old !== undefined && made !== undefined) differences.push(...listDifferences(old, made, place));
    else if (old !== undefined) differences.push({ field: place, before: old });
    else if (made !== undefined) differences.push({ field: place, after: made });
  }
  return differences;
}

function ownOf(value: { [name: string]: Json }, name: string): Json | undefined {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}
