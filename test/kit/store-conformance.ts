/** The conformance suite of the store's port: the guarantees of every store on any database. */
import { describe, expect, test } from "bun:test";
import { type Reader, type Store, StoreUnavailable, UniqueViolation, type Writer } from "../../src/store/port.ts";
import { holdRealClock } from "./moved-clock.ts";
import { settle } from "./virtual-clock.ts";

export const addApp = (id: string) => async (tx: Writer) => {
  await tx.run("INSERT INTO app (id, name, created_at) VALUES (?1, ?1, 0)", id);
  return id;
};

export const listApps = async (tx: Reader): Promise<string[]> =>
  (await tx.all<{ id: string }>("SELECT id FROM app ORDER BY id")).map((row) => row.id);

/** The store under test, opened empty for each test, and the sizes of its groups since then. */
interface TestedStore {
  readonly store: Store;
  readonly groups: number[];
}

export function testStore({ store: opened }: { store: () => TestedStore }): void {
  describe("a write", () => {
    test("is visible to the next read and returns the result of its work", async () => {
      expect(await opened().store.write("app", addApp("a"))).toBe("a");
      expect(await opened().store.read(listApps)).toEqual(["a"]);
    });

    test("rolls back only its own work if it throws, and the others of its group commit", async () => {
      const failed = opened().store.write("app", async (tx) => {
        await addApp("b")(tx);
        throw new Error("no");
      });
      const others = [opened().store.write("app", addApp("a")), opened().store.write("app", addApp("c"))];
      await expect(failed).rejects.toThrow("no");
      await Promise.all(others);
      expect(await opened().store.read(listApps)).toEqual(["a", "c"]);
    });

    test("joins one group with a single commit if it waits for a busy writer", async () => {
      using _ = holdRealClock();
      await Promise.all(Array.from({ length: 100 }, (_, index) => opened().store.write("app", addApp(`a${index}`))));
      expect(opened().groups.reduce((sum, size) => sum + size, 0)).toBe(100);
      expect(opened().groups.length).toBeLessThan(10);
    });

    test("shares one call with the batched writes that wait with it, and gets its own result", async () => {
      using _ = holdRealClock();
      const calls: number[] = [];
      const add = opened().store.batchWrites("app", async (tx, ids: readonly string[]) => {
        calls.push(ids.length);
        for (const id of ids) await addApp(id)(tx);
        return ids.map((id) => id.toUpperCase());
      });
      const before = ["a", "b"].map(add);
      const between = opened().store.write("app", addApp("c"));
      const after = ["d", "e", "f"].map(add);
      await between;
      expect(await Promise.all([...before, ...after])).toEqual(["A", "B", "D", "E", "F"]);
      expect(calls.length).toBeLessThan(5);
      expect(calls.reduce((sum, length) => sum + length, 0)).toBe(5);
      expect(opened().groups.reduce((sum, size) => sum + size, 0)).toBe(6);
    });

    test("fails without the others of its batch", async () => {
      const called: string[] = [];
      const add = opened().store.batchWrites("app", async (tx, ids: readonly string[]) => {
        for (const id of ids) {
          await addApp(id)(tx);
          tx.afterCommit(() => called.push(id));
        }
        return ids;
      });
      await add("a");
      const answers = await Promise.allSettled([add("b"), add("a"), add("c"), opened().store.write("app", addApp("d"))]);
      expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
      expect(await opened().store.read(listApps)).toEqual(["a", "b", "c", "d"]);
      expect(called).toEqual(["a", "b", "c"]);
    });

    test("reports a violated unique rule, and can catch it inside an attempt", async () => {
      await opened().store.write("app", addApp("a"));
      await expect(opened().store.write("app", addApp("a"))).rejects.toBeInstanceOf(UniqueViolation);
      const caught = await opened().store.write("app", async (tx) => {
        await addApp("b")(tx);
        return tx.attempt(() => addApp("a")(tx)).catch((error: unknown) => error instanceof UniqueViolation);
      });
      expect(caught).toBe(true);
      expect(await opened().store.read(listApps)).toEqual(["a", "b"]);
    });

    test("can nest attempts, each of which rolls back only the work inside it", async () => {
      await opened().store.write("app", async (tx) => {
        await addApp("a")(tx);
        await tx
          .attempt(async () => {
            await addApp("b")(tx);
            await tx.attempt(() => addApp("c")(tx));
            throw new Error("undo b and c");
          })
          .catch(() => undefined);
        await tx.attempt(() => addApp("d")(tx));
      });
      expect(await opened().store.read(listApps)).toEqual(["a", "d"]);
    });

    test("sees nothing of a failed attempt when it continues", async () => {
      const tried = opened().store.write("app", async (tx) => {
        await tx
          .attempt(async () => {
            await addApp("a")(tx);
            throw new Error("undo a");
          })
          .catch(() => undefined);
        await addApp("a")(tx);
      });
      await tried;
      expect(await opened().store.read(listApps)).toEqual(["a"]);
    });

    test("is refused and rolled back if it awaits anything but its transaction, and later writes succeed", async () => {
      const strays: Error[] = [];
      const somethingElse = Promise.withResolvers<void>();
      const stray = opened().store.write("app", async (tx) => {
        await addApp("a")(tx);
        await somethingElse.promise;
        await addApp("b")(tx).catch((error: Error) => strays.push(error));
      });
      await expect(stray).rejects.toThrow("awaited something other than its transaction");
      await opened().store.write("app", addApp("c"));
      somethingElse.resolve();
      await settle();
      expect(strays[0]?.message).toContain("has ended");
      expect(await opened().store.read(listApps)).toEqual(["c"]);
    });

    test("calls back only after its commit, and never after a rollback", async () => {
      const called: string[] = [];
      await opened().store.write("app", async (tx) => {
        tx.afterCommit(() => called.push("kept"));
        await tx
          .attempt(async () => {
            tx.afterCommit(() => called.push("undone inside"));
            throw new Error("no");
          })
          .catch(() => undefined);
        expect(called).toEqual([]);
      });
      await opened()
        .store.write("app", async (tx) => {
          tx.afterCommit(() => called.push("undone"));
          throw new Error("no");
        })
        .catch(() => undefined);
      expect(called).toEqual(["kept"]);
    });
  });

  describe("a read", () => {
    test("never sees an open transaction", async () => {
      const seen: string[][] = [];
      const write = opened().store.write("app", async (tx) => {
        await addApp("a")(tx);
        for (let turn = 0; turn < 20; turn++) await tx.get("SELECT 1");
      });
      const read = new Promise<void>((resolve) => setImmediate(resolve)).then(async () => {
        seen.push(await opened().store.read(listApps));
      });
      await Promise.all([write, read]);
      expect([[], ["a"]]).toContainEqual(seen[0] as never);
      expect(await opened().store.read(listApps)).toEqual(["a"]);
    });

    test("cannot write", async () => {
      const sneaky = opened().store.read((tx) => tx.get("INSERT INTO app (id, name, created_at) VALUES ('a', 'a', 0) RETURNING id"));
      await expect(sneaky).rejects.toThrow();
      expect(await opened().store.read(listApps)).toEqual([]);
    });
  });

  test("a closed store refuses reads and writes", async () => {
    await opened().store.close();
    await expect(opened().store.write("app", addApp("a"))).rejects.toBeInstanceOf(StoreUnavailable);
    await expect(opened().store.read(listApps)).rejects.toBeInstanceOf(StoreUnavailable);
  });
}
