/**
 * Reads the beginning of a called URL's answer as text that can be stored and shown: at most 4 KB of valid UTF-8, cut at a character. The
 * rest is never read. An answer that is compressed although none was asked for is not unpacked.
 */
import { MAX_KEPT_ANSWER_BYTES } from "../ground/limit.ts";
import { cutUtf8 } from "../ground/text.ts";

type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** What is kept of an answer's body, as far as it has come. */
export class KeptBody {
  readonly #headers: AnswerHeaders;
  readonly #chunks: Uint8Array[] = [];
  #size = 0;

  constructor(headers: AnswerHeaders) {
    this.#headers = headers;
  }

  /** Reads until the body ends or is enough. Rejects when it breaks off before; what had come is kept. */
  async read(body: AsyncIterable<Uint8Array>): Promise<void> {
    if (this.#coding !== null) return;
    for await (const chunk of body) {
      this.#chunks.push(chunk);
      this.#size += chunk.byteLength;
      if (this.#size > MAX_KEPT_ANSWER_BYTES) return;
    }
  }

  /** The text of what has come. */
  get text(): string {
    if (this.#coding !== null) return `[a ${this.#coding} compressed answer, not kept]`;
    const bytes = Buffer.concat(this.#chunks).subarray(0, MAX_KEPT_ANSWER_BYTES);
    const isCut = this.#size > MAX_KEPT_ANSWER_BYTES;
    const text = decoderOf(headerText(this.#headers, "content-type")).decode(bytes, { stream: isCut });
    return cutUtf8(text.replaceAll("\0", "\ufffd"), MAX_KEPT_ANSWER_BYTES);
  }

  get #coding(): string | null {
    const coding = headerText(this.#headers, "content-encoding").trim().toLowerCase();
    return coding === "" || coding === "identity" ? null : cutUtf8(coding, 40);
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
