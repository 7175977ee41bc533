/** How an action ended, and how a sale did that an action or a receipt asked for. */
import type { Json } from "./json.ts";
import type { ResultCode } from "./result-code.ts";

/** `skipped` found its own earlier work, or nothing it may do (then `code` may say why: `billed_by_processor`). */
export interface Success {
  outcome: "done" | "skipped";
  code?: ResultCode;
  message?: string;
  before?: Json;
  after?: Json;
}

export interface Failure {
  outcome: "failed";
  code: ResultCode;
  message: string;
  /** Trying again cannot help: the event is dead at once. */
  final: boolean;
}

export type Outcome = Success | Failure;

/** Only a change of the definition, the catalog or the person can help: `entitlement_unknown`, `data_invalid`, … */
export function failFinally(code: ResultCode, message: string): Failure {
  return { outcome: "failed", code, message, final: true };
}

/** The next attempt may fare better. */
export function failForNow(code: ResultCode, message: string): Failure {
  return { outcome: "failed", code, message, final: false };
}
