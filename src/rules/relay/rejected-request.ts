/**
 * Reads the ledger of rejected requests of a relay and describes it: how many were rejected, which of their events arrived later, and until when the
 * sender repeats them. engine/receiver/rejected-delivery.ts writes the ledger.
 */
import { type Static, Type } from "typebox";
import { toIso, toIsoOrNull } from "../../base/clock.ts";
import type { ProblemCode } from "../../base/code/problem-code.ts";
import { HOUR_MS } from "../../base/limit.ts";
import { payloadText, orNull as shownOrNull, textOrNull, time, timeOrNull } from "../../base/schema.ts";
import type { Reader } from "../../store/port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../../store/table.ts";
import type { Sender } from "../senders/sender.ts";
import { findRelay, RELAY, relayOf } from "./relay.ts";

export const REQUESTS_REJECTED = "requests_rejected" as const satisfies ProblemCode;
/** The event id of the row that counts the requests without a readable one. */
export const NO_ID = "";

export const REJECTED_DELIVERY = defineTable({
  name: "rejected_delivery",
  key: ["relayId", "eventId"],
  columns: {
    relayId: text(),
    eventId: text(),
    firstAt: integer(),
    lastAt: integer(),
    count: integer(),
    /** The time when an event with this id was seen; null: none was. */
    arrivedAt: orNull(integer()),
    eventType: orNull(text()),
    /** The id of that event. */
    arrivedEvent: orNull(text()),
  },
});

/** A row with whether a request verified after it, which ended the outage. */
type Rejected = RowOf<typeof REJECTED_DELIVERY> & { settled: number };

/** The condition of rows of an outage that ended: a request verified after they were rejected. */
const SETTLED = "relay.accepted_at IS NOT NULL AND rejected_delivery.first_at < relay.accepted_at";

export const rejectedView = Type.Object({
  relay: Type.String(),
  /** True while the relay still rejects: no request verified after them. */
  ongoing: Type.Boolean(),
  /** The times of the first and the last rejected request; null where nothing is missing. */
  since: timeOrNull,
  until: timeOrNull,
  /** The number of requests; repeats with the same event id count once. */
  requests: Type.Integer(),
  arrived: Type.Integer(),
  /** The number of event ids without an event. */
  missing: Type.Integer(),
  /** The number of requests whose event id could not be read, repeats included. */
  withoutId: Type.Integer(),
  /** The title of the known sender; null for an unknown one. */
  sender: textOrNull,
  /** The time until which the sender repeats the requests; null where it is unknown or over. */
  repeatsUntil: timeOrNull,
  /** The summary in sentences. */
  message: Type.String(),
  /** The event ids and types as the requests gave them. They are not verified. */
  items: Type.Array(
    Type.Object({
      eventId: payloadText,
      eventType: shownOrNull(payloadText),
      firstAt: time,
      lastAt: time,
      arrivedAt: timeOrNull,
      /** The id of the event that arrived; null where none did. */
      event: textOrNull,
    }),
  ),
});
export type RejectedView = Static<typeof rejectedView>;

interface RelayKey {
  id: string;
  name: string;
}

/** Lists the rejected requests of a relay in the order of arrival. */
export function listRejected(tx: Reader, relayId: string): Promise<Rejected[]> {
  return tx.all<Rejected>(
    `SELECT relay_id AS relayId, event_id AS eventId, first_at AS firstAt, last_at AS lastAt, count, arrived_at AS arrivedAt,
       event_type AS eventType, arrived_event AS arrivedEvent, CASE WHEN ${SETTLED} THEN 1 ELSE 0 END AS settled
     FROM rejected_delivery JOIN relay ON relay.id = rejected_delivery.relay_id
     WHERE rejected_delivery.relay_id = ?1 ORDER BY rejected_delivery.first_at, rejected_delivery.event_id`,
    relayId,
  );
}

/** Lists the relays of which an outage ended and events are missing, in every environment. */
export function listIncompleteRelays(tx: Reader): Promise<(RelayKey & { environmentId: number })[]> {
  return tx.all(
    `SELECT id, name, environment_id AS environmentId FROM relay WHERE accepted_at IS NOT NULL AND EXISTS
       (SELECT 1 FROM rejected_delivery WHERE relay_id = relay.id AND rejected_delivery.arrived_at IS NULL AND ${SETTLED}) ORDER BY environment_id, name`,
  );
}

export async function showRejected(tx: Reader, { id, name }: RelayKey, nowMs: number): Promise<RejectedView> {
  const rows = await listRejected(tx, id);
  const sender = rows.length === 0 ? null : await findSender(tx, id);
  return summarize(name, rows, sender, nowMs);
}

/** Shows the ledger of the relay that a target names. Returns null for another target and for a relay without rejected requests. */
export async function findRejected(
  tx: Reader,
  environmentId: number,
  target: string,
  nowMs: number,
): Promise<RejectedView | null> {
  const name = relayOf(target);
  const relay = name === null ? null : await findRelay(tx, environmentId, name);
  const rejected = relay === null ? null : await showRejected(tx, relay, nowMs);
  return rejected?.since == null ? null : rejected;
}

/** Counts the event ids of a relay's rejected requests since a time. */
export async function countRejectedIds(
  tx: Reader,
  environmentId: number,
  relay: string,
  sinceMs: number,
): Promise<number> {
  const sql = `SELECT count(*) AS ids FROM rejected_delivery WHERE event_id <> '${NO_ID}' AND last_at >= $sinceMs
    AND relay_id = (SELECT id FROM relay WHERE environment_id = $environmentId AND name = $relay)`;
  return (await tx.get<{ ids: number }>(sql, { environmentId, relay, sinceMs }))?.ids ?? 0;
}

/** Loads the registry of senders at the first call. */
async function findSender(tx: Reader, id: string): Promise<Sender | null> {
  const relay = await RELAY.find(tx, { id });
  if (relay === null || relay.definition.trigger.kind !== "receiver") return null;
  const { recogniseSender } = await import("../senders/registry.ts");
  return recogniseSender(relay.definition.trigger);
}

function summarize(
  relay: string,
  rows: readonly Rejected[],
  sender: Sender | null,
  nowMs: number,
): RejectedView {
  const since = rows.length === 0 ? null : Math.min(...rows.map(({ firstAt }) => firstAt));
  const until = rows.length === 0 ? null : Math.max(...rows.map(({ lastAt }) => lastAt));
  const newest = Math.max(0, ...rows.map(({ firstAt }) => firstAt));
  const repeatsUntil = sender?.retryHours === undefined ? 0 : newest + sender.retryHours * HOUR_MS;
  const view = {
    relay,
    ongoing: rows.length > 0 && rows.every(({ settled }) => settled === 0),
    since: toIsoOrNull(since),
    until: toIsoOrNull(until),
    ...countRejected(rows),
    sender: sender?.title ?? null,
    repeatsUntil: repeatsUntil > nowMs ? toIso(repeatsUntil) : null,
  };
  const items = rows
    .filter(({ eventId }) => eventId !== NO_ID)
    .map(({ eventId, eventType, firstAt, lastAt, arrivedAt, arrivedEvent }) => ({
      eventId,
      eventType,
      firstAt: toIso(firstAt),
      lastAt: toIso(lastAt),
      arrivedAt: toIsoOrNull(arrivedAt),
      event: arrivedEvent,
    }));
  return { ...view, message: formatRejected(view), items };
}

/** Counts the requests. Repeats with the same event id count once. */
export function countRejected(
  rows: readonly Rejected[],
): Pick<RejectedView, "requests" | "arrived" | "missing" | "withoutId"> {
  const known = rows.filter(({ eventId }) => eventId !== NO_ID);
  const arrived = known.filter(({ arrivedAt }) => arrivedAt !== null).length;
  const withoutId = rows.find(({ eventId }) => eventId === NO_ID)?.count ?? 0;
  return { requests: known.length + withoutId, arrived, missing: known.length - arrived, withoutId };
}

function formatRejected({
  relay,
  ongoing,
  since,
  until,
  requests,
  arrived,
  missing,
  withoutId,
  sender,
  repeatsUntil,
}: Omit<RejectedView, "message" | "items">): string {
  if (since === null || until === null) return `No rejected request of ${relay} is missing.`;
  const count = requests === 1 ? "1 request" : `${requests} requests`;
  const when = since === until ? `at ${since}` : `from ${since} to ${until}`;
  const sentences = [`${ongoing ? `So far ${relay}` : relay} rejected ${count} ${when}.`];
  if (repeatsUntil !== null) sentences.push(`${sender} sends them again until ${repeatsUntil}.`);
  const known = arrived + missing;
  if (known > 0)
    sentences.push(
      `${arrived} of ${known} event${known === 1 ? "" : "s"} ${arrived === 1 || known === 1 ? "has" : "have"} arrived since then.`,
    );
  if (withoutId > 0)
    sentences.push(
      `Relay could not read the event id of ${withoutId === 1 ? "1 request" : `${withoutId} requests`}: compare with the list at the sender.`,
    );
  return sentences.join(" ");
}
