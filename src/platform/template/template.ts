/**
 * Dotted paths into JSON, and texts with {{dotted.paths}} that are filled in from an event. Numeric segments index arrays. Only own properties
 * are read, so `__proto__` and `constructor` resolve to nothing unless the payload has them. There are no expressions, filters or escapes. A
 * rendered value is not rendered again, and an unclosed `{{` is plain text. Source: the specification's "Triggers" (map) and "Templates";
 * recipes, "Reading the event".
 */
import { isJsonObject, type Json, type JsonObject, scalarText, writeJson } from "../../base/json.ts";
import { MAX_JSON_DEPTH, MAX_RENDERED_CHARS } from "../../base/limit.ts";
import type { Problem } from "../../base/refusal.ts";
import { joinField } from "../../base/shape.ts";

export const MAX_PATH_SEGMENTS = 32;
export const MAX_PATH_CHARS = 500;

export interface Path {
  readonly text: string;
  /** The parts of the path: at least one, and none empty. */
  readonly segments: readonly string[];
}

/** One segment: no dots, braces or control characters, and no white space at its ends (`First name` is valid). */
const SEGMENT = /^(?!\s)[^.{}\p{Cc}]+(?<!\s)$/u;
const ARRAY_INDEX = /^(?:0|[1-9]\d{0,8})$/;

/** Parses a path (`data.items.0.id`). Returns null for an empty segment, a brace, or a path that is too long or too deep. */
export function parsePath(text: string): Path | null {
  if (text.length === 0 || text.length > MAX_PATH_CHARS) return null;
  const segments = text.split(".");
  if (segments.length > MAX_PATH_SEGMENTS) return null;
  return segments.every((segment) => SEGMENT.test(segment)) ? { text, segments } : null;
}

/** Resolves a path. Returns undefined if it resolves to nothing; a JSON null is a value. */
export function readPath(value: Json, path: Path): Json | undefined {
  return readSegments(value, path.segments);
}

/** Resolves a list of segments; an empty list resolves to the value itself. */
function readSegments(value: Json, segments: readonly string[]): Json | undefined {
  let found: Json | undefined = value;
  for (const segment of segments) {
    found = readSegment(found, segment);
    if (found === undefined) return undefined;
  }
  return found;
}

/** Resolves a path in a form: a field whose literal name is the complete path takes precedence. */
export function readField(value: Json, path: Path): Json | undefined {
  if (isJsonObject(value) && Object.hasOwn(value, path.text)) return value[path.text];
  return readPath(value, path);
}

function readSegment(value: Json, segment: string): Json | undefined {
  if (Array.isArray(value)) return ARRAY_INDEX.test(segment) ? value[Number(segment)] : undefined;
  return isJsonObject(value) && Object.hasOwn(value, segment) ? value[segment] : undefined;
}

interface TemplatePath {
  /** The text between the braces, trimmed. */
  readonly text: string;
  /** The root it reads from: `event`, `mapped`, `record`, `person`, `tick`. */
  readonly root: string;
  /** The segments below the root, at least one. */
  readonly segments: readonly string[];
}

interface Template {
  /** Plain text and paths, in order. */
  readonly parts: readonly (string | TemplatePath)[];
}

const MAX_CACHED_TEMPLATES = 2_000;
const MAX_CACHED_TEXT_CHARS = 16 * 1024;

/** Characters of expressions, filters, calls and quotes, none of which a template path may contain. */
const EXPRESSION = /[\s|()"'`=<>!?&+*,;%^~\\]/;

const parsed = new Map<string, Template | string>();

/** Reports whether the text contains `{{` followed by `}}`. */
export function hasTemplate(text: string): boolean {
  const open = text.indexOf("{{");
  return open >= 0 && text.includes("}}", open + 2);
}

/** Lists the paths of a template in order; none if the text is not a valid template. */
function listTemplatePaths(text: string): string[] {
  const template = parseTemplate(text);
  if (typeof template === "string") return [];
  return template.parts.flatMap((part) => (typeof part === "string" ? [] : [part.text]));
}

interface TemplateUse {
  /** `actions.0.data.title` */
  field: string;
  /** `record.data.title` */
  path: string;
}

/** Lists the paths in all templates of a value, each with its field. `field` is the value's own. */
export function listTemplateUses(value: Json, field: string): TemplateUse[] {
  if (typeof value === "string") return listTemplatePaths(value).map((path) => ({ field, path }));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, part]) => listTemplateUses(part, joinField(field, name)));
}

/**
 * Renders a template from `scope` (`{ event, mapped, person, … }`). A path that resolves to nothing or null renders empty and is reported to
 * `onMissing`. An object or array renders as JSON, and integers keep every digit. An invalid template is returned unchanged. The result is cut
 * at MAX_RENDERED_CHARS. `form`: `event` holds the fields of a form.
 */
export function renderTemplate(
  text: string,
  scope: JsonObject,
  onMissing: (path: string) => void,
  form = false,
): string {
  return render(text, { scope, form, onMissing, written: new Map(), charsLeft: MAX_RENDERED_CHARS });
}

/** Renders every text in a value. Names, numbers and structure stay. */
export function renderData(
  value: Json,
  scope: JsonObject,
  onMissing: (path: string) => void,
  form = false,
): Json {
  return renderDepth(value, { scope, form, onMissing, written: new Map(), charsLeft: MAX_RENDERED_CHARS }, 0);
}

/**
 * Renders an identifier. Returns null if a path resolves to nothing or to a value that is neither text nor number, or if a path or the result
 * shows nothing: only white space, control or invisible characters.
 */
export function renderIdentifier(text: string, scope: JsonObject, form = false): string | null {
  const template = hasTemplate(text) ? parseTemplate(text) : text;
  if (typeof template !== "string") {
    for (const part of template.parts) {
      if (typeof part === "string") continue;
      const value = readScope(part, scope, form);
      if (typeof value === "boolean" || !isVisible(scalarText(value))) return null;
    }
  }
  const rendered = renderTemplate(text, scope, () => undefined, form);
  // Databases replace half a surrogate pair, so two identifiers could become equal.
  return rendered.isWellFormed() && isVisible(rendered) ? rendered : null;
}

/** Control, format, unassigned and private characters, separators, default-ignorable characters, and the empty Braille pattern. */
const INVISIBLE = /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]+/gu;

/** Reports whether a text has visible characters. */
export function isVisible(text: string | null): boolean {
  return text !== null && text.replace(INVISIBLE, "") !== "";
}

interface Rendering {
  readonly scope: JsonObject;
  readonly form: boolean;
  readonly onMissing: (path: string) => void;
  /** JSON texts by path, because a template may use a path a hundred times. */
  readonly written: Map<string, string>;
  charsLeft: number;
}

function renderDepth(value: Json, rendering: Rendering, depth: number): Json {
  if (typeof value === "string") return render(value, rendering);
  if (typeof value !== "object" || scalarText(value) !== null || value === null || depth >= MAX_JSON_DEPTH)
    return value;
  const inside = (inner: Json) => renderDepth(inner, rendering, depth + 1);
  if (Array.isArray(value)) return value.map(inside);
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, inside(inner)]));
}

function render(text: string, rendering: Rendering): string {
  const template = hasTemplate(text) ? parseTemplate(text) : text;
  if (typeof template === "string") return text;
  if (rendering.charsLeft === 0) return "";
  let rendered = "";
  for (const part of template.parts) {
    const piece = typeof part === "string" ? part : renderPath(part, rendering);
    const kept = cutChars(piece, rendering.charsLeft);
    rendered += kept;
    rendering.charsLeft -= kept.length;
    if (kept.length < piece.length) break;
  }
  return rendered;
}

function renderPath(path: TemplatePath, { scope, form, onMissing, written }: Rendering): string {
  const value = readScope(path, scope, form);
  if (value === undefined || value === null) {
    onMissing(path.text);
    return "";
  }
  const scalar = scalarText(value);
  if (scalar !== null) return scalar;
  const known = written.get(path.text) ?? writeJson(value);
  written.set(path.text, known);
  return known;
}

/** Reads a path from the scope. In a form, a literal dotted name takes precedence; in JSON it is never used. */
function readScope(path: TemplatePath, scope: JsonObject, form: boolean): Json | undefined {
  const root = Object.hasOwn(scope, path.root) ? scope[path.root] : undefined;
  if (root === undefined) return undefined;
  const literal = path.segments.join(".");
  if (form && path.root === "event" && isJsonObject(root) && Object.hasOwn(root, literal))
    return root[literal];
  return readSegments(root, path.segments);
}

/** Parses a template, or returns one sentence that says why it is invalid. Results are cached. */
export function parseTemplate(text: string): Template | string {
  const known = parsed.get(text);
  if (known !== undefined) return known;
  const template = parseParts(text);
  if (text.length > MAX_CACHED_TEXT_CHARS) return template;
  if (parsed.size >= MAX_CACHED_TEMPLATES) parsed.clear();
  parsed.set(text, template);
  return template;
}

/** Lists the problems of a templated text: an unclosed opening, and anything but a plain path between braces. */
export function checkTemplateText(field: string, text: string): Problem[] {
  const template = parseTemplate(text);
  if (typeof template === "string")
    return [{ field, message: `\`${field}\` contains a broken template: ${template}` }];
  if (text.lastIndexOf("{{") <= text.lastIndexOf("}}")) return [];
  const message = `\`${field}\` opens a template with {{ and never closes it: write each path as {{mapped.name}}.`;
  return [{ field, message }];
}

function parseParts(text: string): Template | string {
  const parts: (string | TemplatePath)[] = [];
  let at = 0;
  for (;;) {
    const open = text.indexOf("{{", at);
    const close = open < 0 ? -1 : text.indexOf("}}", open + 2);
    if (close < 0) break;
    if (open > at) parts.push(text.slice(at, open));
    const path = parseTemplatePath(text.slice(open + 2, close));
    if (typeof path === "string") return path;
    parts.push(path);
    at = close + 2;
  }
  if (at < text.length) parts.push(text.slice(at));
  return { parts };
}

function parseTemplatePath(between: string): TemplatePath | string {
  const text = between.trim();
  const shown = `{{${cutChars(between, 60)}}}`;
  if (text === "") return `${shown} is empty: write a path such as {{mapped.name}}.`;
  if (text.length > MAX_PATH_CHARS) {
    return `${shown} is too long: a path has at most ${MAX_PATH_CHARS} characters.`;
  }
  if (EXPRESSION.test(text)) {
    return `${shown} is not a path, and templates have no expressions or filters: write one dotted path such as {{mapped.name}}. Give a field with special characters a name in the trigger's map.`;
  }
  const path = parsePath(text);
  if (path === null) {
    return `${shown} is not a path: write names and array indexes with single dots between them, such as {{event.items.0.id}}.`;
  }
  const [root = "", ...segments] = path.segments;
  if (segments.length === 0) {
    return `${shown} names a whole ${cutChars(root, 60)}: add what to read from it, such as {{mapped.name}}.`;
  }
  return { text, root, segments };
}

/** Returns at most the first `max` code units, without splitting a character. */
function cutChars(text: string, max: number): string {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? max - 1 : max);
}
