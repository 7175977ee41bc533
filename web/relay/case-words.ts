/** Texts for the result of a case. */
import type { CaseResult } from "../../src/rules/relay/relay-case.ts";
import { formatActionType } from "./relay-words.ts";

const ENDS: Readonly<Record<CaseResult["ends"], string>> = {
  done: "done",
  ignored: "ignored",
  refused: "rejected",
  failed: "failed",
};

export function formatCaseResult({ ends, why, actions }: CaseResult): string {
  if (why !== null) return `${ENDS[ends]} (${why})`;
  const types = actions.map(({ type }) => formatActionType(type).toLowerCase()).join(", ");
  return types === "" ? ENDS[ends] : `${ENDS[ends]} (${types})`;
}
