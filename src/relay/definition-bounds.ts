/**
 * How large a definition may be: its depth, its number of values, its characters. Checked before anything walks it, by a walk that stops
 * at the first bound, so that a hostile value costs little. It also refuses the one name that no object may have.
 */
import { isJsonObject } from "../ground/json.ts";
import type { Problem } from "../ground/refusal.ts";
import { joinField } from "../ground/shape.ts";

/** Nesting below the definition itself. */
const MAX_DEFINITION_DEPTH = 32;
/** Objects, lists and scalars together. */
const MAX_DEFINITION_VALUES = 2_500;
/** Characters of all names and texts together: ten of the longest e-mails and as much again. */
const MAX_DEFINITION_CHARS = 256 * 1024;

/** Openings of templates, `{{`, in all texts together: each is parsed and judged several times in a save. */
const MAX_DEFINITION_TEMPLATES = 2_000;

const RESERVED = "__proto__";

interface Place {
  value: unknown;
  depth: number;
  field: string;
}

/** The bound that the value breaks, if any, or every place of a reserved name. Takes time bounded by the limits, whatever the value. */
export function checkBounds(root: unknown): Problem[] {
  const open: Place[] = [{ value: root, depth: 0, field: "" }];
  const problems: Problem[] = [];
  let values = 0;
  let chars = 0;
  let templates = 0;
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    const { value, depth, field } = place;
    values += 1;
    if (typeof value === "string") {
      chars += value.length;
      templates += countOpenings(value, MAX_DEFINITION_TEMPLATES - templates);
    }
    if (templates > MAX_DEFINITION_TEMPLATES) {
      return [tooLarge(`more than ${MAX_DEFINITION_TEMPLATES.toLocaleString("en")} templates`)];
    }
    if (typeof value === "bigint" && isLong(value)) return [tooLarge("a number of more than 300 digits")];
    if (depth > MAX_DEFINITION_DEPTH)
      return [tooLarge(`nested more than ${MAX_DEFINITION_DEPTH} levels deep`)];
    const names = isJsonObject(value) ? Object.keys(value) : null;
    const size = names?.length ?? (Array.isArray(value) ? value.length : 0);
    if (values + open.length + size > MAX_DEFINITION_VALUES) {
      return [tooLarge(`more than ${MAX_DEFINITION_VALUES.toLocaleString("en")} values`)];
    }
    for (const name of names ?? []) {
      chars += name.length;
      if (name === RESERVED) problems.push(refuseReserved(field));
      open.push({
        value: (value as Record<string, unknown>)[name],
        depth: depth + 1,
        field: joinField(field, name),
      });
    }
    if (Array.isArray(value)) {
      value.forEach((item, index) => {
        open.push({ value: item, depth: depth + 1, field: joinField(field, String(index)) });
      });
    }
    if (chars > MAX_DEFINITION_CHARS) {
      return [tooLarge(`more than ${MAX_DEFINITION_CHARS.toLocaleString("en")} characters`)];
    }
  }
  return problems;
}

/** Stops counting behind `most`. */
function countOpenings(text: string, most: number): number {
  let count = 0;
  for (let at = text.indexOf("{{"); at >= 0 && count <= most; at = text.indexOf("{{", at + 2)) count += 1;
  return count;
}

/** Comparing is cheap, writing its digits is not. */
function isLong(value: bigint): boolean {
  return value >= LONGEST || value <= -LONGEST;
}

const LONGEST = 10n ** 300n;

function refuseReserved(field: string): Problem {
  const place = joinField(field, RESERVED);
  return {
    field: place,
    message: `\`${place}\` is a name that no object may have here: choose another name.`,
  };
}

function tooLarge(what: string): Problem {
  return {
    field: "",
    message: `The definition is ${what.startsWith("nested") ? what : `too large: ${what}`}; make it smaller.`,
  };
}
