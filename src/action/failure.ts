/** How an action says that it failed. A final failure makes the event dead at once; any other is tried again. */
import type { ResultCode } from "../ground/result-code.ts";
import type { ActionOutcome } from "./contract.ts";

export type ActionFailure = Extract<ActionOutcome, { outcome: "failed" }>;

/** Only a change of the definition, the catalog or the person can help: `entitlement_unknown`, `data_invalid`, … */
export function failFinally(code: ResultCode, message: string): ActionFailure {
  return { outcome: "failed", code, message, final: true };
}

/** The next attempt may fare better. */
export function failForNow(code: ResultCode, message: string): ActionFailure {
  return { outcome: "failed", code, message, final: false };
}
