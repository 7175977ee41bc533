/** Who waits for a group, and how each work of it ended. */
import type { Fence, GatheredWork, LookAhead, Origin } from "./port.ts";

export interface Waiting {
  readonly origin: Origin;
  readonly fence: Fence | null;
  readonly work: GatheredWork<unknown, unknown>;
  readonly lookAhead: LookAhead<unknown> | undefined;
  readonly draft: unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** How often its group was lost after its commit was answered. */
  losses: number;
}

/** How one work of a group ended, kept until the commit decides. */
export type Outcome = { ok: true; value: unknown } | { ok: false; error: unknown };
