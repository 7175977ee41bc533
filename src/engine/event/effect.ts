/**
 * Records the work that an event has done, so that a retry or a replay finds it in spite of every edit of the definition. The key of a piece of work
 * holds the action's type, target and fingerprint, and its ordinal among equal actions. If a relay sends, each piece of work has an `effect` row.
 * Otherwise an attempt commits as a whole, and its run's row records the work. step-reconciliation.ts decides what follows for the next attempt.
 */
import { type Json, writeJson } from "../../base/json.ts";
import type { LiveAction } from "../../rules/relay/live-relay.ts";
import type { Writer } from "../../store/port.ts";
import { defineTable, integer, orNull, text } from "../../store/table.ts";
import type { EventToRun } from "./event.ts";
import type { BoundKey } from "./run.ts";

export const EFFECT = defineTable({
  name: "effect",
  key: ["eventSeq", "key"],
  columns: {
    eventSeq: integer(),
    key: text(),
    /** `intended`: its send began, and how it ended was not recorded. */
    state: text<"intended" | "done">(),
    /** The `after` of its outcome as JSON text, or null. */
    result: orNull(text()),
    /** The number of the run that did or intended it. */
    run: orNull(integer()),
  },
});

/** A piece of work, done or begun. */
export interface Work {
  key: string;
  type: string;
  target: string;
  /** The fingerprint of the action's text; null if an earlier version did it, and the text is unknown. */
  fingerprint: string | null;
  /** The place among equal actions, from 1. */
  ordinal: number;
  /** `intended`: its send began, and how it ended was not recorded. */
  state: "intended" | "done";
  /** The `after` of its outcome, which a later run that skips the work shows again; of intended work, its mark. */
  after: Json | undefined;
  /** The time when the attempt that did it began, in milliseconds since the epoch; null if unknown, or not done. */
  doneAt: number | null;
  /** The person of that attempt; null if there is none, or if an earlier version did not store it. */
  personId: string | null;
}

/** An attempt: the event, and its run's number. */
type AttemptKey = Pick<EventToRun, "seq" | "runs">;

/** An action of an earlier attempt, and the work that it stood for, done or not. */
export interface Slot extends LiveAction {
  key: string;
  /** The key of the work that it was chosen over, until its own send is known to have ended. */
  over?: string;
}

/** Resolves the key of an action's work, given the work that was done. */
export function openKey(bound: BoundKey, works: ReadonlyMap<string, Work>): Pick<Slot, "key" | "over"> {
  if (typeof bound === "string") return { key: bound };
  const [chosen, over] = bound;
  const own = works.get(chosen);
  if (own === undefined) return { key: over };
  return own.state === "intended" ? { key: chosen, over } : { key: chosen };
}

/** All that earlier attempts of an event did. */
export interface PriorWork {
  works: ReadonlyMap<string, Work>;
  /** The slots of the last attempt that reached its actions; empty if none did. */
  slots: readonly Slot[];
  /** The action texts of every attempt, by fingerprint. */
  actions: ReadonlyMap<string, unknown>;
}

/** Counts the place of each action among those of its type and target, from 1. Earlier versions identified work by it. */
export function countPlaces(actions: readonly Pick<LiveAction, "type" | "target">[]): number[] {
  const seen = new Map<string, number>();
  return actions.map(({ type, target }) => {
    const name = `${type}\n${target}`;
    const place = (seen.get(name) ?? 0) + 1;
    seen.set(name, place);
    return place;
  });
}

/** Records a send before it begins, so that it never happens twice. `mark`: the work's `after` until the send ends. */
export async function intendEffect(
  tx: Writer,
  { seq: eventSeq, runs: run }: AttemptKey,
  key: string,
  mark: Json | undefined,
): Promise<void> {
  await EFFECT.insert(tx, { eventSeq, key, state: "intended", result: writeAfter(mark), run });
}

/**
 * Records work in the transaction that does it. The primary key rejects a second row of the same key (UniqueViolation), so two runners cannot do the
 * same work. `after`: what a later run that skips the work shows.
 */
export async function completeEffect(
  tx: Writer,
  { seq: eventSeq, runs: run }: AttemptKey,
  key: string,
  after: Json | undefined,
): Promise<void> {
  await EFFECT.insert(tx, { eventSeq, key, state: "done", result: writeAfter(after), run });
}

/** Records that an intended send ended. The work stays that of the attempt that intended it. Throws if it is not intended any more. */
export async function finalizeEffect(
  tx: Writer,
  { seq, runs }: AttemptKey,
  key: string,
  after: Json | undefined,
): Promise<void> {
  const finalized = await tx.run(
    "UPDATE effect SET state = 'done', result = $result, run = coalesce(run, $runs) WHERE event_seq = $seq AND key = $key AND state = 'intended'",
    { seq, runs, key, result: writeAfter(after) },
  );
  if (finalized !== 1) throw new Error("An effect was settled that is not intended any more.");
}

/** Deletes an intent whose send certainly did not happen, so that a retry may send. */
export async function deleteIntent(tx: Writer, eventSeq: number, key: string): Promise<void> {
  await tx.run("DELETE FROM effect WHERE event_seq = ?1 AND key = ?2 AND state = 'intended'", eventSeq, key);
}

function writeAfter(after: Json | undefined): string | null {
  return after === undefined ? null : writeJson(after);
}
