/** Completions of the editor: field names, values and template paths, from the schema and the catalog. */
import {
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
  startCompletion,
} from "@codemirror/autocomplete";
import type { Extension } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";
import { type JsonSpot, nodeAt, readTree, spotAt } from "./json-tree.ts";
import { allowedAt, choicesAt, type Known, namesFor, type Schema, templateChoices } from "./schema.ts";

const TEMPLATE = /\{\{\s*([\w.-]*)$/;

/** `know` returns what is known about the text, or null while loading. */
export function completes(know: (text: string) => Known | null): Extension {
  return autocompletion({
    override: [(context) => complete(context, know(context.state.doc.toString()))],
    icons: false,
    activateOnTyping: true,
  });
}

function complete(context: CompletionContext, known: Known | null): CompletionResult | null {
  const { pos, explicit } = context;
  const spot = known === null ? null : spotAt(known.root, pos);
  if (known === null || spot === null) return null;
  if (spot.is === "name") return completeName(known, spot, pos, explicit);
  const text = context.state.sliceDoc(spot.from, pos);
  const path = TEMPLATE.exec(text);
  if (path !== null && allowedAt(known, spot.steps)?.schema["x-templated"] === true)
    return completeTemplate(known, pos - (path[1]?.length ?? 0));
  const isEmpty = spot.from === spot.to || spot.node?.value === "";
  if (isEmpty && !explicit && !/["[:{]\s*$/.test(context.state.sliceDoc(pos - 2, pos))) return null;
  return completeValue(known, spot, pos);
}

function completeName(known: Known, spot: JsonSpot, pos: number, explicit: boolean): CompletionResult | null {
  if (spot.from === spot.to && !explicit) return null;
  const allowed = allowedAt(known, spot.steps);
  if (allowed === null) return null;
  const { schema } = allowed;
  const present = new Set(nodeAt(known.root, spot.steps)?.members.map(({ name }) => name));
  const fields = Object.entries(schema.properties ?? {}).map(([name, field]) => ({
    name,
    field,
    info: field.description,
    isRequired: schema.required?.includes(name) ?? false,
  }));
  const free: Schema = Object.values(schema.patternProperties ?? {})[0] ?? {};
  const known_ = Object.entries(schema["x-known-names"] ?? {}).map(([name, info]) => ({ name, info }));
  const named = namesFor(known, schema["x-names"], spot.steps).map((name) => ({ name, info: undefined }));
  const others = [...known_, ...named].map((one) => ({ ...one, field: free, isRequired: false }));
  const options = [...fields, ...others]
    .filter(({ name }) => !present.has(name) || (spot.from < pos && spot.hasValue))
    .map(
      ({ name, field, info, isRequired }): Completion => ({
        label: name,
        detail: isRequired ? " required" : "",
        boost: isRequired ? 1 : 0,
        ...(info === undefined ? {} : { info }),
        apply: (view, _completion, from) => putName(view, from, name, field),
      }),
    );
  const inQuotes = spot.from < spot.to;
  return options.length === 0
    ? null
    : { from: inQuotes ? spot.from + 1 : pos, options, validFor: /^[\w-]*$/ };
}

function completeValue(known: Known, spot: JsonSpot, pos: number): CompletionResult | null {
  const choices = choicesAt(known, spot.steps);
  if (choices.length === 0) return null;
  const options = choices.map(({ value, title, info }): Completion => {
    const isWhole = typeof value === "object" && value !== null;
    return {
      label: isWhole ? (title ?? JSON.stringify(value)) : String(value),
      ...(isWhole || title === undefined ? {} : { detail: ` ${title}` }),
      ...(info === undefined ? {} : { info }),
      apply: (view, _completion, from) => putValue(view, from, value),
    };
  });
  const isText = spot.node?.kind === "text";
  const from = isText ? spot.from + 1 : spot.node === null ? pos : spot.from;
  return { from, options, validFor: /^[^"\n]*$/ };
}

function completeTemplate(known: Known, from: number): CompletionResult | null {
  const options = templateChoices(known).map(
    ({ value, title, info }): Completion => ({
      label: String(value),
      ...(title === undefined ? {} : { detail: ` ${title}` }),
      ...(info === undefined ? {} : { info }),
      apply: (view, _completion, start, end) => {
        const isClosed = view.state.sliceDoc(end, end + 2) === "}}";
        const insert = `${String(value)}${isClosed ? "" : "}}"}`;
        const anchor = start + insert.length + (isClosed ? 2 : 0);
        view.dispatch({
          changes: { from: start, to: end, insert },
          selection: { anchor },
          userEvent: "input.complete",
        });
      },
    }),
  );
  return options.length === 0 ? null : { from, options, validFor: /^[\w.-]*$/ };
}

/** Returns the range that a completion replaces: the token with its quotes, or nothing. */
function rangeAt(view: EditorView, from: number): { from: number; to: number; hasValue: boolean } {
  const text = view.state.doc.toString();
  const { head } = view.state.selection.main;
  const spot = spotAt(readTree(text), from);
  if (spot === null || spot.from === spot.to)
    return { from: Math.min(from, head), to: head, hasValue: false };
  const isClosed = text[spot.to - 1] === '"' && spot.to - 1 > spot.from;
  return {
    from: spot.from,
    to: isClosed || spot.node?.kind === "word" ? spot.to : head,
    hasValue: spot.hasValue,
  };
}

function putName(view: EditorView, at: number, name: string, field: Schema): void {
  const { from, to, hasValue } = rangeAt(view, at);
  const [open, close] = emptyValue(field);
  const quoted = JSON.stringify(name);
  if (hasValue) put(view, from, to, quoted, null);
  else put(view, from, to, `${quoted}: ${open}${close}`, close.length);
}

function putValue(view: EditorView, at: number, value: unknown): void {
  const { from, to } = rangeAt(view, at);
  const indent = /^ */.exec(view.state.doc.lineAt(from).text)?.[0] ?? "";
  put(view, from, to, JSON.stringify(value, null, 2).replaceAll("\n", `\n${indent}`), null);
}

/** Returns the text before and after the caret for a new value. */
function emptyValue({ type, oneOf, required, const: fixed }: Schema): [open: string, close: string] {
  if (fixed !== undefined) return [JSON.stringify(fixed), ""];
  if (oneOf !== undefined) return [`{ "${required?.[0] ?? ""}": "`, '" }'];
  if (type === "array") return ["[", "]"];
  if (type === "object") return ["{ ", " }"];
  return type === "boolean" || type === "integer" || type === "number" ? ["", ""] : ['"', '"'];
}

/**
 * Inserts a completion with the commas that it needs. `back` is the caret's distance from its end. If `back` is not
 * null, more completions open there.
 */
function put(view: EditorView, from: number, to: number, insert: string, back: number | null): void {
  const { doc } = view.state;
  const before = doc.sliceString(0, from).trimEnd();
  const needsBefore = back !== null && /["\]}\w]$/.test(before);
  const needsBehind = back !== null && /^\s*"/.test(doc.sliceString(to, to + 200));
  const text = needsBehind ? `${insert},` : insert;
  const comma = needsBefore ? [{ from: before.length, insert: "," }] : [];
  const end = from + insert.length + (needsBefore ? 1 : 0);
  view.dispatch({
    changes: [...comma, { from, to, insert: text }],
    selection: { anchor: end - (back ?? 0) },
    userEvent: "input.complete",
  });
  if (back !== null) startCompletion(view);
}
