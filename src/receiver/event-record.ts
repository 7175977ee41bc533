/**
 * Makes a verified call an event: one transaction that looks at how its signature was used, at its dedupe key and at the app's minute, and
 * stores the row or says why there is none. Only what becomes a row takes a place in the minute. It answers nobody.
 */
import { findDuplicate, keyOfBody, keyOfEventId } from "../event/dedupe.ts";
import { insertEvent } from "../event/event-insert.ts";
import { makeReceiverPayload } from "../event/payload.ts";
import type { Clock } from "../ground/clock.ts";
import { type JsonObject, writeJson } from "../ground/json.ts";
import type { Refusal } from "../ground/refusal.ts";
import type { ReceiverRelay } from "../relay/live-relay.ts";
import type { Store, Writer } from "../store/port.ts";
import type { ParsedBody } from "../verify/contract.ts";
import type { CallCaps } from "./call-cap.ts";
import { type EarlierUse, findEarlierUse, type OnceUse, spendSignature } from "./signature-memory.ts";

interface RecordRooms {
  store: Store;
  clock: Clock;
}

interface CallToRecord {
  relay: ReceiverRelay;
  /** The bytes received. */
  body: Uint8Array;
  parsed: Extract<ParsedBody, { ok: true }>;
  mapped: JsonObject;
  /** The sender's own id; null: the body deduplicates. */
  eventId: string | null;
  /** Of a signature that counts once. */
  once: OnceUse | null;
}

/** The stored event, or the first one of its key; how the call's signature was used before; or that the app's minute is full. */
export async function recordEvent(
  rooms: RecordRooms,
  caps: CallCaps,
  { relay, body, parsed, mapped, eventId, once }: CallToRecord,
): Promise<{ id: string; duplicate: boolean } | EarlierUse | Refusal> {
  const nowMs = rooms.clock.now();
  const { environmentId, name: relayName } = relay;
  const dedupe =
    eventId === null
      ? keyOfBody(environmentId, relayName, body, nowMs)
      : keyOfEventId(environmentId, relayName, eventId);
  const form = parsed.form !== null;
  const payload = makeReceiverPayload(form ? writeJson(parsed.value) : decoder.decode(body), mapped);
  const { unsigned } = relay.receiver;
  const { id: relayId, version: mapVersion } = relay;
  const draft = { environmentId, relayId, relayName, payload, mapVersion, unsigned, form, dedupe, nowMs };
  const seat = new EventSeat(caps, relay.appId);
  const work = async (tx: Writer) => {
    if (once !== null) {
      const earlier = await findEarlierUse(tx, once);
      if (earlier !== null) return earlier;
    }
    const full = seat.findFull();
    if (full !== null) {
      const first = await findDuplicate(tx, dedupe);
      return first === null ? full : { id: first, duplicate: true };
    }
    const event = await insertEvent(tx, { ...draft, trigger: "receiver" });
    if (once !== null) await spendSignature(tx, once, event.id);
    seat.take(!event.duplicate);
    return event;
  };
  try {
    return await rooms.store.write("app", work);
  } catch (error) {
    seat.take(false);
    throw error;
  }
}

/** Without a byte order mark; the body was found to be UTF-8 when it was parsed. */
const decoder = new TextDecoder();

/** One event's place in its app's minute, in a work that the store may run twice. */
class EventSeat {
  readonly #caps: CallCaps;
  readonly #appId: string;
  #taken = false;

  constructor(caps: CallCaps, appId: string) {
    this.#caps = caps;
    this.#appId = appId;
  }

  /** What is told where there is no place left; null: there is one, or this event has its own. */
  findFull(): Refusal | null {
    return this.#taken ? null : this.#caps.findFullApp(this.#appId);
  }

  /** Takes the place, or gives it back. */
  take(taken: boolean): void {
    if (taken && !this.#taken) this.#caps.countEvent(this.#appId);
    if (!taken && this.#taken) this.#caps.giveEventBack(this.#appId);
    this.#taken = taken;
  }
}
