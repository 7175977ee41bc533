/** Time limits of waits in tests. A machine can be slow or busy, so no test asserts a duration and no wait ends early. */

/** The time after which a wait fails. */
export const PATIENCE_MS = 120_000;

/** The time after which a test or a hook fails. A wait in it fails earlier, and its message says what it waited for. */
export const TEST_MS = 5 * PATIENCE_MS;

/** Waits until nothing is left. Stops once the count has not decreased for PATIENCE_MS. Resolves with the last count. */
export async function untilNoneLeft(countLeft: () => number | Promise<number>, everyMs = 50): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let lessAtMs = performance.now(); ; await Bun.sleep(everyMs)) {
    const left = await countLeft();
    if (left < least) lessAtMs = performance.now();
    least = Math.min(least, left);
    if (left === 0 || performance.now() - lessAtMs > PATIENCE_MS) return left;
  }
}

/** Asks until `isSo` accepts the answer, or the wait ends. Resolves with the last answer in both cases. */
export async function poll<Value>(ask: () => Value | Promise<Value>, isSo: (value: Value) => boolean, everyMs = 20): Promise<Value> {
  const endMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const value = await ask();
    if (isSo(value) || performance.now() > endMs) return value;
    await Bun.sleep(everyMs);
  }
}
