/** Erases a person in tests as a request does it, then all rows as the sweep does. */

import { Sealer } from "../../src/platform/secret/seal.ts";
import { type EraseCursor, type Erasure, type ErasureCount, erasePerson, eraseRows } from "../../src/shop/people/person-erase.ts";
import type { Store } from "../../src/store/port.ts";

export const eraseSealer = new Sealer(new Uint8Array(32).fill(7));

/** Returns how many rows of each kind were erased. */
export async function erase(store: Store, erasure: Erasure): Promise<Partial<ErasureCount>> {
  await store.write("erasure", (tx) => erasePerson(tx, erasure, eraseSealer));
  const count: Partial<ErasureCount> = {};
  let cursor: EraseCursor | null = { recordSeq: 0 };
  while (cursor !== null) {
    const from: EraseCursor = cursor;
    const step = await store.write("erasure", (tx) => eraseRows(tx, erasure, from));
    for (const [what, more] of Object.entries(step?.touched ?? {})) {
      count[what as keyof ErasureCount] = (count[what as keyof ErasureCount] ?? 0) + more;
    }
    cursor = step?.cursor ?? null;
  }
  return count;
}
