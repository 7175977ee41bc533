/** The text a signature covers, in the two pieces every scheme makes it of, and the check of a signature over it. */

export interface SignedText {
  /** The beginning, as text: literals, the timestamp's digits, the receiver URL. */
  head: string;
  /** The end, as bytes: the body, the form's parameters or the token. */
  tail: Uint8Array;
}

export interface SignatureCheck {
  /**
   * Whether any of the candidates, still encoded, is a signature over the text. At most 8 of them; it never throws by itself. The text
   * is asked for when a candidate could be a signature at all, and not before.
   */
  matches(makeText: () => SignedText, candidates: readonly string[]): boolean;
  /** What checking so many bytes against so many candidates takes at most. */
  costUs(bytes: number, candidates: number): number;
}

/** Head and tail as one run of bytes. */
export function joinSignedText(text: SignedText): Buffer {
  return Buffer.concat([Buffer.from(text.head), text.tail]);
}
