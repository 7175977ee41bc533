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
  /** The kinds, where they differ from the kind of the registry. */
  kinds?: readonly CodeKind[];
  /** What happened. */
  what: string;
  /** The usual cause, where `what` does not say it. */
  why?: string;
  /** What to do about it, with an imperative verb first. */
  todo: string;
  /** What the service does next by itself: a retry, or when a problem or an alert resolves. */
  next?: string;
}

export interface RefusalEntry extends CodeEntry {
  /** The HTTP status of the response. */
  status: number;
}
