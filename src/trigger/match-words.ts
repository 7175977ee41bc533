/** What a trigger matches, in words for lists: " where status = paid and size = 4". It decides no match. */
import { showNames } from "../ground/shape-sentence.ts";

/** Begins with a space, so that it can follow any sentence; empty where everything matches. */
export function sayMatch(
  match: Readonly<Record<string, unknown>> | undefined,
  word: "with" | "where",
): string {
  const parts = Object.entries(match ?? {}).map(([name, value]) => `${name} = ${String(value)}`);
  return parts.length === 0 ? "" : ` ${word} ${showNames(parts)}`;
}
