/**
 * A Refusal is what a caller is told: a registered code, its status, and one sentence. It is thrown anywhere
 * and rendered in one place (http/). A result of an action is never a Refusal, and neither is a bug.
 */
import { MAX_PROBLEMS } from "./limit.ts";
import { REFUSALS, type RefusalCode } from "./refusal-code.ts";
import type { WarningCode } from "./warning-code.ts";

/** A problem of something a person wrote: which field, and one sentence that says why and what to do. */
export interface Problem {
  /** Dotted path from the definition's root, such as `trigger.verify.separator` or `actions.0.amount`; "" is the root. */
  field: string;
  message: string;
}

/** What is taken as it is and is probably not meant. */
export interface Warning extends Problem {
  code: WarningCode;
}

/** The sentences, as an answer or a terminal tells them. */
export function tellWarnings(warnings: readonly Warning[]): string[] {
  return warnings.map(({ message }) => message);
}

interface RefusalExtra {
  /** For `invalid_definition`: every problem, not only the first. */
  problems?: readonly Problem[];
  /** For caps: when the window ends, milliseconds since the epoch. */
  resetAtMs?: number;
  /** Further fields of the answer's body, such as the `version` a conflict was found at. */
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

/** At most `MAX_PROBLEMS` of the problems; where `what` has more, the last one says so. */
export function capProblems(problems: readonly Problem[], what: string): Problem[] {
  if (problems.length <= MAX_PROBLEMS) return [...problems];
  const kept = problems.slice(0, MAX_PROBLEMS - 1);
  const message = `${what} has more problems: fix these ${kept.length} first, then check again.`;
  return [...kept, { field: "", message }];
}

/** `invalid_definition` with the problems; the message is the first one's sentence. */
export function refuseDefinition(problems: readonly Problem[]): Refusal {
  const first = problems[0];
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : "";
  return new Refusal("invalid_definition", `${first?.message ?? "The definition is not valid."}${more}`, {
    problems,
  });
}
