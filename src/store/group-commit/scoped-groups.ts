/** Gives the writes of each scope their own groups, so that writes of an environment wait only for their environment and for writes of everything. */
import {
  type BatchWork,
  EVERYTHING,
  type Origin,
  StoreUnavailable,
  type Writer,
  type WriteScope,
} from "../port.ts";
import type { DraftGuards, GroupCommit, WorkGuards } from "./group-commit.ts";

export class ScopedGroups {
  readonly #open: (scope: WriteScope) => GroupCommit;
  readonly #byScope = new Map<WriteScope, GroupCommit>();
  #closed = false;

  /** `open` makes the groups of a scope. */
  constructor(open: (scope: WriteScope) => GroupCommit) {
    this.#open = open;
  }

  add<Result>(
    origin: Origin,
    work: (tx: Writer) => Promise<Result>,
    guards: WorkGuards = {},
  ): Promise<Result> {
    return this.#of(guards.scope)?.add(origin, work, guards) ?? refuse();
  }

  addDraft<Draft, Result>(
    origin: Origin,
    work: BatchWork<Draft, Result>,
    draft: Draft,
    guards: DraftGuards<Draft> = {},
  ): Promise<Result> {
    return this.#of(guards.scope)?.addDraft(origin, work, draft, guards) ?? refuse();
  }

  /** Rejects new writes and resolves when the accepted ones have their results. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#byScope.values()].map((groups) => groups.close()));
  }

  /** Returns the groups of a scope. They stay until the process ends. */
  #of(scope: WriteScope = EVERYTHING): GroupCommit | null {
    if (this.#closed) return null;
    const known = this.#byScope.get(scope);
    if (known !== undefined) return known;
    const made = this.#open(scope);
    this.#byScope.set(scope, made);
    return made;
  }
}

function refuse(): Promise<never> {
  return Promise.reject(new StoreUnavailable("The store is closed."));
}
