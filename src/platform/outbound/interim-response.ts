/**
 * Removes `100 Continue` responses from what a connection reads. No notice asks for one, but old servers send it before every response to a
 * POST. A client must skip it (RFC 9110, 15.2), while undici closes the connection and has no setting for that. It skips other interim
 * statuses itself.
 */
import type { Socket } from "node:net";

const CONTINUES = ["HTTP/1.1 100 ", "HTTP/1.1 100\r", "HTTP/1.0 100 ", "HTTP/1.0 100\r"];
const HEAD_CHARS = 13;
const HEAD_END = "\r\n\r\n";
/** The limit of undici for response headers. */
const MAX_HEAD_BYTES = 16 * 1024;
const NOTHING = Buffer.alloc(0);

export class InterimResponses {
  /** Bytes at the beginning of a response that may still be an interim one; null: the response began. */
  #held: Buffer | null = null;
  #onInterim = (): void => {};

  /** Filters what is read from the socket from now on. */
  constructor(socket: Socket) {
    const read = socket.read.bind(socket);
    socket.read = (size?: number): Buffer | null => {
      for (;;) {
        const chunk: Buffer | null = read(size);
        if (chunk === null || this.#held === null) return chunk;
        const begun = this.#passOver(Buffer.concat([this.#held, chunk]));
        if (begun !== null) return begun;
      }
    };
  }

  /** Expects a response next. `onInterim` is called for each skipped status. */
  await(onInterim: () => void): void {
    this.#held = NOTHING;
    this.#onInterim = onInterim;
  }

  /** Returns the beginning of the response, or null until it is complete. */
  #passOver(bytes: Buffer): Buffer | null {
    let rest = bytes;
    for (;;) {
      const head = rest.toString("latin1", 0, HEAD_CHARS);
      const end = rest.indexOf(HEAD_END);
      const mayBe = CONTINUES.some((one) => one.startsWith(head));
      if (!mayBe || (end === -1 && rest.length > MAX_HEAD_BYTES)) {
        this.#held = null;
        return rest;
      }
      if (end === -1) {
        this.#held = rest;
        return null;
      }
      this.#onInterim();
      rest = rest.subarray(end + HEAD_END.length);
    }
  }
}
