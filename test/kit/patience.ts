/** How long tests wait for what has to come about. A machine may be slow or busy: time is no part of what a test asserts, and no wait ends early for it. */

/** A wait gives up after this: what has not come by then does not come. */
export const PATIENCE_MS = 120_000;

/** A test or a hook ends after this, so that a wait in it runs out before and says what it waited for. */
export const TEST_MS = 5 * PATIENCE_MS;

/** Waits until nothing is left; gives up where it has not become less for so long. Resolves with what is left. */
export async function untilNoneLeft(countLeft: () => number | Promise<number>, everyMs = 50): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let lessAtMs = performance.now(); ; await Bun.sleep(everyMs)) {
    const left = await countLeft();
    if (left < least) lessAtMs = performance.now();
    least = Math.min(least, left);
    if (left === 0 || performance.now() - lessAtMs > PATIENCE_MS) return left;
  }
}

/** Asks again and again until the answer is so; resolves with the last answer, which is the wrong one where it never came about. */
export async function poll<Value>(ask: () => Value | Promise<Value>, isSo: (value: Value) => boolean, everyMs = 20): Promise<Value> {
  const endMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const value = await ask();
    if (isSo(value) || performance.now() > endMs) return value;
    await Bun.sleep(everyMs);
  }
}
