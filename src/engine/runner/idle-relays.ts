/**
 * Asks the database which relays may run now, and which of them have no due event. In a cluster the memory of one node cannot know either: other
 * nodes store events and change relays. The answer holds for the transaction that asks, because it holds the writer lock.
 */

import type { LiveRelay, LiveRelays, Snapshot } from "../../rules/relay/live-relay.ts";
import type { LeaseHolder } from "../../store/lease/lease-holder.ts";
import type { PrefetchReader, Reader } from "../../store/port.ts";
import type { EventDraft } from "../event/insert.ts";

/** An event that a transaction is about to store. */
export type IncomingEvent = Pick<EventDraft, "relayId" | "dispatch">;

interface PrefetchDeps {
  leases: LeaseHolder;
  isOpen: (environmentId: number) => boolean;
  relays: LiveRelays;
}

/**
 * Prefetches what inline runs of these events need: the idle ones of their relays, the targets of their actions, and whether this node holds
 * the environments of relays that send.
 */
export function prefetch(
  reader: PrefetchReader,
  events: readonly IncomingEvent[],
  { leases, isOpen, relays: { cached: relays } }: PrefetchDeps,
): readonly Promise<unknown>[] {
  return [
    listIdle(reader, events, relays),
    ...listSending(events, relays)
      .filter(isOpen)
      .map((environmentId) => leases.storeOf(environmentId).fenceHolds(reader)),
    ...listRunnable(events, relays).flatMap(({ actions, environmentId }) =>
      actions.flatMap((action) => action.prefetch(reader, environmentId)),
    ),
  ];
}

/** Lists the relays of these events whose events may run inline, in a fixed order. */
function listRunnable(events: readonly IncomingEvent[], relays: Snapshot | null): LiveRelay[] {
  return [...new Set(events.map(({ relayId }) => relayId))]
    .flatMap((relayId) => relays?.findRelay(relayId) ?? [])
    .filter(mayRunInline)
    .sort((one, other) => one.key - other.key);
}

/** Lists the environments of relays that send. Their events run on the node that holds the lease. */
function listSending(events: readonly IncomingEvent[], relays: Snapshot | null): number[] {
  const found = new Set(events.map(({ relayId }) => relays?.findRelay(relayId) ?? null));
  const environments = new Set<number>();
  for (const relay of found)
    if (relay?.sends === true && !relay.waiting && !relay.releasing) environments.add(relay.environmentId);
  return [...environments].sort((one, other) => one - other);
}

/** Returns whether the relay runs events, in no order but its own, and sends nothing. */
export function mayRunInline({ waiting, releasing, sends }: LiveRelay): boolean {
  return !waiting && !releasing && !sends;
}

/** The most relays that are all asked for at once. Every call then reads the same, and one answer serves all. */
const MAX_ALL = 32;
const allOf = new WeakMap<Snapshot, readonly LiveRelay[] | null>();

function listAll(relays: Snapshot): readonly LiveRelay[] | null {
  let all = allOf.get(relays);
  if (all === undefined) {
    const runnable = relays.relays.filter(mayRunInline);
    all = runnable.length > MAX_ALL ? null : runnable.sort((one, other) => one.key - other.key);
    allOf.set(relays, all);
  }
  return all;
}

/** Relays in one statement. */
const PAGE_SIZE = 16;
const CURRENT = `SELECT relay_id AS "id", relay.version AS version
  FROM relay_key JOIN relay ON relay.id = relay_id JOIN environment ON environment.id = relay.environment_id
  WHERE relay_key.key IN (${Array.from({ length: PAGE_SIZE }, (_, at) => `?${at + 1}`).join(", ")})
    AND relay.state = 'active' AND environment.held_at IS NULL
    AND environment.released_through IS NULL AND environment.deleted_at IS NULL`;
const IDLE = `${CURRENT}
    AND (SELECT seq FROM event WHERE event.relay_key = relay_key.key AND event.state = 'queued' AND next_attempt_at IS NULL
      ORDER BY seq LIMIT 1) IS NULL`;

/** Lists the versions of these events' relays that run now and have no due event, by relay id. */
export function listIdle(
  tx: Reader,
  events: readonly IncomingEvent[],
  relays: Snapshot | null,
): Promise<Map<string, number>> {
  const runnable = listRunnable(events, relays);
  const all = relays === null || runnable.length === 0 ? null : listAll(relays);
  return listVersions(tx, IDLE, all ?? runnable);
}

/**
 * Returns the relays that run now and have the version that this process knows. If another process has just paused or changed one of them, no event
 * of it may start, and the relays are read again.
 */
export async function filterCurrent(
  tx: Reader,
  relays: readonly LiveRelay[],
  known: Pick<LiveRelays, "invalidate">,
): Promise<readonly LiveRelay[]> {
  const versions = await listVersions(tx, CURRENT, relays);
  const current = relays.filter(({ id, version }) => versions.get(id) === version);
  if (current.length < relays.length) known.invalidate();
  return current;
}

async function listVersions(
  tx: Reader,
  sql: string,
  relays: readonly LiveRelay[],
): Promise<Map<string, number>> {
  const keys = relays.map(({ key }) => key);
  const pages: Promise<{ id: string; version: number }[]>[] = [];
  for (let at = 0; at < keys.length; at += PAGE_SIZE) {
    const some = keys.slice(at, at + PAGE_SIZE);
    // The statement is prepared once, so the last page is filled up with its own keys.
    const filled = Array.from({ length: PAGE_SIZE }, (_, index) => some[index % some.length] as number);
    pages.push(tx.all(sql, ...filled));
  }
  return new Map((await Promise.all(pages)).flat().map(({ id, version }) => [id, version]));
}
