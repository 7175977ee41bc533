/** Holds the answers of reads that were sent ahead, so that several reads share one round trip. An answer is valid until a write may change it. */

/** The other tables that triggers write when a row is inserted into a table. A write to a table that is not listed may change everything. */
const WRITES_OF: Readonly<Record<string, readonly string[]>> = {
  audit: [],
  event: [],
  record: ["record_change", "record_file", "stored_bytes"],
  run: [],
  writer_commit: [],
  writer_scope: [],
};

interface Asked<Rows> {
  rows: Promise<Rows>;
  tables: readonly string[];
}

export class PrefetchedReads<Rows> {
  readonly #asked = new Map<string, Asked<Rows>>();

  /** Returns the answer of a read that was sent ahead. `values` must have the form that the server gets. */
  find(text: string, values: readonly unknown[]): Promise<Rows> | undefined {
    return this.#asked.size === 0 ? undefined : this.#asked.get(nameOf(text, values))?.rows;
  }

  add(text: string, values: readonly unknown[], rows: Promise<Rows>): void {
    this.#asked.set(nameOf(text, values), { rows, tables: tablesOf(text) });
  }

  /** Drops the answers that a write may change. */
  written(text: string): void {
    if (this.#asked.size === 0) return;
    const written = writtenBy(text);
    if (written === null) this.#asked.clear();
    else
      for (const [name, { tables }] of this.#asked)
        if (tables.some((table) => written.includes(table))) this.#asked.delete(name);
  }

  clear(): void {
    this.#asked.clear();
  }
}

/** Returns whether `read` may read a row that `write` writes. */
export function touches(write: string, read: string): boolean {
  const written = writtenBy(write);
  return written === null || tablesOf(read).some((table) => written.includes(table));
}

function nameOf(text: string, values: readonly unknown[]): string {
  return values.reduce<string>((name, value) => {
    const text = value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : String(value);
    return `${name}\0${typeof value} ${text}`;
  }, text);
}

const tables = new Map<string, readonly string[]>();

function tablesOf(text: string): readonly string[] {
  let known = tables.get(text);
  if (known === undefined) {
    known = [...text.matchAll(/\b(?:FROM|JOIN)\s+"?(\w+)/gi)].map(([, name = ""]) => name.toLowerCase());
    tables.set(text, known);
  }
  return known;
}

const writes = new Map<string, readonly string[] | null>();

/** Returns the tables that a statement writes, or null if they are unknown. */
function writtenBy(text: string): readonly string[] | null {
  let known = writes.get(text);
  if (known === undefined) {
    const [, table = ""] = /^\s*INSERT INTO (\w+)/i.exec(text) ?? [];
    const others = WRITES_OF[table];
    known = others === undefined ? null : [table, ...others];
    writes.set(text, known);
  }
  return known;
}
