/** A problem of something a person wrote: which field, and one sentence that says why and what to do. */
export interface Problem {
  /** Dotted path from the definition's root, such as `trigger.verify.separator` or `actions.0.amount`; "" is the root. */
  field: string;
  message: string;
}
