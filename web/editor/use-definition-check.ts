/** Live check of a definition: what is known about the environment, the result of the service's check, and every problem at its line. */
import { useMemo } from "preact/hooks";
import type { Problem, Warning } from "../../src/base/refusal.ts";
import { apiPath, type Place } from "../base/place.ts";
import type { PlacedProblem } from "../component/problem-list.ts";
import { findJsonProblem } from "./json-problem.ts";
import { placeOf, readTree } from "./json-tree.ts";
import type { Known } from "./schema.ts";
import { type Checked, useChecked } from "./use-checked.ts";
import { useKnown } from "./use-known.ts";

export interface Placed extends PlacedProblem {
  from: number;
  to: number;
  severity: "error" | "warning";
}

export interface DefinitionCheck {
  /** null while the schema is loading. */
  known: Omit<Known, "root"> | null;
  /** False if the text is not JSON. */
  isJson: boolean;
  checked: Checked;
  /** The problems and warnings in the order of the text. */
  placed: readonly Placed[];
}

/** `refused` are the problems for which the service rejected the last save. They are added to those of the check. */
export function useDefinitionCheck(place: Place, text: string, refused: readonly Problem[]): DefinitionCheck {
  const known = useKnown(place);
  const jsonProblem = useMemo(() => findJsonProblem(text), [text]);
  const isJson = jsonProblem === null;
  const checked = useChecked(apiPath(place, "relays", "validate"), text, isJson, known);
  const placed = useMemo(
    () => placeAll(text, jsonProblem, checked, refused),
    [text, jsonProblem, checked, refused],
  );
  return { known, isJson, checked, placed };
}

function placeAll(
  text: string,
  jsonProblem: { message: string; from: number; to: number } | null,
  { problems, warnings }: { problems: readonly Problem[]; warnings: readonly Warning[] },
  refused: readonly Problem[],
): Placed[] {
  const lineOf = (at: number): number => text.slice(0, at).split("\n").length;
  if (jsonProblem !== null)
    return [{ ...jsonProblem, field: "", line: lineOf(jsonProblem.from), severity: "error" }];
  const root = readTree(text);
  const place = (problem: { field: string; message: string }, severity: Placed["severity"]): Placed => {
    const range = placeOf(root, problem.field);
    return { ...problem, ...range, line: lineOf(range.from), severity };
  };
  const more = refused.filter(({ message }) => !problems.some((one) => one.message === message));
  const placed = [
    ...[...problems, ...more].map((problem) => place(problem, "error")),
    ...warnings.map(({ field = "", message }) => place({ field, message }, "warning")),
  ];
  return placed.sort((one, other) => one.from - other.from);
}
