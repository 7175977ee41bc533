/** Collects what a process prints, and lets a test wait for a part of a line. */

interface Waiter {
  part: string;
  count: number;
  resolve(line: string): void;
  reject(error: Error): void;
}

export class ProcessOutput {
  #text = "";
  #ended = false;
  #waiters: Waiter[] = [];
  /** Resolves once every process that held the output has closed it. */
  readonly closed: Promise<void>;

  constructor(stream: ReadableStream<Uint8Array>) {
    this.closed = this.#read(stream);
  }

  /** Everything so far. */
  get text(): string {
    return this.#text;
  }

  /** The complete lines so far. */
  get lines(): string[] {
    return this.#text.split("\n").slice(0, -1);
  }

  /** Resolves with the first line that contains `part`, past or future. Rejects if the process closes its output first. */
  waitFor(part: string): Promise<string> {
    return this.waitForCount(part, 1);
  }

  /** Waits like `waitFor`, for the `count`th line that contains `part`. */
  waitForCount(part: string, count: number): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#waiters.push({ part, count, resolve, reject });
      this.#settle();
    });
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      this.#text += decoder.decode(chunk, { stream: true });
      this.#settle();
    }
    this.#ended = true;
    this.#settle();
  }

  #settle(): void {
    const { lines } = this;
    this.#waiters = this.#waiters.filter(({ part, count, resolve, reject }) => {
      const line = lines.filter((one) => one.includes(part))[count - 1];
      if (line !== undefined) resolve(line);
      else if (this.#ended) reject(new Error(`It ended before it printed ${part}: ${this.#text}`));
      return line === undefined && !this.#ended;
    });
  }
}
