/**
 * Stores an occurrence as an event row, once per dedupe key; nothing runs before this row is durable. A key is one narrow row, addressed by
 * 63 bits of its hash, the whole hash on the event row: two keys that share those bits stand in neighbouring slots, so a chance collision is
 * never taken for a duplicate.
 */

import { DAY_MS } from "../ground/limit.ts";
import { newId } from "../ground/text.ts";
import type { Reader, Writer } from "../store/port.ts";
import { EVENT, type EventReason, type EventTrigger } from "./event.ts";
import type { StoredPayload } from "./payload.ts";

/** Neighbouring slots one key may stand in; a fifth key with the same 63 bits does not happen. */
const PROBES = 4;
const SLOT_MASK = 0x7fff_ffff_ffff_fff0n;

export interface DedupeKey {
  /** 16 bytes. */
  hash: Uint8Array;
}

interface EventDraft {
  environmentId: number;
  relayId: string;
  relayName: string;
  trigger: EventTrigger;
  payload: StoredPayload;
  /** Whether the sender did not sign the event itself. */
  unsigned: boolean;
  /** Whether a receiver's body was a form, whose literal names win over paths. */
  form?: boolean;
  dedupe: DedupeKey | null;
  nowMs: number;
  /** The relay's version whose map made a receiver's `mapped`. */
  mapVersion?: number;
  /** Set for an occurrence that is stored without a chance to run: dead from the start, replayable. */
  dead?: EventReason;
}

/** The id of the stored row; `duplicate` when the key was spent before, and then it is the first row's id. */
export async function insertEvent(
  tx: Writer,
  draft: EventDraft,
): Promise<{ id: string; duplicate: boolean }> {
  if (draft.dedupe !== null) {
    const first = await findDuplicate(tx, draft.dedupe);
    if (first !== null) return { id: first, duplicate: true };
  }
  const { environmentId, relayId, relayName, trigger, payload, unsigned, dedupe, nowMs, dead } = draft;
  const id = newId("evt", nowMs);
  const { seq } = await EVENT.insertGiven(tx, {
    id,
    environmentId,
    relayId,
    relayName,
    trigger,
    state: dead === undefined ? "queued" : "dead",
    reason: dead ?? null,
    attempts: 0,
    nextAttemptAt: null,
    runs: 0,
    replays: 0,
    payload: payload.text,
    truncated: payload.truncated,
    preview: payload.preview,
    unsigned,
    dedupeHash: dedupe?.hash ?? null,
    personId: null,
    warnings: payload.warnings.length === 0 ? null : [...payload.warnings],
    createdAt: nowMs,
    startedAt: null,
    finishedAt: dead === undefined ? null : nowMs,
    form: draft.form === true,
    mapVersion: draft.mapVersion ?? null,
    mappedAgain: false,
    chosen: null,
  });
  if (dedupe !== null) await keepKey(tx, dedupe, seq);
  if (dead === undefined) tx.touch("event", relayId);
  return { id, duplicate: false };
}

/** The key of a sender's own event id, within one relay name of one environment. */
export function keyOfEventId(environmentId: number, relayName: string, eventId: string): DedupeKey {
  const scope = `${environmentId}\n${relayName}\n`;
  if (eventId.isWellFormed()) return { hash: digest(`${scope}id\n`, eventId) };
  // Half surrogates are all alike in UTF-8, and two ids would be one.
  return { hash: digest(`${scope}id in UTF-16\n`, Buffer.from(eventId, "utf16le")) };
}

/** The key of a body that carries no event id: it deduplicates within the UTC day of `nowMs`. */
export function keyOfBody(
  environmentId: number,
  relayName: string,
  body: Uint8Array,
  nowMs: number,
): DedupeKey {
  return { hash: digest(`${environmentId}\n${relayName}\nbody ${Math.floor(nowMs / DAY_MS)}\n`, body) };
}

/** The key of something that happens once, such as a schedule's period. */
export function keyOfOccurrence(environmentId: number, relayId: string, occurrence: string): DedupeKey {
  return { hash: digest(`${environmentId}\n${relayId}\nonce\n`, occurrence) };
}

interface SlotRow {
  slot: bigint | number;
  eventId: string | null;
  hash: Uint8Array | null;
}

/** The id of the event that holds this key, or null. */
export async function findDuplicate(tx: Reader, key: DedupeKey): Promise<string | null> {
  const first = firstSlot(key);
  const rows = await tx.all<SlotRow>(
    `SELECT dedupe.slot AS slot, event.id AS eventId, event.dedupe_hash AS hash FROM dedupe
     LEFT JOIN event ON event.seq = dedupe.event_seq WHERE dedupe.slot BETWEEN ?1 AND ?2`,
    first,
    first + BigInt(PROBES - 1),
  );
  for (const row of rows) {
    if (row.eventId !== null && row.hash !== null && Buffer.compare(row.hash, key.hash) === 0)
      return row.eventId;
  }
  return null;
}

/** Remembers the key for an event that carries its hash. Called after findDuplicate answered null, in the same transaction. */
async function keepKey(tx: Writer, key: DedupeKey, eventSeq: number): Promise<void> {
  const first = firstSlot(key);
  for (let probe = 0; probe < PROBES; probe++) {
    const kept = await tx.run(
      "INSERT INTO dedupe (slot, event_seq) VALUES (?1, ?2) ON CONFLICT (slot) DO NOTHING",
      first + BigInt(probe),
      eventSeq,
    );
    if (kept === 1) return;
  }
  throw new Error("Every slot of a dedupe key is taken.");
}

/** Forgets the keys of an event that is about to be deleted. */
export async function forgetKey(tx: Writer, hash: Uint8Array, eventSeq: number): Promise<void> {
  const first = firstSlot({ hash });
  await tx.run(
    "DELETE FROM dedupe WHERE slot BETWEEN ?1 AND ?2 AND event_seq = ?3",
    first,
    first + BigInt(PROBES - 1),
    eventSeq,
  );
}

function firstSlot(key: DedupeKey): bigint {
  const { buffer, byteOffset } = key.hash;
  return new DataView(buffer, byteOffset, 8).getBigUint64(0) & SLOT_MASK;
}

function digest(scope: string, text: string | Uint8Array): Uint8Array {
  // One call for a short text costs a third of a hash that is fed piece by piece.
  const whole =
    typeof text === "string"
      ? Bun.CryptoHasher.hash("sha256", scope + text)
      : new Bun.CryptoHasher("sha256").update(scope).update(text).digest();
  return whole.subarray(0, 16);
}
