/** The keys of a log as memory holds them: numbers of 52 bits, each with the number of the row it was kept for. */

const FIRST_PLACES = 4_096;

/** The first 52 bits of a hash of at least 8 bytes, which a number holds exactly. */
export function keyOf(hash: Uint8Array): number {
  let key = 0;
  for (let at = 0; at < 6; at++) key = key * 256 + (hash[at] ?? 0);
  return key * 16 + ((hash[6] ?? 0) >>> 4);
}

/** Keys in memory, each with the number it was kept for: two typed arrays and open addressing, 16 bytes a place. A key may stand in it twice. */
export class KeyTable {
  #keys = new Float64Array(FIRST_PLACES);
  /** 0: the place is free. */
  #values = new Float64Array(FIRST_PLACES);
  #size = 0;
  #greatest = 0;

  get size(): number {
    return this.#size;
  }

  get greatestValue(): number {
    return this.#greatest;
  }

  /** Keys and their numbers, which are above 0, by turns. */
  add(pairs: Float64Array): void {
    this.#size += pairs.length / 2;
    while (this.#size * 2 > this.#keys.length) this.#grow();
    this.#greatest = Math.max(this.#greatest, put(pairs, this.#keys, this.#values));
  }

  /** The numbers that the key was kept for. */
  find(key: number): number[] {
    const found: number[] = [];
    const mask = this.#keys.length - 1;
    for (let at = key & mask; this.#values[at] !== 0; at = (at + 1) & mask) {
      if (this.#keys[at] === key) found.push(this.#values[at] ?? 0);
    }
    return found;
  }

  /** Its keys of at least `from` and below `to`, and their numbers, by turns. */
  between(from: number, to: number): number[] {
    return pick(this.#keys, this.#values, from, to);
  }

  #grow(): void {
    const [keys, values] = [this.#keys, this.#values];
    this.#keys = new Float64Array(keys.length * 2);
    this.#values = new Float64Array(keys.length * 2);
    put(pick(keys, values, 0, Number.POSITIVE_INFINITY), this.#keys, this.#values);
  }
}

/**
 * Puts each key into the first free place from its own on, which its last bits say, as its first ones say which piece of a run it is in.
 * Answers the greatest value. One loop over plain arrays, so that it is compiled soon after a start.
 */
function put(pairs: ArrayLike<number>, keys: Float64Array, values: Float64Array): number {
  const mask = keys.length - 1;
  let greatest = 0;
  for (let from = 0; from < pairs.length; from += 2) {
    const key = pairs[from] ?? 0;
    const value = pairs[from + 1] ?? 0;
    let at = key & mask;
    while (values[at] !== 0) at = (at + 1) & mask;
    keys[at] = key;
    values[at] = value;
    if (value > greatest) greatest = value;
  }
  return greatest;
}

function pick(keys: Float64Array, values: Float64Array, from: number, to: number): number[] {
  const pairs: number[] = [];
  for (let at = 0; at < keys.length; at++) {
    const value = values[at] ?? 0;
    const key = keys[at] ?? 0;
    if (value !== 0 && key >= from && key < to) pairs.push(key, value);
  }
  return pairs;
}

/** Numbers as bytes, in the machine's own order, which is little-endian on every machine that Bun runs on. */
export function encodeNumbers(numbers: Float64Array): Uint8Array {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
}

export function decodeNumbers(bytes: Uint8Array): Float64Array {
  const { buffer, byteOffset, byteLength } = bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
  return new Float64Array(buffer, byteOffset, byteLength / 8);
}
