/**
 * Warns about events that wait for a paused relay or a held environment and will be dropped. Three days before the first one is, it alerts the
 * owner once, and a problem exists until no event waits so long. It drops nothing.
 */

import { toIso } from "../../base/clock.ts";
import { DAY_MS, EVENT_RETENTION_MS } from "../../base/limit.ts";
import { formatCount } from "../../base/text.ts";
import { findEnvironmentAfter } from "../../platform/account/environment.ts";
import { raiseAlert } from "../../platform/audit/alert.ts";
import {
  clearProblem,
  EVENTS_EXPIRING,
  listOpenProblemsOfCode,
  raiseProblem,
} from "../../platform/audit/problem.ts";
import { relayTarget } from "../../rules/relay/relay.ts";
import type { Reader, Writer } from "../../store/port.ts";

/** The time before the drop at which the owner is alerted. */
const NOTICE_MS = 3 * DAY_MS;
/** The most events that are counted: of one relay, and of an environment. */
const MAX_COUNTED = 1_000;
const MAX_COUNTED_ALTOGETHER = 10_000;

/** Checks the next environment after `environmentId`. Returns its number, or null after the last. */
export async function notifyExpiring(
  tx: Writer,
  environmentId: number,
  nowMs: number,
): Promise<number | null> {
  const environment = await findEnvironmentAfter(tx, environmentId);
  if (environment === null) return null;
  const { id, heldAt } = environment;
  const waiting = new Set<string>();
  let left = MAX_COUNTED_ALTOGETHER;
  for (const { relayId, name, state } of await listWaitingRelays(tx, id, heldAt !== null)) {
    const old = await countOld(
      tx,
      relayId,
      nowMs - EVENT_RETENTION_MS + NOTICE_MS,
      Math.max(1, Math.min(left, MAX_COUNTED)),
    );
    if (old === null) continue;
    left -= old.count;
    const target = relayTarget(name);
    waiting.add(target);
    const message = formatMessage(name, old, { held: heldAt !== null, paused: state === "paused" });
    const trouble = { environmentId: id, code: EVENTS_EXPIRING, target, message, nowMs } as const;
    if (await raiseProblem(tx, trouble)) await raiseAlert(tx, trouble);
  }
  for (const { target } of await listOpenProblemsOfCode(tx, id, EVENTS_EXPIRING))
    if (!waiting.has(target))
      await clearProblem(tx, { environmentId: id, code: EVENTS_EXPIRING, target, nowMs });
  return id;
}

/** Lists the relays whose events wait for a resume or a release. */
function listWaitingRelays(
  tx: Reader,
  environmentId: number,
  held: boolean,
): Promise<{ relayId: string; name: string; state: string }[]> {
  const sql = `SELECT id AS relayId, name, state FROM relay WHERE environment_id = ?1 AND (?2 = 1 OR state = 'paused') ORDER BY name`;
  return tx.all(sql, environmentId, held);
}

interface Old {
  /** The number of events, at most the requested number. */
  count: number;
  firstAt: number;
}

/** Counts the relay's waiting events that arrived before `untilMs`. Returns null where there are none. */
async function countOld(tx: Reader, relayId: string, untilMs: number, most: number): Promise<Old | null> {
  const due = `SELECT created_at AS at FROM event INDEXED BY event_ready
    WHERE relay_key = (SELECT key FROM relay_key WHERE relay_id = ?1) AND state = 'queued' AND next_attempt_at IS NULL ORDER BY seq`;
  const first = await tx.get<{ at: number }>(`${due} LIMIT 1`, relayId);
  if (first === null || first.at >= untilMs) return null;
  const counted = await tx.get<{ count: number }>(
    `SELECT count(*) AS count FROM (${due} LIMIT ?3) WHERE at < ?2`,
    relayId,
    untilMs,
    most,
  );
  return { count: counted?.count ?? 1, firstAt: first.at };
}

function formatMessage(
  name: string,
  { count, firstAt }: Old,
  { held, paused }: { held: boolean; paused: boolean },
): string {
  const what =
    count === 1
      ? `1 event of ${name} has`
      : `${formatCount(count)}${count >= MAX_COUNTED ? " or more" : ""} events of ${name} have`;
  const hold = ["the environment is on hold", "release the hold (relay settings set held off)"] as const;
  const pause = ["the relay is paused", `resume it (relay relays resume ${name})`] as const;
  const brakes = [...(held ? [hold] : []), ...(paused ? [pause] : [])];
  const [why, how] = [0, 1].map((at) => brakes.map((brake) => brake[at]).join(" and "));
  const end = `${why}: ${how} to run them`;
  return `${what} waited since ${toIso(firstAt)} and will be dropped from ${toIso(firstAt + EVENT_RETENTION_MS)} on, because ${end}.`;
}
