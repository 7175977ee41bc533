/**
 * Writes lines to standard output and standard error. A write that fails (a full disk, a closed pipe) never ends the process. If a reader does not
 * read, lines are dropped and counted, so that they do not fill the memory.
 */
import { fstatSync, type Stats, statSync } from "node:fs";
import type { Log } from "./log.ts";
import { SYSTEM } from "./system.ts";

/** The most bytes that wait for a slow reader before lines are dropped. */
const WAITING_BYTES = 1024 * 1024;

/** The part of a stream that this file uses. `process.stdout` is such a stream. */
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
  #unreported = 0;

  /** `open` runs with the first line. */
  constructor(open: () => OutputStream) {
    this.#open = open;
  }

  /** The number of lines that were not written since the process began. */
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
      if (error === undefined || error === null) this.#reportDropped();
      else this.#drop();
    };
    try {
      this.#stream ??= this.#listenTo(this.#open());
      this.#stream.write(`${text}\n`, done);
    } catch (error) {
      done(error);
    }
  }

  /** Calls `listener` with the number of dropped lines when writing works again. The returned function removes the listener. */
  onRecover(listener: (lines: number) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #listenTo(stream: OutputStream): OutputStream {
    // The error of a write would end the process if there were no listener. `done` receives the error too.
    stream.on("error", () => undefined);
    return stream;
  }

  #drop(): void {
    this.#dropped += 1;
    this.#unreported += 1;
  }

  #reportDropped(): void {
    if (this.#unreported === 0 || this.#listeners.size === 0) return;
    const lines = this.#unreported;
    this.#unreported = 0;
    for (const listener of this.#listeners) listener(lines);
  }
}

export const standardOutput = new LineOutput(() => (isTerminal(1) ? process.stdout : openPlain(1)));
export const standardError = new LineOutput(() => (isTerminal(2) ? process.stderr : openPlain(2)));

const STREAMS = ["stdin", "stdout", "stderr"] as const;

/**
 * Reports whether standard input (0), output (1) or error (2) is a terminal. The streams of `process` load 10 ms of code, so they are asked only if
 * the file can be one.
 */
export function isTerminal(descriptor: 0 | 1 | 2): boolean {
  try {
    const file = fstatSync(descriptor);
    if (!file.isCharacterDevice() || isNull(file)) return false;
  } catch {
    // The descriptor is closed.
    return false;
  }
  return process[STREAMS[descriptor]].isTTY === true;
}

/** Reports whether the file discards what is written, as cron jobs and scripts make it. */
function isNull({ rdev }: Stats): boolean {
  const { nullDevice } = SYSTEM;
  return nullDevice !== null && rdev === statSync(nullDevice, { throwIfNoEntry: false })?.rdev;
}

/** Opens a file or a pipe without the streams of `process`. Each write is flushed. */
function openPlain(descriptor: 1 | 2): OutputStream {
  const sink = Bun.file(descriptor).writer();
  return {
    write(text, done) {
      sink.write(text);
      Promise.resolve(sink.flush()).then(() => done(), done);
    },
    on: () => undefined,
  };
}

/** Logs how many lines could not be written, when writing works again. The returned function stops it. */
export function logDroppedLines(log: Log): () => void {
  const streams = { "standard output": standardOutput, "standard error": standardError };
  const stops = Object.entries(streams).map(([stream, output]) =>
    output.onRecover((lines) => log.warn("lines could not be written and were dropped", { stream, lines })),
  );
  return () => {
    for (const stop of stops) stop();
  };
}
