/**
 * Takes `100 Continue` out of what a connection reads. No notice asks for one, but old servers send it before the answer to every POST, a client
 * is to pass over it (RFC 9110, 15.2), and undici ends the connection at it and has no setting; every other interim status it passes over by
 * itself. Only the beginning of an answer is looked at.
 */
import type { Socket } from "node:net";

const CONTINUES = ["HTTP/1.1 100 ", "HTTP/1.1 100\r", "HTTP/1.0 100 ", "HTTP/1.0 100\r"];
const HEAD_CHARS = 13;
const HEAD_END = "\r\n\r\n";
/** As much as undici takes of an answer's headers. */
const MAX_HEAD_BYTES = 16 * 1024;
const NOTHING = Buffer.alloc(0);

export class InterimResponses {
  /** Read at the beginning of an answer, and not told from an interim one yet; null: an answer has begun. */
  #held: Buffer | null = null;
  #onInterim = (): void => {};

  /** From now on what is read of the socket has no such status. */
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

  /** The next bytes begin an answer; `onInterim` is told of each status that is passed over. */
  await(onInterim: () => void): void {
    this.#held = NOTHING;
    this.#onInterim = onInterim;
  }

  /** The answer's beginning, once it is there. */
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
