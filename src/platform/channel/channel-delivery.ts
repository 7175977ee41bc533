/**
 * Lists what each alert channel still has to send, and records what its service accepted. A row is written after the service accepted a message, so a process that
 * dies in between sends that message again. Alerts of one cause (code and target) are one entry of a message.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../base/limit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { clearProblem, raiseProblem } from "../audit/problem.ts";
import { CHANNEL_CODES, type Channel, channelTarget, findKind, storeResult } from "./channel.ts";
import type { ChannelResult } from "./channel-request.ts";

/** Alerts gather for this time, as for a mail. */
const GATHER_MS = MINUTE_MS;
/** Older alerts are not sent, so that a channel that works again does not begin with last week's. */
const MAX_AGE_MS = DAY_MS;
/** The most new alerts, and the most resolved ones, of one look. A cause that lasts for weeks has an alert for each hour. */
const MAX_OPENED = 50;
const MAX_RESOLVED = 2_000;
/** The waits after the first failures in succession; then the last one. */
const RETRY_MS = [1, 2, 5, 15, 30, 60].map((minutes) => minutes * MINUTE_MS);
/** The longest wait before the next request. */
export const MAX_RETRY_MS = HOUR_MS;
/** A service may recover by itself within this time. */
const GRACE_PERIOD_MS = 15 * MINUTE_MS;

/** The problem of a channel whose service takes no messages. */
export const FAILING_CHANNEL = "alert_channel_failing";

interface AlertOfChannel {
  id: string;
  code: string;
  target: string;
  count: number;
  at: number;
  lastAt: number;
  resolvedAt: number | null;
}

/** One cause that a message reports as open or as resolved. */
export interface Entry {
  state: "open" | "resolved";
  /** The newest alert of the cause. */
  alert: AlertOfChannel;
  /** The alerts that count as reported open once the service accepted the message, and then those that count as reported resolved. */
  opened: readonly string[];
  resolved: readonly string[];
}

const COLUMNS = "alert.id AS id, code, target, count, at, last_at AS lastAt, alert.resolved_at AS resolvedAt";

/** Lists what the channel has to send, in the order in which the alerts began. Returns none while new alerts gather. */
export async function listEntries(
  tx: Reader,
  { id, environmentId, codes, createdAt }: Channel,
  nowMs: number,
): Promise<Entry[]> {
  const since = Math.max(nowMs - MAX_AGE_MS, createdAt);
  // A resolved alert that occurs again within its burst is open again.
  const opened = await tx.all<AlertOfChannel>(
    `SELECT ${COLUMNS} FROM alert LEFT JOIN alert_delivery ON alert_delivery.alert_id = alert.id AND alert_delivery.channel_id = $id
     WHERE environment_id = $environmentId AND last_at >= $since AND code IN (SELECT value FROM json_each($codes))
       AND (alert_delivery.alert_id IS NULL OR (alert_delivery.resolved_at IS NOT NULL AND alert.resolved_at IS NULL))
     ORDER BY alert.id LIMIT ${MAX_OPENED}`,
    { id, environmentId, since, codes: JSON.stringify(codes ?? CHANNEL_CODES) },
  );
  const isGathering = opened.length > 0 && opened.every(({ at }) => Math.abs(nowMs - at) < GATHER_MS);
  if (isGathering) return [];
  const resolved = await tx.all<AlertOfChannel>(
    `SELECT ${COLUMNS} FROM alert_delivery JOIN alert ON alert.id = alert_delivery.alert_id
     WHERE alert_delivery.channel_id = $id AND alert_delivery.resolved_at IS NULL AND alert.resolved_at IS NOT NULL
     ORDER BY alert.id LIMIT ${MAX_RESOLVED}`,
    { id },
  );
  return makeEntries(opened, resolved);
}

function makeEntries(opened: readonly AlertOfChannel[], resolved: readonly AlertOfChannel[]): Entry[] {
  const causes = Map.groupBy([...opened, ...resolved], ({ code, target }) => `${code} ${target}`);
  const first = (alerts: readonly AlertOfChannel[]) => alerts.map(({ id }) => id).sort()[0] ?? "";
  const inOrder = [...causes.values()].sort((one, other) => (first(one) < first(other) ? -1 : 1));
  return inOrder.flatMap((alerts): Entry[] => {
    const alert = alerts.reduce((newest, one) => (one.id > newest.id ? one : newest));
    const news = new Set(opened);
    const idsOf = (some: readonly AlertOfChannel[]) => some.map(({ id }) => id);
    const begun = idsOf(alerts.filter((one) => news.has(one)));
    const over = idsOf(alerts.filter(({ resolvedAt }) => resolvedAt !== null));
    const isOver = alert.resolvedAt !== null;
    const entries: Entry[] = [];
    // A cause that lasts is not reported as resolved, although an earlier alert of it is.
    if (begun.length > 0) entries.push({ state: "open", alert, opened: begun, resolved: isOver ? [] : over });
    if (isOver) entries.push({ state: "resolved", alert, opened: [], resolved: over });
    return entries;
  });
}

/** Records that the service accepted a message with these entries. */
export async function recordDelivered(
  tx: Writer,
  channel: Channel,
  entries: readonly Entry[],
  nowMs: number,
): Promise<void> {
  const { id } = channel;
  // The channel or an alert may have been deleted meanwhile.
  await tx.run(
    `INSERT INTO alert_delivery (alert_id, channel_id, opened_at, resolved_at)
     SELECT alert.id, alert_channel.id, $nowMs, NULL FROM alert JOIN alert_channel ON alert_channel.id = $id
     WHERE alert.id IN (SELECT value FROM json_each($opened))
     ON CONFLICT (alert_id, channel_id) DO UPDATE SET opened_at = $nowMs, resolved_at = NULL`,
    { id, nowMs, opened: JSON.stringify(entries.flatMap(({ opened }) => opened)) },
  );
  // An alert that was resolved after the message was made is not among these, so it gets its own message.
  await tx.run(
    `UPDATE alert_delivery SET resolved_at = $nowMs
     WHERE alert_id IN (SELECT value FROM json_each($resolved)) AND channel_id = $id AND resolved_at IS NULL`,
    { id, nowMs, resolved: JSON.stringify(entries.flatMap(({ resolved }) => resolved)) },
  );
}

/** Records the result of a request. Raises or clears the problem of the channel, and chooses the time of the next request. */
export async function recordResult(
  tx: Writer,
  channel: Channel,
  { meaning, waitMs, message }: ChannelResult,
  nowMs: number,
): Promise<void> {
  const { id, environmentId, name } = channel;
  const key = { environmentId, code: FAILING_CHANNEL, target: channelTarget(id), nowMs } as const;
  const done = { triedAt: nowMs, result: message };
  if (meaning === "ok") {
    await storeResult(tx, { ...channel, ...done, failingAt: null, failures: 0, retryAt: null });
    await clearProblem(tx, key);
    return;
  }
  const failures = channel.failures + 1;
  const failingAt = channel.failingAt ?? nowMs;
  const usualMs = RETRY_MS[Math.min(failures, RETRY_MS.length) - 1] ?? MAX_RETRY_MS;
  const delayMs = meaning === "wrong" ? MAX_RETRY_MS : (waitMs ?? usualMs);
  const exists = await storeResult(tx, {
    ...channel,
    ...done,
    failingAt,
    failures,
    retryAt: nowMs + delayMs,
  });
  if (!exists || (meaning !== "wrong" && nowMs - failingAt < GRACE_PERIOD_MS)) return;
  const title = findKind(channel)?.title ?? channel.kind;
  const what = `Alerts do not reach the channel ${name} (${title}). ${message}`;
  await raiseProblem(tx, { ...key, message: what });
}
