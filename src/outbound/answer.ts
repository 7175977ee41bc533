/**
 * What is kept of an answer: its status, and of its body text that can be stored and shown, at most 4 KB of valid UTF-8, cut at a character.
 * An answer that is compressed although none was asked for is not unpacked.
 */
import { MAX_KEPT_ANSWER_BYTES } from "../ground/limit.ts";
import { cutUtf8 } from "../ground/text.ts";

type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

export class Answer {
  readonly status: number;
  readonly #headers: AnswerHeaders;
  readonly #coding: string | null;
  readonly #chunks: Uint8Array[] = [];
  #size = 0;

  constructor(status: number, headers: AnswerHeaders) {
    this.status = status;
    this.#headers = headers;
    const coding = headerText(headers, "content-encoding").trim().toLowerCase();
    this.#coding = coding === "" || coding === "identity" ? null : cutUtf8(coding, 40);
  }

  /** Takes the body's next bytes. */
  take(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#size += chunk.byteLength;
  }

  /** Nothing that may still come would be kept. */
  get isEnough(): boolean {
    return this.#coding !== null || this.#size > MAX_KEPT_ANSWER_BYTES;
  }

  /** The text of what has come. */
  get body(): string {
    if (this.#coding !== null) return `[a ${this.#coding} compressed answer, not kept]`;
    const bytes = Buffer.concat(this.#chunks).subarray(0, MAX_KEPT_ANSWER_BYTES);
    const isCut = this.#size > MAX_KEPT_ANSWER_BYTES;
    const text = decoderOf(headerText(this.#headers, "content-type")).decode(bytes, { stream: isCut });
    return cutUtf8(text.replaceAll("\0", "\ufffd"), MAX_KEPT_ANSWER_BYTES);
  }
}

/** The declared charset's decoder; UTF-8 where none is declared or it is not known. */
function decoderOf(contentType: string): TextDecoder {
  const charset = /;\s*charset="?([\w-]{1,40})/i.exec(contentType)?.[1] ?? "utf-8";
  try {
    return new TextDecoder(charset as "utf-8");
  } catch {
    return new TextDecoder();
  }
}

function headerText(headers: AnswerHeaders, name: string): string {
  const value = headers[name];
  return Array.isArray(value) ? value.join(", ") : (value ?? "");
}
