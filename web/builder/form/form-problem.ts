/** Assigns the problems of a definition to the parts of its form. */
import { listParts, type Part } from "./form-part.ts";
import { labelOf } from "./form-words.ts";
import { pathOf } from "./part-edit.ts";

export interface FormProblem {
  field: string;
  message: string;
  /** Absent: an error. `open`: a field of a new relay that the user did not fill in yet. */
  severity?: "error" | "warning" | "open";
}

/** Returns the problems by the path of a part: the part with the field, or the nearest part around it. */
export function placeProblems(
  form: Part | null,
  placed: readonly FormProblem[],
): ReadonlyMap<string, readonly FormProblem[]> {
  const paths = new Set(form === null ? [] : listParts(form).flatMap(pathsOf));
  const found = new Map<string, FormProblem[]>();
  for (const problem of placed) {
    const names = plain(problem.field).split(".");
    while (names.length > 0 && !paths.has(names.join("."))) names.pop();
    const path = names.join(".");
    found.set(path, [...(found.get(path) ?? []), problem]);
  }
  return found;
}

/** A value that is absent. */
const ABSENT = /^`[^`]+`(?: \([a-z_]+\))? is (?:empty|missing):/;

/** Turns the problems of absent values into open fields, until the user tries to create the relay. */
export function openFields(placed: readonly FormProblem[]): readonly FormProblem[] {
  return placed.map((problem) => (ABSENT.test(problem.message) ? { ...problem, severity: "open" } : problem));
}

/** Names that the form offers as choices under other words. */
const NAMES = /write one of the names known here: .*\.$/;

/** Path at the start of a message, with the kind of an action behind it. */
const PATH = /^`([^`]+)`(?: \([a-z_]+\))?/;

/** Returns the message with the label of its field instead of the path. `owned` names the action too. */
export function formatProblem(problem: FormProblem, owned = false): string {
  const { field } = problem;
  const message = problem.message.replace(NAMES, "choose one.");
  const [start = "", path] = PATH.exec(message) ?? [];
  if (path === undefined || plain(path) !== plain(field)) return message;
  const [list, index, ...inside] = plain(path).split(".");
  const action = list === "actions" && index !== undefined ? `ction ${Number(index) + 1}` : null;
  if (action !== null && inside.length === 0) return `A${action}${message.slice(start.length)}`;
  // A name of the user stays unchanged.
  const isOwn = /^(?:trigger\.(?:map|when|where)|actions\.\d+\.data)\../.test(plain(path));
  const label =
    path === "actions"
      ? "The list of actions"
      : isOwn
        ? `\`${plain(path).split(".").at(-1)}\``
        : labelOf(plain(path));
  return `${label}${owned && action !== null ? ` of a${action}` : ""}${message.slice(start.length)}`;
}

function plain(field: string): string {
  return field.replaceAll(/\[(\d+)\]/g, ".$1");
}

/** A group also shows the field that chooses its variant. */
function pathsOf(part: Part): string[] {
  const path = pathOf(part.steps);
  return part.is === "group" && part.variants !== null
    ? [path, pathOf([...part.steps, part.variants.name])]
    : [path];
}
