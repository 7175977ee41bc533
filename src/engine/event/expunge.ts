/**
 * Removes personal data from an event: its payload, and what its results quote. The row, its state and the outcomes stay. An expunged event never
 * runs again. The erasure of a person expunges the events about them. In other earlier events it redacts the address, and those events still run. The
 * maintenance jobs walk through the events.
 */
import {
  isJsonObject,
  type Json,
  type JsonObject,
  parseJson,
  scalarText,
  writeJson,
} from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import { writeAudit } from "../../platform/audit/audit.ts";
import { spaceOf } from "../../rules/relay/customer-space.ts";
import type { Definition } from "../../rules/relay/definition-shape.ts";
import { RELAY } from "../../rules/relay/relay.ts";
import { withSourceScheme } from "../../rules/relay/source.ts";
import { findPersonKey, type ReceiverTrigger } from "../../rules/trigger/receiver.ts";
import type { OpenErasure } from "../../shop/people/person-erase.ts";
import type { PiiMatcher } from "../../shop/people/pii-match.ts";
import { type LookedAt, reach } from "../../store/index-scan.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import {
  EVENT,
  type Expunged,
  findEventSeq,
  readExpunged,
  readRecordPerson,
  rejectUnknownEvent,
} from "./event.ts";
import { OF_ENVIRONMENT, oldestSpan } from "./number-range.ts";

/** The most runs that one step rewrites. A run with ten called URLs that answered 4 KB takes about 50 KB. */
const STEP_RUNS = 25;

/** Removes the payload, its preview, the warnings, and what the runs quote. */
async function expungeEvent(tx: Writer, eventSeq: number, why: Expunged): Promise<void> {
  await expungePayload(tx, eventSeq, why);
  for (let after: number | null = 0; after !== null; ) after = await expungeRuns(tx, eventSeq, after);
}

async function expungePayload(tx: Writer, eventSeq: number, why: Expunged): Promise<void> {
  const payload = writeJson({ expunged: why });
  await EVENT.change(tx, { seq: eventSeq }, { payload, truncated: false, preview: null, warnings: null });
  await tx.post("UPDATE effect SET result = NULL WHERE event_seq = ?1", eventSeq);
}

/** Removes what the next runs after the number `after` quote. Returns the number to continue after, or null. */
async function expungeRuns(tx: Writer, eventSeq: number, after: number): Promise<number | null> {
  const runs = await tx.all<{ number: number; results: string }>(
    `SELECT number, results FROM run WHERE event_seq = ?1 AND number > ?2 ORDER BY number LIMIT ${STEP_RUNS}`,
    eventSeq,
    after,
  );
  for (const { number, results } of runs) {
    const bare = writeJson(bareResults(parseJson(results)));
    if (bare === results) continue;
    await tx.post("UPDATE run SET results = ?3 WHERE event_seq = ?1 AND number = ?2", eventSeq, number, bare);
  }
  return runs.length < STEP_RUNS ? null : (runs.at(-1)?.number ?? null);
}

/** Keeps only the type, outcome and code of each result. */
function bareResults(results: Json): Json {
  if (!Array.isArray(results)) return [];
  return results.map((result) => {
    const { type = "", outcome = "", code } = isJsonObject(result) ? result : ({} as JsonObject);
    return { type, outcome, ...(code === undefined ? {} : { code }) };
  });
}

interface ExpungeRequest {
  environmentId: number;
  id: string;
  /** The actor that asks, in the form of the audit log. */
  actor: string;
  nowMs: number;
}

/**
 * Expunges one event for a user, and audits it. A queued event fails with `payload_expunged`. An expunged event does not change, and neither do the
 * mails that the event caused. Runs are rewritten in steps; after an interruption the same call continues. Refuses with `not_found`, and with
 * `not_expungeable` if the event is running.
 */
export async function expungeManually(store: Store, request: ExpungeRequest): Promise<void> {
  const eventSeq = await store.write("erasure", (tx) => beginExpunging(tx, request), request.environmentId);
  for (let after: number | null = 0; after !== null; ) {
    const from: number = after;
    after = await store.write(
      "erasure",
      async (tx) => {
        const next = await expungeRuns(tx, eventSeq, from);
        // Notifies at the end, because the file may be vacuumed only after the last run is rewritten.
        if (next === null) tx.notify("erasure");
        return next;
      },
      request.environmentId,
    );
  }
}

const EXPUNGED_EVENT = EVENT.pick("seq", "state", "payload");

/** Removes the payload, audits that, and returns the event's number. */
async function beginExpunging(tx: Writer, request: ExpungeRequest): Promise<number> {
  const { environmentId, id, actor, nowMs } = request;
  const seq = await findEventSeq(tx, environmentId, id);
  const event = seq === null ? null : await EXPUNGED_EVENT.find(tx, { seq });
  if (event === null) throw rejectUnknownEvent(id);
  if (event.state === "running") {
    throw new Refusal(
      "not_expungeable",
      "The event is running, so its payload is in use: wait until its attempt has ended, a few seconds at most, then expunge it.",
    );
  }
  if (readExpunged(parseJson(event.payload)) !== null) return event.seq;
  const why: Expunged = "payload_expunged";
  await expungePayload(tx, event.seq, why);
  const ends = event.state === "queued";
  if (ends) {
    const end = { state: "failed", reason: why, nextAttemptAt: null, finishedAt: nowMs } as const;
    await EVENT.change(tx, { seq: event.seq }, end);
  }
  await writeAudit(tx, {
    environmentId,
    nowMs,
    by: actor,
    action: "event.expunged",
    target: `event:${id}`,
    before: { state: event.state },
    after: { state: ends ? "failed" : event.state, payload: null },
  });
  return event.seq;
}

/** The most rows that one step of a sweep reads, which takes some milliseconds. */
export const STEP_ROWS = 200;

/** An open erasure with the text to find. */
export interface Open extends OpenErasure {
  text: PiiMatcher;
}

interface SweptEvent {
  seq: number;
  createdAt: number;
  state: string;
  personId: string | null;
  payload: string;
  preview: string | null;
  warnings: string | null;
}

const EVENT_COLUMNS =
  "seq, created_at AS createdAt, state, person_id AS personId, payload, preview, warnings";

/** Finds the current event, or null. */
export function readSweptEvent(tx: Reader, seq: number): Promise<SweptEvent | null> {
  return tx.get<SweptEvent>(`SELECT ${EVENT_COLUMNS} FROM event WHERE seq = ?1`, seq);
}

/** Lists the next events after the number `seq`, as many as one step may read. */
export async function readEvents(tx: Reader, environmentId: number, seq: number): Promise<SweptEvent[]> {
  const span = await oldestSpan(tx, environmentId, seq, STEP_ROWS);
  if (span === null) return [];
  const fromRelay = `FROM event INDEXED BY event_of_relay WHERE ${OF_ENVIRONMENT.replace("?", "?1")} AND seq >= ?2`;
  const heads = await tx.all<LookedAt>(
    `SELECT seq AS key, octet_length(payload) + coalesce(octet_length(preview), 0)
       + coalesce((SELECT sum(octet_length(results)) FROM run WHERE event_seq = event.seq), 0) AS cost ${fromRelay} AND seq < ?3 ORDER BY seq`,
    environmentId,
    span.from,
    span.to,
  );
  const { floor: last } = reach(heads, STEP_ROWS);
  if (last === null) return [];
  const sql = `SELECT ${EVENT_COLUMNS} ${fromRelay} AND seq <= ?3 ORDER BY seq`;
  return await tx.all<SweptEvent>(sql, environmentId, span.from, last);
}

/**
 * Expunges the events about these people, with the events of the same requests that name no person. In other events that arrived before the erasure
 * it redacts the address. It works on the events in parallel, because each needs round trips on PostgreSQL.
 */
export async function sweepEvents(
  tx: Writer,
  events: readonly SweptEvent[],
  targets: readonly Open[],
): Promise<void> {
  // Reads everything before the first write, because a redacted event no longer equals the others of its request.
  const found = await Promise.all(events.map((event) => listAbout(tx, event, targets)));
  const about = new Set(found.flat());
  const others = events.filter(({ seq }) => !about.has(seq));
  await Promise.all([
    ...about.values().map((seq) => expungeEvent(tx, seq, "person_erased")),
    ...others.map((event) => redactForAll(tx, event, targets)),
  ]);
}

/** Lists the number of the event and of the others of its request, if it is about one of these people; otherwise nothing. */
async function listAbout(tx: Reader, event: SweptEvent, targets: readonly Open[]): Promise<number[]> {
  for (const one of targets) {
    if (await isAboutTarget(tx, event, one)) return [event.seq, ...(await listSiblings(tx, event, one))];
  }
  return [];
}

async function isAboutTarget(tx: Reader, event: SweptEvent, { text, eventSeq }: Open): Promise<boolean> {
  const isBefore = event.seq <= eventSeq;
  const isNamed = isBefore && text.isNamedAt(event.createdAt);
  if (isBefore && (await isOfCustomer(tx, event, text))) return true;
  if (text.personId !== event.personId && !names(event, text, isNamed)) return false;
  const payload = parseJson(event.payload);
  return readExpunged(payload) !== "person_erased" && isAbout(event, payload, text, isNamed);
}

/**
 * Lists the events of the same request that name no person, such as that of a source whose followers find the person. They have the same body and
 * time. No other event of the environment has a number between theirs, so each is the nearest one of its relay. A body that this erasure redacted
 * counts as the same.
 */
async function listSiblings(tx: Reader, event: SweptEvent, { environmentId, text }: Open): Promise<number[]> {
  const { seq, createdAt, payload, preview } = event;
  const body = bodyOf(payload);
  if (body === null) return [];
  const rows = await tx.all<Pick<SweptEvent, "seq" | "payload">>(
    `SELECT seq, payload FROM event WHERE seq IN (SELECT seq ${NEAREST}) AND environment_id = $environmentId
       AND created_at = $createdAt AND person_id IS NULL AND (instr(payload, $body) = 1 OR instr(payload, $redacted) = 1)
       AND coalesce(preview, '') IN ($preview, $redactedPreview)`,
    {
      environmentId,
      seq,
      createdAt,
      body,
      redacted: bodyOf(text.redactStored(payload)) ?? body,
      preview: preview ?? "",
      redactedPreview: text.redactStored(preview ?? ""),
    },
  );
  const isFree = await Promise.all(rows.map((row) => namesNoPerson(tx, row)));
  return rows.filter((_row, at) => isFree[at]).map((row) => row.seq);
}

/** The events of an environment that are next to an event, of each relay one before and one after it. */
const NEAREST = `FROM (
    SELECT (SELECT seq FROM event INDEXED BY event_of_relay WHERE name_key = relay_name.key AND seq < $seq ORDER BY seq DESC LIMIT 1) AS seq
    FROM relay_name WHERE environment_id = $environmentId
    UNION ALL
    SELECT (SELECT seq FROM event INDEXED BY event_of_relay WHERE name_key = relay_name.key AND seq > $seq ORDER BY seq LIMIT 1) AS seq
    FROM relay_name WHERE environment_id = $environmentId)`;

/** Returns a receiver's payload up to its mapped values; null for other payloads. */
function bodyOf(stored: string): string | null {
  const payload = parseJson(stored);
  if (!isJsonObject(payload) || !isJsonObject(payload.mapped)) return null;
  const mapped = `${writeJson(payload.mapped)}}`;
  return stored.endsWith(mapped) ? stored.slice(0, -mapped.length) : null;
}

/** Reports whether the event names no person and no customer by its relay's map. Another person's event can wait for its attempt. */
async function namesNoPerson(
  tx: Reader,
  { seq, payload }: Pick<SweptEvent, "seq" | "payload">,
): Promise<boolean> {
  const definition = await findDefinitionOf(tx, seq);
  if (definition?.trigger.kind !== "receiver") return true;
  const { mapped } = parseJson(payload) as { mapped: JsonObject };
  const { person, customer } = readNamed(definition.trigger, mapped);
  return person === "" && customer === "";
}

/** Redacts the addresses of the people in an event that is not about them, and in what its runs quote. */
async function redactForAll(tx: Writer, event: SweptEvent, targets: readonly Open[]): Promise<void> {
  for (const { text, eventSeq } of targets) {
    if (event.seq > eventSeq || text.isShared || !names(event, text, true)) continue;
    if (readExpunged(parseJson(event.payload)) === "person_erased") return;
    await redactEvent(tx, event, text);
  }
  if (event.seq <= Math.max(...targets.map(({ eventSeq }) => eventSeq)))
    await redactRuns(tx, event.seq, targets);
}

/**
 * Reports whether the event has no person and its body has a customer id of the erased person: the id that its relay's map names, or any text of the
 * body where the map names no person.
 */
async function isOfCustomer(tx: Reader, event: SweptEvent, text: PiiMatcher): Promise<boolean> {
  if (event.personId !== null || !text.holdsCustomer(event.payload)) return false;
  const payload = parseJson(event.payload);
  const definition = await findDefinitionOf(tx, event.seq);
  if (definition?.trigger.kind !== "receiver" || !isJsonObject(payload) || !isJsonObject(payload.mapped))
    return false;
  const { person, customer } = readNamed(definition.trigger, payload.mapped);
  if (person !== "") return false;
  const space = spaceOf(definition);
  return customer === "" ? text.namesCustomer(space, payload) : text.isCustomer(space, customer);
}

/** Reads whom the relay's map names in the event; empty: no person. */
function readNamed(
  { map, customer }: ReceiverTrigger,
  mapped: JsonObject,
): { person: string; customer: string } {
  const read = (name: string | null | undefined) =>
    name != null && Object.hasOwn(mapped, name) ? (scalarText(mapped[name])?.trim() ?? "") : "";
  return { person: read(findPersonKey(map)), customer: read(customer?.id) };
}

/** Finds the current definition of the event's relay, with the scheme of its source; null: the relay was deleted. */
async function findDefinitionOf(tx: Reader, seq: number): Promise<Definition | null> {
  const rest = `WHERE id = (SELECT relay_id FROM relay_key WHERE key = (SELECT relay_key FROM event WHERE seq = $seq))`;
  const relay = await RELAY_DEFINITION.get(tx, rest, { seq });
  return relay === null ? null : await withSourceScheme(tx, relay.environmentId, relay.definition);
}

const RELAY_DEFINITION = RELAY.pick("environmentId", "definition");

function names(event: SweptEvent, text: PiiMatcher, byAddress: boolean): boolean {
  if (text.holdsId(event.payload)) return true;
  const texts = [event.payload, event.preview, event.warnings];
  return byAddress && texts.some((one) => one !== null && text.holdsAddress(one));
}

/** Reports whether the event is about the person: by its own person, or by its payload if it never ran. */
function isAbout({ personId }: SweptEvent, payload: Json, text: PiiMatcher, byAddress: boolean): boolean {
  if (personId !== null) return personId === text.personId;
  if (!isJsonObject(payload)) return false;
  const { mapped } = payload;
  if (isJsonObject(mapped)) {
    if (mapped.person_id === text.personId || text.isToken(mapped.person_token)) return true;
    return byAddress && text.isAddress(mapped.person_email);
  }
  return readRecordPerson(payload) === text.personId;
}

async function redactEvent(tx: Writer, event: SweptEvent, text: PiiMatcher): Promise<void> {
  const redact = (stored: string | null) => (stored === null ? null : text.redactStored(stored));
  event.payload = redact(event.payload) ?? "";
  event.preview = redact(event.preview);
  event.warnings = redact(event.warnings);
  const { seq, payload, preview, warnings } = event;
  const sql =
    "UPDATE event SET payload = $payload, preview = $preview, warnings = $warnings WHERE seq = $seq";
  await tx.post(sql, { seq, payload, preview, warnings });
}

/** Redacts what the runs of other people's events quote. */
async function redactRuns(tx: Writer, eventSeq: number, targets: readonly Open[]): Promise<void> {
  const sql = `SELECT number, NULL AS key, results FROM run WHERE event_seq = ?1
    UNION ALL SELECT NULL, key, result FROM effect WHERE event_seq = ?1 AND result IS NOT NULL`;
  const rows = await tx.all<{ number: number | null; key: string | null; results: string }>(sql, eventSeq);
  for (const { number, key, results } of rows) {
    let redacted = results;
    for (const { text, eventSeq: until } of targets) {
      if (eventSeq <= until && !text.isShared && text.holdsAddress(redacted))
        redacted = text.redactStored(redacted);
    }
    if (redacted === results) continue;
    const update =
      key === null
        ? "UPDATE run SET results = ?3 WHERE event_seq = ?1 AND number = ?2"
        : "UPDATE effect SET result = ?3 WHERE event_seq = ?1 AND key = ?2";
    await tx.post(update, eventSeq, number ?? key, redacted);
  }
}
