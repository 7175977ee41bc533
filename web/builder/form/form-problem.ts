/** Assigns the problems of a definition to the parts of its form. */
import { listParts, type Part } from "./form-part.ts";
import { pathOf } from "./part-edit.ts";

export interface FormProblem {
  field: string;
  message: string;
  /** Absent: an error. */
  severity?: "error" | "warning";
}

/** Returns the problems by the path of a part: the part with the field, or the nearest part around it. */
export function placeProblems(
  form: Part | null,
  placed: readonly FormProblem[],
): ReadonlyMap<string, readonly FormProblem[]> {
  const paths = new Set(form === null ? [] : listParts(form).flatMap(pathsOf));
  const found = new Map<string, FormProblem[]>();
  for (const problem of placed) {
    const names = problem.field.replaceAll(/\[(\d+)\]/g, ".$1").split(".");
    while (names.length > 0 && !paths.has(names.join("."))) names.pop();
    const path = names.join(".");
    found.set(path, [...(found.get(path) ?? []), problem]);
  }
  return found;
}

/** A group also shows the field that chooses its variant. */
function pathsOf(part: Part): string[] {
  const path = pathOf(part.steps);
  return part.is === "group" && part.variants !== null
    ? [path, pathOf([...part.steps, part.variants.name])]
    : [path];
}
