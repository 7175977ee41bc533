/** Who is told after a commit what it touched. */
import type { Topic, Touched } from "./port.ts";

interface Listener {
  work: (touched: Touched) => void;
  topics: readonly Topic[] | undefined;
}

export class CommitListeners {
  readonly #listeners = new Set<Listener>();

  /** `topics`: by default any of them. The answer stops it. */
  add(work: (touched: Touched) => void, topics?: readonly Topic[]): () => void {
    const listener = { work, topics };
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  tell(touched: Touched): void {
    for (const { work, topics } of [...this.#listeners])
      if (topics === undefined || topics.some((topic) => touched.has(topic))) work(touched);
  }
}
