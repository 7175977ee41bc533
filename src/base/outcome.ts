/** Defines how an action ended, and how a sale ended that an action or a receipt requested. */

import type { ResultCode } from "./code/result-code.ts";
import type { Json } from "./json.ts";

/**
 * A success. `skipped` means that the action found its own earlier work, or had nothing that it may do. `code` can then say why, such as
 * `billed_by_processor`.
 */
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
  /** True if the failure is permanent, so that the event is dead at once. */
  final: boolean;
}

export type Outcome = Success | Failure;

/**
 * Returns a permanent failure, such as `entitlement_unknown` or `data_invalid`. Only a change of the definition, the catalog or the person can help.
 */
export function failFinally(code: ResultCode, message: string): Failure {
  return { outcome: "failed", code, message, final: true };
}

/** Returns a retryable failure. */
export function failForNow(code: ResultCode, message: string): Failure {
  return { outcome: "failed", code, message, final: false };
}
