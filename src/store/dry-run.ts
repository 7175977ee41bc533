/** Runs writes that are always rolled back, so that a preview uses the code that it previews. */
import type { Origin, Store, Writer, WriteScope } from "./port.ts";

/**
 * Returns the result of `work` and undoes its writes. `scope` is that of a write. It throws out of the transaction, because an attempt inside that fails would make the group
 * run `work` twice.
 */
export async function dryRun<Result>(
  store: Pick<Store, "write">,
  origin: Origin,
  work: (tx: Writer) => Promise<Result>,
  scope?: WriteScope,
): Promise<Result> {
  const undone = async (tx: Writer): Promise<never> => {
    throw new Undone(await work(tx));
  };
  return readUndone<Result>(store.write<never>(origin, undone, scope));
}

/** Returns the result of `work` and undoes its writes in an open transaction. Throws what `work` throws. */
export async function dryRunWithin<Result>(tx: Writer, work: () => Promise<Result>): Promise<Result> {
  return readUndone<Result>(
    tx.attempt<never>(async () => {
      throw new Undone(await work());
    }),
  );
}

async function readUndone<Result>(run: Promise<never>): Promise<Result> {
  try {
    return await run;
  } catch (error) {
    if (error instanceof Undone) return error.result as Result;
    throw error;
  }
}

class Undone extends Error {
  readonly result: unknown;

  constructor(result: unknown) {
    super("The writes were rolled back.");
    this.result = result;
  }
}
