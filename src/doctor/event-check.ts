/** What the rows tell of the service's health: events that wait too long or died, standing problems, and a clock that went back. */
import { toIso } from "../ground/clock.ts";
import { DAY_MS } from "../ground/limit.ts";
import type { Reader } from "../store/port.ts";
import { type Finding, fine, type Patient, worry } from "./finding.ts";
import { count, writeDuration } from "./size-words.ts";

const LONG_WAIT_MS = 5 * 60_000;
/** A clock that is kept by the network is never this far off. */
const CLOCK_SLACK_MS = 60_000;
const NAMED = 5;

/** Events that wait for a paused relay, a held environment or their retry are as they should be. */
export async function checkQueue(tx: Reader, { clock }: Patient): Promise<Finding> {
  const row = await tx.get<{ count: number; oldest: number | null }>(
    `SELECT count(*) AS count, min(event.created_at) AS oldest FROM event
     JOIN relay ON relay.id = event.relay_id JOIN environment ON environment.id = event.environment_id
     WHERE event.state = 'queued' AND event.next_attempt_at IS NULL AND event.runs = 0
       AND relay.state = 'active' AND environment.held_at IS NULL`,
  );
  const waiting = row?.count ?? 0;
  if (row === null || row.oldest === null) return fine("queue", "No event waits for its turn.");
  const waited = clock.now() - row.oldest;
  const message = `Waiting for their turn: ${count(waiting, "event")}, the oldest for ${writeDuration(waited)}.`;
  if (waited < LONG_WAIT_MS) return fine("queue", message);
  return worry("queue", message, "see that the server runs and what its log says");
}

export async function checkDead(tx: Reader, { clock }: Patient): Promise<Finding> {
  const relays = await tx.all<{ name: string; count: number }>(
    `SELECT relay_name AS name, count(*) AS count FROM event
     WHERE state IN ('failed', 'dead') AND state = 'dead' AND finished_at >= ?1 GROUP BY relay_name ORDER BY count(*) DESC`,
    clock.now() - DAY_MS,
  );
  const dead = relays.reduce((sum, relay) => sum + relay.count, 0);
  if (dead === 0) return fine("dead events", "None in the last 24 hours.");
  const names = relays.slice(0, NAMED).map((relay) => `${relay.name} ${relay.count}`);
  return worry(
    "dead events",
    `${dead} in the last 24 hours (${names.join(", ")}).`,
    "relay events list --state dead shows them; replay them once their cause is mended",
  );
}

export async function checkProblems(tx: Reader): Promise<Finding> {
  const standing = await tx.all<{ code: string; target: string }>(
    "SELECT code, target FROM problem WHERE cleared_at IS NULL ORDER BY raised_at DESC",
  );
  if (standing.length === 0) return fine("problems", "None stands.");
  const names = standing.slice(0, NAMED).map(({ code, target }) => `${code} on ${target}`);
  return worry(
    "problems",
    `${standing.length} stand: ${names.join(", ")}.`,
    "the dashboard says what to do about each",
  );
}

export async function checkClock(tx: Reader, { clock }: Patient): Promise<Finding> {
  const last = await tx.get<{ at: number }>("SELECT created_at AS at FROM event ORDER BY seq DESC LIMIT 1");
  const nowMs = clock.now();
  if (last !== null && last.at > nowMs + CLOCK_SLACK_MS) {
    return worry(
      "clock",
      `The last event came at ${toIso(last.at)}, which is after now (${toIso(nowMs)}).`,
      "set this machine's clock by the network; signed timestamps verify within five minutes only",
    );
  }
  return fine("clock", `It is ${toIso(nowMs)}, and no event comes from later.`);
}
