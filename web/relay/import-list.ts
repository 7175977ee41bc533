/** Reads the list of past events that a provider's API gives, such as Stripe's `{"data":[…]}`, as lines of one event each. */
import type { SenderView } from "../../src/rules/senders/sender-view.ts";
import { isObject, type Json, parseExact, writeExact } from "../base/exact-json.ts";

export type ExportForm = NonNullable<SenderView["export"]>["forms"][number];

interface ExportList {
  /** The events, one a line. */
  text: string;
  /** True if the provider says that another page follows. */
  hasMore: boolean;
}

/** Returns null for a text that has one event a line already. `forms` are the sender's own. */
export function readList(text: string, forms: readonly ExportForm[]): ExportList | null {
  const parsed = tryParse(text);
  const list = parsed === undefined ? undefined : forms.find((form) => fits(parsed, form));
  const items =
    parsed === undefined || list === undefined
      ? listItems(text, parsed, forms)
      : (findValue(parsed, list.list) as Json[]);
  if (items === null) return null;
  const form = list ?? findWrapper(items[0] ?? null, forms) ?? {};
  const lines = items.map((item) => `${formatLine(item, form)}\n`);
  const hasMore = list?.more !== undefined && isSet(findValue(parsed ?? null, list.more));
  return { text: lines.join(""), hasMore };
}

function tryParse(text: string): Json | undefined {
  try {
    return parseExact(text);
  } catch {
    return undefined;
  }
}

/** Finds the form in which an item contains the event. */
function findWrapper(item: Json, forms: readonly ExportForm[]): ExportForm | undefined {
  return forms.find(({ event }) => event !== undefined && findValue(item, event) !== undefined);
}

/** Lists the items of a list without a name, of a document of several lines, or of lines that each contain an event. */
function listItems(text: string, parsed: Json | undefined, forms: readonly ExportForm[]): Json[] | null {
  if (Array.isArray(parsed)) return parsed;
  const lines = text.trim().split("\n");
  if (parsed !== undefined)
    return lines.length > 1 || findWrapper(parsed, forms) !== undefined ? [parsed] : null;
  const first = tryParse(lines[0] ?? "");
  if (first === undefined || findWrapper(first, forms) === undefined) return null;
  const items = lines.map(tryParse);
  return items.includes(undefined) ? null : (items as Json[]);
}

/** Reports whether the document has a list in this form. */
function fits(document: Json, { list, event }: ExportForm): boolean {
  const items = findValue(document, list);
  return Array.isArray(items) && (items.length === 0 || findValue(items[0] ?? null, event) !== undefined);
}

function formatLine(item: Json, { event, headers }: ExportForm): string {
  const found = findValue(item, event) ?? item;
  const body = typeof found === "string" ? found : writeExact(found);
  const sent = headers === undefined ? undefined : findValue(item, headers);
  return isObject(sent) ? writeExact({ headers: sent, body }) : body;
}

function isSet(value: Json | undefined): boolean {
  return value !== undefined && value !== null && value !== false && value !== "";
}

/** Returns the value at a dotted path, or the value itself without a path. */
function findValue(value: Json, path: string | undefined): Json | undefined {
  if (path === undefined) return value;
  let found: Json | undefined = value;
  for (const name of path.split(".")) found = isObject(found) ? found[name] : undefined;
  return found;
}
