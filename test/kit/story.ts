/** Tests that are the steps of one story, each on what the one before left: after one that failed the others say so at once, instead of waiting in vain. */
import { test } from "bun:test";

/** A `test` for one file. */
export function tellStory(): (name: string, step: () => unknown, timeoutMs?: number) => void {
  let broken: string | null = null;
  return (name, step, timeoutMs) =>
    test(
      name,
      async () => {
        if (broken !== null) throw new Error(`Not tried, for an earlier step failed: ${broken}`);
        // Until it has ended: a step that is cut off by its time has not.
        broken = name;
        await step();
        broken = null;
      },
      timeoutMs,
    );
}
