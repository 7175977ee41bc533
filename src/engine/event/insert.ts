/**
 * Stores an event row, once for each deduplication key. Nothing of a run is durable before this row. The store's key memory lists the events that may
 * have a key; the full hash on the row decides.
 */
import { type Json, type JsonObject, writeJson } from "../../base/json.ts";
import {
  DAY_MS,
  MAX_MAPPED_BYTES,
  MAX_MAPPED_VALUE_BYTES,
  MAX_PREVIEW_BYTES,
  MAX_STORED_PAYLOAD_BYTES,
} from "../../base/limit.ts";
import { cutUtf8, fitsUtf8, formatCount, utf8Bytes } from "../../base/text.ts";
import type { NewestTime, PrefetchReader, SqlNames, Writer } from "../../store/port.ts";
import {
  type BufferedEvent,
  EVENT,
  type EventReason,
  type EventToRun,
  type EventTrigger,
  type EventWay,
  eventIdOf,
} from "./event.ts";
import { type AttemptResult, eventChangeOf } from "./run.ts";

export interface DedupeKey {
  /** The hash, 16 bytes. */
  hash: Uint8Array;
}

export interface EventDraft {
  environmentId: number;
  relayId: string;
  /** The keys of the relay and of its name. */
  relayKey: number;
  nameKey: number;
  trigger: EventTrigger;
  payload: StoredPayload;
  /** True if the sender did not sign the event itself. */
  unsigned: boolean;
  /** True if a receiver's body was a form, whose literal names win over paths. */
  form?: boolean;
  dedupe: DedupeKey | null;
  nowMs: number;
  /** The relay's version whose map made `mapped`, for a receiver. */
  mapVersion?: number;
  /** Stores the event as dead with this reason. It can be replayed. */
  dead?: EventReason;
  /** The way in which it came. It is absent if its trigger created it. */
  source?: EventWay;
  /**
   * The data that the dispatcher gets in addition to the row. If it is absent, the commit wakes the relay instead. If it is null, the event waits,
   * because its relay is paused or on hold.
   */
  dispatch?: (Pick<EventToRun, "relayName"> & Pick<BufferedEvent, "payload">) | null;
}

/** The stored event; `duplicate`: an earlier event has the key, and this is that event. */
export interface StoredEvent {
  id: string;
  seq: number;
  duplicate: boolean;
}

/**
 * Reads the highest number ever used, the time of the newest event, and the step back of the time that needs no note. `event_last` keeps the number
 * if the newest event was deleted. The 0 is a parameter, because PostgreSQL plans a statement without parameters each time.
 */
const NEWEST = `SELECT max(event_last.seq, coalesce((SELECT max(seq) FROM event), ?1)) AS seq,
    (SELECT created_at FROM event ORDER BY seq DESC LIMIT 1) AS atMs, (SELECT ms FROM event_time_step) AS stepMs FROM event_last`;

/** The other columns get their defaults. */
const INSERT = `INSERT INTO event (seq, environment_id, name_key, relay_key, trigger, state, created_at, finished_at, reason, map_version, truncated,
    unsigned, form, warnings, dedupe_hash, payload, preview, attempts, runs, next_attempt_at, started_at, person_id)
  VALUES ($seq, $environmentId, $nameKey, $relayKey, $trigger, $state, $createdAt, $finishedAt, $reason, $mapVersion, $truncated,
    $unsigned, $form, $warnings, $dedupeHash, $payload, $preview, $attempts, $runs, $nextAttemptAtMs, $startedAtMs, $personId)`;

/** The highest number used, and the time of the newest event. */
interface Newest extends NewestTime {
  seq: number;
}

let stored = 0;
const countOne = (): void => {
  stored += 1;
};

/** Returns how many events this process has stored. */
export function countStored(): number {
  return stored;
}

/** Runs new events. */
export interface EventDispatcher {
  /** Runs an event in the transaction that is about to store it; null if it must be stored as `queued`. */
  runInline(event: BufferedEvent): Promise<AttemptResult | null>;
  /** Takes an event that was stored as `queued`, after the commit. */
  enqueue(event: BufferedEvent): void;
}

/** Inserts events into one transaction. Nothing else may insert events into it at the same time. */
export class EventInserter {
  readonly #tx: Writer;
  readonly #dispatcher: EventDispatcher | null;
  #newest: Newest | null = null;

  constructor(tx: Writer, dispatcher: EventDispatcher | null = null) {
    this.#tx = tx;
    this.#dispatcher = dispatcher;
  }

  /** Prefetches what inserts of these events need. */
  static prefetch(
    reader: PrefetchReader,
    drafts: readonly (EventDraft & { dedupe: DedupeKey })[],
  ): readonly Promise<unknown>[] {
    const keys = drafts.map(({ dedupe }) => dedupe.hash);
    const oldestMs = Math.min(...drafts.map(({ nowMs }) => nowMs));
    const reads = [
      reader.keys.prefetch?.(keys),
      reader.numbers?.newest == null ? reader.get(NEWEST, 0) : undefined,
      reader.numbers?.prefetch(drafts.length, oldestMs),
    ];
    return reads.filter((read) => read !== undefined);
  }

  async insert(draft: EventDraft): Promise<StoredEvent> {
    const tx = this.#tx;
    const dispatcher = this.#dispatcher;
    const { dedupe, payload, nowMs, dead } = draft;
    if (dedupe !== null) {
      const found = tx.keys.find(dedupe.hash);
      const held = found instanceof Promise ? await found : found;
      const first = held.length === 0 ? null : await findHolder(tx, dedupe, held);
      if (first !== null) return first;
    }
    const given = tx.numbers?.next(nowMs);
    // The number of a known newest event is not needed, because `numbers` gives the next one.
    const known = tx.numbers?.newest ?? null;
    if (known !== null) this.#newest ??= { seq: 0, ...known };
    if (this.#newest === null) [this.#newest] = await Promise.all([this.#readNewest(), given]);
    const { atMs: newestAtMs, stepMs } = this.#newest;
    const seq = given === undefined ? this.#newest.seq + 1 : await given;
    // Searches by time assume that it increases with the number, so each step back is recorded.
    if (newestAtMs !== null && nowMs < newestAtMs - stepMs)
      await tx.run("INSERT INTO clock_rollback (seq) VALUES (?1)", seq);
    const warnings = payload.warnings.length === 0 ? null : writeJson([...payload.warnings]);
    const id = eventIdOf({ seq, createdAt: nowMs, formerId: null });
    const buffered = dispatcher === null ? null : makeBuffered(draft, { seq, id, warnings });
    const result = buffered === null || dispatcher === null ? null : await dispatcher.runInline(buffered);
    const row = {
      seq,
      environmentId: draft.environmentId,
      nameKey: draft.nameKey,
      relayKey: draft.relayKey,
      trigger: draft.trigger,
      state: dead === undefined ? "queued" : "dead",
      createdAt: nowMs,
      finishedAt: dead === undefined ? null : nowMs,
      reason: dead ?? null,
      mapVersion: draft.mapVersion ?? null,
      truncated: payload.truncated ? 1 : 0,
      unsigned: draft.unsigned ? 1 : 0,
      form: draft.form === true ? 1 : 0,
      warnings,
      dedupeHash: dedupe?.hash ?? null,
      payload: payload.text,
      preview: payload.preview,
      attempts: 0,
      runs: 0,
      nextAttemptAtMs: null,
      startedAtMs: null,
      personId: null,
    };
    await tx.post(INSERT, result === null ? row : { ...row, ...changeOf(result) });
    this.#newest = { seq, atMs: nowMs, stepMs };
    if (tx.numbers !== undefined) tx.numbers.newest = this.#newest;
    if (draft.source !== undefined) await EVENT.change(tx, { seq }, { source: draft.source });
    const keeping = dedupe === null ? undefined : tx.keys.add(dedupe.hash, seq);
    if (keeping !== undefined) await keeping;
    tx.notify("event_moved", draft.environmentId);
    tx.afterCommit(countOne);
    if (result !== null) return { id, seq, duplicate: false };
    if (buffered !== null) tx.afterCommit(() => dispatcher?.enqueue(buffered));
    else if (dead === undefined) tx.notify(draft.dispatch === null ? "event_left" : "event", draft.relayId);
    return { id, seq, duplicate: false };
  }

  async #readNewest(): Promise<Newest> {
    const newest = await this.#tx.get<Newest>(NEWEST, 0);
    if (newest === null) throw new Error("The row of event_last is not there.");
    return newest;
  }
}

export function insertEvent(tx: Writer, draft: EventDraft): Promise<StoredEvent> {
  return new EventInserter(tx).insert(draft);
}

/** The columns that an inline run changes. The others keep the values that the event arrived with. */
function changeOf(result: AttemptResult): SqlNames {
  const { seq, payload, mapVersion, warnings, finishedAtMs: finishedAt, ...changed } = eventChangeOf(result);
  return { ...changed, finishedAt, ...(warnings === null ? {} : { warnings }) };
}

/** Returns the event as a run would read it from its row; null if no dispatcher takes it. */
function makeBuffered(
  {
    relayId,
    environmentId,
    trigger,
    payload,
    unsigned,
    form,
    mapVersion,
    nowMs,
    dispatch,
    source,
  }: EventDraft,
  made: Pick<EventToRun, "seq" | "id" | "warnings">,
): BufferedEvent | null {
  if (dispatch == null) return null;
  const event: EventToRun = {
    seq: made.seq,
    id: made.id,
    environmentId,
    relayName: dispatch.relayName,
    trigger,
    payload: payload.text,
    truncated: payload.truncated,
    unsigned,
    createdAt: nowMs,
    warnings: made.warnings,
    form: form === true,
    mapVersion: mapVersion ?? null,
    formerId: null,
    attempts: 0,
    runs: 0,
    reason: null,
    personId: null,
    chosen: null,
    source: source ?? null,
  };
  return { relayId, event, payload: dispatch.payload };
}

/** Returns the key of a sender's event id, within one relay name of one environment. */
export function keyOfEventId(environmentId: number, relayName: string, eventId: string): DedupeKey {
  const scope = `${environmentId}\n${relayName}\n`;
  if (eventId.isWellFormed()) return { hash: digest(`${scope}id\n`, eventId) };
  // All lone surrogates are equal in UTF-8, so two such ids would have one key.
  return { hash: digest(`${scope}id in UTF-16\n`, Buffer.from(eventId, "utf16le")) };
}

/** Returns the key of a body without an event id. It deduplicates within the UTC day of `nowMs`. */
export function keyOfBody(
  environmentId: number,
  relayName: string,
  body: Uint8Array,
  nowMs: number,
): DedupeKey {
  return { hash: digest(`${environmentId}\n${relayName}\nbody ${Math.floor(nowMs / DAY_MS)}\n`, body) };
}

/** Returns the key of an occurrence that fires once, for example a schedule's period. */
export function keyOfOccurrence(environmentId: number, relayId: string, occurrence: string): DedupeKey {
  return { hash: digest(`${environmentId}\n${relayId}\nonce\n`, occurrence) };
}

/** Finds the event that has this key, or null. */
export async function findDuplicate(tx: Writer, key: DedupeKey): Promise<StoredEvent | null> {
  return await findHolder(tx, key, await tx.keys.find(key.hash));
}

/** Finds which of these events has the key, or null. */
async function findHolder(tx: Writer, key: DedupeKey, seqs: readonly number[]): Promise<StoredEvent | null> {
  for (const seq of seqs) {
    const event = await tx.get<{ createdAt: number; formerId: string | null; hash: Uint8Array | null }>(
      "SELECT created_at AS createdAt, former_id AS formerId, dedupe_hash AS hash FROM event WHERE seq = ?1",
      seq,
    );
    if (event !== null && event.hash !== null && Buffer.compare(event.hash, key.hash) === 0)
      return { id: eventIdOf({ seq, ...event }), seq, duplicate: true };
  }
  return null;
}

function digest(scope: string, text: string | Uint8Array): Uint8Array {
  if (typeof text !== "string")
    return new Bun.CryptoHasher("sha256").update(scope).update(text).digest().slice(0, 16);
  // One call into an existing buffer costs a sixth of a hash that is updated twice.
  Bun.CryptoHasher.hash("sha256", scope + text, hashBuffer);
  return hashBuffer.slice(0, 16);
}

/** Receives each hash. */
const hashBuffer = new Uint8Array(32);

export interface StoredPayload {
  /** JSON text. */
  text: string;
  truncated: boolean;
  /** The beginning of the event that was cut off, or null. */
  preview: string | null;
  /** Sentences about mapped values that were cut. */
  warnings: readonly string[];
}

/** Makes `{ event, mapped }` from the event's JSON text, which stays as received, and the mapped values. */
export function makeReceiverPayload(eventText: string, mapped: JsonObject): StoredPayload {
  const text = `{"event":${eventText},"mapped":${writeJson(mapped)}}`;
  if (fitsUtf8(text, MAX_STORED_PAYLOAD_BYTES))
    return { text, truncated: false, preview: null, warnings: [] };
  const { kept, warnings } = limitMapped(mapped);
  return {
    text: `{"event":null,"mapped":${writeJson(kept)}}`,
    truncated: true,
    preview: cutUtf8(eventText, MAX_PREVIEW_BYTES),
    warnings,
  };
}

/** Makes a payload that is never truncated. */
export function makePayload(payload: JsonObject): StoredPayload {
  return { text: writeJson(payload), truncated: false, preview: null, warnings: [] };
}

/** Returns the value, or the beginning of its text if it takes more than `maxBytes`. */
export function cutValue(value: Json, maxBytes: number): Json {
  if (typeof value === "string") return cutUtf8(value, maxBytes);
  const text = writeJson(value);
  return fitsUtf8(text, maxBytes) ? value : cutUtf8(text, maxBytes);
}

/** Cuts mapped values to their limits. If all of them together are too large, the largest are cut first. */
export function limitMapped(mapped: JsonObject): { kept: JsonObject; warnings: string[] } {
  const sizes = Object.entries(mapped).map(([name, value]) => ({ name, value, bytes: sizeOf(value) }));
  const shares = divideBytes(sizes);
  const most = (name: string): number => shares.get(name) ?? 0;
  return {
    kept: Object.fromEntries(sizes.map(({ name, value }) => [name, cutValue(value, most(name))])),
    warnings: sizes
      .filter(({ name, bytes }) => bytes > most(name))
      .map(({ name, bytes }) => formatCut(name, bytes, most(name))),
  };
}

function formatCut(name: string, bytes: number, kept: number): string {
  const [total, first] = [bytes, kept].map(formatCount);
  return `mapped.${name} was cut: it takes ${total} bytes and its first ${first} were kept (32 KB a value, 64 KB together).`;
}

function divideBytes(sizes: readonly { name: string; bytes: number }[]): Map<string, number> {
  const shares = new Map<string, number>();
  let left = MAX_MAPPED_BYTES;
  for (const [at, { name, bytes }] of sizes.toSorted((one, other) => one.bytes - other.bytes).entries()) {
    const most = Math.min(MAX_MAPPED_VALUE_BYTES, Math.floor(left / (sizes.length - at)));
    shares.set(name, most);
    left -= Math.min(bytes, most);
  }
  return shares;
}

function sizeOf(value: Json): number {
  return utf8Bytes(typeof value === "string" ? value : writeJson(value));
}
