/**
 * Retries events now, for an operator who fixed the cause of their failure: one event, or all events of a relay that wait for their retry. Each is
 * due at once, and its attempt counts. Final events are replayed instead. Events of a held environment or a paused relay stay.
 */
import { type Static, Type } from "typebox";
import { toIso, toIsoOrNull } from "../../base/clock.ts";
import { Refusal } from "../../base/refusal.ts";
import { textOrNull, timeOrNull } from "../../base/schema.ts";
import { writeAudits } from "../../platform/audit/audit.ts";
import { requireRelay } from "../../rules/relay/relay.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import {
  EVENT,
  type Expunged,
  eventIdOf,
  findEventSeq,
  RELAY_ID,
  RELAY_NAME,
  rejectUnknownEvent,
} from "./event.ts";

/** The most queued events of the environment that one step reads. */
const STEP = 300;
/** The most waiting events of the whole server that a count reads. */
const MAX_COUNTED = 5_000;

const RETRIED = EVENT.pick("seq", "formerId", "createdAt", "state", "nextAttemptAt");
type Retried = RowOf<typeof RETRIED>;

interface RetryRequest {
  environmentId: number;
  /** The actor that asks, in the audit's words. */
  actor: string;
  nowMs: number;
}

/** The number of a relay's events that wait for their retry. */
export const retriesView = Type.Object({
  waiting: Type.Integer(),
  /** The time when the first of them retries by itself. */
  nextAt: timeOrNull,
});
export type RetriesView = Static<typeof retriesView>;

/** The result of retrying a relay's events. */
export const triedView = Type.Object({
  tried: Type.Integer(),
  /** The reason why the rest still waits; null if all were retried. */
  stopped: textOrNull,
});
export type TriedEvents = Static<typeof triedView>;

/** Makes the event due now. Refuses with not_found, not_waiting (it waits for no retry, or its relay may not run) and payload_expunged. */
export async function retryEventNow(tx: Writer, request: RetryRequest & { id: string }): Promise<void> {
  const { environmentId, id } = request;
  const seq = await findEventSeq(tx, environmentId, id);
  const stored = await tx.get<{ relayId: string; relayName: string; expunged: Expunged | null }>(
    `SELECT ${RETRIED.columns}, ${RELAY_ID}, ${RELAY_NAME}, payload ->> '$.expunged' AS expunged FROM event WHERE seq = ?1`,
    seq,
  );
  if (stored === null) throw rejectUnknownEvent(id);
  const event = RETRIED.read(stored);
  const stop = whyNotWaiting(event);
  if (stop !== null) throw new Refusal("not_waiting", stop);
  if (stored.expunged !== null) {
    throw new Refusal(
      "payload_expunged",
      "The event's payload no longer exists, so the event cannot run: do its work by hand.",
    );
  }
  await requireRunning(tx, environmentId, stored.relayId, stored.relayName);
  await makeDue(tx, request, stored.relayId, [event]);
}

/**
 * Makes all events of a relay that wait for their retry due now, each once, in steps. Refuses with not_found, and with not_waiting if the relay may
 * not run. If the relay is paused or held after the first step, the rest stays and `stopped` says why.
 */
export async function retryRelayNow(
  store: Store,
  request: RetryRequest & { name: string },
): Promise<TriedEvents> {
  const { environmentId, name } = request;
  const { id: relayId } = await store.read(async (tx) => {
    const relay = await requireRelay(tx, environmentId, name);
    await requireRunning(tx, environmentId, relay.id, name);
    return relay;
  });
  let tried = 0;
  for (let after: number | null = 0; after !== null; ) {
    const from: number = after;
    const span = await store.read((tx) => scan(tx, environmentId, relayId, from));
    if (span.waiting > 0) {
      const step = store.write(
        "dashboard",
        async (tx) => {
          await requireRunning(tx, environmentId, relayId, name);
          const events = await tx.all<object>(WAITING, {
            environmentId,
            relayId,
            after: from,
            until: span.until,
          });
          return await makeDue(
            tx,
            request,
            relayId,
            events.map((stored) => RETRIED.read(stored)),
          );
        },
        environmentId,
      );
      const done = await step.catch((error: unknown) => {
        if (tried > 0 && error instanceof Refusal) return error.message;
        throw error;
      });
      if (typeof done === "string") return { tried, stopped: done };
      tried += done;
    }
    after = span.looked < STEP ? null : span.until;
  }
  return { tried, stopped: null };
}

/** Counts the relay's retries among the next 5,000 of the server. Refuses with not_found. */
export async function countRetries(tx: Reader, environmentId: number, name: string): Promise<RetriesView> {
  const { id: relayId } = await requireRelay(tx, environmentId, name);
  const row = await tx.get<{ waiting: number; atMs: number | null }>(COUNT, { relayId });
  return { waiting: row?.waiting ?? 0, nextAt: toIsoOrNull(row?.atMs ?? null) };
}

const OF_RELAY = "relay_key = (SELECT key FROM relay_key WHERE relay_id = $relayId)";

const COUNT = `SELECT count(*) AS waiting, min(at_ms) AS atMs FROM (
    SELECT relay_key, next_attempt_at AS at_ms FROM event INDEXED BY event_retry
    WHERE state = 'queued' AND next_attempt_at IS NOT NULL ORDER BY next_attempt_at LIMIT ${MAX_COUNTED}) AS waits
  WHERE ${OF_RELAY}`;

/** Walks by number, so that an event that fails again in the meantime is not retried twice. */
const SCAN = `SELECT count(*) AS looked, max(seq) AS until,
    sum(CASE WHEN at_ms IS NOT NULL AND ${OF_RELAY} THEN 1 ELSE 0 END) AS waiting FROM (
    SELECT seq, relay_key, next_attempt_at AS at_ms FROM event INDEXED BY event_unfinished
    WHERE environment_id = $environmentId AND state IN ('queued', 'running') AND state = 'queued' AND seq > $after ORDER BY seq LIMIT ${STEP}) AS looked_at`;

const WAITING = `SELECT ${RETRIED.columns} FROM event INDEXED BY event_unfinished
  WHERE environment_id = $environmentId AND state IN ('queued', 'running') AND state = 'queued' AND seq > $after AND seq <= $until
    AND next_attempt_at IS NOT NULL AND ${OF_RELAY} AND payload ->> '$.expunged' IS NULL ORDER BY seq`;

async function scan(
  tx: Reader,
  environmentId: number,
  relayId: string,
  after: number,
): Promise<{ looked: number; until: number; waiting: number }> {
  const row = await tx.get<{ looked: number; until: number | null; waiting: number | null }>(SCAN, {
    environmentId,
    relayId,
    after,
  });
  return { looked: row?.looked ?? 0, until: row?.until ?? after, waiting: row?.waiting ?? 0 };
}

async function makeDue(
  tx: Writer,
  { environmentId, actor, nowMs }: RetryRequest,
  relayId: string,
  events: readonly Retried[],
): Promise<number> {
  if (events.length === 0) return 0;
  await tx.postEach(
    "UPDATE event SET next_attempt_at = NULL WHERE seq = $seq",
    events.map(({ seq }) => ({ seq })),
  );
  const audits = events.map((event) => ({
    environmentId,
    nowMs,
    by: actor,
    action: "event.tried_now" as const,
    target: `event:${eventIdOf(event)}`,
    before: { nextAttemptAt: toIsoOrNull(event.nextAttemptAt) },
    after: { nextAttemptAt: null },
  }));
  await writeAudits(tx, audits);
  tx.notify("event", relayId);
  tx.notify("event_moved", environmentId);
  return events.length;
}

/** Returns why the event cannot be retried now; null if it waits for its retry. */
function whyNotWaiting({ state, nextAttemptAt }: Retried): string | null {
  if (state === "running")
    return "The event is running now, so there is nothing to wait for: see how it ends.";
  if (state !== "queued") {
    return `The event is ${state} and waits for no retry: replay it instead (relay events replay).`;
  }
  return nextAttemptAt === null
    ? "The event waits for no retry: it is due now and runs when its turn comes."
    : null;
}

async function requireRunning(
  tx: Reader,
  environmentId: number,
  relayId: string,
  name: string,
): Promise<void> {
  const environment = await tx.get<{ heldAt: number | null }>(
    "SELECT held_at AS heldAt FROM environment WHERE id = ?1",
    environmentId,
  );
  if (environment !== null && environment.heldAt !== null) {
    throw new Refusal(
      "not_waiting",
      `The environment is on hold since ${toIso(environment.heldAt)}, so nothing runs now: release the hold first (relay settings set held off).`,
    );
  }
  const relay = await tx.get<{ state: string }>("SELECT state FROM relay WHERE id = ?1", relayId);
  if (relay?.state === "paused") {
    throw new Refusal(
      "not_waiting",
      `The relay ${name} is paused, so nothing of it runs now: resume it first (relay relays resume ${name}).`,
    );
  }
}
