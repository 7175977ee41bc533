/** Data and functions that every field of the form uses. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Simulation } from "../../../src/insight/simulate/step.ts";
import { isObject, type Json } from "../../base/exact-json.ts";
import type { Place } from "../../base/place.ts";
import type { Step } from "../../editor/json-tree.ts";
import type { Known } from "../../editor/schema.ts";
import type { InsertTarget } from "../insert-target.ts";
import type { FormProblem } from "./form-problem.ts";

export interface FormScope {
  place: Place;
  known: Known;
  /** Name of the relay as written. */
  relay: string;
  /** Name of the saved relay, which cannot change; null: it is new. */
  saved: string | null;
  /** Applies a change to the newest text. */
  edit(change: (text: string) => string): void;
  /** Moves the focus to the first element that matches, after the next render. */
  focusNext(selector: string): void;
  /** Announces a sentence to screen readers. */
  announce(words: string): void;
  problems: ReadonlyMap<string, readonly FormProblem[]>;
  outcome: Simulation | null;
  /** Title of the known sender whose recipe the receiver uses; null: none, undefined: not checked yet. */
  sender?: string | null | undefined;
  /** The field that was focused last. A field that disappears is dropped, unless another one was focused since. */
  targets: { take(target: InsertTarget): void; drop(target: InsertTarget | null): void };
  onShowJson(range: { from: number; to: number }): void;
}

export const FormContext = createContext<FormScope | null>(null);

export function useForm(): FormScope {
  const scope = useContext(FormContext);
  if (scope === null) throw new Error("A field is outside the form.");
  return scope;
}

/** Returns the details of an action in the outcome, or null. */
export function actionDetail(outcome: Simulation | null, index: number): { [name: string]: Json } | null {
  for (const { step, detail } of outcome?.steps ?? []) {
    const shown = detail as unknown as Json;
    if (step === "action" && isObject(shown) && shown.index === index) return shown;
  }
  return null;
}

/** Returns the value of a field with its templates filled in. undefined: the outcome does not have it. */
export function renderedAt(outcome: Simulation | null, steps: readonly Step[]): Json | undefined {
  const [list, index, ...inside] = steps;
  if (list !== "actions" || typeof index !== "number") return undefined;
  let value: Json | undefined = actionDetail(outcome, index)?.rendered;
  for (const step of inside) {
    if (Array.isArray(value)) value = value[Number(step)];
    else if (value !== undefined && isObject(value) && Object.hasOwn(value, step))
      value = value[String(step)];
    else return undefined;
  }
  return value;
}

interface MappedValue {
  name: string;
  found: boolean;
  value: Json;
}

/** Returns the value that the map reads from the request in view. null: the outcome does not have the name. */
export function mappedValue(outcome: Simulation | null, name: string): MappedValue | null {
  const rows = outcome?.steps.find(({ step }) => step === "map")?.detail as unknown as Json | undefined;
  if (!Array.isArray(rows)) return null;
  const row = rows.filter(isObject).find((one) => one.name === name);
  return row === undefined ? null : { name, found: row.found === true, value: row.value ?? null };
}
