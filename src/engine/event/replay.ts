/**
 * Replays final events: each is queued again with its attempts reset. A plan first shows what each action will do, by the same reconciliation that
 * the run uses. Work that was edited later, or was done for another person, is skipped unless the replay chooses it.
 */

import { writeJson } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import { writeAudits } from "../../platform/audit/audit.ts";
import { findAction } from "../../rules/action/registry.ts";
import { type LiveAction, openActions } from "../../rules/relay/live-relay.ts";
import { RELAY } from "../../rules/relay/relay.ts";
import { arrivesUnsigned, rejectsUnsigned } from "../../rules/relay/unsigned-rule.ts";
import { formatPerson } from "../../shop/people/person.ts";
import type { Reader, Writer } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import {
  type ChosenKey,
  EVENT,
  type Expunged,
  eventIdOf,
  FINAL_STATES,
  findEventSeq,
  RELAY_ID,
  RELAY_NAME,
  rejectUnknownEvent,
} from "./event.ts";
import { type ActionLists, adoptMergedWork, readPriorWork } from "./prior-work.ts";
import { findReplayPerson, type ReplayPerson } from "./replay-person.ts";
import { type PlannedAction, planAction, type ReplayPlan, willDo } from "./replay-plan.ts";
import { choiceOf, mayChoose, reconcileActions, type Step } from "./step-reconciliation.ts";

const REPLAYED = EVENT.pick("seq", "formerId", "createdAt", "state", "trigger", "unsigned");
interface ReplayedTexts {
  relayId: string;
  relayName: string;
  expunged: Expunged | null;
}
type ReplayedEvent = RowOf<typeof REPLAYED> & ReplayedTexts;
const FIND_REPLAYED = `SELECT ${REPLAYED.columns}, ${RELAY_ID}, ${RELAY_NAME}, payload ->> '$.expunged' AS expunged FROM event WHERE seq = ?1`;

const RELAY_NOW = RELAY.pick("id", "environmentId", "version", "definition");
type RelayNow = RowOf<typeof RELAY_NOW>;

/** An event of an environment: by its id, or by the number that the caller read there. */
type ReplayedKey = { environmentId: number } & ({ id: string } | { seq: number });

interface ReplayWords {
  /** The actor that asks, in the audit's words. */
  actor: string;
  nowMs: number;
  /** Indexes of actions to run although their work was done. The plan must offer them. */
  run?: readonly number[] | undefined;
  /** True if all actions whose work was done for another person than the event's current one also run. */
  move?: boolean;
  /** The relay's version of the plan; absent for any version. */
  version?: number | undefined;
  /** The bulk replay that it is part of. */
  bulkReplay?: string;
}
type ReplayRequest = ReplayedKey & ReplayWords;

/** Codes of refusals that leave an event out of a bulk replay. */
const REFUSALS = ["payload_expunged", "unsigned_event", "not_replayable", "not_found"] as const;
export type ReplayRefusal =
  | (typeof REFUSALS)[number]
  | "relay_deleted"
  | "trigger_changed"
  | "action_unknown"
  /** A done event whose work was done for its current person. A bulk replay of done events takes only the others. */
  | "same_person";

/** Plans a replay. Refuses as `replayEvent` does. */
export async function planReplay(tx: Reader, request: ReplayedKey): Promise<ReplayPlan> {
  const { event, relay } = await requireReplayable(tx, request);
  if (relay === null) {
    const stop = `There is no relay ${event.relayName} now, so the replay would end without running anything.`;
    return { relay: null, stop, actions: [] };
  }
  const shown = { id: relay.id, name: event.relayName, version: relay.version };
  const { kind } = relay.definition.trigger;
  if (kind !== event.trigger) {
    const stop = `The relay's trigger is ${kind} now and this event came by ${event.trigger}, so the replay would end without running anything.`;
    return { relay: shown, stop, actions: [] };
  }
  const { steps, actions, person } = await readSteps(tx, event.seq, relay);
  const planned: PlannedAction[] = [];
  for (const [index, live] of actions.entries()) {
    const step = steps[index] as Step;
    const doneFor = "doneFor" in step ? step.doneFor : undefined;
    const people =
      doneFor === undefined || person === null
        ? null
        : {
            doneFor: { id: doneFor, name: await formatPerson(tx, request.environmentId, doneFor) },
            nowFor: { id: person.id === "" ? null : person.id, name: person.name },
          };
    planned.push(planAction(live, index, step, people));
  }
  return { relay: shown, stop: null, actions: planned };
}

/**
 * Queues the event again. Refuses with not_found, not_replayable (queued or running), payload_expunged, unsigned_event, version_conflict (the relay
 * changed after the plan) and invalid_input (`run` names an action that the plan does not offer).
 */
export async function replayEvent(tx: Writer, request: ReplayRequest): Promise<void> {
  const { event, relay } = await requireReplayable(tx, request);
  await queueAgain(tx, [{ event, relay, request, chosen: await chooseWork(tx, event, relay, request) }]);
}

/**
 * Replays different events of an environment. Returns for each event why it was left out, or null if it was queued again. All events are read in
 * parallel, because each read is a round trip on PostgreSQL.
 */
export async function tryReplays(
  tx: Writer,
  requests: readonly ReplayRequest[],
): Promise<(ReplayRefusal | null)[]> {
  const cache = new ReplayCache();
  const found = await Promise.all(requests.map((request) => findReplayable(tx, request, cache)));
  const refusals = found.map((one) => (typeof one === "string" ? one : null));
  const requeued: Queued[] = [];
  for (const [at, one] of found.entries()) {
    const request = requests[at];
    if (typeof one === "string" || request === undefined) continue;
    const chosen = request.move === true ? await chooseMoved(tx, one, cache) : [];
    if (one.event.state === "done" && chosen.length === 0) refusals[at] = "same_person";
    else requeued.push({ ...one, request, chosen });
  }
  await queueAgain(tx, requeued);
  return refusals;
}

/** Reads and opens what many replays share once: relays by their current names, and lists of actions. */
export class ReplayCache {
  readonly #relays = new Map<string, Promise<RelayNow | null>>();
  readonly #actions = new Map<RelayNow, LiveAction[]>();
  /** The lists of earlier attempts. */
  readonly lists: ActionLists = new Map();

  findRelay(tx: Reader, environmentId: number, name: string): Promise<RelayNow | null> {
    const key = `${environmentId} ${name}`;
    const found =
      this.#relays.get(key) ??
      RELAY_NOW.get(tx, "WHERE environment_id = $environmentId AND name = $name", { environmentId, name });
    this.#relays.set(key, found);
    return found;
  }

  /** Throws if this version does not know an action. */
  openActions(relay: RelayNow): LiveAction[] {
    const opened = this.#actions.get(relay) ?? openActions(relay.definition.actions);
    this.#actions.set(relay, opened);
    return opened;
  }
}

/** Finds the event and its relay, or returns why no action of it would run. */
async function findReplayable(
  tx: Reader,
  request: ReplayedKey,
  cache: ReplayCache,
): Promise<{ event: ReplayedEvent; relay: RelayNow } | ReplayRefusal> {
  try {
    const { event, relay } = await requireReplayable(tx, request, cache);
    if (relay === null) return "relay_deleted";
    if (relay.definition.trigger.kind !== event.trigger) return "trigger_changed";
    return relay.definition.actions.every(({ type }) => findAction(type) !== null)
      ? { event, relay }
      : "action_unknown";
  } catch (error) {
    const code = error instanceof Refusal ? REFUSALS.find((one) => one === error.code) : undefined;
    if (code === undefined) throw error;
    return code;
  }
}

/** Chooses all work of the event that was done for another person. */
async function chooseMoved(
  tx: Reader,
  { event, relay }: { event: ReplayedEvent; relay: RelayNow },
  cache: ReplayCache,
): Promise<Choice[]> {
  const { steps } = await readSteps(tx, event.seq, relay, cache);
  return steps.flatMap((step, index) =>
    "doneFor" in step && step.doneFor !== undefined ? [{ index, work: choiceOf(step) }] : [],
  );
}

/** The planned effect of a replay on one action. */
type Outline = [type: string, will: PlannedAction["will"]];

/** Outlines a replay for a bulk plan: why the event would be left out, or what each action would do. */
export async function outlineReplay(
  tx: Reader,
  request: ReplayedKey,
  cache: ReplayCache,
): Promise<{ relay: string; left: ReplayRefusal } | { relay: string; will: Outline[] }> {
  const found = await findReplayable(tx, request, cache);
  if (typeof found === "string") return { relay: "", left: found };
  const { event, relay } = found;
  const { steps, actions } = await readSteps(tx, event.seq, relay, cache);
  const will = actions.map((live, at): Outline => [live.type, willDo(live, steps[at] as Step)]);
  if (event.state === "done" && !will.some(([, one]) => one === "other_person"))
    return { relay: "", left: "same_person" };
  return { relay: event.relayName, will };
}

interface Queued {
  event: ReplayedEvent;
  relay: RelayNow | null;
  request: ReplayRequest;
  /** The actions that run although their work was done. */
  chosen: readonly Choice[];
}

/** An action by its index in the list, and the work that it then does. */
interface Choice {
  index: number;
  work: ChosenKey;
}

async function queueAgain(tx: Writer, queued: readonly Queued[]): Promise<void> {
  const keys = new Map<string, number | null>();
  const idOf = ({ event, relay }: Queued): string => relay?.id ?? event.relayId;
  await Promise.all(
    [...new Set(queued.map(idOf))].map(async (relayId) => {
      const row = await tx.get<{ key: number }>("SELECT key FROM relay_key WHERE relay_id = ?1", relayId);
      keys.set(relayId, row?.key ?? null);
    }),
  );
  // A relay that was created again under its name counts its versions from 1, so the old map version means nothing.
  await tx.postEach(
    `UPDATE event SET state = 'queued', reason = NULL, attempts = 0, next_attempt_at = NULL, replays = replays + 1, finished_at = NULL,
       relay_key = $relayKey, chosen = $chosen, map_version = CASE WHEN relay_key = $relayKey THEN map_version END WHERE seq = $seq`,
    queued.map((one) => ({
      seq: one.event.seq,
      relayKey: keys.get(idOf(one)) ?? null,
      chosen: one.chosen.length === 0 ? null : writeJson(one.chosen.map(({ work }) => work)),
    })),
  );
  await writeAudits(tx, queued.map(auditOf));
  for (const one of queued) tx.notify("event", idOf(one));
  for (const { request } of queued) tx.notify("event_moved", request.environmentId);
}

function auditOf({ event, relay, request, chosen }: Queued) {
  return {
    environmentId: request.environmentId,
    nowMs: request.nowMs,
    by: request.actor,
    action: "event.replayed" as const,
    target: `event:${eventIdOf(event)}`,
    before: { state: event.state },
    after: {
      state: "queued",
      ...(request.bulkReplay === undefined ? {} : { bulkReplay: request.bulkReplay }),
      ...(chosen.length === 0
        ? {}
        : { run: chosen.map(({ index }) => index), version: relay?.version ?? null }),
    },
  };
}

async function requireReplayable(
  tx: Reader,
  key: ReplayedKey,
  cache = new ReplayCache(),
): Promise<{ event: ReplayedEvent; relay: RelayNow | null }> {
  const { environmentId } = key;
  const seq = "seq" in key ? key.seq : await findEventSeq(tx, environmentId, key.id);
  const stored = seq === null ? null : await tx.get<ReplayedTexts>(FIND_REPLAYED, seq);
  if (stored === null) throw rejectUnknownEvent("id" in key ? key.id : String(key.seq));
  const event = REPLAYED.read(stored);
  if (!FINAL_STATES.has(event.state)) {
    throw new Refusal(
      "not_replayable",
      `The event is ${event.state}, so it cannot be replayed now; wait until it is done, failed or dead. If it waits for its retry, use relay events retry or Retry now.`,
    );
  }
  if (event.expunged !== null) {
    const why = event.expunged === "person_erased" ? "its person was erased" : "a person expunged it";
    throw new Refusal(
      "payload_expunged",
      `The event's payload no longer exists, because ${why}. The event cannot run again: do its work by hand.`,
    );
  }
  // A relay that was deleted and created again under its name takes over the earlier events.
  const relay = await cache.findRelay(tx, environmentId, event.relayName);
  if (relay !== null && event.unsigned && rejectsUnsigned(relay.definition)) {
    const todo = arrivesUnsigned(relay.definition.trigger)
      ? "set trigger.trustUnsignedEvents if you accept that, or do by hand what the event should have done."
      : "its sender signs its events, so that there is no opt-in for this one; do by hand what the event should have done.";
    throw new Refusal(
      "unsigned_event",
      `The event arrived unsigned and its relay now acts without trustUnsignedEvents, so it never runs: ${todo}`,
    );
  }
  return { event, relay };
}

async function readSteps(
  tx: Reader,
  eventSeq: number,
  relay: RelayNow,
  cache = new ReplayCache(),
): Promise<{ steps: Step[]; actions: LiveAction[]; person: ReplayPerson | null }> {
  let actions: LiveAction[];
  try {
    actions = cache.openActions(relay);
  } catch {
    throw new Refusal(
      "not_replayable",
      "The relay has an action that this version of the service does not know, so its events wait: save its definition again, or use the version that wrote it.",
    );
  }
  const read = await readPriorWork(tx, eventSeq, cache.lists);
  const person = read.works.size === 0 ? null : await findReplayPerson(tx, eventSeq, relay);
  const personId = person?.id ?? null;
  const prior = await adoptMergedWork(tx, relay.environmentId, read, personId);
  return { actions, steps: reconcileActions(actions, prior, [], personId), person };
}

/** Resolves the actions that `run` chooses. */
async function chooseWork(
  tx: Reader,
  event: ReplayedEvent,
  relay: RelayNow | null,
  { run = [], version }: ReplayRequest,
): Promise<Choice[]> {
  if (relay !== null && version !== undefined && version !== relay.version) {
    throw new Refusal(
      "version_conflict",
      `The relay ${event.relayName} is at version ${relay.version} and the plan was read at version ${version}: read the plan again, then choose.`,
      { details: { version: relay.version } },
    );
  }
  if (run.length === 0) return [];
  const { steps } = relay === null ? { steps: [] } : await readSteps(tx, event.seq, relay);
  return [...new Set(run)].map((index) => {
    const step = steps[index];
    if (step !== undefined && mayChoose(step)) return { index, work: choiceOf(step) };
    const offered = steps.flatMap((one, at) => (mayChoose(one) ? [at] : []));
    const choice =
      offered.length === 0
        ? "no action of this event is, so leave run out"
        : `choose among ${offered.join(", ")}`;
    throw new Refusal(
      "invalid_input",
      `run names ${index}, and only an action that was edited after it had done its work, or that did it for another person, can be chosen: ${choice}.`,
    );
  });
}
