/** What is rehearsed, and the event's row that stands for it while it is. */
import { insertEvent, type StoredPayload } from "../event/insert.ts";
import type { Clock } from "../ground/clock.ts";
import type { RaisableLimits } from "../ground/limit.ts";
import type { Log } from "../ground/log.ts";
import type { LiveRelay, LiveRelays } from "../relay/live-relay.ts";
import type { Sealer } from "../secret/seal.ts";
import type { Store, Writer } from "../store/port.ts";
import type { ParsedBody } from "../verify/contract.ts";
import type { Steps } from "./step.ts";

export interface ExplainDeps {
  store: Store;
  sealer: Sealer;
  clock: Clock;
  log: Log;
  limits: RaisableLimits;
  relays: Pick<LiveRelays, "current">;
}

/** A stored event, or how one is written where it is not; answers its id. */
export type Occurrence = { eventId: string } | { write(tx: Writer, steps: Steps): Promise<string> };

export async function writeEvent(
  tx: Writer,
  relay: LiveRelay,
  payload: StoredPayload,
  nowMs: number,
  parsed?: Extract<ParsedBody, { ok: true }>,
): Promise<string> {
  const { environmentId, id: relayId, key: relayKey, nameKey, version: mapVersion, receiver } = relay;
  const { kind: trigger } = relay.definition.trigger;
  const of = { environmentId, relayId, relayKey, nameKey, trigger, payload, nowMs, dedupe: null };
  const form = parsed !== undefined && parsed.form !== null;
  const { id } = await insertEvent(tx, {
    ...of,
    unsigned: receiver?.unsigned ?? false,
    ...(parsed === undefined ? {} : { form, mapVersion }),
  });
  return id;
}
