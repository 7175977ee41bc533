/**
 * Checks a value against a shape and lists every problem in one sentence each: the field, why, and what to do. It does not use Elysia's own check,
 * which uses another TypeBox and writes a refused value with JSON.stringify, which throws on a bigint. It reads the shape's words (base/shape.ts) and
 * never shows a long or secret-looking value. The caller bounds the value's depth and size.
 */
import type { Static, TSchema } from "typebox";
import { Check, Compile, type Validator } from "typebox/schema";
import { isJsonObject } from "./json.ts";
import { MAX_PROBLEMS } from "./limit.ts";
import { type Problem, Refusal } from "./refusal.ts";
import {
  joinField,
  mustBe,
  type ShapeNode,
  saysWhy,
  showName,
  showNames,
  showNumber,
  showText,
} from "./shape.ts";
import { findNearestName } from "./text.ts";

/** The schemas that were checked before. Null: once, so it is not compiled yet. */
const compiled = new WeakMap<TSchema, Validator | null>();

interface ShapeCheck {
  /** True if a text may contain `{{` in a field that takes no template. Default: false. */
  braces?: boolean;
  /** True if an integer beyond a double's safe range is accepted. Default: true. */
  long?: boolean;
  /** The number of problems after which the check stops. Default: no limit. */
  most?: number;
}

/** Returns the value of a request or a command if it fits the schema. Otherwise throws the refusal `invalid_input` with the problems. */
export function checkInput<Schema extends TSchema>(schema: Schema, value: unknown): Static<Schema> {
  if (fits(schema, value)) return value as Static<Schema>;
  if (!isJsonObject(value)) {
    throw new Refusal(
      "invalid_input",
      "The request body is not a JSON object: send the fields of this route as one object.",
    );
  }
  const problems = sentFirst(
    checkShape(schema, value, { braces: true, long: false, most: MAX_PROBLEMS }),
    value,
  );
  throw new Refusal("invalid_input", problems[0]?.message ?? "The request is not valid.", { problems });
}

/** Compiles a schema when it is used again. A command uses it once, and compiling takes longer than hundreds of checks. */
function fits(schema: TSchema, value: unknown): boolean {
  const known = compiled.get(schema);
  if (known === undefined) {
    compiled.set(schema, null);
    return Check(schema, value);
  }
  const check = known ?? Compile(schema);
  compiled.set(schema, check);
  return check.Check(value);
}

/** Puts problems of sent fields before those of missing fields, because a misspelled name explains a missing one. */
function sentFirst(problems: readonly Problem[], value: object): Problem[] {
  const isSent = ({ field }: Problem): boolean => Object.hasOwn(value, field.split(".")[0] ?? "");
  return [...problems.filter(isSent), ...problems.filter((problem) => !isSent(problem))];
}

/** Lists every problem of `value`. The list is empty if the value fits. */
export function checkShape(shape: TSchema, value: unknown, options: ShapeCheck = {}): Problem[] {
  const found = new Found(options);
  visit(shape as ShapeNode, value, "", found);
  return found.problems;
}

/** Collects the problems. */
class Found {
  readonly problems: Problem[] = [];
  readonly braces: boolean;
  readonly long: boolean;
  readonly #most: number;

  constructor({ braces = false, long = true, most = Number.POSITIVE_INFINITY }: ShapeCheck) {
    this.braces = braces;
    this.long = long;
    this.#most = most;
  }

  get isFull(): boolean {
    return this.problems.length >= this.#most;
  }

  /** Adds a problem. `why` follows the field's name in the sentence and has no period. */
  add(field: string, why: string): void {
    if (!this.isFull) this.problems.push({ field, message: `${showName(field)} ${why}.` });
  }

  /** Adds the problem that the value does not have the shape's type or form. */
  misfit(node: ShapeNode, value: unknown, field: string): void {
    this.add(field, `${saysWhy(node, value)}: ${mustBe(node)}`);
  }
}

function visit(node: ShapeNode, value: unknown, field: string, problems: Found): void {
  if (problems.isFull) return;
  if (node.anyOf !== undefined && node.discriminator !== undefined) {
    visitVariant(node, value, field, problems);
  } else if (node.anyOf !== undefined && isJsonObject(value)) {
    // If the union is, for example, null or an object, problems inside the object name their own fields.
    const inside = node.anyOf.filter((one) => one.properties ?? one.patternProperties);
    if (inside.length === 1 && inside[0] !== undefined) visit(inside[0], value, field, problems);
    else visitLeaf(node, value, field, problems);
  } else if (node.properties !== undefined) {
    visitObject(node, value, field, problems);
  } else if (node.patternProperties !== undefined) {
    visitRecord(node, value, field, problems);
  } else if (node.items !== undefined) {
    visitList(node, value, field, problems);
  } else {
    const list = Array.isArray(value) ? node.anyOf?.find((one) => one.items !== undefined) : undefined;
    // If the union is one value or a list of them, problems in a list name their item.
    if (list !== undefined) visitList(list, value, field, problems);
    else visitLeaf(node, value, field, problems);
  }
}

const TOO_LONG = `which is beyond ${Number.MAX_SAFE_INTEGER}, where integers are no longer told apart`;

function visitLeaf(node: ShapeNode, value: unknown, field: string, problems: Found): void {
  const fits = Check(node as TSchema, typeof value === "bigint" ? Number(value) : value);
  const strayTemplate =
    !problems.braces && typeof value === "string" && node.templated !== true && value.includes("{{");
  if (fits && typeof value === "bigint" && !problems.long && !Check(node as TSchema, value))
    problems.add(field, `is ${showNumber(value)}, ${TOO_LONG}: ${mustBe(node)}`);
  if (fits && !strayTemplate) return;
  problems.misfit(node, value, field);
}

function visitVariant(node: ShapeNode, value: unknown, field: string, problems: Found): void {
  const discriminator = node.discriminator ?? "";
  if (!isJsonObject(value)) {
    problems.misfit(node, value, field);
    return;
  }
  const names = (node.anyOf ?? []).map((variant) => String(variant.properties?.[discriminator]?.const));
  const given = Object.hasOwn(value, discriminator) ? value[discriminator] : undefined;
  const place = joinField(field, discriminator);
  const renamed = typeof given === "string" ? findRenamed(node, given) : null;
  // Only a string can name a variant. Other values may not even convert to a string.
  const variant = typeof given === "string" ? node.anyOf?.[names.indexOf(renamed ?? given)] : undefined;
  if (variant === undefined) {
    problems.add(place, explainName(given, names));
    return;
  }
  if (renamed === null) {
    visit(variant, value, field, problems);
    return;
  }
  problems.add(place, `is ${given}, the old name: write "${discriminator}": "${renamed}" instead`);
  visit(variant, { ...value, [discriminator]: renamed }, field, problems);
}

function findRenamed(node: ShapeNode, given: string): string | null {
  const renamed = node.renamed ?? {};
  return Object.hasOwn(renamed, given) ? (renamed[given] ?? null) : null;
}

function explainName(given: unknown, names: readonly string[]): string {
  const known = `known here: ${names.join(", ")}`;
  if (given === undefined) return `is missing: write one of the names ${known}`;
  if (typeof given !== "string") return `${saysWhy({}, given)}: write one of the names ${known}`;
  const near = findNearestName(given, names);
  const todo = near === null ? "write one of the names" : `did you mean ${near}? The names`;
  return `is ${showText(given)}, which is not a known name: ${todo} ${known}`;
}

function visitObject(node: ShapeNode, value: unknown, field: string, problems: Found): void {
  if (!isJsonObject(value)) {
    problems.misfit(node, value, field);
    return;
  }
  const properties = node.properties ?? {};
  for (const name of Object.keys(properties)) {
    const property = properties[name];
    if (property === undefined) continue;
    const place = joinField(field, name);
    if (Object.hasOwn(value, name)) visit(property, value[name], place, problems);
    else if (node.required?.includes(name)) problems.add(place, `is missing: ${mustBe(property)}`);
  }
  for (const name of Object.keys(value)) {
    if (problems.isFull) return;
    if (Object.hasOwn(properties, name)) continue;
    const place = joinField(field, name);
    if (node.additionalProperties === false) {
      problems.add(place, explainField(name, node, value));
    } else if (typeof node.additionalProperties === "object") {
      visit(node.additionalProperties, value[name], place, problems);
    }
  }
}

/** Refuses an unknown field. Suggests the nearest name that is still unused, or lists all names. */
function explainField(name: string, node: ShapeNode, value: object): string {
  const start = "is not a known field";
  const strangers = node.strangers ?? {};
  if (Object.hasOwn(strangers, name)) return `${start}: ${strangers[name]}`;
  const names = Object.keys(node.properties ?? {});
  const near = findNearestName(name, names);
  if (near !== null && !Object.hasOwn(value, near)) return `${start}: rename it to \`${near}\`, or remove it`;
  if (names.length === 0) return `${start}: remove it; there are no fields here`;
  const all =
    names.length === 1 ? `the only field here is ${names[0]}` : `the fields here are ${showNames(names)}`;
  return `${start}: remove it; ${all}`;
}

function visitRecord(node: ShapeNode, value: unknown, field: string, problems: Found): void {
  if (!isJsonObject(value)) {
    problems.misfit(node, value, field);
    return;
  }
  const names = Object.keys(value);
  if (names.length > (node.maxProperties ?? Infinity) || names.length < (node.minProperties ?? 0)) {
    problems.add(field, `has ${names.length} names: ${mustBe(node)}`);
  }
  const patterns = Object.entries(node.patternProperties ?? {}).map(
    ([pattern, shape]) => [new RegExp(pattern, "u"), shape] as const,
  );
  for (const name of names) {
    if (problems.isFull) return;
    const place = joinField(field, name);
    const shape = patterns.find(([pattern]) => pattern.test(name))?.[1];
    if (shape !== undefined) visit(shape, value[name], place, problems);
    else {
      const must =
        node.expectsName === undefined ? "choose another name" : `the name must be ${node.expectsName}`;
      problems.add(place, `is not a name that is allowed here: ${must}`);
    }
  }
}

function visitList(node: ShapeNode, value: unknown, field: string, problems: Found): void {
  if (!Array.isArray(value)) {
    problems.misfit(node, value, field);
    return;
  }
  if (value.length > (node.maxItems ?? Infinity) || value.length < (node.minItems ?? 0)) {
    const size = value.length === 0 ? "is empty" : `has ${value.length} entries`;
    problems.add(field, `${size}: ${mustBe(node)}`);
  }
  const seen = new Set<unknown>();
  for (const [index, item] of value.entries()) {
    if (problems.isFull) return;
    const place = joinField(field, String(index));
    visit(node.items ?? {}, item, place, problems);
    if (node.uniqueItems === true && seen.has(item)) {
      problems.add(place, "is in the list twice: remove one of them");
    }
    seen.add(item);
  }
}

/**
 * Returns the value without unknown fields and with old names replaced, so that rules beyond the shape can still be checked. Values that do not fit
 * stay unchanged.
 */
export function dropStrangers(shape: TSchema, value: unknown): unknown {
  return drop(shape as ShapeNode, value);
}

function drop(node: ShapeNode, value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  if (node.anyOf !== undefined && node.discriminator !== undefined) {
    const { discriminator } = node;
    const given = Object.hasOwn(value, discriminator) ? value[discriminator] : undefined;
    if (typeof given !== "string") return value;
    const name = findRenamed(node, given) ?? given;
    const variant = node.anyOf.find((one) => one.properties?.[discriminator]?.const === name);
    return variant === undefined ? value : drop(variant, { ...value, [discriminator]: name });
  }
  const { properties } = node;
  if (properties === undefined) return value;
  const kept = Object.entries(value)
    .filter(([name]) => node.additionalProperties !== false || Object.hasOwn(properties, name))
    .map(([name, part]) => [
      name,
      Object.hasOwn(properties, name) ? drop(properties[name] ?? {}, part) : part,
    ]);
  return Object.fromEntries(kept);
}
