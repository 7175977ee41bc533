/**
 * Where several nodes write, no memory of one of them says what waits, nor which relays run: the store does, under the lock of all writers. Whose
 * next event is the oldest may run in the transaction that stores it, on whichever node that is.
 */

import type { LiveRelay, LiveRelays, Snapshot } from "../../rules/relay/live-relay.ts";
import type { Holder } from "../../store/lease/lease-holder.ts";
import type { Ahead, Reader } from "../../store/port.ts";
import type { EventDraft } from "../event/insert.ts";

/** An event that a transaction is about to store. */
export type IncomingEvent = Pick<EventDraft, "relayId" | "dispatch">;

interface AheadDeps {
  holding: Holder;
  isOpen: (environmentId: number) => boolean;
  relays: LiveRelays;
}

/**
 * Asks for what running them reads for sure: which of their relays are clear, and what actions act on; of those that send, whether they are
 * this node's to run.
 */
export function lookAhead(
  ahead: Ahead,
  events: readonly IncomingEvent[],
  { holding, isOpen, relays: { cached: relays } }: AheadDeps,
): readonly Promise<unknown>[] {
  return [
    listIdle(ahead, events, relays),
    ...listSending(events, relays)
      .filter(isOpen)
      .map((environmentId) => holding.storeOf(environmentId).letsPass(ahead)),
    ...listRunnable(events, relays).flatMap(({ actions, environmentId }) =>
      actions.flatMap((action) => action.prefetch(ahead, environmentId)),
    ),
  ];
}

/** The relays of these events that may run where they are stored, in an order that is always the same. */
function listRunnable(events: readonly IncomingEvent[], relays: Snapshot | null): LiveRelay[] {
  return [...new Set(events.map(({ relayId }) => relayId))]
    .flatMap((relayId) => relays?.findRelay(relayId) ?? [])
    .filter(runsHere)
    .sort((one, other) => one.key - other.key);
}

/** The environments of those that send, which run where their lease is. */
function listSending(events: readonly IncomingEvent[], relays: Snapshot | null): number[] {
  const found = new Set(events.map(({ relayId }) => relays?.findRelay(relayId) ?? null));
  const environments = new Set<number>();
  for (const relay of found)
    if (relay?.sends === true && !relay.waiting && !relay.releasing) environments.add(relay.environmentId);
  return [...environments].sort((one, other) => one - other);
}

function runsHere({ waiting, releasing, sends }: LiveRelay): boolean {
  return !waiting && !releasing && !sends;
}

/** Where there are few, all that may be asked for: then every call asks the same, and is answered with the first. */
const FEW = 32;
const fewOf = new WeakMap<Snapshot, readonly LiveRelay[] | null>();

function listFew(relays: Snapshot): readonly LiveRelay[] | null {
  let few = fewOf.get(relays);
  if (few === undefined) {
    const all = relays.relays.filter(runsHere);
    few = all.length > FEW ? null : all.sort((one, other) => one.key - other.key);
    fewOf.set(relays, few);
  }
  return few;
}

/** As many relays are asked for at once. */
const ASKED_AT_ONCE = 16;
const CURRENT = `SELECT relay_id AS "id", relay.version AS version
  FROM relay_key JOIN relay ON relay.id = relay_id JOIN environment ON environment.id = relay.environment_id
  WHERE relay_key.key IN (${Array.from({ length: ASKED_AT_ONCE }, (_, at) => `?${at + 1}`).join(", ")})
    AND relay.state = 'active' AND environment.held_at IS NULL
    AND environment.released_through IS NULL AND environment.deleted_at IS NULL`;
const IDLE = `${CURRENT}
    AND (SELECT seq FROM event WHERE event.relay_key = relay_key.key AND event.state = 'queued' AND next_attempt_at IS NULL
      ORDER BY seq LIMIT 1) IS NULL`;

/** Of these events' relays the ones that run now and of which no event is due, with their versions: as the transaction sees them, whoever wrote last. */
export function listIdle(
  tx: Reader,
  events: readonly IncomingEvent[],
  relays: Snapshot | null,
): Promise<Map<string, number>> {
  const runnable = listRunnable(events, relays);
  const few = relays === null || runnable.length === 0 ? null : listFew(relays);
  return listVersions(tx, IDLE, few ?? runnable);
}

/**
 * Of these relays those that run now and are as this process knows them; it reads the others again. Another process, such as a command on the same
 * data directory or another node, may have paused or changed a relay a moment ago. Its commit is a hold from then on: no event starts after it.
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
  const asked: Promise<{ id: string; version: number }[]>[] = [];
  for (let at = 0; at < keys.length; at += ASKED_AT_ONCE) {
    const some = keys.slice(at, at + ASKED_AT_ONCE);
    // The statement is prepared once, so it is given as many each time.
    const filled = Array.from({ length: ASKED_AT_ONCE }, (_, index) => some[index % some.length] as number);
    asked.push(tx.all(sql, ...filled));
  }
  return new Map((await Promise.all(asked)).flat().map(({ id, version }) => [id, version]));
}
