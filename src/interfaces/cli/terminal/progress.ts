/**
 * How far something long is, on one line of standard error that is drawn again; only where somebody looks at it. SQLite copies and checks a database
 * in one call, so a thread of its own looks at the file that grows.
 */
import type { CopyStep } from "../../../store/sqlite/database-copy.ts";
import type { World } from "../io.ts";
import thread from "./progress-thread.txt" with { type: "text" };

const WORDS = { copying: "Copying the database", checking: "Checking the copy" } as const;

/** Draws the steps of a copy until it is disposed of; where nobody looks it does nothing. */
export class CopyProgress implements AsyncDisposable {
  readonly #world: World;
  #thread: Worker | null = null;

  constructor(world: World) {
    this.#world = world;
  }

  readonly onStep = ({ doing, file, ofBytes }: CopyStep): void => {
    if (!this.#world.watched) return;
    this.#thread ??= new Worker(URL.createObjectURL(new Blob([thread], { type: "application/javascript" })));
    this.#thread.postMessage({ words: WORDS[doing], file, ofBytes: doing === "copying" ? ofBytes : 0 });
  };

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#thread === null) return;
    await this.#thread.terminate();
    // What the thread drew is nobody's but its own.
    this.#world.redraw("");
    this.#world.redraw(null);
  }
}

/** `12,000 of 400,000 rows (3 %)`. */
export function sayFar(done: number, of: number, what: string): string {
  const share = of === 0 ? 100 : Math.floor((done / of) * 100);
  return `${done.toLocaleString("en")} of ${of.toLocaleString("en")} ${what} (${share} %)`;
}
