/** The input and the result of a simulation: steps in the order in which a request or an occurrence passes them. */
import { type Static, Type } from "typebox";
import type { Clock } from "../../base/clock.ts";
import type { Json } from "../../base/json.ts";
import type { RaisableLimits } from "../../base/limit.ts";
import { MAX_RECEIVER_BODY_BYTES } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import { fields, oneOf, orNull, payloadJson, payloadText } from "../../base/schema.ts";
import { EVENT_TRIGGERS, type EventWay } from "../../engine/event/event.ts";
import { insertEvent, type StoredPayload } from "../../engine/event/insert.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import type { LiveRelay } from "../../rules/relay/live-relay.ts";
import type { ParsedBody } from "../../rules/verify/contract.ts";
import type { KnownSecret } from "../../rules/verify/signature-evidence.ts";
import type { Store, Writer } from "../../store/port.ts";

/** The input. An example is simulated if there is none. */
export const simulateInput = fields({
  body: Type.Optional(
    Type.String({ maxLength: MAX_RECEIVER_BODY_BYTES, description: "a receiver's body, as text" }),
  ),
  contentType: Type.Optional(Type.String({ maxLength: 200, description: "the body's content type" })),
  headers: Type.Optional(
    Type.Record(Type.String(), Type.String({ maxLength: 4_000 }), {
      maxProperties: 60,
      description: "the headers of a request; without them it is signed as the sender would",
    }),
  ),
  search: Type.Optional(
    Type.String({ maxLength: 4_000, description: "what was appended to the receiver URL, ? included" }),
  ),
  url: Type.Optional(
    Type.String({
      maxLength: 2_000,
      description:
        "the URL at which a request with headers arrived, without its query, for a sender that signs it; absent: the receiver URL",
    }),
  ),
  receivedAt: Type.Optional(
    Type.String({
      maxLength: 40,
      description:
        "the time at which a request with headers arrived, which its timestamp must fit; absent: now",
    }),
  ),
  event: Type.Optional(Type.String({ maxLength: 100, description: "the id of a stored event" })),
  record: Type.Optional(Type.Unknown({ description: "the data of a record, a JSON object" })),
  change: Type.Optional(oneOf(["created", "updated", "deleted"])),
  person: Type.Optional(
    Type.String({ maxLength: 254, description: "the id or address of whom the example is about" }),
  ),
});
export type SimulateInput = Static<typeof simulateInput>;

const stepView = Type.Object({
  step: oneOf([
    "parts",
    "signed_text",
    "signature",
    "handshake",
    "map",
    "when",
    "where",
    "event_id",
    "waiting",
    "person",
    "action",
  ]),
  /** `stops`: no later step would happen. `unknown`: the result cannot be known here. */
  outcome: oneOf(["ok", "stops", "unknown"]),
  /** True if the step would be reached. A step after a stop is shown as it would be without the stop. */
  reached: Type.Boolean(),
  message: payloadText,
  detail: Type.Unsafe<Json>(payloadJson),
});
type StepView = Static<typeof stepView>;

export const simulationView = Type.Object({
  relay: Type.String(),
  trigger: oneOf(EVENT_TRIGGERS),
  /** The kind of input that was simulated. */
  from: oneOf(["body", "event", "sample"]),
  /** The generated body; null where the caller gave the input, or where the relay takes no body. */
  example: orNull(Type.Object({ body: payloadText, contentType: Type.String() })),
  would: oneOf(["run", "fail", "wait", "ignore", "duplicate", "refuse"]),
  message: payloadText,
  steps: Type.Array(stepView),
  warnings: Type.Array(payloadText),
});
export type Simulation = Static<typeof simulationView>;

type Would = Simulation["would"];

/** Collects the steps. The first one that stops decides the result. */
export class Steps {
  readonly list: StepView[] = [];
  #end: { would: Would; message: string } | null = null;

  /** Copies the steps, to continue in a transaction that may run twice. */
  fork(): Steps {
    const copy = new Steps();
    copy.list.push(...this.list);
    copy.#end = this.#end;
    return copy;
  }

  ok(step: StepView["step"], message: string, detail: Json = null): void {
    this.#add(step, "ok", message, detail);
  }

  unknown(step: StepView["step"], message: string, detail: Json = null): void {
    this.#add(step, "unknown", message, detail);
  }

  stop(step: StepView["step"], would: Would, message: string, detail: Json = null): void {
    this.#add(step, "stops", message, detail);
    this.#end ??= { would, message };
  }

  /** Returns the result; `message` describes a run that nothing stopped. */
  end(message: string): { would: Would; message: string } {
    return this.#end ?? { would: "run", message };
  }

  #add(step: StepView["step"], outcome: StepView["outcome"], message: string, detail: Json): void {
    this.list.push({ step, outcome, reached: this.#end === null, message, detail });
  }
}

export interface SimulateDeps {
  store: Store;
  sealer: Sealer;
  clock: Clock;
  log: Log;
  limits: RaisableLimits;
}

/** A relay to simulate: saved, or as a draft would be saved. */
export interface Subject {
  relay: LiveRelay;
  /** The secrets that the sender may have used, first the relay's own; empty without a receiver. */
  secrets: readonly KnownSecret[];
  /** True if a draft has no secret yet. Then an example secret signs, and given headers cannot be checked. */
  lacksSecret: boolean;
  /** Returns the relay in the transaction of the simulation. A draft is saved there again. */
  open(tx: Writer): Promise<LiveRelay>;
}

/** A stored event, or a function that writes one of the relay and returns its id. */
export type Occurrence =
  | { eventId: string }
  | { write(tx: Writer, steps: Steps, relay: LiveRelay): Promise<string>; example?: Simulation["example"] };

/** Writes the event that represents the occurrence during the simulation. */
export async function writeEvent(
  tx: Writer,
  relay: LiveRelay,
  payload: StoredPayload,
  nowMs: number,
  parsed?: Extract<ParsedBody, { ok: true }>,
  source?: EventWay,
): Promise<string> {
  const { environmentId, id: relayId, key: relayKey, nameKey, version: mapVersion, receiver } = relay;
  const { kind: trigger } = relay.definition.trigger;
  const of = { environmentId, relayId, relayKey, nameKey, trigger, payload, nowMs, dedupe: null };
  const form = parsed !== undefined && parsed.form !== null;
  const { id } = await insertEvent(tx, {
    ...of,
    unsigned: receiver?.unsigned ?? false,
    ...(parsed === undefined ? {} : { form, mapVersion }),
    ...(source === undefined ? {} : { source }),
  });
  return id;
}
