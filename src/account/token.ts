/**
 * Random tokens that are shown once and stored as their SHA-256. It never stores, compares or logs the token itself:
 * a token is looked up by its hash, so that no comparison depends on a secret's beginning.
 */

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/** The largest multiple of 62 below 256; a byte from there on would favour the first letters. */
const FAIR_BYTES = LETTERS.length * Math.floor(256 / LETTERS.length);

/** `length` letters and digits, each equally likely: 32 of them hold 190 bits. */
export function newToken(length: number): string {
  let token = "";
  while (token.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length))) {
      if (byte < FAIR_BYTES && token.length < length) token += LETTERS[byte % LETTERS.length];
    }
  }
  return token;
}

/** SHA-256 of the token, 32 bytes: what the store holds of it. */
export function hashToken(token: string): Uint8Array {
  return new Uint8Array(new Bun.CryptoHasher("sha256").update(token).digest());
}
