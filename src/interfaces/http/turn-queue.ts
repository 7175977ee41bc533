/** A queue for work that needs its own turn of the event loop. One piece runs in each turn, and the waiting callers take turns. */
export class TurnQueue {
  /** Waiting work by caller. The first caller is the next one. */
  readonly #waiting = new Map<string, (() => void)[]>();

  /** Resolves in a turn of the event loop in which nothing else of this queue resolves. */
  wait(caller: string): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.size === 0) setImmediate(() => this.#next());
      const own = this.#waiting.get(caller);
      if (own === undefined) this.#waiting.set(caller, [resolve]);
      else own.push(resolve);
    });
  }

  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    const [caller, own] = first;
    this.#waiting.delete(caller);
    own.shift()?.();
    if (own.length > 0) this.#waiting.set(caller, own);
    if (this.#waiting.size > 0) setImmediate(() => this.#next());
  }
}
