/**
 * Reads what earlier attempts of an event did: their work, the list of actions that the last one ran, and the texts of all actions. Versions before
 * fingerprints identified work by type, target and place. For their runs the audit log gives the definition at the time of the run, and so the
 * text of the work. If that definition does not fit the run's results, the text stays unknown.
 */

import { isJsonObject, parseJson } from "../../base/json.ts";
import type { StoredResult } from "../../rules/action/contract.ts";
import type { ActionDefinition } from "../../rules/relay/definition-shape.ts";
import { type LiveAction, openActions } from "../../rules/relay/live-relay.ts";
import { findHolderNow } from "../../shop/people/merge-lookup.ts";
import type { Reader } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import { countPlaces, EFFECT, openKey, type PriorWork, type Slot, type Work } from "./effect.ts";
import { type BoundKey, makeFreshKeys, RUN, RUN_RESULTS } from "./run.ts";

/** The opened lists of actions, by their texts. */
export type ActionLists = Map<string, LiveAction[]>;

/** Reads all that the event's attempts did. `lists`: lists that earlier reads opened, to which it adds. */
export async function readPriorWork(
  tx: Reader,
  eventSeq: number,
  lists: ActionLists = new Map(),
): Promise<PriorWork> {
  const [effects, ran] = await Promise.all([
    tx.all<EffectRow>(LIST_EFFECTS, eventSeq),
    tx.all<RanRow>(LIST_RAN, eventSeq),
  ]);
  const attempts = ran.map((row) => openAttempt(RAN.read(row), lists));
  const works = new Map(effects.map((row) => [row.key, readWork(row)]));
  for (const attempt of attempts) addWorks(works, attempt);
  const last = attempts.at(-1);
  return await findOldTexts(tx, eventSeq, {
    works: new Map([...works].sort(([one], [other]) => (one < other ? -1 : 1))),
    slots: last?.actions.map((action, at) => ({ ...action, ...openKey(last.keys[at] ?? "", works) })) ?? [],
    actions: new Map(
      attempts.flatMap(({ actions }) => actions.map(({ fingerprint, action }) => [fingerprint, action])),
    ),
  });
}

/**
 * Assigns work to the event's current person if it was done for a person who was merged into them since. A merge moves what the work gave, so it
 * is not another person's. `personId`: null or "" if the event has no person yet.
 */
export async function adoptMergedWork(
  tx: Reader,
  environmentId: number,
  prior: PriorWork,
  personId: string | null,
): Promise<PriorWork> {
  if (personId === null || personId === "") return prior;
  const works = new Map(prior.works);
  for (const [key, work] of works) {
    if (work.state !== "done" || work.personId === null || work.personId === personId) continue;
    const holder = await findHolderNow(tx, environmentId, work.personId, work.doneAt ?? 0);
    if (holder === personId) works.set(key, { ...work, personId });
  }
  return { ...prior, works };
}

type EffectRow = RowOf<typeof EFFECT> & Pick<Work, "doneAt" | "personId">;
const LIST_EFFECTS = `SELECT ${EFFECT.columnsOf("effect")}, run.started_at AS doneAt, coalesce(run.person_id, event.person_id) AS personId
  FROM effect JOIN event ON event.seq = effect.event_seq
  LEFT JOIN run ON run.event_seq = effect.event_seq AND run.number = effect.run WHERE effect.event_seq = ?1 ORDER BY effect.key`;

function readWork({ key, state, result, doneAt, personId }: EffectRow): Work {
  const after = result === null ? undefined : parseJson(result);
  return { ...readWorkKey(key), state, after, doneAt: state === "done" ? doneAt : null, personId };
}

function readWorkKey(key: string): Pick<Work, "key" | "type" | "target" | "fingerprint" | "ordinal"> {
  const [type = "", target = "", ...rest] = key.split("\n");
  const [fingerprint, ordinal] = rest.length > 1 ? rest : [null, rest[0]];
  return { key, type, target, fingerprint: fingerprint ?? null, ordinal: Number(ordinal ?? 1) };
}

/** The columns of a run that reached its actions. */
const RAN = RUN.pick("startedAt", "results", "work");
type RanRow = RowOf<typeof RAN> & { list: string; person: string | null };
const LIST_RAN = `SELECT ${RAN.columnsOf("run")}, action_list.actions AS list, coalesce(run.person_id, event.person_id) AS person
  FROM run JOIN event ON event.seq = run.event_seq
  JOIN action_list ON action_list.fingerprint = run.actions WHERE run.event_seq = ?1 ORDER BY run.number`;

interface RanAttempt {
  startedAt: number;
  results: readonly StoredResult[];
  personId: string | null;
  actions: readonly LiveAction[];
  /** One key for each action. */
  keys: readonly BoundKey[];
}

function openAttempt({ list, work, person, ...attempt }: RanRow, lists: ActionLists): RanAttempt {
  const actions = lists.get(list) ?? openActions(parseJson(list) as ActionDefinition[]);
  lists.set(list, actions);
  return { ...attempt, personId: person, actions, keys: work ?? makeFreshKeys(actions) };
}

/** Adds the work that this run did: that of every action that did not fail, unless an earlier run had done it. */
function addWorks(
  works: Map<string, Work>,
  { startedAt, results, personId, actions, keys }: RanAttempt,
): void {
  for (const [at, result] of results.entries()) {
    const [action, bound] = [actions[at], keys[at]];
    if (action === undefined || bound === undefined || action.type !== result.type) continue;
    const key = typeof bound === "string" ? bound : bound[0];
    if (action.repeats || result.outcome === "failed" || works.has(key)) continue;
    works.set(key, { ...readWorkKey(key), state: "done", after: result.after, doneAt: startedAt, personId });
  }
}

type OldRun = RowOf<typeof RUN_RESULTS> & {
  /** The relay's last saved state before the run, as JSON of the audit log; null if unknown. */
  saved: string | null;
};

/** Fills in the texts of earlier versions' work, as far as the audit log gives them. */
async function findOldTexts(tx: Reader, eventSeq: number, prior: PriorWork): Promise<PriorWork> {
  if ([...prior.works.values()].every(({ fingerprint }) => fingerprint !== null)) return prior;
  const runs = await tx.all<Pick<OldRun, "saved">>(
    `SELECT run.results, (SELECT audit.after FROM audit WHERE audit.environment_id = event.environment_id
       AND audit.target = 'relay:' || (SELECT name FROM relay_name WHERE key = event.name_key) AND audit.event_id IS NULL AND audit.at <= run.started_at
       AND audit.action IN ('relay.created', 'relay.updated') ORDER BY audit.seq DESC LIMIT 1) AS saved
     FROM run JOIN event ON event.seq = run.event_seq WHERE run.event_seq = ?1 AND run.actions IS NULL ORDER BY run.number`,
    eventSeq,
  );
  const works = new Map(prior.works);
  let slots: Slot[] = [];
  let allKnown = true;
  for (const run of runs.map((stored) => RUN_RESULTS.read(stored))) {
    const { results } = run;
    if (!reachedActions(results)) continue;
    const list = openSaved(run, results);
    allKnown = allKnown && list !== null;
    slots = list === null ? [] : keyByPlace(list);
    for (const [at, slot] of slots.entries()) {
      const work = works.get(slot.key);
      if (work?.fingerprint === null && didWork(work, results[at], allKnown))
        works.set(slot.key, { ...work, fingerprint: slot.fingerprint });
    }
  }
  const actions = new Map(slots.map(({ fingerprint, action }) => [fingerprint, action]));
  for (const [fingerprint, action] of prior.actions) actions.set(fingerprint, action);
  return { works, slots: prior.slots.length === 0 ? slots : prior.slots, actions };
}

function reachedActions([first]: readonly StoredResult[]): boolean {
  return first !== undefined && first.type !== "person" && first.type !== "event";
}

/** Returns the list that the run ran; null if the saved list does not fit the results, or holds an action that this version does not know. */
function openSaved({ saved }: OldRun, results: readonly StoredResult[]): LiveAction[] | null {
  const row = saved === null ? null : parseJson(saved);
  const definition = isJsonObject(row) ? row.definition : null;
  const texts = isJsonObject(definition) && Array.isArray(definition.actions) ? definition.actions : [];
  if (results.some(({ type }, at) => !isJsonObject(texts[at]) || texts[at].type !== type)) return null;
  try {
    return openActions(texts as ActionDefinition[]);
  } catch {
    return null;
  }
}

/** Returns each action with the key that its work had in those versions. */
function keyByPlace(list: readonly LiveAction[]): Slot[] {
  const places = countPlaces(list);
  return list.map((live, at) => ({ ...live, key: `${live.type}\n${live.target}\n${places[at]}` }));
}

/** Reports whether this run did the work. `allKnown`: the lists of all earlier runs are known, so none of them did it. */
function didWork({ state }: Work, result: StoredResult | undefined, allKnown: boolean): boolean {
  if (state === "intended") return result === undefined || result.outcome === "failed";
  return result?.outcome === "done" || (result?.outcome === "skipped" && allKnown);
}
