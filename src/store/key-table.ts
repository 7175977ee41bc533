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

  /** `value` is above 0. */
  add(key: number, value: number): void {
    if (this.#size * 2 >= this.#keys.length) this.#grow();
    this.#put(key, value);
    this.#size += 1;
    if (value > this.#greatest) this.#greatest = value;
  }

  /** The numbers that the key was kept for. */
  find(key: number): number[] {
    const found: number[] = [];
    const mask = this.#keys.length - 1;
    for (let at = placeOf(key, mask); this.#values[at] !== 0; at = (at + 1) & mask) {
      if (this.#keys[at] === key) found.push(this.#values[at] ?? 0);
    }
    return found;
  }

  each(work: (key: number, value: number) => void): void {
    for (let at = 0; at < this.#keys.length; at++) {
      const value = this.#values[at] ?? 0;
      if (value !== 0) work(this.#keys[at] ?? 0, value);
    }
  }

  #put(key: number, value: number): void {
    const mask = this.#keys.length - 1;
    let at = placeOf(key, mask);
    while (this.#values[at] !== 0) at = (at + 1) & mask;
    this.#keys[at] = key;
    this.#values[at] = value;
  }

  #grow(): void {
    const [keys, values] = [this.#keys, this.#values];
    this.#keys = new Float64Array(keys.length * 2);
    this.#values = new Float64Array(keys.length * 2);
    for (let at = 0; at < keys.length; at++) {
      const value = values[at] ?? 0;
      if (value !== 0) this.#put(keys[at] ?? 0, value);
    }
  }
}

/** By the key's last 32 bits: its first ones say which piece of a run it is in. */
function placeOf(key: number, mask: number): number {
  return (key % 2 ** 32) & mask;
}
