/** Helpers for tests of the runner: send events, store events directly, and read their state. */
import { insertEvent, keyOfEventId, makeReceiverPayload } from "../../src/engine/event/insert.ts";
import { relayOf } from "./event-sql.ts";
import { poll } from "./patience.ts";
import { pendingWorkError } from "./pending-work.ts";
import { signedCall } from "./relay-definition.ts";
import type { RunningService } from "./running-service.ts";

export const CALL = { type: "call_url", url: "https://example.com/notice" };
export const GRANT = { type: "grant_credits", amount: 5 };
export const WRITE = { type: "write_record", collection: "orders", data: { order: "{{mapped.event_id}}" } };

export interface EventView {
  id: string;
  state: string;
  reason: string | null;
  attempts: number;
  replays: number;
  nextAttemptAt: string | null;
  person: { id: string; email: string | null } | null;
  warnings: string[];
  createdAt: string;
  finishedAt: string | null;
  // biome-ignore lint/suspicious/noExplicitAny: results have a shape for each action
  runs: { attempt: number; startedAt: string; finishedAt: string; outcome: string; results: any[] }[];
}

/** Posts a signed event to a receiver and returns the event's id. */
export async function sendEvent(running: RunningService, id: string, more: object = {}, name = "orders"): Promise<string> {
  const answer = await running.hook(name, signedCall({ id, type: "order.paid", amount: 4200, ...more }));
  if (answer.status !== 200) throw new Error(`The receiver refused: ${JSON.stringify(answer.body)}`);
  return answer.body.eventId;
}

/** Stores receiver events as the receiver does, without its caps, and wakes the runner. */
export async function putEvents(
  running: RunningService,
  ids: readonly string[],
  options: { relay?: string; email?: string; nowMs?: number } = {},
): Promise<string[]> {
  const relayName = options.relay ?? "orders";
  const nowMs = options.nowMs ?? running.clock.now();
  const [relay] = await running.rows<{ id: string; environmentId: number }>(
    "SELECT id, environment_id AS environmentId FROM relay WHERE name = ?1",
    relayName,
  );
  if (relay === undefined) throw new Error(`There is no relay ${relayName}.`);
  const stored = await running.service.store.write("app", async (tx) => {
    const made: string[] = [];
    for (const id of ids) {
      const event = await insertEvent(tx, {
        ...(await relayOf(tx, relay.environmentId, relay.id, relayName)),
        trigger: "receiver",
        payload: makeReceiverPayload(JSON.stringify({ id, email: options.email }), {
          event_id: id,
          ...(options.email === undefined ? {} : { person_email: options.email }),
        }),
        unsigned: false,
        dedupe: keyOfEventId(relay.environmentId, relayName, id),
        nowMs,
      });
      made.push(event.id);
    }
    return made;
  });
  running.service.runner.wake(relay.id);
  return stored;
}

export async function showEvent(running: RunningService, id: string): Promise<EventView> {
  const answer = await running.api("GET", `/events/${id}`);
  if (answer.status !== 200) throw new Error(`No event ${id}: ${JSON.stringify(answer.body)}`);
  return answer.body.event;
}

export function replay(running: RunningService, id: string) {
  return running.api("POST", `/events/${id}/replay`);
}

/** Replaces a relay's definition. */
export async function editRelay(running: RunningService, definition: Record<string, unknown>): Promise<void> {
  const name = definition.name as string;
  const { relay } = (await running.api("GET", `/relays/${name}`)).body;
  const saved = await running.api("PUT", `/relays/${name}`, { definition, version: relay.version });
  if (saved.status !== 200) throw new Error(`The edit was refused: ${JSON.stringify(saved.body)}`);
}

/** Lets the service work until `done`, without moving the clock. Poll less often while another process does the work. */
export async function until(what: string, done: () => boolean | Promise<boolean>, everyMs = 1): Promise<void> {
  if (!(await poll(done, Boolean, everyMs))) throw await pendingWorkError(`It never came about: ${what}.`);
}

export function alertsOf(running: RunningService) {
  return running.rows<{ code: string; target: string; message: string; count: number }>("SELECT code, target, message, count FROM alert ORDER BY id");
}

/** Prevents events from running in the transaction that stores them. Each event goes to the ready buffer. */
export function runNothingInline({ service: { runner } }: RunningService): void {
  runner.startInline = () => ({ run: async () => null, finalize: async () => undefined });
}
