/**
 * Sends a test event: a request signed with the receiver's own secret, one tick, or a record. It has every effect of a real event, so production
 * refuses it. The event is marked, and does not count for the sender's health.
 */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { isJsonObject, type Json, writeJson } from "../../base/json.ts";
import { MAX_RECEIVER_BODY_BYTES } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, oneOf, orNull } from "../../base/schema.ts";
import { makePayload } from "../../engine/event/insert.ts";
import { importEvents } from "../../engine/receiver/import.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import { listKnownSecrets } from "../../rules/relay/known-secret.ts";
import type { LiveRelay, LiveRelays, ReceiverRelay } from "../../rules/relay/live-relay.ts";
import { rejectUnknownRelay, relayTarget } from "../../rules/relay/relay.ts";
import type { DataChangeTrigger } from "../../rules/trigger/data-change.ts";
import type { ReceiverTrigger } from "../../rules/trigger/receiver.ts";
import type { Origin, Store, Writer } from "../../store/port.ts";
import { makeSampleEvent } from "./sample.ts";
import { explainUnsigned, signAsSender } from "./signature.ts";
import { writeEvent } from "./step.ts";
import { writeTestRecord } from "./test-record.ts";

const BY_HAND = "This tick was sent by hand; it is no period of the schedule.";

export const testEventInput = fields({
  body: Type.Optional(
    Type.String({
      maxLength: MAX_RECEIVER_BODY_BYTES,
      description: "the body to sign and send, as text; absent: an example made of map and when",
    }),
  ),
  contentType: Type.Optional(Type.String({ maxLength: 200, description: "the body's content type" })),
  person: Type.Optional(
    Type.String({
      maxLength: 254,
      description:
        "what the map's person key, or else its customer id, holds in the example; of a record, whom it is for",
    }),
  ),
  record: Type.Optional(
    Type.Unknown({ description: "the data of a record to write, a JSON object; absent: an example" }),
  ),
});

export const testEventView = Type.Object({
  /** `known`: an event with this id exists already. `ignored`: the relay's `when` does not match. Neither stores an event. */
  outcome: oneOf(["new", "known", "ignored"]),
  /** The event's id; also null until the change of a test record is captured. */
  eventId: orNull(Type.String()),
  /** The written record, which remains until a user deletes it. */
  recordId: Type.Optional(Type.String()),
  message: orNull(Type.String()),
});

interface TestDeps {
  store: Store;
  sealer: Sealer;
  relays: Pick<LiveRelays, "current">;
  origin: Origin;
}

/** Sends the event. Throws `not_found`, `forbidden` in production, `invalid_input` where nothing can be sent, and the rejections of a receiver. */
export async function sendTestEvent(
  deps: TestDeps,
  name: string,
  input: Static<typeof testEventInput>,
  change: Change,
): Promise<Static<typeof testEventView>> {
  const snapshot = await deps.relays.current();
  const relay = snapshot.relays.find(
    (one) => one.environmentId === change.environmentId && one.name === name,
  );
  if (relay === undefined) throw rejectUnknownRelay(name);
  if (relay.environmentName === "production")
    throw new Refusal(
      "forbidden",
      "A test event has every effect that a real one has, so production takes none: send it in development, or explain the relay, which has no effect.",
    );
  const { trigger } = relay.definition;
  if (trigger.kind === "schedule") {
    const eventId = await deps.store.write(
      deps.origin,
      (tx) => writeTestTick(tx, relay, change),
      change.environmentId,
    );
    return { outcome: "new", eventId, message: null };
  }
  if (trigger.kind === "data_change")
    return await deps.store.write(
      deps.origin,
      (tx) => sendTestRecord(tx, relay, trigger, input, change),
      change.environmentId,
    );
  const line = await signLine(deps, relay as ReceiverRelay, trigger, input, change.nowMs);
  const batch = { bytes: line, firstLine: 1, file: null, dryRun: false, version: null, followers: null };
  const { lines } = await importEvents({ ...deps, snapshot }, name, batch, change, "test");
  const [sent] = lines;
  if (sent === undefined) throw new Error("The test event is no line.");
  const { outcome, eventId, message, code } = sent;
  if (outcome === "refused") {
    const why = `Nothing was sent: ${message ?? "it was refused."}`;
    throw new Refusal("invalid_input", why, { details: { cause: code } });
  }
  return { outcome, eventId, message };
}

async function sendTestRecord(
  tx: Writer,
  relay: LiveRelay,
  trigger: DataChangeTrigger,
  { record = null, person }: Static<typeof testEventInput>,
  change: Change,
): Promise<Static<typeof testEventView>> {
  const data = record as Json;
  if (data !== null && !isJsonObject(data))
    throw new Refusal(
      "invalid_input",
      'record must be a JSON object: the record\'s fields, such as { "status": "paid" }.',
    );
  const { by, nowMs } = change;
  const made = await writeTestRecord(tx, relay, trigger, { person: person ?? null, data, by, nowMs });
  const { recordId } = made;
  await writeAudit(tx, {
    ...change,
    action: "event.test_sent",
    target: relayTarget(relay.name),
    after: { recordId },
  });
  const stays = made.change === "deleted" ? "and deleted it" : "which stays there until it is deleted";
  const message = `Wrote the record ${recordId} in ${trigger.collection}, ${stays}; the event appears as soon as the change is noticed.`;
  return { outcome: "new", eventId: null, recordId, message };
}

/** Writes one tick that belongs to no period. Returns the event's id. */
export async function writeTestTick(tx: Writer, relay: LiveRelay, change: Change): Promise<string> {
  const tickPayload = makePayload({ tick: { periodStart: toIso(change.nowMs), test: true } });
  const id = await writeEvent(
    tx,
    relay,
    { ...tickPayload, warnings: [BY_HAND] },
    change.nowMs,
    undefined,
    "test",
  );
  await writeAudit(tx, {
    ...change,
    action: "event.test_sent",
    target: relayTarget(relay.name),
    after: { eventId: id },
  });
  return id;
}

/** Signs the request as its sender would. Returns it as a line of an export. */
async function signLine(
  { store, sealer }: TestDeps,
  relay: ReceiverRelay,
  trigger: ReceiverTrigger,
  { body, contentType, person }: Static<typeof testEventInput>,
  nowMs: number,
): Promise<Uint8Array> {
  const secrets = await store.read((tx) => listKnownSecrets(tx, sealer, relay));
  const likely =
    body !== undefined && /^\s*[[{]/.test(body.slice(0, 100))
      ? "application/json"
      : "application/x-www-form-urlencoded";
  const draft =
    body === undefined
      ? await makeSampleEvent(trigger, person ?? null)
      : { body: Buffer.from(body), contentType: contentType ?? likely };
  const signed = signAsSender(trigger.verify, secrets, draft, relay.receiver.url, nowMs);
  if (signed === null) throw new Refusal("invalid_input", explainUnsigned(relay, secrets));
  const text = Buffer.from(signed.body).toString("utf8");
  return Buffer.from(writeJson({ headers: signed.headers, body: text, search: signed.search }));
}
