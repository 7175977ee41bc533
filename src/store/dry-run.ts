/** Runs a write in a transaction that is always rolled back, so that a preview uses the code that it previews. */
import type { Origin, Store, Writer } from "./port.ts";

/**
 * Returns the result of `work` and undoes its writes. It throws out of the transaction, because an attempt inside that fails would make the group
 * run `work` twice.
 */
export async function dryRun<Result>(
  store: Pick<Store, "write">,
  origin: Origin,
  work: (tx: Writer) => Promise<Result>,
): Promise<Result> {
  try {
    return await store.write<never>(origin, async (tx) => {
      throw new Undone(await work(tx));
    });
  } catch (error) {
    if (error instanceof Undone) return error.result as Result;
    throw error;
  }
}

class Undone extends Error {
  readonly result: unknown;

  constructor(result: unknown) {
    super("What was written is undone.");
    this.result = result;
  }
}
