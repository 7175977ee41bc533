/**
 * Simulates what a relay would do with a request, a record change or a tick, step by step. The real code runs in a transaction that is rolled back,
 * and no mail or call leaves the process. The input is a body, a stored event, or an example.
 */

import { toIso } from "../../base/clock.ts";
import { type Json, parseJson, writeJson } from "../../base/json.ts";
import { findEventToRun } from "../../engine/event/event.ts";
import { makePayload } from "../../engine/event/insert.ts";
import { type Rehearsal, rehearse } from "../../engine/runner/rehearse.ts";
import { listKnownSecrets } from "../../rules/relay/known-secret.ts";
import type { LiveRelay, LiveRelays, ReceiverRelay } from "../../rules/relay/live-relay.ts";
import { rejectUnknownRelay } from "../../rules/relay/relay.ts";
import { findPerson } from "../../shop/people/person.ts";
import { dryRun } from "../../store/dry-run.ts";
import type { Writer } from "../../store/port.ts";
import { writeChange } from "./simulated-record.ts";
import { receiveGivenRequest, replayStoredEvent } from "./simulated-request.ts";
import {
  type Occurrence,
  type SimulateDeps,
  type SimulateInput,
  type Simulation,
  Steps,
  type Subject,
  writeEvent,
} from "./step.ts";

/** Simulates a saved relay. Throws `not_found` and `invalid_input`. */
export async function simulateRelay(
  deps: SimulateDeps & { relays: Pick<LiveRelays, "current"> },
  environmentId: number,
  name: string,
  input: SimulateInput,
): Promise<Simulation> {
  const { relays } = await deps.relays.current();
  const relay = relays.find((one) => one.environmentId === environmentId && one.name === name);
  if (relay === undefined) throw rejectUnknownRelay(name);
  const secrets =
    relay.receiver === null ? [] : await deps.store.read((tx) => listKnownSecrets(tx, deps.sealer, relay));
  return await simulate(deps, { relay, secrets, lacksSecret: false, open: async () => relay }, input);
}

/** Runs the simulation. Throws `not_found` and `invalid_input`. */
export async function simulate(
  deps: SimulateDeps,
  subject: Subject,
  input: SimulateInput,
): Promise<Simulation> {
  const { relay } = subject;
  const { trigger } = relay.definition;
  const steps = new Steps();
  const given = { receiver: input.body, data_change: input.record, schedule: undefined }[trigger.kind];
  const from = input.event !== undefined ? "event" : given === undefined ? "sample" : "body";
  const occurrence = await makeOccurrence(deps, subject, input, steps);
  const run = async (tx: Writer) => {
    const later = steps.fork();
    const opened = await subject.open(tx);
    return { all: later, warnings: await simulateOccurrence(tx, deps, opened, occurrence, later) };
  };
  const { all, warnings } = await dryRun(deps.store, "relay", run, relay.environmentId);
  const end = all.end("Every action would be done.");
  const example = "write" in occurrence ? (occurrence.example ?? null) : null;
  return { relay: relay.name, trigger: trigger.kind, from, example, ...end, steps: all.list, warnings };
}

async function makeOccurrence(
  deps: SimulateDeps,
  subject: Subject,
  input: SimulateInput,
  steps: Steps,
): Promise<Occurrence> {
  const { relay } = subject;
  const { trigger } = relay.definition;
  if (input.event !== undefined) return await replayStoredEvent(deps, relay, input.event, steps);
  if (trigger.kind === "receiver" && relay.receiver !== null)
    return await receiveGivenRequest(
      deps,
      { ...subject, relay: relay as ReceiverRelay },
      trigger,
      input,
      steps,
    );
  const nowMs = deps.clock.now();
  if (trigger.kind === "data_change")
    return { write: (tx, later, opened) => writeChange(tx, opened, trigger, input, later, nowMs) };
  const periodStart = toIso(nowMs);
  return {
    write: (tx, _later, opened) => writeEvent(tx, opened, makePayload({ tick: { periodStart } }), nowMs),
  };
}

async function simulateOccurrence(
  tx: Writer,
  { clock, limits, log }: SimulateDeps,
  relay: LiveRelay,
  occurrence: Occurrence,
  steps: Steps,
): Promise<string[]> {
  const nowMs = clock.now();
  const id = "eventId" in occurrence ? occurrence.eventId : await occurrence.write(tx, steps, relay);
  const event = await findEventToRun(tx, relay.environmentId, id);
  if (event === null) throw new Error("The event that was written is not there.");
  if (relay.waitsFor !== null) steps.stop("waiting", "wait", WAITS[relay.waitsFor]);
  const rehearsal = await rehearse(tx, event, relay, nowMs, { limits, log });
  await simulatePerson(tx, steps, relay, rehearsal, nowMs);
  for (const [index, { type, rendered, sends, result }] of rehearsal.actions.entries()) {
    const detail: Json = {
      index,
      type,
      rendered,
      sends,
      result: parseJson(writeJson((result ?? null) as Json)),
    };
    const why = result?.message === undefined ? "" : `: ${result.message}`;
    if (result === null) steps.unknown("action", `${type} would not be come to.`, detail);
    else if (result.outcome === "failed")
      steps.stop("action", "fail", `${type} would fail with ${result.code}${why}`, detail);
    else steps.ok("action", `${type} would be ${result.outcome}${why || "."}`, detail);
  }
  return rehearsal.warnings;
}

async function simulatePerson(
  tx: Writer,
  steps: Steps,
  { environmentId }: LiveRelay,
  { notRun, end, personId }: Rehearsal,
  nowMs: number,
): Promise<void> {
  if (notRun !== null && notRun.outcome === "failed") {
    steps.stop("person", "fail", notRun.message, { code: notRun.code });
    return;
  }
  if (end.outcome === "not_run") {
    steps.stop("person", "fail", `The event would end without running: ${end.reason}.`, { code: end.reason });
    return;
  }
  const person = personId === null ? null : await findPerson(tx, environmentId, personId);
  if (person === null) steps.ok("person", "The event is about no person.");
  else {
    const isNew = person.createdAt === nowMs;
    const message = isNew
      ? "The person does not exist yet and would be made, as invited."
      : "The person exists.";
    const { id, email, status } = person;
    steps.ok("person", message, isNew ? { email, status } : { id, email, status });
  }
}

const WAITS = {
  paused: "Its relay is paused: the event waits and runs when it is resumed.",
  held: "Its environment is on hold: the event waits and runs when the hold is released.",
  both: "Its environment is on hold and its relay is paused: the event waits and runs when both are over.",
} as const;
