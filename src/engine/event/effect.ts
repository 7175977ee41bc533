/**
 * The memory of what an event has already done, so that a retry or a replay finds its own earlier work through every edit of the
 * definition. Work is remembered under the action's type, target and fingerprint and its ordinal among equals; each attempt remembers which
 * list of actions it ran and which work each of them stands for. Where a relay sends, each piece of work has a row of its own; where it does
 * not, all of an attempt commits together and its run's row is the memory. What that means for the next attempt is step-reconciliation.ts's to decide.
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
    /** `intended`: it began to leave the house, and its end was not written down. */
    state: text<"intended" | "done">(),
    /** JSON text of what it left; null: nothing. */
    result: orNull(text()),
    /** The number of the run that did it, or intended it. */
    run: orNull(integer()),
  },
});

/** One piece of work, done or begun. */
export interface Work {
  key: string;
  type: string;
  target: string;
  /** Of the action that did it; null: an earlier version did it, and its text is found nowhere. */
  fingerprint: string | null;
  /** Among equals, from 1. */
  ordinal: number;
  /** `intended`: it began to leave the house, and its end was not written down. */
  state: "intended" | "done";
  /** What it left, shown again where a later run skips it; of what was intended, its mark. */
  after: Json | undefined;
  /** When the attempt that did it began, milliseconds since the epoch; null: not known, or not done. */
  doneAt: number | null;
  /** The person that the attempt was about; null: it had none, or an earlier version did not keep it. */
  personId: string | null;
}

/** The attempt that works: the event and its run's number. */
type Working = Pick<EventToRun, "seq" | "runs">;

/** One action of an earlier attempt, and the work it stood for whether or not that was done. */
export interface Slot extends LiveAction {
  key: string;
  /** The key of the work it was chosen over, while whether its own left the house is not known. */
  over?: string;
}

/** The work an action stands for, given what was done. */
export function openKey(bound: BoundKey, works: ReadonlyMap<string, Work>): Pick<Slot, "key" | "over"> {
  if (typeof bound === "string") return { key: bound };
  const [chosen, over] = bound;
  const own = works.get(chosen);
  if (own === undefined) return { key: over };
  return own.state === "intended" ? { key: chosen, over } : { key: chosen };
}

/** All that an event remembers. */
export interface PriorWork {
  works: ReadonlyMap<string, Work>;
  /** Of the last attempt that came to its actions; none where no attempt did. */
  slots: readonly Slot[];
  /** Actions of every attempt, by fingerprint. */
  actions: ReadonlyMap<string, unknown>;
}

/** The place of each action among those of its type and target, from 1: how work was known before fingerprints. */
export function countPlaces(actions: readonly Pick<LiveAction, "type" | "target">[]): number[] {
  const seen = new Map<string, number>();
  return actions.map(({ type, target }) => {
    const name = `${type}\n${target}`;
    const place = (seen.get(name) ?? 0) + 1;
    seen.set(name, place);
    return place;
  });
}

/** Before something leaves the house that must not leave twice. `mark` is the work's `after` until it is settled. */
export async function intendEffect(
  tx: Writer,
  { seq: eventSeq, runs: run }: Working,
  key: string,
  mark: Json | undefined,
): Promise<void> {
  await EFFECT.insert(tx, { eventSeq, key, state: "intended", result: writeAfter(mark), run });
}

/**
 * In the transaction of the effect itself: a second one of the same key is refused by the primary key (UniqueViolation), so that work is
 * never done twice even where two runners believe that it is theirs. `after` is shown again when a later run skips it.
 */
export async function completeEffect(
  tx: Writer,
  { seq: eventSeq, runs: run }: Working,
  key: string,
  after: Json | undefined,
): Promise<void> {
  await EFFECT.insert(tx, { eventSeq, key, state: "done", result: writeAfter(after), run });
}

/** As `completeEffect`, of what was intended before: it stays the work of the attempt that intended it. Throws where the intent is not there, or was settled by another. */
export async function finalizeEffect(
  tx: Writer,
  { seq, runs }: Working,
  key: string,
  after: Json | undefined,
): Promise<void> {
  const settled = await tx.run(
    "UPDATE effect SET state = 'done', result = $result, run = coalesce(run, $runs) WHERE event_seq = $seq AND key = $key AND state = 'intended'",
    { seq, runs, key, result: writeAfter(after) },
  );
  if (settled !== 1) throw new Error("An effect was settled that is not intended any more.");
}

/** When it is certain that nothing left, so that a retry may try again. */
export async function deleteIntent(tx: Writer, eventSeq: number, key: string): Promise<void> {
  await tx.run("DELETE FROM effect WHERE event_seq = ?1 AND key = ?2 AND state = 'intended'", eventSeq, key);
}

function writeAfter(after: Json | undefined): string | null {
  return after === undefined ? null : writeJson(after);
}
