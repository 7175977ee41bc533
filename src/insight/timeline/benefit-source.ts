/** Lists of the timeline that hold what a person got and lost: grants and their ends, credits, purchases and plans. */
import { ACCESS_GRANT } from "../../shop/people/access-grant.ts";
import { CREDIT } from "../../shop/people/credit.ts";
import { PURCHASE } from "../../shop/selling/purchase.ts";
import { SUBSCRIPTION } from "../../shop/selling/subscription.ts";
import type { Reader } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import type { Entry, Key, Source } from "./merge.ts";
import { formatActor, formatAmount, formatTime, lineOf } from "./sentence.ts";
import { NEWEST, OF_PERSON, type TimelineDraft, type TimelineScope, walkSource } from "./source.ts";

const GRANT = ACCESS_GRANT.pick(
  "id",
  "entitlement",
  "source",
  "sourceRef",
  "relayName",
  "eventId",
  "reason",
  "grantedAt",
  "expiresAt",
  "revokedAt",
  "revokedBy",
);
type GrantRow = RowOf<typeof GRANT>;

function formatOrigin({ relayName, source, sourceRef }: GrantRow): string {
  if (relayName !== null) return formatActor(`relay:${relayName}`);
  if (source === "hand") return formatActor(sourceRef ?? "hand");
  return source === "plan" ? "with the plan" : "with a purchase";
}

export function grantSource(tx: Reader, at: TimelineScope): Source<TimelineDraft> {
  return walkSource<GrantRow>(tx, at, {
    name: "grant",
    keys: "text",
    sql: `SELECT ${GRANT.columns} FROM access_grant INDEXED BY access_grant_by_person_id
      WHERE ${OF_PERSON} AND id <= $from ORDER BY id DESC LIMIT $most`,
    toEntry(row) {
      const until = row.expiresAt === null ? "" : ` until ${formatTime(row.expiresAt)}`;
      return {
        key: row.id,
        at: row.grantedAt,
        item: {
          id: `access:${row.id}`,
          kind: "access",
          atMs: row.grantedAt,
          sentence: `Access to ${row.entitlement}${until}, ${formatOrigin(row)}`,
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

/** Lists the ends of grants that have passed. The key is the moment and the grant's id. */
export function grantEndSource(
  tx: Reader,
  { environmentId, personId, nowMs }: TimelineScope,
): Source<TimelineDraft> {
  return {
    name: "end",
    keys: "text",
    async read(from: Key | null, most: number) {
      const [, ms = "", id = ""] = /^(\d{1,15}):(.*)$/.exec(String(from ?? `${nowMs}:~`)) ?? [];
      const rows = await tx.all<GrantRow & { endAt: number }>(
        `SELECT ${GRANT.columns}, end_at AS endAt FROM access_grant INDEXED BY access_grant_by_end
         WHERE ${OF_PERSON} AND end_at IS NOT NULL AND (end_at, id) <= ($ms, $id) ORDER BY end_at DESC, id DESC LIMIT $most`,
        { environmentId, personId, ms: Number(ms), id, most },
      );
      return rows.map((row) => {
        const { endAt } = row;
        const isRevoked = row.revokedAt === endAt;
        const how = isRevoked ? `taken back ${formatActor(row.revokedBy ?? "somebody")}` : "it ran out";
        const item: TimelineDraft = {
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

const LINE = CREDIT.pick("seq", "id", "amount", "balance", "reason", "relayName", "eventId", "createdAt");

export function creditSource(tx: Reader, at: TimelineScope): Source<TimelineDraft> {
  return walkSource<RowOf<typeof LINE>>(tx, at, {
    name: "credit",
    keys: "number",
    sql: `SELECT ${LINE.columns} FROM credit INDEXED BY credit_by_person WHERE ${OF_PERSON} AND seq <= $from ORDER BY seq DESC LIMIT $most`,
    toEntry: (row) => ({
      key: row.seq,
      at: row.createdAt,
      item: {
        id: `credits:${row.id}`,
        kind: "credits",
        atMs: row.createdAt,
        sentence: `${row.amount > 0 ? "+" : "−"}${Math.abs(row.amount)} credits · balance ${row.balance}`,
        detail: lineOf(row.reason),
        look: "done",
        thing: { kind: "credit", id: row.id, collection: null },
        relay: row.relayName,
        eventId: row.eventId,
      },
    }),
  });
}

const BOUGHT = PURCHASE.pick(
  "id",
  "kind",
  "ref",
  "itemKind",
  "item",
  "relayName",
  "eventId",
  "amountMinor",
  "currency",
  "createdAt",
  "movedTo",
);

export function purchaseSource(tx: Reader, at: TimelineScope): Source<TimelineDraft> {
  return walkSource<RowOf<typeof BOUGHT>>(tx, at, {
    name: "purchase",
    keys: "text",
    sql: `SELECT ${BOUGHT.columns} FROM purchase INDEXED BY purchase_by_person_id
      WHERE ${OF_PERSON} AND confirmation = 0 AND id <= $from ORDER BY id DESC LIMIT $most`,
    toEntry(row) {
      const amount = formatAmount(row.amountMinor, row.currency);
      const what = row.itemKind === "plan" ? `the plan ${row.item}` : row.item;
      const paid = amount === null ? "" : ` for ${amount}`;
      const isMove = row.kind === "refund" && row.movedTo !== null;
      const done = row.kind === "purchase" ? "Bought" : "Refunded";
      return {
        key: row.id,
        at: row.createdAt,
        item: {
          id: `purchase:${row.id}`,
          kind: row.kind,
          atMs: row.createdAt,
          sentence: isMove ? `The purchase of ${what} moved to another person` : `${done} ${what}${paid}`,
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

const ON_PLAN = SUBSCRIPTION.pick("id", "plan", "relayName", "eventId", "startedAt", "endedAt");
const STARTED = ":start";

/**
 * Lists the starts and ends of plans. A person has one plan at a time, so a plan's end comes before its start, and both before the older plans. A
 * plan that ended at its start is left out: the event explains it.
 */
export function planSource(tx: Reader, { environmentId, personId }: TimelineScope): Source<TimelineDraft> {
  return {
    name: "plan",
    keys: "text",
    async read(from, most) {
      const begin = String(from ?? NEWEST.text);
      const rows = await tx.all<RowOf<typeof ON_PLAN>>(
        `SELECT ${ON_PLAN.columns} FROM subscription INDEXED BY subscription_by_person WHERE ${OF_PERSON} AND id <= $from
           AND (ended_at IS NULL OR ended_at > started_at) ORDER BY id DESC LIMIT $most`,
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
}: RowOf<typeof ON_PLAN>): Entry<TimelineDraft>[] {
  const of = {
    detail: null,
    thing: { kind: "subscription", id, collection: null },
    relay: relayName,
  } as const;
  const start: TimelineDraft = {
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
  const end: TimelineDraft = {
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
