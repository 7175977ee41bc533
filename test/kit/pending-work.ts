/** Describes the unfinished work of the services in this process, for the error of a test that waited in vain. */
import type { Service } from "../../src/service.ts";
import { listSilences } from "./chosen-store.ts";
import { PATIENCE_MS } from "./patience.ts";
import type { VirtualClock } from "./virtual-clock.ts";

interface Watched {
  readonly service: Service;
  clock: VirtualClock;
  logged: readonly string[];
}

const LAST_LINES = 6;

const services = new Set<Watched>();

/** Adds a service to those that an error describes. Returns the function that removes it. */
export function trackPendingWork(watched: Watched): () => void {
  services.add(watched);
  return () => void services.delete(watched);
}

/** Makes an error with the sentence and the unfinished work of each service. */
export async function pendingWorkError(sentence: string): Promise<Error> {
  const described = await Promise.all([...services].map(describe));
  return new Error([sentence, ...described].join("\n"));
}

async function describe({ service, clock, logged }: Watched): Promise<string> {
  const { runner, store } = service;
  const events = await Promise.race([listEvents(service, clock.now()), Bun.sleep(PATIENCE_MS).then(() => ["the store does not answer"])]);
  const lines = [
    `service ${service.url}; events: ${events.join(", ") || "none"}`,
    `runner: ${runner.alive ? "reaches its store" : "does not reach its store, and looks again with the clock's next timers"}, ${runner.runningCount} running`,
    `store: ${store.trouble ?? "no trouble"}; silent: ${listSilences().join(", ") || "nobody"}`,
    `timers of the clock, in ms: ${clock.pending.join(", ") || "none"}`,
    ...logged.slice(-LAST_LINES).map((line) => `log: ${line}`),
  ];
  return lines.map((line) => `  ${line}`).join("\n");
}

async function listEvents({ store }: Service, nowMs: number): Promise<string[]> {
  const sql = `SELECT name, relay_key.key AS "key", event.state AS "state", reason, next_attempt_at AS "nextMs", count(*) AS "count", min(seq) AS "first"
    FROM event JOIN relay_key ON relay_key.key = event.relay_key LEFT JOIN relay ON relay.id = relay_id
    WHERE event.state IN ('queued', 'running') GROUP BY name, relay_key.key, event.state, reason, next_attempt_at ORDER BY min(seq) LIMIT 20`;
  type Open = { name: string | null; key: number; state: string; reason: string | null; nextMs: number | null; count: number; first: number };
  try {
    const rows = await store.read((tx) => tx.all<Open>(sql));
    return rows.map(({ name, key, state, reason, nextMs, count, first }) => {
      const due = nextMs === null ? "" : ` due in ${nextMs - nowMs} ms`;
      return `${count} ${state}${due} of ${name ?? `relay ${key}`} from ${first}${reason === null ? "" : ` (${reason})`}`;
    });
  } catch (error) {
    return [`they cannot be read: ${(error as Error).message}`];
  }
}
