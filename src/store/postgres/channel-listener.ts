/** Listens to a PostgreSQL channel, and reconnects after the connection is lost. */
import { SQL } from "bun";
import { systemClock, waitAtMost } from "../../base/clock.ts";
import type { DatabaseUrl } from "../../base/database-url.ts";
import { StoreUnavailable } from "../port.ts";
import { sayWhere } from "./connection-advice.ts";
import { CONNECT_WITHIN_S, connectionOptions } from "./connection-option.ts";
import { ConnectionLost, classifyError } from "./error.ts";

const HEAR_WITHIN_MS = 10_000;

interface Hearing {
  onNotice(notice: string): void;
  /** Runs each time that listening begins, also after a reconnect. */
  onBegin(): void;
}

/** Starts to listen. Returns a function that stops it. Throws StoreUnavailable, and then leaves no connection open. */
export async function hearChannel(
  place: DatabaseUrl,
  channel: string,
  { onNotice, onBegin }: Hearing,
): Promise<() => Promise<void>> {
  const pool = new SQL({
    ...connectionOptions(place),
    connectionTimeout: CONNECT_WITHIN_S,
    connection: { application_name: "relay listener" },
  });
  const close = (): Promise<void> => pool.close({ timeout: 0 }).catch(() => undefined);
  try {
    const hearing = pool.listen(channel, onNotice, onBegin);
    let isHeard = false;
    hearing.then(
      () => {
        isHeard = true;
      },
      () => undefined,
    );
    await waitAtMost(systemClock, HEAR_WITHIN_MS, hearing);
    if (!isHeard) throw new ConnectionLost(`The database gave no answer for ${HEAR_WITHIN_MS / 1_000} s.`);
    const heard = await hearing;
    return async () => {
      await heard.unlisten().catch(() => undefined);
      await close();
    };
  } catch (error) {
    void close();
    const message = await sayWhere(place, classifyError(error) as Error);
    throw new StoreUnavailable(`The database cannot be listened to: ${message}`, { cause: error });
  }
}
