/** Defines a work that waits for a group, and its outcome. */
import {
  type BatchWork,
  type Fence,
  type Origin,
  type Prefetch,
  StoreUnavailable,
  type WriteScope,
} from "../port.ts";

export interface QueuedWork {
  readonly origin: Origin;
  readonly fence: Fence | null;
  readonly scope: WriteScope;
  readonly work: BatchWork<unknown, unknown>;
  readonly prefetch: Prefetch<unknown> | undefined;
  readonly draft: unknown;
  /** Rises from work to work. */
  readonly order: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** The real time when it was added. 0 if no work is rejected for its wait. */
  readonly addedMs: number;
  /** The number of times that its group was lost after the database acknowledged the commit. */
  losses: number;
}

/** The result or error of one work. The work's caller receives it after the commit. */
export type Outcome = { ok: true; value: unknown } | { ok: false; error: unknown };

/** Takes the next work with the adjacent drafts of the same work, at most `most`. */
export function takeBatch(group: readonly QueuedWork[], from: number, most: number) {
  const { origin, fence, work } = group[from] as QueuedWork;
  let end = from + 1;
  while (end < from + most && group[end]?.work === work) end += 1;
  return { origin, fence, work, drafts: group.slice(from, end).map(({ draft }) => draft) };
}

/** Removes and returns the works that were added before `sinceMs`. They come first in the group. */
export function takeOverdue(group: QueuedWork[], sinceMs: number): QueuedWork[] {
  let overdue = 0;
  while ((group[overdue]?.addedMs ?? Number.POSITIVE_INFINITY) < sinceMs) overdue += 1;
  return group.splice(0, overdue);
}

/** Resolves or rejects each work with its outcome. */
export function resolveAll(group: readonly QueuedWork[], outcomes: readonly Outcome[]): void {
  group.forEach((waiting, index) => {
    const outcome = outcomes[index] as Outcome;
    if (outcome.ok) waiting.resolve(outcome.value);
    else waiting.reject(outcome.error);
  });
}

/** Rejects every work of a group that was not committed. */
export function rejectAll(group: readonly QueuedWork[], error: unknown): void {
  const unavailable =
    error instanceof StoreUnavailable
      ? error
      : new StoreUnavailable("The transaction could not be committed.", { cause: error });
  for (const waiting of group) waiting.reject(unavailable);
}
