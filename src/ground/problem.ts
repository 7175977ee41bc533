/** A problem of something a person wrote: which field, and one sentence that says why and what to do. */
export interface Problem {
  /** Dotted path from the definition's root, such as `trigger.verify.separator` or `actions.0.amount`; "" is the root. */
  field: string;
  message: string;
}

/**
 * Problems of a part, told from where the part stands: `ref` under `actions.0` becomes `actions.0.ref`, also where the sentence
 * begins with it.
 */
export function placeProblems(place: string, problems: readonly Problem[]): Problem[] {
  return problems.map(({ field, message }) => {
    const placed = field === "" ? place : `${place}.${field}`;
    const start = [`\`${field}\``, `${field} `].find((text) => field !== "" && message.startsWith(text));
    if (start === undefined) return { field: placed, message };
    const rest = message.slice(start.length);
    return { field: placed, message: `\`${placed}\`${start.endsWith(" ") ? " " : ""}${rest}` };
  });
}
