/** Dry runs: a plan that does the work in the open transaction and undoes it, so that the plan shows what the real run does. */
import type { Writer } from "./port.ts";

/** Carries the result out of the attempt that is undone. */
class Rehearsed<Result> extends Error {
  readonly result: Result;

  constructor(result: Result) {
    super("A rehearsal is undone.");
    this.result = result;
  }
}

/** Runs `work`, undoes its writes and returns its result. Throws what `work` throws. */
export async function rehearse<Result>(tx: Writer, work: () => Promise<Result>): Promise<Result> {
  try {
    return await tx.attempt(async () => {
      throw new Rehearsed(await work());
    });
  } catch (error) {
    if (error instanceof Rehearsed) return error.result as Result;
    throw error;
  }
}
