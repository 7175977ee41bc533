/** A list reads a bounded number of rows and bytes at a time. It loses and repeats no row, however rarely a row matches. */
import { afterAll, expect, spyOn, test } from "bun:test";
import { type Page, readCursor } from "../../src/base/page.ts";
import { equals, reach, readPage, type StepRequest, walkPage } from "../../src/store/index-scan.ts";
import type { Reader } from "../../src/store/port.ts";
import { ON_POSTGRES } from "../kit/chosen-store.ts";
import { openFreshStore } from "../kit/fresh-store.ts";

const { store } = await openFreshStore();

const ROWS = 5_000;
/** Counts the rows that each statement of a read returns. */
const most = { rows: 0 };

await store.write("app", async (tx) => {
  await tx.run("CREATE TABLE thing (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, text TEXT NOT NULL)");
  await tx.run("CREATE INDEX thing_by_seq ON thing (seq)");
  await tx.run(
    `INSERT INTO thing WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
     SELECT i, CASE WHEN i % 1700 = 3 THEN 'rare' ELSE 'plain' END, CASE WHEN i < 20 THEN ?2 ELSE 'x' END FROM n`,
    ROWS,
    "0".repeat(120_000),
  );
});

interface Asked {
  kind?: string;
  limit: number;
  cost?: string;
}

function step({ kind, cost }: Asked) {
  return (tx: Reader, request: StepRequest) => {
    const counting: Reader = {
      get: (sql, ...values) => tx.get(sql, ...values),
      all: async <Row>(sql: string, ...values: never[]) => {
        const rows = await tx.all<Row>(sql, ...values);
        most.rows = Math.max(most.rows, rows.length);
        return rows;
      },
    };
    const table = { name: "thing", columns: "seq, length(text) AS size", read: (row: object) => row as { seq: number; size: number } };
    const walk = { index: "thing_by_seq", key: "seq" as const, led: [{ sql: "seq > ?", values: [0] }], fits: [equals("kind", kind)] };
    return walkPage(counting, table, request, { ...walk, ...(cost === undefined ? {} : { cost }) }, ({ seq }) => seq);
  };
}

async function listAll(asked: Asked, read: (after: string | null) => Promise<Page<number>>): Promise<{ seqs: number[]; pages: number[] }> {
  const pages: number[] = [];
  const seqs: number[] = [];
  let after: string | null = null;
  for (;;) {
    const page: Page<number> = await read(after);
    seqs.push(...page.items);
    pages.push(page.items.length);
    if (page.next === null) return { seqs, pages };
    expect(pages.length).toBeLessThan(ROWS);
    expect(page.items.length).toBeLessThanOrEqual(asked.limit);
    after = readCursor(page.next);
  }
}

const rare = [4_000 + 3 - 600, 1_703, 3];
const all = Array.from({ length: ROWS }, (_, at) => ROWS - at);

for (const [name, asked, wanted, least, mostPages] of [
  ["every row of an unfiltered list appears once, in order", { limit: 190 }, all, 27, 27],
  ["rare matches are found over pages that may be empty", { limit: 2, kind: "rare" }, rare, 50, 53],
  ["a filter without matches ends", { limit: 200, kind: "nothing" }, [], 50, 51],
  ["a page ends when it has read its limit of bytes", { limit: 5_000, cost: "octet_length(text)" }, all, 9, 12],
] as const) {
  test(name, async () => {
    most.rows = 0;
    const one = step(asked);
    const { seqs, pages } = await listAll(asked, (after) => store.read((tx) => one(tx, { limit: asked.limit, after })));
    expect(seqs).toEqual([...wanted]);
    expect(pages.length).toBeGreaterThanOrEqual(least);
    expect(pages.length).toBeLessThanOrEqual(mostPages);
    if (asked.limit <= 200) expect(most.rows).toBeLessThanOrEqual(201);
  });
}

test("a page combines its steps, each in a separate read, and other work runs in between", async () => {
  let turns = 0;
  const count = (): void => {
    turns += 1;
    if (turns < 1_000) setImmediate(count);
  };
  setImmediate(count);
  const asked = { limit: 200, kind: "rare" };
  const page = await readPage(store, { limit: 200, after: null }, step(asked), { steps: 6, look: 1_000 });
  expect(page).toEqual({ items: rare, next: null });
  expect(turns).toBeGreaterThan(3);
  turns = 1_000;
});

/** The time for which a page's steps block the event loop, as set by the test. */
const time = spyOn(performance, "now").mockReturnValue(0);
afterAll(() => void time.mockRestore());

test("a page ends after fifty steps while other work waits, with a next page", async () => {
  const page = await readPage(store, { limit: 200, after: null }, step({ limit: 200, kind: "rare" }));
  // With a database in another process, the last steps are large and reach the end.
  const next = page.next === null ? null : readCursor(page.next);
  expect({ ...page, next }).toEqual({ items: rare, next: ON_POSTGRES ? null : "1" });
});

for (const [name, msAStep, waits, lowest] of [
  ["ends once its steps blocked the event loop for six milliseconds", 3, false, ON_POSTGRES ? null : "4801"],
  ["ends after a single step that blocked it for longer", 30, false, ON_POSTGRES ? null : "4901"],
  ["continues if another process does the work and the event loop turns", 30, true, null],
] as const)
  test(`a page during other work ${name}`, async () => {
    let ms = 0;
    time.mockImplementation(() => ms);
    const one = step({ limit: 200, kind: "nothing" });
    const { items, next } = await readPage(store, { limit: 200, after: null }, async (tx, request) => {
      const found = await one(tx, request);
      if (waits) await Bun.sleep(1);
      ms += msAStep;
      return found;
    });
    expect([items, next === null ? null : readCursor(next)]).toEqual([[], lowest]);
  });

test("a page with large items ends at the step that found one", async () => {
  const asked = { limit: 200, kind: "rare" };
  const page = await readPage(store, { limit: 200, after: null }, step(asked), { large: true });
  expect(page.items).toEqual(rare.slice(0, 1));
  expect(page.next).not.toBeNull();
});

test("a step covers at least one row, whatever it costs", () => {
  expect(
    reach(
      [
        { key: 9, cost: 1e9 },
        { key: 8, cost: 1 },
      ],
      2,
    ),
  ).toEqual({ floor: 9, ended: false });
  expect(reach([{ key: 9, cost: null }], 2)).toEqual({ floor: 9, ended: true });
  expect(reach([], 2)).toEqual({ floor: null, ended: true });
});
