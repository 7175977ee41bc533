/**
 * Marks the rejected requests whose events arrived later, because the sender repeated them or a person imported them, and raises a problem for each
 * relay of which events are missing.
 */
import { clearProblem, listOpenProblems, raiseProblem } from "../../platform/audit/problem.ts";
import {
  listIncompleteRelays,
  NO_ID,
  REQUESTS_REJECTED,
  showRejected,
} from "../../rules/relay/rejected-request.ts";
import { relayTarget } from "../../rules/relay/relay.ts";
import { eachEnvironment } from "../../store/each-environment.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { FencedStore, Reader, Writer } from "../../store/port.ts";
import { type DedupeKey, findDuplicate, keyOfEventId } from "./insert.ts";

/** The ids that one transaction compares with the events. */
const IDS_AT_ONCE = 100;

type RejectedStore = Pick<FencedStore, "read" | "write">;

interface Missing {
  relayId: string;
  eventId: string;
  environmentId: number;
  relayName: string;
}
const MISSING = `SELECT rejected_delivery.relay_id AS relayId, rejected_delivery.event_id AS eventId, relay.environment_id AS environmentId, relay.name AS relayName
  FROM rejected_delivery JOIN relay ON relay.id = rejected_delivery.relay_id
  WHERE rejected_delivery.arrived_at IS NULL AND rejected_delivery.event_id <> '${NO_ID}'`;

/** Brings the ledger and its problems up to date. Opens no transaction if nothing is missing. */
export async function updateRejected(store: RejectedStore, nowMs: number): Promise<void> {
  await markArrivals(store, nowMs);
  await updateProblems(store, nowMs);
}

/** Marks the ids of which an event exists now, and deletes the rows of relays of which nothing is missing. */
async function markArrivals(store: RejectedStore, nowMs: number): Promise<void> {
  const missing = await store.read((tx) => tx.all<Missing>(MISSING));
  for (let at = 0; at < missing.length; at += IDS_AT_ONCE) {
    const some = missing.slice(at, at + IDS_AT_ONCE);
    await eachEnvironment(some, (environmentId, own) =>
      store.write("app", (tx) => markSome(tx, own, nowMs), environmentId),
    );
    await yieldToEventLoop();
  }
}

async function markSome(tx: Writer, some: readonly Missing[], nowMs: number): Promise<void> {
  const takers = await listTakers(tx, some);
  const keyed = some.map((one) => ({
    ...one,
    keys: (takers.get(one.relayId) ?? []).map((name) => keyOfEventId(one.environmentId, name, one.eventId)),
  }));
  await tx.keys.prefetch?.(keyed.flatMap(({ keys }) => keys.map(({ hash }) => hash)));
  const arrived = new Set<string>();
  for (const { keys, relayId, eventId } of keyed) {
    const event = await findFirst(tx, keys);
    if (event === null) continue;
    arrived.add(relayId);
    await tx.run(
      "UPDATE rejected_delivery SET arrived_at = $nowMs, arrived_event = $event WHERE relay_id = $relayId AND event_id = $eventId",
      { nowMs, event: event.id, relayId, eventId },
    );
  }
  for (const relayId of arrived) await deleteComplete(tx, relayId);
}

/** Lists the names under which an event of each relay can arrive: its own and those of the relays that follow it. */
async function listTakers(tx: Reader, some: readonly Missing[]): Promise<Map<string, string[]>> {
  const takers = new Map<string, string[]>();
  for (const { relayId, relayName, environmentId } of some) {
    if (takers.has(relayId)) continue;
    const sql = "SELECT name FROM relay WHERE environment_id = ?1 AND source_name = ?2 ORDER BY name";
    const followers = await tx.all<{ name: string }>(sql, environmentId, relayName);
    takers.set(relayId, [relayName, ...followers.map(({ name }) => name)]);
  }
  return takers;
}

async function findFirst(tx: Writer, keys: readonly DedupeKey[]): Promise<{ id: string } | null> {
  for (const key of keys) {
    const event = await findDuplicate(tx, key);
    if (event !== null) return event;
  }
  return null;
}

async function deleteComplete(tx: Writer, relayId: string): Promise<void> {
  await tx.run(
    `DELETE FROM rejected_delivery WHERE relay_id = $relayId
      AND NOT EXISTS (SELECT 1 FROM rejected_delivery AS open WHERE open.relay_id = $relayId AND open.arrived_at IS NULL)`,
    { relayId },
  );
}

/** Raises the problem of each relay of which events are missing, and clears the others. */
async function updateProblems(store: RejectedStore, nowMs: number): Promise<void> {
  const found = await store.read(listChanges);
  if (found.length === 0) return;
  // The messages are made before the transaction, because the first one loads the known senders.
  const messages = new Map<string, string>();
  for (const { relay } of found)
    if (relay !== null)
      messages.set(relay.id, (await store.read((tx) => showRejected(tx, relay, nowMs))).message);
  await eachEnvironment(found, (environmentId) =>
    store.write(
      "app",
      async (tx) => {
        for (const { relay, target, ...of } of await listChanges(tx)) {
          if (of.environmentId !== environmentId) continue;
          const key = { environmentId, code: REQUESTS_REJECTED, target, nowMs };
          const message = relay === null ? undefined : messages.get(relay.id);
          if (relay === null) await clearProblem(tx, key);
          else if (message !== undefined) await raiseProblem(tx, { ...key, message });
        }
      },
      environmentId,
    ),
  );
}

interface ProblemChange {
  environmentId: number;
  target: string;
  /** The relay of which events are missing; null where the problem is over. */
  relay: { id: string; name: string } | null;
}

async function listChanges(tx: Reader): Promise<ProblemChange[]> {
  const changes = new Map<string, ProblemChange>();
  for (const { environmentId, ...relay } of await listIncompleteRelays(tx)) {
    const target = relayTarget(relay.name);
    changes.set(`${environmentId} ${target}`, { environmentId, target, relay });
  }
  for (const { environmentId, target } of await listOpenProblems(tx, [REQUESTS_REJECTED])) {
    const key = `${environmentId} ${target}`;
    if (!changes.delete(key)) changes.set(key, { environmentId, target, relay: null });
  }
  return [...changes.values()];
}
