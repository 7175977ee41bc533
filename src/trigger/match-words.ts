/** What a trigger matches, in words for lists: " where status = paid and size = 4". It decides no match. */
import { showChoices, showNames } from "../ground/shape.ts";

const MAX_SHOWN_CHOICES = 4;

/** Begins with a space, so that it can follow any sentence; empty where everything matches. */
export function sayMatch(
  match: Readonly<Record<string, unknown>> | undefined,
  word: "with" | "where",
): string {
  const parts = Object.entries(match ?? {}).map(([name, value]) => `${name} = ${sayWanted(value)}`);
  return parts.length === 0 ? "" : ` ${word} ${showNames(parts)}`;
}

/** "RENEWAL", or of a list "INITIAL_PURCHASE or RENEWAL". */
export function sayWanted(value: unknown): string {
  return Array.isArray(value) ? showChoices(value.map(String), MAX_SHOWN_CHOICES) : String(value);
}
