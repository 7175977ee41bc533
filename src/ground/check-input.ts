/**
 * Whether what was sent fits its schema: a route's body or query, what a command is given. Elysia is not asked, as it knows another TypeBox,
 * and writes a refused value into its error with JSON.stringify, which throws on a bigint.
 */
import type { Static, TSchema } from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { checkShape } from "./check-shape.ts";
import { isJsonObject } from "./json.ts";
import { type Problem, Refusal } from "./refusal.ts";

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
