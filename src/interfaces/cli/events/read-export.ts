/**
 * Reads a provider's list of past events (`relay import-missed --from`) into the lines that an import takes. The files of senders/ say in which
 * forms each provider gives its list.
 */
import { isJsonObject, type Json, parseJson, writeJson } from "../../../base/json.ts";
import { parsePath, readPath } from "../../../platform/template/template.ts";
import type { ExportForm, Sender } from "../../../rules/senders/sender.ts";
import { CommandFailure } from "../command.ts";

/** The most bytes of a list, because memory holds all of it several times. */
const MAX_LIST_MB = 64;

type Exporter = Sender & Required<Pick<Sender, "export">>;

/** The senders with an `export`. The command line names them before it loads the senders. */
export const EXPORTERS = ["chargebee", "github", "gitlab", "paddle", "shopify", "stripe"] as const;

async function listExporters(): Promise<readonly Exporter[]> {
  const { SENDERS } = await import("../../../rules/senders/registry.ts");
  return SENDERS.filter((sender): sender is Exporter => sender.export !== undefined);
}

interface Export {
  /** One line for each event. */
  bytes: Uint8Array;
  /** True if the provider says that another page follows the last one. */
  hasMore: boolean;
}

/**
 * Reads the events of an export, which is one JSON document, or one on each line. Throws `body_too_large`, `invalid_json`, and `invalid_input` for
 * an item without an event.
 */
export async function readExport(bytes: Uint8Array, name: (typeof EXPORTERS)[number]): Promise<Export> {
  if (bytes.byteLength > MAX_LIST_MB * 2 ** 20)
    throw new CommandFailure(
      "body_too_large",
      `The list is larger than ${MAX_LIST_MB} MB: read it in parts, then import the parts one after another.`,
    );
  const sender = (await listExporters()).find((one) => one.name === name);
  if (sender === undefined) throw new Error(`The sender ${name} has no export.`);
  const documents = parseDocuments(new TextDecoder().decode(bytes));
  const lines: string[] = [];
  for (const document of documents)
    for (const item of listItems(document, sender)) lines.push(formatLine(item, sender, lines.length + 1));
  const last = documents.at(-1) ?? null;
  return {
    bytes: new TextEncoder().encode(lines.map((line) => `${line}\n`).join("")),
    hasMore: sender.export.forms.some(({ more }) => more !== undefined && isSet(findValue(last, more))),
  };
}

function parseDocuments(text: string): Json[] {
  const parsed = tryParse(text);
  if (parsed !== undefined) return [parsed];
  return text.split("\n").flatMap((line, at) => {
    if (line.trim() === "") return [];
    const value = tryParse(line);
    if (value !== undefined) return [value];
    throw new CommandFailure(
      "invalid_json",
      `The export is not one JSON document, and its line ${at + 1} is not JSON: write one document a line with jq -c ., then run the command again.`,
    );
  });
}

/** Returns undefined for text that is not JSON. */
function tryParse(text: string): Json | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

interface Item {
  value: Json;
  form: ExportForm;
}

/** Lists the items in the first form that fits. A document without a list is one item. */
function listItems(document: Json, { export: { forms } }: Exporter): Item[] {
  const fitting = forms.find((form) => fits(document, form));
  if (fitting !== undefined)
    return (findValue(document, fitting.list) as Json[]).map((value) => ({ value, form: fitting }));
  const values = Array.isArray(document) ? document : [document];
  const form = forms.find(({ event }) => findValue(values[0] ?? null, event) !== undefined) ?? forms[0];
  return form === undefined ? [] : values.map((value) => ({ value, form }));
}

/** Reports whether the document has a list in this form. */
function fits(document: Json, { list, event }: ExportForm): boolean {
  const items = findValue(document, list);
  return Array.isArray(items) && (items.length === 0 || findValue(items[0] ?? null, event) !== undefined);
}

function formatLine({ value, form }: Item, { title, export: { how } }: Exporter, number: number): string {
  const event = findValue(value, form.event);
  if (event === undefined || event === null)
    throw new CommandFailure(
      "invalid_input",
      `Item ${number} has no event${form.event === undefined ? "" : ` in ${form.event}`}, so it is not in a form that ${title} is known to give. Read the events with: ${how}`,
    );
  const body = typeof event === "string" ? event : writeJson(event);
  const headers = form.headers === undefined ? undefined : findValue(value, form.headers);
  return isJsonObject(headers) ? writeJson({ headers, body }) : body;
}

function isSet(value: Json | undefined): boolean {
  return value !== undefined && value !== null && value !== false && value !== "";
}

/** Returns the value at a dotted path, or the value itself without a path. Returns undefined where there is none. */
function findValue(value: Json, path: string | undefined): Json | undefined {
  if (path === undefined) return value;
  const parsed = parsePath(path);
  return parsed === null ? undefined : readPath(value, parsed);
}

/**
 * Explains an export that is one JSON document and not one event a line: which `--from` reads it, or the line of jq that makes lines. Returns null
 * for any other file.
 */
export async function explainDocument(
  bytes: Uint8Array,
  relay: string,
  file: string,
): Promise<string | null> {
  if (bytes.byteLength > MAX_LIST_MB * 2 ** 20) return null;
  const text = new TextDecoder().decode(bytes).trim();
  const document = tryParse(text);
  if (document === undefined) return null;
  const path = findListPath(document);
  if (path === null && !text.includes("\n")) return null;
  const pipe = (filter: string): string => `jq -c '${filter}' ${file} | relay import-missed ${relay}`;
  if (path === null)
    return `The file is one JSON document of several lines, and this command reads one event a line: ${pipe(".")}`;
  const exporters = (await listExporters()).filter((one) =>
    one.export.forms.some((form) => fits(document, form)),
  );
  const from = exporters.map(({ name }) => `--from ${name}`).join(" or ");
  const where = path === "" ? "one JSON list" : `one JSON document with a list in ${path}`;
  const make = pipe(`.${path}[]`);
  return `The file is ${where}, and this command reads one event a line. ${from === "" ? "Make lines" : `Add ${from}, or make lines`}: ${make}`;
}

/** Finds the list of objects: "" for the document itself, the name of the first member that is one, or null. */
function findListPath(document: Json): string | null {
  const isList = (value: Json | undefined) =>
    Array.isArray(value) && value.length > 0 && value.every(isJsonObject);
  if (isList(document)) return "";
  if (!isJsonObject(document)) return null;
  return Object.keys(document).find((name) => /^\w+$/.test(name) && isList(document[name])) ?? null;
}
