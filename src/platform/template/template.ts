/**
 * Dotted paths into JSON, and texts with {{dotted.paths}} that are filled in from an event. Numeric segments index arrays; only own properties
 * are ever read, so `__proto__` and `constructor` name nothing unless the payload itself holds them. There are no expressions, no filters and
 * no escapes, a rendered value is never rendered again, and a `{{` that is never closed is plain text.
 * Source: the specification's "Triggers" (map) and "Templates"; recipes, "Reading the event".
 */
import { isJsonObject, type Json, type JsonObject, scalarText, writeJson } from "../../base/json.ts";
import { MAX_JSON_DEPTH, MAX_RENDERED_CHARS } from "../../base/limit.ts";
import type { Problem } from "../../base/refusal.ts";
import { joinField } from "../../base/shape.ts";

export const MAX_PATH_SEGMENTS = 32;
export const MAX_PATH_CHARS = 500;

export interface Path {
  /** As written. */
  readonly text: string;
  /** At least one, none empty. */
  readonly segments: readonly string[];
}

/** One segment: no dots, braces or control characters, no white space at its ends (inside, as in `First name`, is fine). */
const SEGMENT = /^(?!\s)[^.{}\p{Cc}]+(?<!\s)$/u;
const ARRAY_INDEX = /^(?:0|[1-9]\d{0,8})$/;

/** The path a text writes (`data.items.0.id`), or null when it is not one: an empty segment, a brace, too long, too deep. */
export function parsePath(text: string): Path | null {
  if (text.length === 0 || text.length > MAX_PATH_CHARS) return null;
  const segments = text.split(".");
  if (segments.length > MAX_PATH_SEGMENTS) return null;
  return segments.every((segment) => SEGMENT.test(segment)) ? { text, segments } : null;
}

/** What the path names, or undefined when it names nothing. A JSON null is null, which is something. */
export function readPath(value: Json, path: Path): Json | undefined {
  return readSegments(value, path.segments);
}

/** As `readPath`, for a list of segments; none of them name the value itself. */
function readSegments(value: Json, segments: readonly string[]): Json | undefined {
  let found: Json | undefined = value;
  for (const segment of segments) {
    found = readSegment(found, segment);
    if (found === undefined) return undefined;
  }
  return found;
}

/** As `readPath`, for a form's fields: a field whose literal name is the whole path wins over the path. */
export function readField(value: Json, path: Path): Json | undefined {
  if (isJsonObject(value) && Object.hasOwn(value, path.text)) return value[path.text];
  return readPath(value, path);
}

function readSegment(value: Json, segment: string): Json | undefined {
  if (Array.isArray(value)) return ARRAY_INDEX.test(segment) ? value[Number(segment)] : undefined;
  return isJsonObject(value) && Object.hasOwn(value, segment) ? value[segment] : undefined;
}

interface TemplatePath {
  /** As written between the braces, without the spaces around it. */
  readonly text: string;
  /** What it reads from: `event`, `mapped`, `record`, `person`, `tick`. */
  readonly root: string;
  /** Below the root, at least one. */
  readonly segments: readonly string[];
}

interface Template {
  /** Plain text and paths, in order. */
  readonly parts: readonly (string | TemplatePath)[];
}

const MAX_CACHED_TEMPLATES = 2_000;
const MAX_CACHED_TEXT_CHARS = 16 * 1024;

/** What an expression, a filter, a call or a quoted name would need; none of it stands in a template path. */
const EXPRESSION = /[\s|()"'`=<>!?&+*,;%^~\\]/;

const parsed = new Map<string, Template | string>();

/** Whether the text holds something that would be filled in (or refused): an opening with its closing. */
export function hasTemplate(text: string): boolean {
  const open = text.indexOf("{{");
  return open >= 0 && text.includes("}}", open + 2);
}

/** Every path the text names, as written, in order; none when the text is not a valid template. */
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

/** Every path that the templates of a value name, each with the field it stands in; `field` is the value's own. */
export function listTemplateUses(value: Json, field: string): TemplateUse[] {
  if (typeof value === "string") return listTemplatePaths(value).map((path) => ({ field, path }));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, part]) => listTemplateUses(part, joinField(field, name)));
}

/**
 * The text with its paths filled in from `scope` (`{ event, mapped, person, … }`). A path that names nothing, or null, renders empty
 * and is told to `onMissing`; an object or array renders as JSON; integers keep every digit. A text that is not a valid template is
 * answered as it is. The result is cut at MAX_RENDERED_CHARS. `form`: `event` is a form's fields.
 */
export function renderTemplate(
  text: string,
  scope: JsonObject,
  onMissing: (path: string) => void,
  form = false,
): string {
  return render(text, { scope, form, onMissing, written: new Map(), charsLeft: MAX_RENDERED_CHARS });
}

/** The value with every text inside rendered; names, numbers and structure stay as they are. */
export function renderData(
  value: Json,
  scope: JsonObject,
  onMissing: (path: string) => void,
  form = false,
): Json {
  return renderDepth(value, { scope, form, onMissing, written: new Map(), charsLeft: MAX_RENDERED_CHARS }, 0);
}

/**
 * The text of an identifier: as `renderTemplate`, but null when a path names nothing, or no text and no number (an object, a list, true and
 * false identify nothing), or when a path or the whole has nothing to see: white space, control and invisible characters alone.
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
  // Half a surrogate pair is lost where text is stored, and two identifiers would be one.
  return rendered.isWellFormed() && isVisible(rendered) ? rendered : null;
}

/** Control, format, unassigned and private characters, separators, what is ignorable by default, and the empty Braille pattern. */
const INVISIBLE = /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]+/gu;

/** Whether a text shows anything: more than white space, control and invisible characters. */
export function isVisible(text: string | null): boolean {
  return text !== null && text.replace(INVISIBLE, "") !== "";
}

interface Rendering {
  readonly scope: JsonObject;
  readonly form: boolean;
  readonly onMissing: (path: string) => void;
  /** JSON texts of objects and lists by their path: a text may name one a hundred times. */
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

/** In a form's fields a literal dotted name wins over the path; in JSON it never stands for one. */
function readScope(path: TemplatePath, scope: JsonObject, form: boolean): Json | undefined {
  const root = Object.hasOwn(scope, path.root) ? scope[path.root] : undefined;
  if (root === undefined) return undefined;
  const literal = path.segments.join(".");
  if (form && path.root === "event" && isJsonObject(root) && Object.hasOwn(root, literal))
    return root[literal];
  return readSegments(root, path.segments);
}

/** The template a text writes, or one sentence saying why it is none. Results are kept, so that parsing the same text again costs nothing. */
export function parseTemplate(text: string): Template | string {
  const known = parsed.get(text);
  if (known !== undefined) return known;
  const template = parseParts(text);
  if (text.length > MAX_CACHED_TEXT_CHARS) return template;
  if (parsed.size >= MAX_CACHED_TEMPLATES) parsed.clear();
  parsed.set(text, template);
  return template;
}

/** Problems of a templated text: an opening that is never closed, and anything but a plain path between double braces. */
export function checkTemplateText(field: string, text: string): Problem[] {
  const template = parseTemplate(text);
  if (typeof template === "string")
    return [{ field, message: `\`${field}\` holds a broken template: ${template}` }];
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
    return `${shown} is not a path: templates have no expressions or filters, so write one dotted path such as {{mapped.name}}, and give an oddly named field a name in the trigger's map.`;
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

/** The longest beginning of at most `max` code units that ends between characters. */
function cutChars(text: string, max: number): string {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? max - 1 : max);
}
