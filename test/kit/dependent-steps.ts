/** Tests that are steps of one scenario, each on the state that the one before left. After a failed step the others fail at once. */
import { test } from "bun:test";

/** Makes a `test` function for the steps of one file. */
export function dependentSteps(): (name: string, step: () => unknown, timeoutMs?: number) => void {
  let broken: string | null = null;
  return (name, step, timeoutMs) =>
    test(
      name,
      async () => {
        if (broken !== null) throw new Error(`Not tried, for an earlier step failed: ${broken}`);
        // A step that its time limit cuts off never reaches the reset below.
        broken = name;
        await step();
        broken = null;
      },
      timeoutMs,
    );
}
