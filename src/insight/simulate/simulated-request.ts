/** Simulates a receiver's request or a stored event: what the map and `when` read of it, and whether it is a duplicate. */

import { isJsonObject, type Json, type JsonObject, parseJson, writeJson } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import { readTime } from "../../base/schema.ts";
import { findEventToRun, readExpunged } from "../../engine/event/event.ts";
import { findDuplicate, keyOfBody, keyOfEventId, makeReceiverPayload } from "../../engine/event/insert.ts";
import { mapAgain } from "../../engine/event/remap.ts";
import { rejectReusedSignature } from "../../engine/receiver/rejection.ts";
import { formatMismatch } from "../../engine/receiver/request.ts";
import { findEarlierUse, signatureUse } from "../../engine/receiver/signature-memory.ts";
import { isHandshake, matchesWhen, readEventId, readMap } from "../../rules/relay/live-receiver.ts";
import type { LiveRelay, ReceiverRelay } from "../../rules/relay/live-relay.ts";
import type { ReceiverTrigger } from "../../rules/trigger/receiver.ts";
import type { ReceivedRequest, Verified } from "../../rules/verify/contract.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Writer } from "../../store/port.ts";
import { makeSampleEvent } from "./sample.ts";
import { type GivenRequest, simulateSignature } from "./signature.ts";
import {
  type Occurrence,
  type SimulateDeps,
  type SimulateInput,
  type Steps,
  type Subject,
  writeEvent,
} from "./step.ts";

/** Reads a stored event by the relay's current map and `when`. */
export async function replayStoredEvent(
  deps: SimulateDeps,
  relay: LiveRelay,
  id: string,
  steps: Steps,
): Promise<Occurrence> {
  const event = await deps.store.read((tx) => findEventToRun(tx, relay.environmentId, id));
  if (event === null || event.relayName !== relay.name)
    throw new Refusal("not_found", `There is no event ${id} of this relay; events are kept for 30 days.`);
  const payload = parseJson(event.payload);
  if (!isJsonObject(payload) || readExpunged(payload) !== null)
    throw new Refusal("invalid_input", "event is one whose payload was removed: choose another.");
  if (relay.receiver !== null && isJsonObject(payload.mapped)) {
    const read = mapAgain(event, payload, relay.receiver.map)?.payload.mapped ?? payload.mapped;
    simulateReading(steps, relay as ReceiverRelay, read as JsonObject, { accepted: true });
  }
  return { eventId: id };
}

export async function receiveGivenRequest(
  deps: SimulateDeps,
  { relay, secrets, lacksSecret }: Omit<Subject, "open"> & { relay: ReceiverRelay },
  trigger: ReceiverTrigger,
  input: SimulateInput,
  steps: Steps,
): Promise<Occurrence> {
  const nowMs = deps.clock.now();
  const { headers = null, search = "" } = input;
  // Only a request with headers has a signature of another time and place.
  const isSigned = headers !== null;
  const arrivedAtMs = (isSigned ? readTime("receivedAt", input.receivedAt) : undefined) ?? nowMs;
  const url = (isSigned ? input.url : undefined) ?? relay.receiver.url;
  const given: GivenRequest = { ...(await readGivenBody(trigger, input)), headers, search, url };
  const { verify } = trigger;
  const question = { relay, verify, secrets, lacksSecret, given, nowMs: arrivedAtMs, turn: yieldToEventLoop };
  const { received, shown, verdict } = await simulateSignature(steps, question);
  if (verdict !== null) await simulateReuse(deps, steps, relay, received, verdict);
  if (isHandshake(relay.receiver, received))
    steps.stop(
      "handshake",
      "ignore",
      "It is the sender's handshake: it is answered once it verifies, and makes no event.",
    );
  await yieldToEventLoop();
  const parsed = shown.parsed();
  if (!parsed.ok) {
    steps.stop("map", "refuse", parsed.message);
    throw new Refusal("invalid_input", `body cannot be read: ${parsed.message}`);
  }
  const mapped = readMap(relay.receiver.map, parsed);
  simulateReading(steps, relay, mapped, { accepted: false });
  const eventId = readEventId(mapped) ?? verdict?.senderEventId ?? null;
  const { body, contentType } = given;
  const example = input.body === undefined ? { body: Buffer.from(body).toString("utf8"), contentType } : null;
  const text = parsed.form === null ? new TextDecoder().decode(shown.body) : writeJson(parsed.value);
  return {
    example,
    async write(tx, later, opened) {
      await simulateDedupe(tx, later, relay, { eventId, mapped, body: received.body, nowMs });
      return await writeEvent(tx, opened, makeReceiverPayload(text, mapped), nowMs, parsed);
    },
  };
}

/** Adds a stop where the signature counts only once and was accepted before. */
async function simulateReuse(
  { store }: SimulateDeps,
  steps: Steps,
  relay: ReceiverRelay,
  received: ReceivedRequest,
  verdict: Verified,
): Promise<void> {
  const use = signatureUse(relay, verdict, received.body);
  if (use === null) return;
  const earlier = await store.read((tx) => findEarlierUse(tx, use));
  if (earlier === null) return;
  if (!earlier.sameBody) {
    const { code, message } = rejectReusedSignature();
    steps.stop("signature", "refuse", `The request is rejected with ${code}. ${message}`, { code });
    return;
  }
  if (relay.receiver.source !== null) return;
  const { eventId: first } = earlier;
  const then = first === null ? "when ignored it then" : `it is ${first}`;
  const message = `Its signature was accepted before, with the same body, and counts once (${then}): nothing would run.`;
  steps.stop("signature", "duplicate", message, { first });
}

async function readGivenBody(
  trigger: ReceiverTrigger,
  { body, contentType, person }: SimulateInput,
): Promise<Pick<GivenRequest, "body" | "contentType">> {
  if (body === undefined) return await makeSampleEvent(trigger, person ?? null);
  const isJson = /^\s*[[{]/.test(body.slice(0, 100));
  const likely = isJson ? "application/json" : "application/x-www-form-urlencoded";
  return { body: Buffer.from(body), contentType: contentType ?? likely };
}

/** Adds the steps of the map and `when`. With `accepted`, the stored event passed `when`, which is not checked again. */
function simulateReading(
  steps: Steps,
  { receiver, definition }: ReceiverRelay,
  mapped: JsonObject,
  { accepted }: { accepted: boolean },
): void {
  const names = receiver.map.map(([name, { text: path }]) => {
    const found = Object.hasOwn(mapped, name);
    return { name, path, found, value: found ? (mapped[name] ?? null) : null };
  });
  const lost = names.filter(({ found }) => !found).map(({ name, path }) => `${name} (${path})`);
  const summary =
    lost.length === 0
      ? "Every path of map found a value."
      : `These names of map name nothing: ${lost.join(", ")}.`;
  steps.ok("map", summary, names);
  if (definition.trigger.kind !== "receiver" || receiver.when === null) return;
  const mismatch = matchesWhen(receiver.when, mapped);
  const wanted: Json = parseJson(writeJson({ ...receiver.when } as JsonObject));
  if (mismatch === null) steps.ok("when", "when matches.", wanted);
  else if (accepted)
    steps.unknown(
      "when",
      `${formatMismatch(mismatch)}; the event was accepted, and when is not asked again.`,
      wanted,
    );
  else steps.stop("when", "ignore", `The request is ignored: ${formatMismatch(mismatch)}.`, wanted);
}

async function simulateDedupe(
  tx: Writer,
  steps: Steps,
  { environmentId, name, receiver }: ReceiverRelay,
  {
    eventId,
    mapped,
    body,
    nowMs,
  }: { eventId: string | null; mapped: JsonObject; body: Uint8Array; nowMs: number },
): Promise<void> {
  const key =
    eventId === null
      ? keyOfBody(environmentId, name, body, nowMs)
      : keyOfEventId(environmentId, name, eventId);
  const first = (await findDuplicate(tx, key))?.id ?? null;
  const by =
    eventId === null
      ? "its body, within the UTC day"
      : readEventId(mapped) === null
        ? "the sender's own id"
        : "event_id";
  const names = receiver.map.some(([one]) => one === "event_id");
  const lost =
    names && readEventId(mapped) === null ? " The path of event_id found no value that can be an id." : "";
  if (first === null) steps.ok("event_id", `It is a new event, identified by ${by}.${lost}`, { eventId });
  else
    steps.stop(
      "event_id",
      "duplicate",
      `It is a duplicate of ${first}, told by ${by}: nothing would run.${lost}`,
      { eventId, first },
    );
}
