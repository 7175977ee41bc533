/** Defines how the registries describe a code. Each field holds whole sentences, so that no reader has to cut or join them. */

export const CODE_KINDS = [
  "refusal",
  "result",
  "problem",
  "alert",
  "warning",
  "request",
  "event",
  "mail",
] as const;
export type CodeKind = (typeof CODE_KINDS)[number];

export interface CodeEntry {
  /** The short name of a problem or an alert, in headings and in the subjects of mails. */
  title?: string;
  /** The kinds, where they differ from the kind of the registry. */
  kinds?: readonly CodeKind[];
  /** The sentence that says what happened. */
  what: string;
  /** The usual cause, where `what` does not say it. */
  why?: string;
  /** The instruction, with an imperative verb first. */
  todo: string;
  /** The next step that the service takes by itself: a retry, or when a problem or an alert resolves. */
  next?: string;
}

export interface RefusalEntry extends CodeEntry {
  /** The HTTP status of the response. */
  status: number;
}
