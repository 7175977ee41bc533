/** A transaction of which nothing stays: what a work would do, by the code that does it. */
import type { Origin, Store, Writer } from "./port.ts";

/**
 * What `work` answers; all that it wrote is undone. It is undone by throwing out of the transaction, which runs it once where nobody else's
 * work stands beside it; an attempt inside would run it twice.
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
