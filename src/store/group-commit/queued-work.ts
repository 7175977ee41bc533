/** Who waits for a group, and how each work of it ended. */
import { type BatchWork, type Fence, type Origin, type Prefetch, StoreUnavailable } from "../port.ts";

export interface QueuedWork {
  readonly origin: Origin;
  readonly fence: Fence | null;
  readonly work: BatchWork<unknown, unknown>;
  readonly prefetch: Prefetch<unknown> | undefined;
  readonly draft: unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** How often its group was lost after its commit was answered. */
  losses: number;
}

/** How one work of a group ended, kept until the commit decides. */
export type Outcome = { ok: true; value: unknown } | { ok: false; error: unknown };

/** The work that is next, with the drafts side by side that it may be given together. */
export function takeBatch(group: readonly QueuedWork[], from: number, most: number) {
  const { origin, fence, work } = group[from] as QueuedWork;
  let end = from + 1;
  while (end < from + most && group[end]?.work === work) end += 1;
  return { origin, fence, work, drafts: group.slice(from, end).map(({ draft }) => draft) };
}

/** Answers each of the group with its outcome. */
export function settleAll(group: readonly QueuedWork[], outcomes: readonly Outcome[]): void {
  group.forEach((waiting, index) => {
    const outcome = outcomes[index] as Outcome;
    if (outcome.ok) waiting.resolve(outcome.value);
    else waiting.reject(outcome.error);
  });
}

/** Rejects every work of a group of which nothing is kept. */
export function rejectAll(group: readonly QueuedWork[], error: unknown): void {
  const unavailable =
    error instanceof StoreUnavailable
      ? error
      : new StoreUnavailable("The transaction could not be committed.", { cause: error });
  for (const waiting of group) waiting.reject(unavailable);
}
