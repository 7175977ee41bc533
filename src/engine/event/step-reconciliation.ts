/**
 * Decides what each action of the relay's current list does in a later attempt of an event. It matches the actions with the event's prior work, so
 * that no edit of the list repeats or loses work. An action whose work was done under an older text, or for another person, is skipped unless a
 * replay chose it. This file reads and writes nothing.
 * Source: decisions section 3, "same work on retry and replay", "the corrected person".
 */
import { type Json, writeJson } from "../../base/json.ts";
import type { LiveAction } from "../../rules/relay/live-relay.ts";
import { countPlaces, type PriorWork, type Work } from "./effect.ts";
import type { ChosenKey } from "./event.ts";
import { type BoundKey, makeFreshKeys } from "./run.ts";

/** The kind of thing that an action does in this attempt. `key`: the work that it does, or would do if it ran. */
export type Step =
  /** `chosenOver`: the work that was done for the action before a replay chose it. */
  | { does: "run"; key: string; chosenOver?: Work }
  /** Its work is done. `sure`: false if an earlier version did it and its text is unknown. `doneFor`: another person that it was done for. */
  | { does: "skip"; key: string; work: Work; sure: boolean; doneFor?: string }
  /** Its send began, and how it ended was not recorded. */
  | { does: "settle"; key: string; work: Work; chosenOver?: Work }
  /** Its work was done under another text. `was`: that text; undefined if it was not stored. */
  | { does: "edited"; key: string; work: Work; was: unknown; doneFor?: string };

/** Something that an action can match: a slot of the last attempt, or work without a slot. */
interface Entry {
  type: string;
  target: string;
  /** The fingerprint of the last text that stood for it; null if unknown. */
  lastText: string | null;
  /** The work; null if it was not done. */
  work: Work | null;
  /** The work that it was chosen over. No other action may match that work until the chosen work ends. */
  over?: Work;
}

/** Decides whether an action takes an entry of its type and target. `place`: the action's place among those of its type and target, from 1. */
type Rule = (entry: Entry, action: LiveAction, place: number) => boolean;

/** The entry's work was done with the action's text. */
const didThisText: Rule = ({ work }, { fingerprint }) =>
  work?.state === "done" && work.fingerprint === fingerprint;

/** The same, and the last attempt had this text there. Work that it assigned to an edited action stays for that action if possible. */
const didThisTextLast: Rule = (entry, action, place) =>
  didThisText(entry, action, place) && entry.lastText === action.fingerprint;

/** A send with the action's text began, and its end was not recorded. */
const beganThisText: Rule = ({ work }, { fingerprint }) =>
  work?.state === "intended" && work.fingerprint === fingerprint;

/** The last attempt had the action's text there, and other work counts for it. */
const hadThisText: Rule = ({ work, lastText }, { fingerprint }) => work !== null && lastText === fingerprint;

/** The last attempt had the action's text there, and did not do it. */
const awaitsThisText: Rule = ({ work, lastText }, { fingerprint }) =>
  work === null && lastText === fingerprint;

/** An earlier version, which stored no text, did the work at the action's place. */
const hasThisPlace: Rule = ({ work, lastText }, _action, place) =>
  work?.fingerprint === null && lastText === null && work.ordinal === place;

/** Nothing was done. An edited action takes such an entry first, so that it runs. */
const isUndone: Rule = ({ work }) => work === null;

const isAny: Rule = () => true;

/** The rules in their order. Each matches what the rules before it left. */
const RULES: readonly Rule[] = [
  didThisTextLast,
  didThisText,
  beganThisText,
  hadThisText,
  awaitsThisText,
  hasThisPlace,
  isUndone,
  isAny,
];

/**
 * Returns one step for each action. `chosen`: the work that a replay chose to do again. `personId`: the person that the event is about now; "": a
 * person who does not exist yet; null for no person.
 */
export function reconcileActions(
  actions: readonly LiveAction[],
  prior: PriorWork,
  chosen: readonly ChosenKey[] = [],
  personId: string | null = null,
): Step[] {
  const places = countPlaces(actions);
  const matches = matchEntries(actions, places, listEntries(prior));
  const doneFor = actions.map((action, at) => findOtherPerson(action, matches[at]?.work ?? null, personId));
  const keys = makeKeys(actions, matches, prior, doneFor);
  return actions.map((action, at) => {
    const other = doneFor[at] === undefined ? {} : { doneFor: doneFor[at] };
    const match = matches[at] ?? null;
    const step = { ...makeStep(action, match, keys[at] as string, places[at] as number, prior), ...other };
    if (mayChoose(step) && isChosen(step, chosen))
      return { does: "run", key: step.key, chosenOver: step.work };
    return step;
  });
}

/**
 * Returns the choice of a step. It holds only while the earlier work is for the same other person, or for the event's own person, as in the plan.
 * So a move that finds the first person again does no work twice.
 */
export function choiceOf({ key, doneFor }: { key: string; doneFor?: string }): ChosenKey {
  return doneFor === undefined ? key : [key, doneFor];
}

function isChosen(step: Step, chosen: readonly ChosenKey[]): boolean {
  const choice = writeJson(choiceOf(step));
  return chosen.some((one) => writeJson(one) === choice);
}

/** Reports whether a replay may choose the action to run although its work was done. */
export function mayChoose(step: Step): step is Extract<Step, { does: "skip" | "edited" }> {
  return step.does === "edited" || (step.does === "skip" && (!step.sure || step.doneFor !== undefined));
}

/**
 * Lists sends without a recorded end whose action was removed, edited or chosen by a replay. Their end must be looked up before the
 * reconciliation, because it decides which work is left for the other actions.
 */
export function listStrayIntents(actions: readonly LiveAction[], prior: PriorWork): Work[] {
  const intended = [...prior.works.values()].filter(({ state }) => state === "intended");
  if (intended.length === 0) return [];
  const inPlace = new Set(
    reconcileActions(actions, prior).flatMap((step) =>
      step.does === "settle" && step.chosenOver === undefined ? [step.key] : [],
    ),
  );
  return intended.filter(({ key }) => !inPlace.has(key));
}

/**
 * Returns the key of each action's work after this attempt. A chosen action also has the key of its older work, which counts until it has
 * done the new work.
 */
export function bindKeys(steps: readonly Step[]): BoundKey[] {
  return steps.map((step) => {
    if (step.does === "skip" || step.does === "edited") return step.work.key;
    return step.chosenOver === undefined ? step.key : [step.key, step.chosenOver.key];
  });
}

/** Lists the slots of the last attempt, then the work that has no slot. */
function listEntries({ works, slots }: PriorWork): Entry[] {
  const left = new Map(works);
  const entries = slots
    .filter((slot) => !slot.repeats)
    .map(({ type, target, fingerprint, key, over: overKey = "" }): Entry => {
      const [work = null, over] = [left.get(key), left.get(overKey)];
      left.delete(key);
      left.delete(overKey);
      const entry: Entry = { type, target, lastText: fingerprint, work };
      return over === undefined ? entry : { ...entry, over };
    });
  for (const work of left.values())
    entries.push({ type: work.type, target: work.target, lastText: work.fingerprint, work });
  return entries;
}

/** Finds the entry of each action, or null for a new action. An action that repeats has none. */
function matchEntries(
  actions: readonly LiveAction[],
  places: readonly number[],
  entries: readonly Entry[],
): (Entry | null)[] {
  const matches: (Entry | null)[] = actions.map(() => null);
  for (const rule of RULES)
    for (const [at, action] of actions.entries()) {
      if (matches[at] !== null || action.repeats) continue;
      const place = places[at] as number;
      const entry = entries.find(
        (one) => !matches.includes(one) && hasTarget(one, action) && rule(one, action, place),
      );
      matches[at] = entry ?? null;
    }
  return matches;
}

function hasTarget(entry: Entry, { type, target }: LiveAction): boolean {
  return entry.type === type && entry.target === target;
}

const NAMES_PERSON = /\{\{\s*person\./;

/** Finds the person that the action's work was done for, if the event is about another person now. */
function findOtherPerson(
  { needsPerson, action }: LiveAction,
  work: Work | null,
  personId: string | null,
): string | undefined {
  if (work?.state !== "done" || work.personId === null || personId === null) return undefined;
  if (work.personId === personId) return undefined;
  return needsPerson || NAMES_PERSON.test(writeJson(action as Json)) ? work.personId : undefined;
}

/** Makes an unused key for each action that does or would do new work. The others get the key of their earlier work. */
function makeKeys(
  actions: readonly LiveAction[],
  matches: readonly (Entry | null)[],
  { works }: PriorWork,
  doneFor: readonly (string | undefined)[],
): string[] {
  const ownKeys = actions.map(({ fingerprint }, at) => {
    const work = matches[at]?.work;
    // Work for another person is not the action's own.
    return doneFor[at] === undefined && work?.fingerprint === fingerprint ? work.key : null;
  });
  const fresh = makeFreshKeys(
    actions.filter((_, at) => ownKeys[at] === null),
    works.keys(),
  );
  return ownKeys.map((key) => key ?? fresh.shift() ?? "");
}

function makeStep(
  action: LiveAction,
  match: Entry | null,
  key: string,
  place: number,
  { actions: texts }: PriorWork,
): Step {
  const { work = null, lastText = null, over } = match ?? {};
  if (work === null) return { does: "run", key };
  // Earlier versions stored no fingerprint. Their work is the action's own if the text or the place is the same.
  const isOld = work.fingerprint === null;
  const isSame = isOld
    ? lastText === action.fingerprint || (lastText === null && work.ordinal === place)
    : work.fingerprint === action.fingerprint;
  if (!isSame) return { does: "edited", key, work, was: texts.get(work.fingerprint ?? lastText ?? "") };
  if (work.state === "done") return { does: "skip", key, work, sure: !isOld };
  return { does: "settle", key: work.key, work, ...(over === undefined ? {} : { chosenOver: over }) };
}
