/** Counts the pieces of work that are on their way, so that an end can wait for them: of all, or of one environment. */
export class Working {
  readonly #pieces = new Map<number, number>();
  #waiting: { environmentId: number | null; resolve: () => void }[] = [];

  /** A piece of the environment's work is on its way until the answer is called. */
  begin(environmentId: number): () => void {
    this.#count(environmentId, 1);
    return () => {
      this.#count(environmentId, -1);
      const over = this.#waiting.filter((one) => this.#isIdle(one.environmentId));
      this.#waiting = this.#waiting.filter((one) => !over.includes(one));
      for (const { resolve } of over) resolve();
    };
  }

  /** Resolves once none is on its way; of all for null. */
  whenIdle(environmentId: number | null): Promise<void> {
    if (this.#isIdle(environmentId)) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ environmentId, resolve }));
  }

  #isIdle(environmentId: number | null): boolean {
    return environmentId === null ? this.#pieces.size === 0 : !this.#pieces.has(environmentId);
  }

  #count(environmentId: number, change: 1 | -1): void {
    const count = (this.#pieces.get(environmentId) ?? 0) + change;
    if (count === 0) this.#pieces.delete(environmentId);
    else this.#pieces.set(environmentId, count);
  }
}
