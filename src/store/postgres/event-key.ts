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
  #expectsNew = false;
  /** The prefetched keys that count as new and that no stored event has yet. An event with a key that is not new would violate the unique index. */
  readonly #unproven = new Set<string>();
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
    if (this.#expectsNew) {
      for (const hash of hashes) this.#unproven.add(nameOf(hash));
      return;
    }
    const asked = listBytes(hashes.map(nameOf));
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
    this.#unproven.delete(nameOf(hash));
    this.#known.get(nameOf(hash))?.push(value);
  }

  async deleteBefore(): Promise<boolean> {
    return false;
  }

  async deleteSlot(): Promise<void> {}

  /** Counts prefetched keys as new. The transaction must call `checkNew` before its commit. */
  expectNew(): void {
    this.#expectsNew = true;
  }

  /** Has the server check the keys that count as new and that no insert checked. */
  checkNew(): void {
    if (this.#unproven.size > 0) void this.#connection().exec(EXPECT_NEW, listBytes([...this.#unproven]));
    this.#unproven.clear();
  }

  /** Forgets everything. It also runs at the beginning and the end of a transaction. */
  undoTo(): void {
    this.#expectsNew = false;
    this.#unproven.clear();
    this.#known = new Map();
    this.#asked = Promise.resolve();
  }
}

/** Writes hashes, which are hexadecimal, as the server reads them. */
function listBytes(hashes: readonly string[]): string {
  return hashes.map((hash) => `\\x${hash}`).join();
}

function nameOf(hash: Uint8Array): string {
  return hash.toHex();
}
