/**
 * Draws the progress of a long operation on one line of stderr, if stderr is a terminal. SQLite copies and checks a database in one call,
 * so a separate thread checks the size of the growing file.
 */
import { formatCount } from "../../../base/text.ts";
import type { CopyStep } from "../../../store/sqlite/database-copy.ts";
import type { Io } from "../io.ts";
import thread from "./progress-thread.txt" with { type: "text" };

const WORDS = { copying: "Copying the database", checking: "Checking the copy" } as const;

/** Draws the steps of a copy until it is disposed. It does nothing if stderr is no terminal. */
export class CopyProgress implements AsyncDisposable {
  readonly #io: Io;
  #thread: Worker | null = null;

  constructor(io: Io) {
    this.#io = io;
  }

  readonly onStep = ({ doing, file, ofBytes }: CopyStep): void => {
    if (!this.#io.watched) return;
    this.#thread ??= new Worker(URL.createObjectURL(new Blob([thread], { type: "application/javascript" })));
    this.#thread.postMessage({ words: WORDS[doing], file, ofBytes: doing === "copying" ? ofBytes : 0 });
  };

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#thread === null) return;
    await this.#thread.terminate();
    // The main thread does not know what the worker drew, so it draws an empty line before it clears the line.
    this.#io.redraw("");
    this.#io.redraw(null);
  }
}

/** Formats progress, such as `12,000 of 400,000 rows (3 %)`. */
export function formatProgress(done: number, of: number, what: string): string {
  const share = of === 0 ? 100 : Math.floor((done / of) * 100);
  return `${formatCount(done)} of ${formatCount(of)} ${what} (${share} %)`;
}
