/** Pieces of work that are on their way, each with whose environment's it is. */
export class UnderWay {
  readonly #pieces = new Map<Promise<void>, number>();

  /** The environment's work is on its way until it has ended. */
  follow(environmentId: number, work: Promise<void>): void {
    const piece = work.finally(() => this.#pieces.delete(piece));
    this.#pieces.set(piece, environmentId);
  }

  /** Resolves once none is on its way: of the environment, or of all. */
  async whenIdle(environmentId?: number): Promise<void> {
    for (;;) {
      const pieces = [...this.#pieces].filter(([, whose]) => whose === (environmentId ?? whose));
      if (pieces.length === 0) return;
      await Promise.all(pieces.map(([piece]) => piece));
    }
  }
}
