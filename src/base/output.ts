/**
 * Lines to standard output and standard error. A write that fails (a full disk, a reader that is gone) never ends the process, and a reader
 * that does not read never fills its memory: such lines are dropped and counted. It never decides what a line says.
 */
import type { Log } from "./log.ts";

/** What may wait for a slow reader before lines are dropped. */
const WAITING_BYTES = 1024 * 1024;

/** What is needed of a stream: `process.stdout` is one. */
interface OutputStream {
  write(text: string, done: (error?: Error | null) => void): unknown;
  on(event: "error", listener: () => void): unknown;
}

export class LineOutput {
  readonly #open: () => OutputStream;
  readonly #listeners = new Set<(lines: number) => void>();
  #stream: OutputStream | null = null;
  #waitingBytes = 0;
  #dropped = 0;
  #untold = 0;

  /** `open` is called with the first line. */
  constructor(open: () => OutputStream) {
    this.#open = open;
  }

  /** Lines that were not written since the process began. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Writes the text and a line break. Never throws. */
  write(text: string): void {
    const bytes = text.length + 1;
    if (this.#waitingBytes + bytes > WAITING_BYTES && this.#waitingBytes > 0) {
      this.#drop();
      return;
    }
    this.#waitingBytes += bytes;
    const done = (error?: unknown): void => {
      this.#waitingBytes -= bytes;
      if (error === undefined || error === null) this.#tell();
      else this.#drop();
    };
    try {
      this.#stream ??= this.#listenTo(this.#open());
      this.#stream.write(`${text}\n`, done);
    } catch (error) {
      done(error);
    }
  }

  /** Tells how many lines were lost once writing works again. The answer ends it. */
  onRecover(listener: (lines: number) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #listenTo(stream: OutputStream): OutputStream {
    // Without a listener the error of a write ends the process; `done` is told of it too.
    stream.on("error", () => undefined);
    return stream;
  }

  #drop(): void {
    this.#dropped += 1;
    this.#untold += 1;
  }

  #tell(): void {
    if (this.#untold === 0 || this.#listeners.size === 0) return;
    const lines = this.#untold;
    this.#untold = 0;
    for (const listener of this.#listeners) listener(lines);
  }
}

export const standardOutput = new LineOutput(() => process.stdout);
export const standardError = new LineOutput(() => process.stderr);

/** Says in the log how many lines could not be written, once writing works again. The answer stops it. */
export function tellDroppedLines(log: Log): () => void {
  const streams = { "standard output": standardOutput, "standard error": standardError };
  const stops = Object.entries(streams).map(([stream, output]) =>
    output.onRecover((lines) => log.warn("lines could not be written and were dropped", { stream, lines })),
  );
  return () => {
    for (const stop of stops) stop();
  };
}
