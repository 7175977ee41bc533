/**
 * Whether what an event failed with is still so: by what ran since, by whether the thing is there that was missing, by whether the relay was
 * changed. What is known is said, and where nothing is, that.
 */
import { type Static, Type } from "typebox";
import { toIso, toIsoOrNull } from "../../base/clock.ts";
import { explainCode } from "../../base/result-code.ts";
import { oneOf, orNull, timeOrNull } from "../../base/schema.ts";
import { cutToLine } from "../../base/text.ts";
import { EVENT, findEventSeq, RELAY_NAME, refuseUnknownEvent } from "../../engine/event/event.ts";
import { RUN_RESULTS } from "../../engine/event/run.ts";
import { listOpenProblemsOfTarget } from "../../platform/audit/problem.ts";
import type { StoredResult } from "../../rules/action/contract.ts";
import { findRelay, type RelayRow, relayTarget } from "../../rules/relay/relay.ts";
import { makeCatalogLookup } from "../../rules/relay/relay-reference.ts";
import { findPerson } from "../../shop/people/person.ts";
import { findCollection } from "../../shop/records/collection.ts";
import type { Reader } from "../../store/port.ts";

/** Newest events of a relay that are asked how they went. */
const MAX_SINCE = 200;
/** Results of a run that are read to find what failed. */
const MAX_RESULTS_BYTES = 256 * 1024;
const MAX_SENTENCE = 300;

/** Whether what an event failed with is still so, as far as it is known. */
export const causeView = Type.Object({
  stands: oneOf(["yes", "no", "unknown"]),
  message: Type.String(),
  /** Since when it is so, where that is known. */
  since: timeOrNull,
  /** What it names that is still not there, of the kind that can be made. */
  missing: orNull(Type.Object({ kind: oneOf(["collection", "product", "plan"]), name: Type.String() })),
});
export type EventCause = Static<typeof causeView>;

/** `type`: of the action; null: it ended before any ran. `status`: of what a called URL answered. */
export const failureView = Type.Object({
  type: orNull(Type.String()),
  code: Type.String(),
  message: Type.String(),
  status: orNull(Type.Integer()),
});
type Failure = Static<typeof failureView>;

/** Of one event that failed or died; null: it did neither, or never will run again. */
export async function evaluateEventCause(
  tx: Reader,
  environmentId: number,
  id: string,
): Promise<EventCause | null> {
  const seq = await findEventSeq(tx, environmentId, id);
  const stored = await tx.get<{ relay: string; expunged: number }>(JUDGED_EVENT, seq);
  if (seq === null || stored === null) throw refuseUnknownEvent(id);
  const { state, reason, finishedAt, createdAt, nameKey, personId: person } = JUDGED.read(stored);
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
  return await evaluateCause(tx, { environmentId, nameKey, relay, row, person, failure, deadAt, isFailing });
}

/** Whether an event was expunged, as an expression over its row. */
export const IS_EXPUNGED = `payload LIKE '{"expunged":%'`;

const JUDGED = EVENT.pick("state", "reason", "createdAt", "finishedAt", "nameKey", "personId");
const JUDGED_EVENT = `SELECT ${JUDGED.columns}, ${RELAY_NAME.replace("AS relayName", "AS relay")}, ${IS_EXPUNGED} AS expunged FROM event WHERE seq = ?1`;

/** What the last attempt of an event failed with. */
export async function findFailure(tx: Reader, seq: number, reason: string): Promise<Failure> {
  const sql = `SELECT results FROM run WHERE event_seq = ?1 AND octet_length(results) <= ${MAX_RESULTS_BYTES} ORDER BY number DESC LIMIT 1`;
  const stored = await tx.get<object>(sql, seq);
  const failed = (stored === null ? [] : RUN_RESULTS.read(stored).results).find(isFailed);
  if (failed === undefined)
    return { type: null, code: reason, message: formatFailure({ code: reason }), status: null };
  const { type, code, answer } = failed;
  return { type, code, message: formatFailure(failed), status: answer?.status ?? null };
}

/** What failed, in one line: the stored message, or what the code means where the message was expunged or there is none. */
export function formatFailure({ code, message }: { code: string; message?: string }): string {
  return cutToLine(message ?? explainCode(code)?.when ?? `It ended with ${code}.`, MAX_SENTENCE);
}

function isFailed(result: StoredResult): result is Extract<StoredResult, { outcome: "failed" }> {
  return result.outcome === "failed";
}

interface Judged {
  environmentId: number;
  nameKey: number;
  relay: string;
  row: RelayRow | null;
  /** The event's. */
  person: string | null;
  failure: Failure;
  deadAt: number;
  /** Whether the problem stands that every attempt of it fails. */
  isFailing: boolean;
}

/** What ran since says most; then whether the thing is there that was missing; then whether the relay was changed. */
export async function evaluateCause(tx: Reader, judged: Judged): Promise<EventCause> {
  const { row, failure, deadAt, isFailing, relay } = judged;
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
  const asked = explainCode(failure.code)?.todo ?? "See the newest event, mend the cause, then replay.";
  // It is dead, so what is said of one that waits is not so.
  const todo = asked.replace(
    /[,;] (?:and )?(?:it|the \w+) is tried again(?: with the same id)?/,
    ", then replay the event",
  );
  const since = await findSince(tx, judged);
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
  const mended = await findMended(tx, judged);
  if (mended !== null)
    return { ...say(mended.stands, mended.message, mended.at ?? null), missing: mended.missing ?? null };
  if (since.waiting > 0) {
    const waits = since.waiting === 1 ? "1 event failed" : `${since.waiting} events failed`;
    return say("yes", `${waits} the same way and will be tried again.`);
  }
  if (row.updatedAt > deadAt) {
    const message = `The relay was changed at ${toIso(row.updatedAt)} and none of its events ran since: replay one to see.`;
    return say("unknown", message, row.updatedAt);
  }
  if (isFailing) return say("yes", "Every attempt of this relay still fails.");
  const whose = OF_THE_PERSON.has(failure.code) ? "this person's events" : "its events";
  const ran =
    since.done > 0
      ? "Since then others were done, which tells nothing of this one"
      : `None of ${whose} ran since`;
  return say("unknown", `${ran}. ${todo}`);
}

/** What lies in the event itself: that another came through tells nothing of it, unless the relay was changed in between. */
const OF_THE_EVENT: ReadonlySet<string> = new Set([
  "person_not_found",
  "data_invalid",
  "ref_unresolved",
  "ref_used",
  "mail_empty",
  "purchase_missing",
  "purchase_not_by_relay",
  "unsigned_event",
]);
/** What lies in its person: of that only another event of theirs tells. */
const OF_THE_PERSON: ReadonlySet<string> = new Set([
  "mail_refused",
  "person_suspended",
  "billed_by_processor",
  "email_capped",
]);

const RAN = EVENT.pick("seq", "finishedAt", "reason", "state", "attempts", "personId");

/** How the relay's newest events went after the newest dead one died. */
async function findSince(tx: Reader, { nameKey, failure, deadAt, person }: Judged) {
  const theirs = OF_THE_PERSON.has(failure.code) ? person : null;
  const sql = `SELECT ${RAN.columns} FROM event INDEXED BY event_of_relay WHERE name_key = ?1 ORDER BY seq DESC LIMIT ${MAX_SINCE}`;
  const rows = (await tx.all<object>(sql, nameKey)).map((row) => RAN.read(row));
  const ended = rows.filter(
    ({ finishedAt, personId }) =>
      finishedAt !== null && finishedAt > deadAt && (theirs === null || personId === theirs),
  );
  const done = ended.filter(({ state }) => state === "done");
  // A relay may have been changed so that the action that failed is none of its own any more; then its runs say nothing of that action.
  const [newest] = done;
  const ran = newest === undefined ? null : await ranAction(tx, newest.seq, failure.type);
  const times = ran?.did ? done.map(({ finishedAt }) => finishedAt ?? 0) : [];
  const waiting = rows.filter(
    ({ state, attempts, reason }) => state === "queued" && attempts > 0 && reason === failure.code,
  );
  return {
    done: times.length,
    firstDone: times.length === 0 ? null : Math.min(...times),
    waiting: waiting.length,
    /** What a called URL answered the newest of them. */
    status: ran?.status ?? null,
  };
}

/** Whether its last run did an action of this type; a run that keeps no results, or a failure of none, asks nothing. */
async function ranAction(
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

interface Mended {
  /** Whether it is still not there. */
  stands: "yes" | "no";
  message: string;
  /** Since when it is there, where that is known. */
  at?: number;
  missing?: EventCause["missing"];
}

/** Whether the thing is there now that was missing; null: that cannot be told. */
async function findMended(
  tx: Reader,
  { environmentId, row, person, failure }: Judged,
): Promise<Mended | null> {
  if (row === null) return null;
  if (failure.code === "person_suspended" && person !== null) {
    const is = await findPerson(tx, environmentId, person);
    return is === null || is.status === "suspended"
      ? { stands: "yes", message: "The person is still suspended." }
      : { stands: "no", message: "The person is active again: replaying will probably work." };
  }
  const lacks = (kind: "collection" | "product" | "plan", name: string): Mended => ({
    stands: "yes",
    message: `There is still no ${kind} ${name}.`,
    missing: { kind, name },
  });
  const named = (field: string): string[] =>
    row.definition.actions.flatMap((action) => {
      const value = Object.entries(action).find(([name]) => name === field)?.[1];
      return typeof value === "string" ? [value] : [];
    });
  if (failure.code === "collection_missing") {
    const times: number[] = [];
    for (const name of named("collection")) {
      const collection = await findCollection(tx, environmentId, name);
      if (collection === null) return lacks("collection", name);
      times.push(collection.createdAt);
    }
    if (times.length === 0) return null;
    const at = Math.max(...times, row.updatedAt);
    return {
      stands: "no",
      at,
      message: `The collection is there since ${toIso(at)}: replaying will probably work.`,
    };
  }
  if (failure.code === "product_unknown" || failure.code === "plan_unknown") {
    const kind = failure.code === "product_unknown" ? "product" : "plan";
    const stock = makeCatalogLookup(tx, environmentId);
    for (const name of named(kind)) if ((await stock.findItem(kind, name)) === null) return lacks(kind, name);
    return { stands: "no", message: `The ${kind} is there now: replaying will probably work.` };
  }
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
