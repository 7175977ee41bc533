/** The graceful end of the HTTP server. */
import type { Clock } from "../ground/clock.ts";

const STOP_WAIT_MS = 10_000;

/** Takes no new connection and answers what was accepted; what is still open after a while is cut off. */
export async function stopListening(
  server: { stop(now: boolean): Promise<void> } | null,
  clock: Clock,
): Promise<void> {
  let cancel = (): void => undefined;
  const waited = new Promise<void>((resolve) => {
    cancel = clock.after(STOP_WAIT_MS, resolve);
  });
  await Promise.race([server?.stop(false), waited]);
  cancel();
  await server?.stop(true);
}
