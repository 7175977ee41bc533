/**
 * Checks what a caller sent against a route's schema and says in one sentence what is wrong first: the field, why, what to do.
 * Elysia's own check is not used: it writes the refused value into its error with JSON.stringify, which throws on a bigint.
 */
import type { Static, TObject, TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler, type ValueError, ValueErrorType } from "@sinclair/typebox/compiler";
import { findNearestName } from "../ground/nearest-name.ts";
import type { Problem } from "../ground/problem.ts";
import { Refusal } from "../ground/refusal.ts";

const MAX_PROBLEMS = 20;
const compiled = new WeakMap<TSchema, TypeCheck<TSchema>>();

/** The value, fitting the schema. Refuses with `invalid_input`, every problem in `problems`. */
export function checkInput<Schema extends TSchema>(schema: Schema, value: unknown): Static<Schema> {
  const check = compileOnce(schema);
  if (check.Check(value)) return value as Static<Schema>;
  const problems = listProblems(schema, check.Errors(value));
  throw new Refusal("invalid_input", problems[0]?.message ?? "The request is not valid.", { problems });
}

/** The query as names with one string each, fitting the schema. A name given twice is refused. */
export function checkQuery<Schema extends TObject>(schema: Schema, search: URLSearchParams): Static<Schema> {
  const query: Record<string, string> = Object.create(null);
  for (const [name, value] of search) {
    if (Object.hasOwn(query, name)) {
      throw new Refusal("invalid_input", `${name} is given twice in the query: give it once.`);
    }
    query[name] = value;
  }
  return checkInput(schema, { ...query });
}

function compileOnce(schema: TSchema): TypeCheck<TSchema> {
  let check = compiled.get(schema);
  if (check === undefined) {
    check = TypeCompiler.Compile(schema);
    compiled.set(schema, check);
  }
  return check;
}

/** One problem a field; a field that is not known comes first, as it usually explains the missing one. */
function listProblems(schema: TSchema, errors: Iterable<ValueError>): Problem[] {
  const problems = new Map<string, Problem & { unknown: boolean }>();
  for (const error of openChoices(errors)) {
    const field = error.path.slice(1).replaceAll("/", ".");
    const unknown = error.type === ValueErrorType.ObjectAdditionalProperties;
    if (!problems.has(field))
      problems.set(field, { field, message: writeSentence(schema, field, error), unknown });
    if (problems.size === MAX_PROBLEMS) break;
  }
  return [...problems.values()]
    .sort((left, right) => Number(right.unknown) - Number(left.unknown))
    .map(({ field, message }) => ({ field, message }));
}

/** What may be null and is not is judged as what it then must be, so that a field inside it is told by its own name. */
function* openChoices(errors: Iterable<ValueError>): Generator<ValueError> {
  for (const error of errors) {
    const options: TSchema[] = error.type === ValueErrorType.Union ? (error.schema.anyOf ?? []) : [];
    const real = options.filter((option) => option.type !== "null");
    const inner =
      real.length === 1 && error.value !== null
        ? error.errors[options.indexOf(real[0] as TSchema)]
        : undefined;
    if (inner === undefined) yield error;
    else yield* openChoices(inner);
  }
}

function writeSentence(root: TSchema, field: string, error: ValueError): string {
  if (field === "")
    return "The request body is not a JSON object: send the fields of this route as one object.";
  const expected = expectation(error.schema);
  switch (error.type) {
    case ValueErrorType.ObjectAdditionalProperties: {
      const nearest = findNearestName(
        field.split(".").at(-1) ?? "",
        Object.keys(error.schema.properties ?? root.properties ?? {}),
      );
      return `${field} is not a field here: ${nearest === null ? "remove it" : `did you mean ${nearest}`}.`;
    }
    case ValueErrorType.ObjectRequiredProperty:
      return `${field} is missing: it must be ${expected}.`;
    default:
      return `${field} is not valid: it must be ${expected}.`;
  }
}

/** Completes "it must be …". A schema's own description wins. */
function expectation(schema: TSchema): string {
  if (schema.description !== undefined) return schema.description;
  if (Array.isArray(schema.anyOf)) {
    const options = (schema.anyOf as TSchema[]).filter((option) => option.type !== "null");
    return options.length > 1 && options.every((option) => option.const !== undefined)
      ? `one of ${options.map((option) => option.const).join(", ")}`
      : options.map(expectation).join(" or ");
  }
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  return WORDS[schema.type as string] ?? "another value";
}

const WORDS: Readonly<Record<string, string>> = {
  string: "text",
  integer: "an integer",
  number: "a number",
  boolean: "true or false",
  object: "an object",
  array: "a list",
};
