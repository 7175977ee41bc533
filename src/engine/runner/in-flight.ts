/** Tracks work that has begun and not ended, by environment. */
export class InFlight {
  readonly #pieces = new Map<Promise<void>, number>();

  /** Adds work of the environment until it ends. */
  track(environmentId: number, work: Promise<void>): void {
    const piece = work.finally(() => this.#pieces.delete(piece));
    this.#pieces.set(piece, environmentId);
  }

  /** Resolves when no work is left: of the environment, or of any. */
  async whenIdle(environmentId?: number): Promise<void> {
    for (;;) {
      const pieces = [...this.#pieces].filter(([, owner]) => owner === (environmentId ?? owner));
      if (pieces.length === 0) return;
      await Promise.all(pieces.map(([piece]) => piece));
    }
  }
}
