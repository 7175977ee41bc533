/**
 * Reads the beginning of a called URL's answer as text that can be stored and shown: at most 4 KB of valid UTF-8, cut at a character. The
 * rest is never read. An answer that is compressed although none was asked for is not unpacked.
 */
import { MAX_KEPT_ANSWER_BYTES } from "../ground/limit.ts";
import { cutUtf8 } from "../ground/text.ts";

export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The kept text of an answer's body. Rejects when the body breaks off before its end or before it is enough. */
export async function readAnswer(headers: AnswerHeaders, body: AsyncIterable<Uint8Array>): Promise<string> {
  const coding = headerText(headers, "content-encoding").trim().toLowerCase();
  if (coding !== "" && coding !== "identity") return `[a ${cutUtf8(coding, 40)} compressed answer, not kept]`;
  const { bytes, isCut } = await readBeginning(body);
  const text = decoderOf(headerText(headers, "content-type")).decode(bytes, { stream: isCut });
  return cutUtf8(text.replaceAll("\0", "\ufffd"), MAX_KEPT_ANSWER_BYTES);
}

async function readBeginning(body: AsyncIterable<Uint8Array>): Promise<{ bytes: Buffer; isCut: boolean }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.byteLength;
    if (size > MAX_KEPT_ANSWER_BYTES) break;
  }
  const isCut = size > MAX_KEPT_ANSWER_BYTES;
  return { bytes: Buffer.concat(chunks).subarray(0, MAX_KEPT_ANSWER_BYTES), isCut };
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
