/**
 * Which keys are surely not in a run: 16 bits a key, eight of them in one block of 512 for each key, so that a question touches one line of
 * the processor's cache. About one key in a thousand that is not in the run is said to be.
 * Source: Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters" (2007).
 */

const BITS_A_KEY = 16;
const BITS_OF_A_KEY = 8;
const BLOCK_WORDS = 16;

export class KeyFilter {
  readonly #words: Uint32Array;
  readonly #blocks: number;

  private constructor(words: Uint32Array) {
    this.#words = words;
    this.#blocks = words.length / BLOCK_WORDS;
  }

  /** An empty one for so many keys. */
  static forKeys(count: number): KeyFilter {
    const blocks = 2 ** Math.ceil(Math.log2(Math.max(1, (count * BITS_A_KEY) / (BLOCK_WORDS * 32))));
    return new KeyFilter(new Uint32Array(blocks * BLOCK_WORDS));
  }

  /** One that was kept as its bytes. */
  static read(bytes: Uint8Array): KeyFilter {
    return new KeyFilter(new Uint32Array(bytes.slice().buffer));
  }

  get bytes(): Uint8Array {
    return new Uint8Array(this.#words.buffer);
  }

  /** The key is a whole number of 52 bits. */
  add(key: number): void {
    const block = this.#blockOf(key);
    for (let turn = 0; turn < BITS_OF_A_KEY; turn++) {
      const bit = bitOf(key, turn);
      const at = block + (bit >>> 5);
      this.#words[at] = (this.#words[at] ?? 0) | (1 << (bit & 31));
    }
  }

  mayHold(key: number): boolean {
    const block = this.#blockOf(key);
    for (let turn = 0; turn < BITS_OF_A_KEY; turn++) {
      const bit = bitOf(key, turn);
      if (((this.#words[block + (bit >>> 5)] ?? 0) & (1 << (bit & 31))) === 0) return false;
    }
    return true;
  }

  /** Where its block begins, by the last bits. */
  #blockOf(key: number): number {
    return (key & (this.#blocks - 1)) * BLOCK_WORDS;
  }
}

/** In its block: where it begins by the nine bits before 2^32, and on in odd steps that the bits above it say. */
function bitOf(key: number, turn: number): number {
  const step = ((Math.floor(key / 2 ** 32) & 0xff) << 1) | 1;
  return ((key >>> 23) + turn * step) & 511;
}
