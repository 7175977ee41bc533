/** What a person got and lost, as lists of their story: grants and their ends, credits, purchases, plans. */
import type { Reader } from "../store/port.ts";
import type { Entry, Key, Source } from "./merge.ts";
import { NEWEST, OF_PERSON, type StoryAt, type Told, walkSource } from "./source.ts";
import { lineOf, sayAmount, sayBy, sayTime } from "./words.ts";

interface GrantInStory {
  id: string;
  entitlement: string;
  source: string;
  sourceRef: string | null;
  relayName: string | null;
  eventId: string | null;
  reason: string | null;
  grantedAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
  revokedBy: string | null;
  endAt: number | null;
}
const GRANT = `id, entitlement, source, source_ref AS sourceRef, relay_name AS relayName, event_id AS eventId, reason,
  granted_at AS grantedAt, expires_at AS expiresAt, revoked_at AS revokedAt, revoked_by AS revokedBy, end_at AS endAt`;

function sayOrigin({ relayName, source, sourceRef }: GrantInStory): string {
  if (relayName !== null) return sayBy(`relay:${relayName}`);
  if (source === "hand") return sayBy(sourceRef ?? "hand");
  return source === "plan" ? "with the plan" : "with a purchase";
}

export function grantSource(tx: Reader, at: StoryAt): Source<Told> {
  return walkSource<GrantInStory>(tx, at, {
    name: "grant",
    keys: "text",
    sql: `SELECT ${GRANT} FROM access_grant INDEXED BY access_grant_by_person_id
      WHERE ${OF_PERSON} AND id <= $from ORDER BY id DESC LIMIT $most`,
    toEntry(row) {
      const until = row.expiresAt === null ? "" : ` until ${sayTime(row.expiresAt)}`;
      return {
        key: row.id,
        at: row.grantedAt,
        item: {
          id: `access:${row.id}`,
          kind: "access",
          atMs: row.grantedAt,
          sentence: `Access to ${row.entitlement}${until}, ${sayOrigin(row)}`,
          detail: lineOf(row.reason),
          look: "done",
          thing: { kind: "grant", id: row.id, collection: null },
          relay: row.relayName,
          eventId: row.eventId,
        },
      };
    },
  });
}

/** Ends that came; one that is still to come is not told yet. Its key is a moment and an id. */
export function grantEndSource(tx: Reader, { environmentId, personId, nowMs }: StoryAt): Source<Told> {
  return {
    name: "end",
    keys: "text",
    async read(from: Key | null, most: number) {
      const [, ms = "", id = ""] = /^(\d{1,15}):(.*)$/.exec(String(from ?? `${nowMs}:~`)) ?? [];
      const rows = await tx.all<GrantInStory>(
        `SELECT ${GRANT} FROM access_grant INDEXED BY access_grant_by_end
         WHERE ${OF_PERSON} AND end_at IS NOT NULL AND (end_at, id) <= ($ms, $id) ORDER BY end_at DESC, id DESC LIMIT $most`,
        { environmentId, personId, ms: Number(ms), id, most },
      );
      return rows.map((row) => {
        const endAt = row.endAt ?? 0;
        const isRevoked = row.revokedAt === endAt;
        const how = isRevoked ? `taken back ${sayBy(row.revokedBy ?? "somebody")}` : "it ran out";
        const item: Told = {
          id: `access_end:${row.id}`,
          kind: "access_end",
          atMs: endAt,
          sentence: `Access to ${row.entitlement} ended: ${how}`,
          detail: null,
          look: "none",
          thing: { kind: "grant", id: row.id, collection: null },
          relay:
            isRevoked && row.revokedBy?.startsWith("relay:") ? row.revokedBy.slice("relay:".length) : null,
          eventId: null,
        };
        return { key: `${endAt}:${row.id}`, at: endAt, item };
      });
    },
  };
}

interface CreditInStory {
  seq: number;
  id: string;
  amount: number;
  balance: number;
  reason: string;
  relayName: string | null;
  eventId: string | null;
  createdAt: number;
}

export function creditSource(tx: Reader, at: StoryAt): Source<Told> {
  return walkSource<CreditInStory>(tx, at, {
    name: "credit",
    keys: "number",
    sql: `SELECT seq, id, amount, balance, reason, relay_name AS relayName, event_id AS eventId, created_at AS createdAt
      FROM credit INDEXED BY credit_by_person WHERE ${OF_PERSON} AND seq <= $from ORDER BY seq DESC LIMIT $most`,
    toEntry: (row) => ({
      key: row.seq,
      at: row.createdAt,
      item: {
        id: `credits:${row.id}`,
        kind: "credits",
        atMs: row.createdAt,
        sentence: `${row.amount > 0 ? "+" : "−"}${Math.abs(row.amount)} credits, ${row.balance} then`,
        detail: lineOf(row.reason),
        look: "done",
        thing: { kind: "credit", id: row.id, collection: null },
        relay: row.relayName,
        eventId: row.eventId,
      },
    }),
  });
}

interface PurchaseInStory {
  id: string;
  kind: "purchase" | "refund";
  ref: string;
  itemKind: string;
  item: string;
  relayName: string | null;
  eventId: string | null;
  amountMinor: number | null;
  currency: string | null;
  createdAt: number;
}

export function purchaseSource(tx: Reader, at: StoryAt): Source<Told> {
  return walkSource<PurchaseInStory>(tx, at, {
    name: "purchase",
    keys: "text",
    sql: `SELECT id, kind, ref, item_kind AS itemKind, item, relay_name AS relayName, event_id AS eventId,
        amount_minor AS amountMinor, currency, created_at AS createdAt
      FROM purchase INDEXED BY purchase_by_person_id WHERE ${OF_PERSON} AND id <= $from ORDER BY id DESC LIMIT $most`,
    toEntry(row) {
      const amount = sayAmount(row.amountMinor, row.currency);
      const what = row.itemKind === "plan" ? `the plan ${row.item}` : row.item;
      const done = row.kind === "purchase" ? "Bought" : "Refunded";
      return {
        key: row.id,
        at: row.createdAt,
        item: {
          id: `purchase:${row.id}`,
          kind: row.kind,
          atMs: row.createdAt,
          sentence: `${done} ${what}${amount === null ? "" : ` for ${amount}`}`,
          detail: lineOf(`ref ${row.ref}`),
          look: row.kind === "purchase" ? "done" : "none",
          thing: { kind: "purchase", id: row.id, collection: null },
          relay: row.relayName,
          eventId: row.eventId,
        },
      };
    },
  });
}

interface SubscriptionInStory {
  id: string;
  plan: string;
  relayName: string | null;
  eventId: string | null;
  startedAt: number;
  endedAt: number | null;
}
const STARTED = ":start";

/** One is active at a time, so that the end of each stands before its start and both before the next older one. */
export function planSource(tx: Reader, { environmentId, personId }: StoryAt): Source<Told> {
  return {
    name: "plan",
    keys: "text",
    async read(from, most) {
      const begin = String(from ?? NEWEST.text);
      const rows = await tx.all<SubscriptionInStory>(
        `SELECT id, plan, relay_name AS relayName, event_id AS eventId, started_at AS startedAt, ended_at AS endedAt
         FROM subscription INDEXED BY subscription_by_person WHERE ${OF_PERSON} AND id <= $from ORDER BY id DESC LIMIT $most`,
        { environmentId, personId, from: begin.replace(STARTED, ""), most },
      );
      const entries = rows.flatMap(planEntries);
      return (entries[1]?.key === begin ? entries.slice(1) : entries).slice(0, most);
    },
  };
}

function planEntries({
  id,
  plan,
  relayName,
  eventId,
  startedAt,
  endedAt,
}: SubscriptionInStory): Entry<Told>[] {
  const of = {
    detail: null,
    thing: { kind: "subscription", id, collection: null },
    relay: relayName,
  } as const;
  const start: Told = {
    ...of,
    id: `plan:${id}`,
    kind: "plan",
    atMs: startedAt,
    sentence: `The plan ${plan} began`,
    look: "done",
    eventId,
  };
  const started = { key: `${id}${STARTED}`, at: startedAt, item: start };
  if (endedAt === null) return [started];
  const end: Told = {
    ...of,
    id: `plan_end:${id}`,
    kind: "plan_end",
    atMs: endedAt,
    sentence: `The plan ${plan} ended`,
    look: "none",
    eventId: null,
  };
  return [{ key: id, at: endedAt, item: end }, started];
}
