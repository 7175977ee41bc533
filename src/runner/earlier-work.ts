/**
 * What an attempt's actions have to do, given what earlier attempts of the event did. Something that began to leave the house for an action
 * that was chosen, or is edited or gone since, is settled before: what may have left counts as done, and nothing is sent for it. It runs no action.
 */
import type { ActionRun } from "../action/contract.ts";
import { findAction } from "../action/registry.ts";
import { alignActions, listStrayIntents, type Step } from "../event/alignment.ts";
import { dropIntent, makeFreshKeys, settleEffect, type Work } from "../event/effect.ts";
import type { EventToRun } from "../event/event-row.ts";
import { readMemory } from "../event/memory.ts";
import { parseJson } from "../ground/json.ts";
import type { LiveRelay } from "../relay/live-relay.ts";
import type { Writer } from "../store/port.ts";

/** The steps of a first run: every action is new. */
export function makeFreshSteps({ actions }: LiveRelay): Step[] {
  return makeFreshKeys(actions).map((key) => ({ does: "run", key }));
}

/** The steps of a later run, one an action. `run`: the occasion, for what is settled. */
export async function alignWithEarlier(
  tx: Writer,
  { actions }: LiveRelay,
  event: EventToRun,
  run: ActionRun,
): Promise<Step[]> {
  let memory = await readMemory(tx, event.seq);
  const stray = listStrayIntents(actions, memory);
  for (const work of stray) await settleStray(tx, event, work, run);
  if (stray.length > 0) memory = await readMemory(tx, event.seq);
  const chosen = event.chosen === null ? [] : (parseJson(event.chosen) as string[]);
  return alignActions(actions, memory, new Set(chosen));
}

async function settleStray(tx: Writer, event: EventToRun, work: Work, run: ActionRun): Promise<void> {
  const type = findAction(work.type);
  const conclude = run.person !== null && type?.sends === true ? type.conclude : undefined;
  const outcome = conclude === undefined ? undefined : await conclude.call(type, tx, run, work.after);
  if (outcome === null) await dropIntent(tx, event.seq, work.key);
  else await settleEffect(tx, event, work.key, outcome?.after);
}
