/** Finds events by their deduplication keys, in the event table. */
import type { UndoableKeys } from "../group-commit/transaction.ts";
import type { PostgresConnection } from "./connection.ts";

/** Has the same text for any number of keys, so that it is prepared once. */
const ASK =
  "SELECT seq, dedupe_hash AS hash FROM event WHERE dedupe_hash = ANY(string_to_array(?1, ',')::bytea[])";

const EXPECT_NEW = "SELECT expect_new_keys(?1)";

/** Finds keys by the unique index of the event table. It remembers only what the open transaction read. */
export class EventKeys implements UndoableKeys {
  readonly mark = 0;
  /** True if prefetched keys count as new, and the server checks that. */
  expectNew = false;
  readonly #connection: () => PostgresConnection;
  #known = new Map<string, number[]>();
  #asked: Promise<unknown> = Promise.resolve();

  constructor(connection: () => PostgresConnection) {
    this.#connection = connection;
  }

  async prefetch(hashes: readonly Uint8Array[]): Promise<void> {
    const unknown = hashes.filter((hash) => !this.#known.has(nameOf(hash)));
    if (unknown.length > 0) this.#asked = Promise.all([this.#asked, this.#ask(unknown)]);
    await this.#asked;
  }

  async #ask(hashes: readonly Uint8Array[]): Promise<void> {
    const known = this.#known;
    for (const hash of hashes) known.set(nameOf(hash), []);
    const asked = hashes.map((hash) => `\\x${nameOf(hash)}`).join();
    if (this.expectNew) return void this.#connection().exec(EXPECT_NEW, asked);
    for (const { seq, hash } of await this.#connection().all<{ seq: number; hash: Uint8Array }>(ASK, asked))
      known.get(nameOf(hash))?.push(seq);
  }

  async find(hash: Uint8Array): Promise<number[]> {
    await this.#asked;
    const known = this.#known.get(nameOf(hash));
    if (known !== undefined) return known;
    const rows = await this.#connection().all<{ seq: number }>(
      "SELECT seq FROM event WHERE dedupe_hash = ?1",
      hash,
    );
    return rows.map(({ seq }) => seq);
  }

  async add(hash: Uint8Array, value: number): Promise<void> {
    this.#known.get(nameOf(hash))?.push(value);
  }

  async deleteBefore(): Promise<boolean> {
    return false;
  }

  async deleteSlot(): Promise<void> {}

  /** Forgets everything. It also runs at the beginning and the end of a transaction. */
  undoTo(): void {
    this.expectNew = false;
    this.#known = new Map();
    this.#asked = Promise.resolve();
  }
}

function nameOf(hash: Uint8Array): string {
  return hash.toHex();
}
