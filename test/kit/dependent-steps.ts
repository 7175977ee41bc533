/** Tests that are steps of one scenario. Each step continues from the state of the one before. After a failed step the others fail at once. */
import { test } from "bun:test";

/** Returns a `test` function for the steps of one file. */
export function dependentSteps(): (name: string, step: () => unknown, timeoutMs?: number) => void {
  let broken: string | null = null;
  return (name, step, timeoutMs) =>
    test(
      name,
      async () => {
        if (broken !== null) throw new Error(`Not tried, for an earlier step failed: ${broken}`);
        // A step that exceeds its time limit never reaches the reset below.
        broken = name;
        await step();
        broken = null;
      },
      timeoutMs,
    );
}
