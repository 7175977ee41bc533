/**
 * Evaluates whether the cause of a failed event still exists. It reads later runs of the relay, looks for a missing thing, and checks whether the
 * relay was changed. Says so where nothing is known.
 */
import { type Static, Type } from "typebox";
import { toIso, toIsoOrNull } from "../../base/clock.ts";
import { findMeaning } from "../../base/code/code.ts";
import { oneOf, orNull, quotingText, timeOrNull } from "../../base/schema.ts";
import { shortenToLine } from "../../base/text.ts";
import { EVENT, findEventSeq, RELAY_NAME, rejectUnknownEvent } from "../../engine/event/event.ts";
import { RUN_RESULTS } from "../../engine/event/run.ts";
import { listOpenProblemsOfTarget } from "../../platform/audit/problem.ts";
import type { StoredResult } from "../../rules/action/contract.ts";
import { findChangeAfterFailure } from "../../rules/relay/newer-change.ts";
import { findRecentChange, recentChangeView } from "../../rules/relay/recent-change.ts";
import { findRelay, type RelayRow, relayTarget } from "../../rules/relay/relay.ts";
import {
  formatMissing,
  listCatalogTargets,
  listMissing,
  type MissingThing,
  makeCatalogLookup,
  missingThing,
} from "../../rules/relay/relay-reference.ts";
import { TroubleRows } from "../../rules/relay/trouble-rows.ts";
import { findPerson } from "../../shop/people/person.ts";
import { findCollection } from "../../shop/records/collection.ts";
import type { Reader } from "../../store/port.ts";

/** The most of a relay's newest events that are read. */
const MAX_SINCE = 200;
/** Larger results of a run are not read. */
const MAX_RESULTS_BYTES = 256 * 1024;
const MAX_SENTENCE = 300;

/** The known state of a failure's cause. */
export const causeView = Type.Object({
  stands: oneOf(["yes", "no", "unknown"]),
  message: Type.String(),
  /** The time when the cause began or ended, where that is known. */
  since: timeOrNull,
  /** The missing item that the relay names, and the existing name that is probably meant. */
  missing: orNull(Type.Pick(missingThing, ["kind", "name", "near"])),
});
export type EventCause = Static<typeof causeView>;

/** The cause of one event's failure, with the change that was made shortly before the failures of its relay began. */
export const eventCauseView = Type.Object({ ...causeView.properties, change: orNull(recentChangeView) });
export type EventCauseView = Static<typeof eventCauseView>;

/** `type` is the action's; null where the event ended before any action ran. `status` is the HTTP status that a called URL answered. */
export const failureView = Type.Object({
  type: orNull(Type.String()),
  code: Type.String(),
  message: quotingText,
  status: orNull(Type.Integer()),
});
type Failure = Static<typeof failureView>;

/** Evaluates the cause of one failed or dead event. Returns null where the event did not fail, or can never run again. */
export async function evaluateEventCause(
  tx: Reader,
  environmentId: number,
  id: string,
): Promise<EventCauseView | null> {
  const seq = await findEventSeq(tx, environmentId, id);
  const stored = await tx.get<{ relay: string; expunged: number }>(EVALUATED_EVENT, seq);
  if (seq === null || stored === null) throw rejectUnknownEvent(id);
  const { state, reason, finishedAt, createdAt, nameKey, personId: person } = EVALUATED.read(stored);
  const isOver =
    stored.expunged === 1 || ["missed", "person_erased", "payload_expunged"].includes(reason ?? "");
  if ((state !== "dead" && state !== "failed") || isOver) return null;
  const { relay } = stored;
  const [row, failure] = [
    await findRelay(tx, environmentId, relay),
    await findFailure(tx, seq, reason ?? "interrupted"),
  ];
  const deadAt = finishedAt ?? createdAt;
  const problems = await listOpenProblemsOfTarget(tx, environmentId, relayTarget(relay));
  const isFailing = problems.some(({ code }) => code === "relay_failing");
  const rows = new TroubleRows(environmentId);
  const subject = { environmentId, rows, nameKey, relay, row, person, failure, deadAt, isFailing };
  const cause = await evaluateCause(tx, subject);
  const trouble = { code: "relay_failed", target: relayTarget(relay), sinceMs: deadAt };
  const change = cause.stands === "no" ? null : await findRecentChange(tx, rows, trouble);
  // An event that failed before the change did not fail because of it.
  return { ...cause, change: change !== null && Date.parse(change.at) <= deadAt ? change : null };
}

/** SQL expression over an event's row that is true if the event was expunged. */
export const IS_EXPUNGED = `payload LIKE '{"expunged":%'`;

const EVALUATED = EVENT.pick("state", "reason", "createdAt", "finishedAt", "nameKey", "personId");
const EVALUATED_EVENT = `SELECT ${EVALUATED.columns}, ${RELAY_NAME.replace("AS relayName", "AS relay")}, ${IS_EXPUNGED} AS expunged FROM event WHERE seq = ?1`;

/** Finds what the last attempt of an event failed with. */
export async function findFailure(tx: Reader, seq: number, reason: string): Promise<Failure> {
  const sql = `SELECT results FROM run WHERE event_seq = ?1 AND octet_length(results) <= ${MAX_RESULTS_BYTES} ORDER BY number DESC LIMIT 1`;
  const stored = await tx.get<object>(sql, seq);
  const failed = (stored === null ? [] : RUN_RESULTS.read(stored).results).find(isFailed);
  if (failed === undefined)
    return { type: null, code: reason, message: formatFailure({ code: reason }), status: null };
  const { type, code, answer } = failed;
  return { type, code, message: formatFailure(failed), status: answer?.status ?? null };
}

/** Formats a failure in one line: the stored message, or what the code means where no message is stored. */
export function formatFailure({ code, message }: { code: string; message?: string }): string {
  return shortenToLine(
    message ?? findMeaning(code, ["result"])?.what ?? `It ended with ${code}.`,
    MAX_SENTENCE,
  );
}

function isFailed(result: StoredResult): result is Extract<StoredResult, { outcome: "failed" }> {
  return result.outcome === "failed";
}

interface EvaluatedEvent {
  environmentId: number;
  rows: TroubleRows;
  nameKey: number;
  relay: string;
  row: RelayRow | null;
  /** The person of the event. */
  person: string | null;
  failure: Failure;
  deadAt: number;
  /** True if the problem exists that every attempt of this relay fails. */
  isFailing: boolean;
}

/** Evaluates, in this order: what ran since, whether the missing thing exists now, and whether something was changed after the last failure. */
export async function evaluateCause(tx: Reader, event: EvaluatedEvent): Promise<EventCause> {
  const { row, failure, deadAt, isFailing, relay } = event;
  const say = (stands: EventCause["stands"], message: string, sinceMs: number | null = null) => ({
    stands,
    message,
    since: toIsoOrNull(sinceMs),
    missing: null,
  });
  if (row === null)
    return say(
      "yes",
      `The relay ${relay} is deleted: its events run again only once there is one of that name.`,
    );
  const since = await findSince(tx, event);
  const { firstDone } = since;
  if (failure.code === "missed" && firstDone !== null)
    return say(
      "no",
      `Ticks run again since ${toIso(firstDone)}: replay those that are still wanted.`,
      firstDone,
    );
  if (firstDone !== null && (!OF_THE_EVENT.has(failure.code) || row.updatedAt > deadAt)) {
    const runs = since.done === 1 ? "its last run was" : `its last ${since.done} runs were`;
    const what = since.status === null ? `${runs} done` : `the URL answers ${since.status}`;
    return say("no", `Since ${toIso(firstDone)} ${what}: replaying will probably work.`, firstDone);
  }
  const check = await checkMissing(tx, event);
  if (check !== null)
    return { ...say(check.stands, check.message, check.at ?? null), missing: check.missing ?? null };
  const newer = await findChangeAfterFailure(tx, event.rows, {
    relay,
    code: failure.code,
    failedAt: Math.max(deadAt, since.lastFailedAt),
    check: "Replay one event to see.",
  });
  if (newer !== null) return say("unknown", newer.message, newer.atMs);
  if (since.waiting > 0) {
    const waits = since.waiting === 1 ? "1 event failed" : `${since.waiting} events failed`;
    return say("yes", `${waits} the same way and will be retried.`);
  }
  if (isFailing) return say("yes", "Every attempt of this relay still fails.");
  const affected = OF_THE_PERSON.has(failure.code) ? "this person's events" : "its events";
  const ran =
    since.done > 0
      ? "Since then other events were done, but that does not show that this one works"
      : `None of ${affected} ran since`;
  return say("unknown", `${ran}. ${adviseOn(failure.code)}`);
}

/** Returns what to do about a dead event. A failure that is retried has no advice to replay, because its events usually still wait. */
function adviseOn(code: string): string {
  const meaning = findMeaning(code, ["result"]);
  if (meaning === null) return "Read the newest event, fix the cause, then replay it.";
  return meaning.next === null ? meaning.todo : `${meaning.todo} Then replay the event.`;
}

/** Failures that lie in the event itself. The success of another event proves nothing about them, unless the relay was changed in between. */
const OF_THE_EVENT: ReadonlySet<string> = new Set([
  "person_not_found",
  "customer_unknown",
  "data_invalid",
  "ref_unresolved",
  "ref_used",
  "mail_empty",
  "purchase_missing",
  "purchase_not_by_relay",
  "unsigned_event",
]);
/** Failures that lie in the person. Only another event of the same person proves anything about them. */
const OF_THE_PERSON: ReadonlySet<string> = new Set([
  "mail_refused",
  "person_suspended",
  "billed_by_processor",
  "email_capped",
]);

const RAN = EVENT.pick("seq", "startedAt", "finishedAt", "reason", "state", "attempts", "personId");

/** Finds how the relay's newest events ended after the newest dead one died. */
async function findSince(tx: Reader, { nameKey, failure, deadAt, person }: EvaluatedEvent) {
  const theirs = OF_THE_PERSON.has(failure.code) ? person : null;
  const sql = `SELECT ${RAN.columns} FROM event INDEXED BY event_of_relay WHERE name_key = ?1 ORDER BY seq DESC LIMIT ${MAX_SINCE}`;
  const rows = (await tx.all<object>(sql, nameKey)).map((row) => RAN.read(row));
  const ended = rows.filter(
    ({ finishedAt, personId }) =>
      finishedAt !== null && finishedAt > deadAt && (theirs === null || personId === theirs),
  );
  const done = ended.filter(({ state }) => state === "done");
  // After a change of the relay, the failed action may no longer be part of it. Then later runs prove nothing
  // about that action.
  const [newest] = done;
  const ran = newest === undefined ? null : await readLastRun(tx, newest.seq, failure.type);
  const times = ran?.did ? done.map(({ finishedAt }) => finishedAt ?? 0) : [];
  const waiting = rows.filter(
    ({ state, attempts, reason }) => state === "queued" && attempts > 0 && reason === failure.code,
  );
  const failed = rows.filter(({ state, reason }) => state !== "done" && reason === failure.code);
  return {
    done: times.length,
    firstDone: times.length === 0 ? null : Math.min(...times),
    waiting: waiting.length,
    /** The start of the newest attempt that failed the same way. */
    lastFailedAt: Math.max(0, ...failed.map(({ startedAt }) => startedAt ?? 0)),
    /** The status that a called URL answered to the newest of them. */
    status: ran?.status ?? null,
  };
}

/** Returns whether the last run of an event did an action of this type; true where the run stores no results, or where no action failed. */
async function readLastRun(
  tx: Reader,
  seq: number,
  type: string | null,
): Promise<{ did: boolean; status: number | null }> {
  const sql = `SELECT results FROM run WHERE event_seq = ?1 AND octet_length(results) <= ${MAX_RESULTS_BYTES} ORDER BY number DESC LIMIT 1`;
  const stored = await tx.get<object>(sql, seq);
  if (type === null || type === "person" || stored === null) return { did: true, status: null };
  const did = RUN_RESULTS.read(stored).results.find((one) => one.type === type && one.outcome !== "failed");
  return { did: did !== undefined, status: did?.answer?.status ?? null };
}

interface MissingCheck {
  /** "yes" while the thing is still missing. */
  stands: "yes" | "no";
  message: string;
  /** The time when the thing was created, where that is known. */
  at?: number;
  missing?: EventCause["missing"];
}

/** Finds out whether the missing thing exists now. Returns null where that is not known. */
async function checkMissing(
  tx: Reader,
  { environmentId, row, person, failure, deadAt }: EvaluatedEvent,
): Promise<MissingCheck | null> {
  if (row === null) return null;
  if (failure.code === "person_suspended" && person !== null) {
    const found = await findPerson(tx, environmentId, person);
    return found === null || found.status === "suspended"
      ? { stands: "yes", message: "The person is still suspended." }
      : { stands: "no", message: "The person is active again: replaying will probably work." };
  }
  const kinds = KINDS[failure.code];
  if (kinds !== undefined) return await checkCatalog(tx, environmentId, row, kinds, deadAt);
  if (failure.code === "no_signing_secret") {
    const at = row.signingSecretSetAt;
    if (at === null) return { stands: "yes", message: "The relay still has no signing secret." };
    return {
      stands: "no",
      at,
      message: `It has a signing secret since ${toIso(at)}: replaying will probably work.`,
    };
  }
  return null;
}

/** The kinds of catalog items that a failure can name. */
const KINDS: Readonly<Record<string, readonly MissingThing["kind"][]>> = {
  collection_missing: ["collection"],
  product_unknown: ["product"],
  plan_unknown: ["plan"],
  entitlement_unknown: ["access", "product", "plan"],
};

/** Checks whether every catalog item that the relay names exists now. Returns null if it names none. */
async function checkCatalog(
  tx: Reader,
  environmentId: number,
  { definition, updatedAt }: RelayRow,
  kinds: readonly MissingThing["kind"][],
  deadAt: number,
): Promise<MissingCheck | null> {
  const named = listCatalogTargets(definition).filter((target) =>
    kinds.some((kind) => target.startsWith(`${kind}:`)),
  );
  if (named.length === 0) return null;
  const missing = (await listMissing(makeCatalogLookup(tx, environmentId), definition)).find(
    ({ kind, there }) => !there && kinds.includes(kind),
  );
  if (missing !== undefined) {
    const { kind, name, near } = missing;
    return { stands: "yes", message: formatMissing(missing, true), missing: { kind, name, near } };
  }
  const nouns = kinds.length === 1 ? kinds[0] : "item";
  if (updatedAt > deadAt) {
    const message = `The relay was changed at ${toIso(updatedAt)}, and each ${nouns} that it names exists: replaying will probably work.`;
    return { stands: "no", at: updatedAt, message };
  }
  const at = await findCreatedAt(tx, environmentId, named);
  const since = at === null ? "now" : `since ${toIso(at)}`;
  return {
    stands: "no",
    ...(at === null ? {} : { at }),
    message: `The ${nouns} is there ${since}: replaying will probably work.`,
  };
}

/** Finds when the newest of the named collections was created. Returns null if no collection is named. */
async function findCreatedAt(
  tx: Reader,
  environmentId: number,
  targets: readonly string[],
): Promise<number | null> {
  const times: number[] = [];
  for (const target of targets) {
    if (!target.startsWith("collection:")) continue;
    const collection = await findCollection(tx, environmentId, target.slice("collection:".length));
    if (collection !== null) times.push(collection.createdAt);
  }
  return times.length === 0 ? null : Math.max(...times);
}
