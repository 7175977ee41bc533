/**
 * Decides how long rows are kept: events and requests for 30 days, mails and the audit of runs for 90, the other audit and notices for 400. Each
 * job is a small step that maintenance.ts repeats until nothing old is left.
 */

import {
  APPLY_RESPONSE_LIFE_MS,
  APPROVAL_RETENTION_MS,
  AUDIT_RETENTION_MS,
  EMAIL_RETENTION_MS,
  EVENT_RETENTION_MS,
  RUN_AUDIT_RETENTION_MS,
} from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import { endExpiredApprovals } from "../../operator/sync/approval.ts";
import { findEnvironmentAfter } from "../../platform/account/environment.ts";
import { deleteEndedLogins } from "../../platform/account/login.ts";
import { deleteOldOwnerNetworks } from "../../platform/account/owner-network.ts";
import { deleteUsedChallenges } from "../../platform/account/passkey.ts";
import { deletePendingSignins } from "../../platform/account/pending-signin.ts";
import { deleteEndedSessions } from "../../platform/account/session.ts";
import { deleteUnconfirmedTotp } from "../../platform/account/totp.ts";
import { deleteEndedSignins } from "../../platform/oidc/signin-state.ts";
import { deletePreviousSecrets } from "../../rules/relay/secret-rotation.ts";
import { deleteSpentRevocations } from "../../shop/people/access-order.ts";
import { deleteSpentErasures } from "../../shop/people/person-erase.ts";
import { deleteEndedPersonSessions } from "../../shop/portal/person-session.ts";
import { deleteSpentCancellations } from "../../shop/selling/plan-history.ts";
import type { Writer } from "../../store/port.ts";
import { forgetClockBack } from "../../store/time-index.ts";
import { alertDropped } from "../event/alert.ts";
import { RELAY_NAME } from "../event/event.ts";
import { PASSED_COUNT_MS } from "../event/passed-count.ts";
import { REJECTED_MINUTES_MS } from "../event/rejected-count.ts";
import { deleteUnusedActionLists } from "../event/run.ts";
import { notifyExpiring } from "./expiring-event.ts";
import { forgetSignatures } from "./retired-secret.ts";

/** The rows of one transaction. */
const BATCH_ROWS = 250;
const COUNT_KEY = "environment_id, relay_name, every_ms, at";

/** Takes one small step from `cursor` on, which is 0 at first. Returns the next cursor, or null when the job is done. */
type Step = (tx: Writer, cursor: number, nowMs: number, log: Log) => Promise<number | null>;

/** The jobs, by their name in the log. */
export const RETENTION: Readonly<Record<string, Step>> = {
  events: retireEvents,
  "events that will be dropped": notifyExpiring,
  "revocations of access": repeated(deleteSpentRevocations),
  "cancellations of plans": repeated(deleteSpentCancellations),
  "clock steps": single((tx) => forgetClockBack(tx, "event")),
  keys: repeated(forgetKeys),
  "ran actions": single(deleteUnusedActionLists),
  // Signatures without an end live as long as their secret.
  signatures: repeated((tx, nowMs) =>
    deleteSome(
      tx,
      "signature_memory",
      "environment_id, relay_name, signed_text_hash",
      "until IS NOT NULL AND until <= $ms AND secret IS NULL ORDER BY until",
      nowMs,
    ),
  ),
  "signatures of secrets that are gone": repeated(forgetSignatures),
  // An approval expires even if no owner opens it, whatever the clock is set to later.
  "approvals that are over": repeated(async (tx, nowMs) => (await endExpiredApprovals(tx, nowMs)) > 0),
  approvals: repeated((tx, nowMs) =>
    deleteSome(
      tx,
      "approval",
      "id",
      "ended_at IS NOT NULL AND ended_at <= $ms ORDER BY ended_at",
      nowMs - APPROVAL_RETENTION_MS,
    ),
  ),
  "responses of applies": repeated((tx, nowMs) =>
    deleteSome(
      tx,
      "apply_response",
      "environment_id, caller, request_key",
      "created_at <= $ms",
      nowMs - APPLY_RESPONSE_LIFE_MS,
    ),
  ),
  sessions: single(deleteEndedSessions),
  oidcSignins: single(deleteEndedSignins),
  "owners' networks": single(deleteOldOwnerNetworks),
  logins: single(deleteEndedLogins),
  "pending sign-ins": single(deletePendingSignins),
  "used challenges": single(deleteUsedChallenges),
  "unconfirmed authenticator apps": single(deleteUnconfirmedTotp),
  "people's sessions": single(deleteEndedPersonSessions),
  // The audit of a busy relay's runs must not fill the disk for a year.
  audit: trim({
    name: "audit",
    at: "at",
    keptMs: `(CASE WHEN event_id IS NULL THEN ${AUDIT_RETENTION_MS} ELSE ${RUN_AUDIT_RETENTION_MS} END)`,
    shortestKeptMs: RUN_AUDIT_RETENTION_MS,
  }),
  // The caps of mails count at most one day.
  mails: trim({
    name: "email",
    at: "created_at",
    keptMs: `${EMAIL_RETENTION_MS}`,
    shortestKeptMs: EMAIL_RETENTION_MS,
  }),
  // An open problem is never deleted.
  notices: repeated(async (tx, nowMs) => {
    const untilMs = nowMs - AUDIT_RETENTION_MS;
    const alerts = await deleteSome(tx, "alert", "id", "last_at < $ms", untilMs);
    return (await deleteSome(tx, "problem", "id", "cleared_at < $ms", untilMs)) || alerts;
  }),
  "bulk replays": repeated((tx, nowMs) =>
    deleteSome(tx, "bulk_replay", "id", "finished_at < $ms", nowMs - RUN_AUDIT_RETENTION_MS),
  ),
  "recent calls": forgetRecentCalls,
  "rejected deliveries": repeated((tx, nowMs) =>
    deleteSome(tx, "rejected_delivery", "relay_id, event_id", "last_at < $ms", nowMs - EVENT_RETENTION_MS),
  ),
  "rejected counts": repeated(async (tx, nowMs) => {
    const [minuteMs, hourMs] = [nowMs - REJECTED_MINUTES_MS, nowMs - EVENT_RETENTION_MS];
    const isMore = await deleteSome(
      tx,
      "rejected_count",
      COUNT_KEY,
      "every_ms = 60000 AND at < $ms",
      minuteMs,
    );
    return (
      (await deleteSome(tx, "rejected_count", COUNT_KEY, "every_ms = 3600000 AND at < $ms", hourMs)) || isMore
    );
  }),
  "passed counts": repeated((tx, nowMs) =>
    deleteSome(
      tx,
      "passed_count",
      "environment_id, relay_name, outcome, at",
      "at < $ms",
      nowMs - PASSED_COUNT_MS,
    ),
  ),
  "previous secrets": single(deletePreviousSecrets),
  "erased addresses": single(deleteSpentErasures),
};

/** Makes a job of a step without a cursor: the step deletes what it finds. */
function repeated(step: (tx: Writer, nowMs: number, log: Log) => Promise<boolean>): Step {
  return async (tx, _cursor, nowMs, log) => ((await step(tx, nowMs, log)) ? 0 : null);
}

function single(step: (tx: Writer, nowMs: number) => Promise<unknown>): Step {
  return async (tx, _cursor, nowMs) => {
    await step(tx, nowMs);
    return null;
  };
}

/** Deletes rows that match `old` at the moment `$ms`. Returns whether there may be more. */
async function deleteSome(tx: Writer, table: string, key: string, old: string, ms: number): Promise<boolean> {
  const sql = `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE ${old} LIMIT ${BATCH_ROWS})`;
  return (await tx.run(sql, { ms })) === BATCH_ROWS;
}

interface TrimmedTable {
  name: "audit" | "email";
  /** The column with the time, in milliseconds since the epoch. */
  at: string;
  /** SQL expression over a row: the milliseconds that it is kept. */
  keptMs: string;
  /** The shortest time that any row is kept. After a younger row nothing has expired. */
  shortestKeptMs: number;
}

/**
 * Trims a table that grows only at its end and has no index on time. Walks the oldest rows until all rows of a step are young. Rows that a wrong
 * clock dated ahead do not end the walk.
 */
function trim({ name, at, keptMs, shortestKeptMs }: TrimmedTable): Step {
  const sql = `SELECT seq, ${at} AS at, ${at} + ${keptMs} < $nowMs AS expired FROM ${name} WHERE seq > $seq ORDER BY seq LIMIT ${BATCH_ROWS}`;
  return async (tx, seq, nowMs) => {
    const rows = await tx.all<{ seq: number; at: number; expired: number }>(sql, { seq, nowMs });
    const expired = rows.filter((row) => row.expired === 1);
    await tx.postEach(
      `DELETE FROM ${name} WHERE seq = $seq`,
      expired.map((row) => ({ seq: row.seq })),
    );
    const oldOrAhead = rows.some((row) => row.at + shortestKeptMs < nowMs || row.at > nowMs);
    return rows.length === BATCH_ROWS && oldOrAhead ? (rows.at(-1)?.seq ?? null) : null;
  };
}

/**
 * Deletes logged requests after 30 days, because they contain callers' addresses. Takes the next environment after `environmentId`, whose ring is
 * small enough for one step.
 */
async function forgetRecentCalls(tx: Writer, environmentId: number, nowMs: number): Promise<number | null> {
  const next = await findEnvironmentAfter(tx, environmentId);
  if (next === null) return null;
  const until = nowMs - EVENT_RETENTION_MS;
  await tx.run("DELETE FROM recent_request WHERE environment_id = ?1 AND at < ?2", next.id, until);
  await tx.run("DELETE FROM unknown_request WHERE environment_id = ?1 AND at < ?2", next.id, until);
  return next.id;
}

/** The events of one transaction, and their bytes with their runs. Deleted data is also overwritten, so that a step takes some milliseconds. */
export const BATCH_EVENTS = 100;
export const BATCH_BYTES = 512 * 1024;

interface OldRow {
  seq: number;
  at: number;
  environmentId: number;
  relayName: string;
  state: string;
  dedupeHash: Uint8Array | null;
  heldAt: number | null;
  app: string | null;
  environment: string | null;
  /** 1 if an active relay still has to run it, else 0. */
  stays: 0 | 1;
  bytes: number;
}

const NEXT_EVENTS = `SELECT event.seq, event.created_at AS at, event.environment_id AS environmentId, ${RELAY_NAME}, event.state,
    event.dedupe_hash AS dedupeHash, environment.held_at AS heldAt, environment.app_id AS app,
    environment.name AS environment, NOT (event.state IN ('done', 'failed', 'dead')
      OR (event.state = 'queued' AND (relay.state = 'paused' OR environment.held_at IS NOT NULL) IS TRUE)) AS stays,
    octet_length(event.payload) + coalesce((SELECT sum(octet_length(results)) FROM run WHERE event_seq = event.seq), 0) AS bytes
  FROM event LEFT JOIN relay_key ON relay_key.key = event.relay_key LEFT JOIN relay ON relay.id = relay_key.relay_id
    LEFT JOIN environment ON environment.id = event.environment_id
  WHERE event.seq > ?1 ORDER BY event.seq LIMIT ${BATCH_EVENTS}`;

/**
 * Deletes the next events older than 30 days, with their runs, effects and deduplication keys. An event that waited all that time for a paused
 * relay or a held environment is dropped without a run, and the owner is alerted. An event that is running, or that an active relay still has to
 * run, stays. The walk ends once all events of a step are young; events that a wrong clock dated ahead do not end it.
 */
export async function retireEvents(
  tx: Writer,
  cursor: number,
  nowMs: number,
  log: Log,
): Promise<number | null> {
  const next = await tx.all<OldRow>(NEXT_EVENTS, cursor);
  const untilMs = nowMs - EVENT_RETENTION_MS;
  let bytes = 0;
  const reached = next.filter((row, index) => {
    bytes += row.at < untilMs && row.stays === 0 ? row.bytes : 0;
    return index === 0 || bytes <= BATCH_BYTES;
  });
  const old = reached.filter((row) => row.at < untilMs && row.stays === 0);
  await dropEvents(tx, old);
  await notifyDropped(
    tx,
    old.filter(({ state }) => state === "queued"),
    nowMs,
    log,
  );
  const goesOn = reached.length < next.length || next.length === BATCH_EVENTS;
  const oldOrAhead = reached.some(({ at }) => at < untilMs || at > nowMs);
  return goesOn && oldOrAhead ? (reached.at(-1)?.seq ?? null) : null;
}

/** Deletes events with their runs, effects and old deduplication keys. The statements are sent without waiting for each answer. */
export async function dropEvents(
  tx: Writer,
  events: readonly { seq: number; dedupeHash: Uint8Array | null }[],
): Promise<void> {
  for (const { seq, dedupeHash } of events)
    if (dedupeHash !== null) await tx.keys.deleteSlot(dedupeHash, seq);
  const rows = events.map(({ seq }) => ({ seq }));
  await tx.postEach("DELETE FROM run WHERE event_seq = $seq", rows);
  await tx.postEach("DELETE FROM effect WHERE event_seq = $seq", rows);
  await tx.postEach("DELETE FROM event WHERE seq = $seq", rows);
}

/** Logs the dropped events, and alerts the owner unless that is switched off. */
async function notifyDropped(tx: Writer, dropped: readonly OldRow[], nowMs: number, log: Log): Promise<void> {
  const byRelay = Map.groupBy(dropped, (row) => `${row.environmentId} ${row.relayName}`);
  for (const rows of byRelay.values()) {
    const [first] = rows;
    if (first === undefined) continue;
    const { environmentId, relayName, app, environment } = first;
    const [held, count] = [first.heldAt !== null, rows.length];
    const where = { app, environment, relay: relayName };
    tx.afterCommit(() => log.warn("waiting events were dropped after 30 days", { ...where, held, count }));
    await alertDropped(tx, { environmentId, relayName, held, count, nowMs });
  }
}

/** Deletes keys before the oldest event. Keys of a segment with an older event stay. */
async function forgetKeys(tx: Writer): Promise<boolean> {
  const oldest = await tx.get<{ seq: number | null }>("SELECT min(seq) AS seq FROM event");
  return await tx.keys.deleteBefore(oldest?.seq ?? Number.MAX_SAFE_INTEGER);
}
