/**
 * Merges two people by hand: everything of one person moves to another. Purchases move as manual-move.ts moves them, so their refs stay and a
 * later refund finds them. The first person keeps the address and the timeline, and has no rights. A second merge moves what came since.
 */
import { type Static, Type } from "typebox";
import { type Json, writeJson } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import { cutToLine } from "../../base/text.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import { findMailStop, setMailStop } from "../../platform/mail/mail-stop.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { endGrant, grantAccess, listLiveGrants } from "../people/access-grant.ts";
import { findNewestArrival } from "../people/access-order.ts";
import { addCredits, findBalance } from "../people/credit.ts";
import {
  changePersonManually,
  type PersonRow,
  requireActingPerson,
  requirePersonNamed,
} from "../people/person.ts";
import { movePurchase } from "./manual-move.ts";
import { LIVE_PURCHASE, PURCHASE, type Purchase } from "./purchase.ts";
import { findActiveSubscription } from "./subscription.ts";

/** The rows that a merge moves. */
export const personMerge = Type.Object({
  /** The ids of both people. */
  from: Type.String(),
  to: Type.String(),
  purchases: Type.Integer(),
  /** Grants without a purchase or a plan. */
  grants: Type.Integer(),
  /** Credits, also those of the purchases. */
  credits: Type.Integer(),
  tokens: Type.Integer(),
  /** Customer IDs of providers. */
  customers: Type.Integer(),
  records: Type.Integer(),
  /** Attributes that only the first person has. */
  attributes: Type.Integer(),
  /** Attributes with different values. Each person keeps their own: the new person `to`, and the first person `from`. */
  differentAttributes: Type.Array(
    Type.Object({ name: Type.String(), from: Type.Unsafe<Json>({}), to: Type.Unsafe<Json>({}) }),
  ),
  /** True if the new person gets no more event mail, because the first one stopped it. */
  stopsMail: Type.Boolean(),
  /** The merge in sentences. */
  message: Type.String(),
});
type PersonMerge = Static<typeof personMerge>;
type DifferentAttribute = PersonMerge["differentAttributes"][number];
type Counts = Omit<PersonMerge, "from" | "to" | "differentAttributes" | "message">;

/** The most rows that one transaction moves. A person with more is rejected, so that a merge does not block other work. */
const MAX_PURCHASES = 30;
/** Also refunded and moved purchases, refunds and confirmations. */
const MAX_RECEIPTS = 500;
const MAX_GRANTS = 50;
const MAX_ROWS = 200;
/** The most different attributes that a sentence names, and the most characters of a name or a value in it. */
const MAX_SHOWN_ATTRIBUTES = 5;
const MAX_SHOWN_CHARS = 40;

interface Merge {
  change: Change;
  from: PersonRow;
  to: PersonRow;
}

/**
 * Merges the first person into the second, audited. `merged` is false if nothing was left to move. Throws `not_found`, `person_suspended`, and
 * `invalid_input` if a part cannot move; then nothing moves.
 */
export async function mergePeopleManually(
  tx: Writer,
  change: Change,
  fromName: string,
  toName: string,
): Promise<{ plan: PersonMerge; merged: boolean }> {
  const from = await requireNamed(tx, change.environmentId, fromName);
  const to = await requireNamed(tx, change.environmentId, toName);
  if (from.id === to.id)
    throw new Refusal("invalid_input", `${to.email} cannot be merged with itself: name two people.`);
  const merge = { change, from, to };
  const differentAttributes = listDifferentAttributes(merge);
  const had = await findBalance(tx, change.environmentId, from.id);
  const purchases = await movePurchases(tx, merge);
  const counts: Counts = {
    purchases,
    grants: await moveGrants(tx, merge),
    credits: had,
    tokens: await moveTokens(tx, merge),
    customers: await moveCustomers(tx, merge),
    records: await moveRecords(tx, merge),
    attributes: await moveAttributes(tx, merge, differentAttributes),
    stopsMail: await moveMailStop(tx, merge),
  };
  await moveCredits(tx, merge);
  const merged = Object.values(counts).some((count) => count !== 0 && count !== false);
  if (merged) await auditMerge(tx, merge, counts, differentAttributes);
  const message = format(merge, counts, differentAttributes, merged);
  return { plan: { from: from.id, to: to.id, ...counts, differentAttributes, message }, merged };
}

async function requireNamed(tx: Reader, environmentId: number, name: string): Promise<PersonRow> {
  const { id } = await requirePersonNamed(tx, environmentId, name);
  return await requireActingPerson(tx, environmentId, id);
}

/** Moves the purchases in order of arrival, so that the newest payment of a plan moves the plan. */
async function movePurchases(tx: Writer, { change, from, to }: Merge): Promise<number> {
  await requireFewPurchases(tx, from);
  for (let count = 0; count <= MAX_PURCHASES; count++) {
    const purchase = await findNextPurchase(tx, from);
    if (purchase === null) {
      await requireNoPlan(tx, from);
      return count;
    }
    await movePurchase(tx, change, purchase, { from, to });
  }
  throw rejectTooMany(from, MAX_PURCHASES, "purchases");
}

/** Rejects a person with too many purchases before one moves. A move also reads the receipts that cannot move. */
async function requireFewPurchases(tx: Reader, from: PersonRow): Promise<void> {
  const sql = `SELECT count(*) AS receipts, count(CASE WHEN live THEN 1 END) AS purchases FROM
    (SELECT (${LIVE_PURCHASE}) AS live FROM purchase INDEXED BY purchase_by_person_id WHERE person_id = $id LIMIT $most) AS few`;
  const row = { id: from.id, most: MAX_RECEIPTS + 1 };
  const { receipts = 0, purchases = 0 } =
    (await tx.get<{ receipts: number; purchases: number }>(sql, row)) ?? {};
  if (purchases > MAX_PURCHASES) throw rejectTooMany(from, MAX_PURCHASES, "purchases");
  if (receipts > MAX_RECEIPTS) throw rejectTooMany(from, MAX_RECEIPTS, "receipts");
}

function findNextPurchase(tx: Reader, { environmentId, id }: PersonRow): Promise<Purchase | null> {
  const rest = `INDEXED BY purchase_by_person_id WHERE person_id = $id AND environment_id = $environmentId
    AND ${LIVE_PURCHASE} ORDER BY arrival, id LIMIT 1`;
  return PURCHASE.get(tx, rest, { environmentId, id });
}

async function requireNoPlan(tx: Reader, from: PersonRow): Promise<void> {
  const active = await findActiveSubscription(tx, from.environmentId, from.id);
  if (active === null) return;
  throw new Refusal(
    "invalid_input",
    `${from.email} is on the plan ${active.plan} without a payment that can move: end that plan first, with relay people end ${from.id} ${active.plan}.`,
  );
}

/** Moves the live grants that belong to no purchase and no plan. They stay live, although an earlier event revoked the new person's access. */
async function moveGrants(tx: Writer, { change, from, to }: Merge): Promise<number> {
  const { environmentId, by, nowMs } = change;
  const holding = { environmentId, personId: from.id, entitlement: null, nowMs };
  const live = await listLiveGrants(tx, holding, MAX_GRANTS + 1);
  if (live.length > MAX_GRANTS) throw rejectTooMany(from, MAX_GRANTS, "grants");
  const newest = await findNewestArrival(tx);
  for (const { id, expiresAt, arrival, ...grant } of live) {
    await endGrant(tx, id, by, nowMs);
    await grantAccess(tx, {
      ...grant,
      personId: to.id,
      arrival: Math.max(arrival ?? 0, newest),
      expiresAtMs: expiresAt,
      nowMs,
    });
  }
  return live.length;
}

async function moveCredits(tx: Writer, { change, from, to }: Merge): Promise<void> {
  const { environmentId, nowMs } = change;
  const balance = await findBalance(tx, environmentId, from.id);
  if (balance === 0) return;
  const origin = { source: "hand", relayName: null, eventId: null, onceKey: null } as const;
  const line = { environmentId, ...origin, nowMs };
  await addCredits(tx, { ...line, personId: from.id, amount: -balance, reason: `merged into ${to.id}` });
  await addCredits(tx, { ...line, personId: to.id, amount: balance, reason: `merged from ${from.id}` });
}

const OF_FROM = "person_id = $from AND environment_id = $environmentId";

async function requireFewRows(tx: Reader, { from }: Merge, table: string, what: string): Promise<void> {
  const sql = `SELECT count(*) AS count FROM (SELECT 1 FROM ${table} WHERE ${OF_FROM} LIMIT $most) AS few`;
  const bounds = { environmentId: from.environmentId, from: from.id, most: MAX_ROWS + 1 };
  const row = await tx.get<{ count: number }>(sql, bounds);
  if ((row?.count ?? 0) > MAX_ROWS) throw rejectTooMany(from, MAX_ROWS, what);
}

async function moveTokens(tx: Writer, merge: Merge): Promise<number> {
  await requireFewRows(tx, merge, "person_token", "tokens");
  const { environmentId, id: from } = merge.from;
  const at = { environmentId, from, to: merge.to.id };
  return await tx.run(`UPDATE person_token SET person_id = $to WHERE ${OF_FROM}`, at);
}

/** Moves the customer ids as links by hand, so that a retry or replay of an earlier event does not move them back. */
async function moveCustomers(tx: Writer, merge: Merge): Promise<number> {
  await requireFewRows(tx, merge, "person_customer", "customer IDs");
  const { environmentId, id: from } = merge.from;
  const arrival = await findNewestArrival(tx);
  const at = { environmentId, from, to: merge.to.id, arrival, nowMs: merge.change.nowMs };
  const set = "person_id = $to, arrival = $arrival, event_id = NULL, created_at = $nowMs";
  return await tx.run(`UPDATE person_customer SET ${set} WHERE ${OF_FROM}`, at);
}

/** Moves the records that the person owns or receives. The caller writes with origin `move`, so that no relay runs for them. */
async function moveRecords(tx: Writer, { change, from, to }: Merge): Promise<number> {
  const { environmentId, by, nowMs } = change;
  const sql = `SELECT seq FROM (SELECT seq FROM record WHERE owner_id = $from LIMIT $most) AS owned
    UNION SELECT seq FROM (SELECT seq FROM record WHERE recipient_id = $from LIMIT $most) AS received`;
  const rows = await tx.all<{ seq: number }>(sql, { from: from.id, most: MAX_ROWS + 1 });
  if (rows.length > MAX_ROWS) throw rejectTooMany(from, MAX_ROWS, "records");
  if (rows.length === 0) return 0;
  tx.notify("record", environmentId);
  const update = `UPDATE record SET owner_id = CASE WHEN owner_id = $from THEN $to ELSE owner_id END,
      recipient_id = CASE WHEN recipient_id = $from THEN $to ELSE recipient_id END, written_by = $by, event_id = NULL, updated_at = $nowMs
    WHERE seq IN (SELECT CAST(value AS INTEGER) FROM json_each($seqs))`;
  const seqs = JSON.stringify(rows.map(({ seq }) => seq));
  return await tx.run(update, { from: from.id, to: to.id, by, nowMs, seqs });
}

function listDifferentAttributes({ from, to }: Merge): DifferentAttribute[] {
  return Object.entries(from.attributes).flatMap(([name, value]) => {
    const kept = Object.hasOwn(to.attributes, name) ? to.attributes[name] : undefined;
    return kept === undefined || writeJson(kept) === writeJson(value)
      ? []
      : [{ name, from: value, to: kept }];
  });
}

/** Gives the new person the attributes that only the first one has. The first person keeps only the values that differ, so that none is lost. */
async function moveAttributes(
  tx: Writer,
  { change, from, to }: Merge,
  different: readonly DifferentAttribute[],
): Promise<number> {
  const kept = new Set(different.map(({ name }) => name));
  const moved = Object.entries(from.attributes).filter(([name]) => !kept.has(name));
  if (moved.length === 0) return 0;
  const missing = moved.filter(([name]) => !Object.hasOwn(to.attributes, name));
  await changePersonManually(tx, change, from.id, {
    attributes: Object.fromEntries(moved.map(([name]) => [name, null])),
  });
  if (missing.length > 0)
    await changePersonManually(tx, change, to.id, { attributes: Object.fromEntries(missing) });
  return missing.length;
}

/** Stops the new person's event mail if the first one stopped it, because both addresses are one reader's. */
async function moveMailStop(tx: Writer, { change, from, to }: Merge): Promise<boolean> {
  const { environmentId } = change;
  if ((await findMailStop(tx, { environmentId, personId: from.id })) === null) return false;
  if ((await findMailStop(tx, { environmentId, personId: to.id })) !== null) return false;
  await setMailStop(tx, change, { personId: to.id, stopped: true });
  return true;
}

/** Audits the merge at both people, with the names of different attributes and without their values. */
async function auditMerge(
  tx: Writer,
  { change, from, to }: Merge,
  counts: Counts,
  different: readonly DifferentAttribute[],
): Promise<void> {
  const action = "person.merged";
  const after = { ...counts, differentAttributes: different.map(({ name }) => name) };
  await writeAudit(tx, { ...change, action, target: `person:${from.id}`, after: { into: to.id, ...after } });
  await writeAudit(tx, { ...change, action, target: `person:${to.id}`, after: { from: from.id, ...after } });
}

function rejectTooMany({ email, id }: PersonRow, most: number, what: string): Refusal {
  const moreWays: Record<string, string> = {
    purchases: `: move some first with relay receipts move; relay receipts list --person ${id} shows them`,
    receipts: `: move each purchase with relay receipts move instead; relay receipts list --person ${id} shows them`,
  };
  const todo = moreWays[what] ?? ", so they cannot be merged in one transaction";
  return new Refusal("invalid_input", `${email} has more than ${most} ${what}${todo}.`);
}

function format(
  { from, to }: Merge,
  counts: Counts,
  different: readonly DifferentAttribute[],
  merged: boolean,
): string {
  if (!merged) return `${from.email} has nothing that can move to ${to.email}, so nothing changes.`;
  const parts = [
    countOf(counts.purchases, "purchase"),
    countOf(counts.grants, "other grant"),
    countOf(counts.credits, "credit"),
    countOf(counts.tokens, "token"),
    countOf(counts.customers, "customer ID"),
    countOf(counts.records, "record"),
    countOf(counts.attributes, "attribute"),
  ].filter((part) => part !== null);
  const what = parts.length === 0 ? "" : `Moves ${parts.join(", ")} from ${from.email} to ${to.email}. `;
  const mail = counts.stopsMail
    ? `${to.email} gets no more event mail, because ${from.email} stopped it. `
    : "";
  return `${what}${formatDifferent(to, different)}${mail}After the merge, ${from.email} keeps the timeline and has no access. A later payment that names ${from.email} goes to ${from.email} again: change the address at the provider, or merge again.`;
}

function formatDifferent(to: PersonRow, different: readonly DifferentAttribute[]): string {
  if (different.length === 0) return "";
  const shown = different
    .slice(0, MAX_SHOWN_ATTRIBUTES)
    .map(
      (one) => `${cutToLine(one.name, MAX_SHOWN_CHARS)} ${showValue(one.to)} (not ${showValue(one.from)})`,
    );
  const hidden = different.length - shown.length;
  const more = hidden === 0 ? "" : ` and ${hidden} more`;
  return `${to.email} keeps their own value of ${countOf(different.length, "different attribute")}: ${shown.join(", ")}${more}. `;
}

function showValue(value: Json): string {
  const text = writeJson(value);
  const line = cutToLine(text, MAX_SHOWN_CHARS);
  return line.length < text.length ? `${line}…` : line;
}

function countOf(count: number, what: string): string | null {
  return count === 0 ? null : `${count} ${what}${count === 1 ? "" : "s"}`;
}
