/**
 * Checks what a caller sent against a route's schema. The sentences are ground/check-shape.ts's, as everywhere; Elysia's own check is not
 * used: it knows another TypeBox, and writes the refused value into its error with JSON.stringify, which throws on a bigint.
 */
import type { Static, TObject, TSchema } from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { checkShape } from "../ground/check-shape.ts";
import { isJsonObject } from "../ground/json.ts";
import { type Problem, Refusal } from "../ground/refusal.ts";

const MAX_PROBLEMS = 20;
const compiled = new WeakMap<TSchema, Validator>();

/** The value, fitting the schema. Refuses with `invalid_input`, every problem in `problems`. */
export function checkInput<Schema extends TSchema>(schema: Schema, value: unknown): Static<Schema> {
  if (compileOnce(schema).Check(value)) return value as Static<Schema>;
  if (!isJsonObject(value)) {
    throw new Refusal(
      "invalid_input",
      "The request body is not a JSON object: send the fields of this route as one object.",
    );
  }
  const problems = sentFirst(checkShape(schema, value, { braces: true, most: MAX_PROBLEMS }), value);
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

function compileOnce(schema: TSchema): Validator {
  let check = compiled.get(schema);
  if (check === undefined) {
    check = Compile(schema);
    compiled.set(schema, check);
  }
  return check;
}

/** What is wrong with a field that was sent comes before one that is missing: a misspelt name explains it. */
function sentFirst(problems: readonly Problem[], value: object): Problem[] {
  const isSent = ({ field }: Problem): boolean => Object.hasOwn(value, field.split(".")[0] ?? "");
  return [...problems.filter(isSent), ...problems.filter((problem) => !isSent(problem))];
}
