/**
 * Defines Refusal, an error for the caller: a registered code, its status and one sentence. Any module can throw one, and interfaces/http renders it.
 * The result of an action is never a Refusal, and neither is a bug.
 */

import { REFUSALS, type RefusalCode } from "./code/refusal-code.ts";
import type { WarningCode } from "./code/warning-code.ts";
import { MAX_PROBLEMS } from "./limit.ts";

/** A problem in something that a person wrote: the field, and one sentence that says why and what to do. */
export interface Problem {
  /** Dotted path from the definition's root, such as `trigger.verify.separator` or `actions.0.amount`; "" is the root. */
  field: string;
  message: string;
}

/** A problem in something that was accepted but is probably not intended. */
export interface Warning extends Problem {
  code: WarningCode;
}

/** Returns the warnings' sentences, for a response or a terminal. */
export function listMessages(warnings: readonly Warning[]): string[] {
  return warnings.map(({ message }) => message);
}

interface RefusalExtra {
  /** Every problem, not only the first, for `invalid_definition` and `invalid_input`. */
  problems?: readonly Problem[];
  /** The time when the window of a cap ends, in milliseconds since the epoch. */
  resetAtMs?: number;
  /** True if a change of another relay can resolve it, so that one change of both succeeds. It is in no response. */
  needsOtherRelay?: true;
  /** Further fields of the response's body, such as the `version` that caused a conflict. */
  details?: Readonly<Record<string, unknown>>;
}

export class Refusal extends Error {
  readonly code: RefusalCode;
  readonly status: number;
  readonly extra: RefusalExtra;

  constructor(code: RefusalCode, message: string, extra: RefusalExtra = {}) {
    super(message);
    this.name = "Refusal";
    this.code = code;
    this.status = REFUSALS[code].status;
    this.extra = extra;
  }
}

/** Returns at most `MAX_PROBLEMS` problems. If `what` has more, the last one says so. */
export function capProblems(problems: readonly Problem[], what: string): Problem[] {
  if (problems.length <= MAX_PROBLEMS) return [...problems];
  const kept = problems.slice(0, MAX_PROBLEMS - 1);
  const message = `${what} has more problems: fix these ${kept.length} first, then check again.`;
  return [...kept, { field: "", message }];
}

/** Makes the refusal of one field. */
export function rejectField(field: string, message: string, code: RefusalCode = "invalid_input"): Refusal {
  return new Refusal(code, message, { problems: [{ field, message }] });
}

/** Makes the refusal `invalid_definition` with the problems. Its message is the first problem's sentence. */
export function rejectDefinition(problems: readonly Problem[]): Refusal {
  const first = problems[0];
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : "";
  return new Refusal("invalid_definition", `${first?.message ?? "The definition is not valid."}${more}`, {
    problems,
  });
}
