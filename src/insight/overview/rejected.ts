/**
 * Shows the requests of a relay that were rejected before a request verified again: how many, which of their events arrived since then, and until
 * when the sender repeats them.
 */
import { type Static, Type } from "typebox";
import { toIso, toIsoOrNull } from "../../base/clock.ts";
import { HOUR_MS } from "../../base/limit.ts";
import { textOrNull, time, timeOrNull } from "../../base/schema.ts";
import { listSettled, NO_ID, type SettledRejection } from "../../engine/receiver/rejected-delivery.ts";
import { RELAY, relayTarget } from "../../rules/relay/relay.ts";
import type { Sender } from "../../rules/senders/sender.ts";
import type { Reader, Store } from "../../store/port.ts";
import { type AttentionItem, makeItem } from "./attention-item.ts";

export const rejectedView = Type.Object({
  relay: Type.String(),
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
  /** The event ids as the requests gave them. They are not verified. */
  items: Type.Array(
    Type.Object({ eventId: Type.String(), firstAt: time, lastAt: time, arrivedAt: timeOrNull }),
  ),
});
export type RejectedView = Static<typeof rejectedView>;

interface RelayKey {
  id: string;
  name: string;
}

export async function showRejected(
  store: Store,
  environmentId: number,
  { id, name }: RelayKey,
  nowMs: number,
): Promise<RejectedView> {
  const rows = await store.read((tx) => listSettled(tx, environmentId, id));
  const sender = rows.length === 0 ? null : await store.read((tx) => findSender(tx, id));
  return summarize(name, rows, sender, nowMs);
}

/** Lists an attention item for each relay with rejected requests that a verified one ended. */
export async function listRejectedItems(
  store: Store,
  environmentId: number,
  nowMs: number,
): Promise<AttentionItem[]> {
  const rows = await store.read((tx) => listSettled(tx, environmentId, null));
  const items: AttentionItem[] = [];
  for (const [name, own] of Map.groupBy(rows, ({ relayName }) => relayName)) {
    const [first] = own;
    if (first === undefined) continue;
    const sender = await store.read((tx) => findSender(tx, first.relayId));
    const { since, message } = summarize(name, own, sender, nowMs);
    if (since === null) continue;
    items.push(makeItem({ code: "requests_rejected", target: relayTarget(name), since, message }));
  }
  return items;
}

/** Loads the registry of senders at the first call. */
async function findSender(tx: Reader, id: string): Promise<Sender | null> {
  const relay = await RELAY.find(tx, { id });
  if (relay === null || relay.definition.trigger.kind !== "receiver") return null;
  const { recogniseSender } = await import("../../rules/senders/registry.ts");
  return recogniseSender(relay.definition.trigger);
}

function summarize(
  relay: string,
  rows: readonly SettledRejection[],
  sender: Sender | null,
  nowMs: number,
): RejectedView {
  const known = rows.filter(({ eventId }) => eventId !== NO_ID);
  const counts = countRejected(rows);
  const since = rows.length === 0 ? null : Math.min(...rows.map(({ firstAt }) => firstAt));
  const until = rows.length === 0 ? null : Math.max(...rows.map(({ lastAt }) => lastAt));
  const newest = Math.max(0, ...rows.map(({ firstAt }) => firstAt));
  const repeatsUntil = sender?.retryHours === undefined ? 0 : newest + sender.retryHours * HOUR_MS;
  const view = {
    relay,
    since: toIsoOrNull(since),
    until: toIsoOrNull(until),
    ...counts,
    sender: sender?.title ?? null,
    repeatsUntil: repeatsUntil > nowMs ? toIso(repeatsUntil) : null,
  };
  return {
    ...view,
    message: formatRejected(view),
    items: known.map(({ eventId, firstAt, lastAt, arrivedAt }) => ({
      eventId,
      firstAt: toIso(firstAt),
      lastAt: toIso(lastAt),
      arrivedAt: toIsoOrNull(arrivedAt),
    })),
  };
}

/** Counts the requests. Repeats with the same event id count once. */
export function countRejected(
  rows: readonly SettledRejection[],
): Pick<RejectedView, "requests" | "arrived" | "missing" | "withoutId"> {
  const known = rows.filter(({ eventId }) => eventId !== NO_ID);
  const arrived = known.filter(({ arrivedAt }) => arrivedAt !== null).length;
  const withoutId = rows.find(({ eventId }) => eventId === NO_ID)?.count ?? 0;
  return { requests: known.length + withoutId, arrived, missing: known.length - arrived, withoutId };
}

function formatRejected({
  relay,
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
  const sentences = [`${relay} rejected ${count} ${when}.`];
  if (repeatsUntil !== null) sentences.push(`${sender} sends them again until ${repeatsUntil}.`);
  const known = arrived + missing;
  if (known > 0)
    sentences.push(`${arrived} of ${known} ${known === 1 ? "event has" : "events have"} arrived since then.`);
  if (withoutId > 0)
    sentences.push(
      `Relay could not read the event id of ${withoutId === 1 ? "1 request" : `${withoutId} requests`}: compare with the list at the sender.`,
    );
  return sentences.join(" ");
}
