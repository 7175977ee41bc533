/**
 * What the present list of actions has to do after earlier attempts. The slots of the last attempt and the work done before it are laid
 * beside the list: equal actions first whatever their place, done ones before others; then, among the rest of the same type and target, in
 * order, slots that had not done their work before those that had; what is left is new. An action that falls on work done under another
 * text was edited after the fact: it is skipped, with both texts told, unless a replay chose it. So is one whose work was done for another person
 * than the event is about now. It reads nothing and writes nothing.
 * Source: decisions section 3, "same work on retry and replay", "the corrected person".
 */
import { isJsonObject, type Json, writeCanonicalJson, writeJson } from "../../base/json.ts";
import { cutUtf8 } from "../../base/text.ts";
import type { LiveAction } from "../../rules/relay/live-relay.ts";
import { countPlaces, type Memory, type Work } from "./effect.ts";
import { type BoundKey, makeFreshKeys } from "./run.ts";

/** What an action does in this attempt. `key`: the work it does or would do if it ran. */
export type Step =
  /** `instead`: it was chosen to run although this work was done for it. */
  | { does: "run"; key: string; instead?: Work }
  /** Its work is done. `sure` is false for an earlier version's work whose text is not known. `doneFor`: the other person that it was done for. */
  | { does: "skip"; key: string; work: Work; sure: boolean; doneFor?: string }
  /** Its work began to leave the house, and how that ended was not written down. `instead`: it had been chosen although this work was done. */
  | { does: "settle"; key: string; work: Work; instead?: Work }
  /** Its work was done under another text: `was`, or undefined where that was not kept. */
  | { does: "edited"; key: string; work: Work; was: unknown; doneFor?: string };

/** A slot of the last attempt, or work done before it. */
interface Entry {
  type: string;
  target: string;
  /** The text it last stood under; null: not known. */
  shown: string | null;
  /** null: it had not done its work. */
  work: Work | null;
  /** The work it was chosen over, which nothing else stands for until it is known whether its own left. */
  over?: Work;
  isFree: boolean;
}

/**
 * One step an action. `chosen`: keys that run although work was done for them. `personId`: the person that the event is about now, "" for a person who
 * does not exist yet; null: no person.
 */
export function alignActions(
  actions: readonly LiveAction[],
  memory: Memory,
  chosen: ReadonlySet<string> = new Set(),
  personId: string | null = null,
): Step[] {
  const entries = listEntries(memory);
  const places = countPlaces(actions);
  const found: (Entry | null)[] = actions.map(() => null);
  const match = (fits: (entry: Entry, action: LiveAction, at: number) => boolean): void => {
    for (const [at, action] of actions.entries()) {
      if (found[at] !== null || action.repeats) continue;
      const entry = entries.find((one) => one.isFree && isAlike(one, action) && fits(one, action, at));
      if (entry === undefined) continue;
      entry.isFree = false;
      found[at] = entry;
    }
  };
  const didThis = ({ work }: Entry, { fingerprint }: LiveAction): boolean =>
    work?.state === "done" && work.fingerprint === fingerprint;
  // Work that stands for an edited action is taken last, so that the edited one goes on standing for it.
  match((entry, action) => didThis(entry, action) && entry.shown === action.fingerprint);
  match(didThis);
  match(({ work }, { fingerprint }) => work?.state === "intended" && work.fingerprint === fingerprint);
  match(({ work, shown }, { fingerprint }) => work !== null && shown === fingerprint);
  match(({ work, shown }, { fingerprint }) => work === null && shown === fingerprint);
  match(
    ({ work, shown }, _action, at) =>
      work?.fingerprint === null && shown === null && work.ordinal === places[at],
  );
  match(({ work }) => work === null);
  match(() => true);
  const doneFor = actions.map((action, at) => findOther(action, found[at]?.work ?? null, personId));
  const keys = makeKeys(actions, found, memory, doneFor);
  return actions.map((action, at) => {
    const other = doneFor[at] === undefined ? {} : { doneFor: doneFor[at] };
    const step = {
      ...judge(action, found[at] ?? null, keys[at] as string, places[at] as number, memory),
      ...other,
    };
    return mayChoose(step) && chosen.has(step.key)
      ? { does: "run", key: step.key, instead: step.work }
      : step;
  });
}

/** Whether a replay may choose the action to run although work was done for it. */
export function mayChoose(step: Step): step is Extract<Step, { does: "skip" | "edited" }> {
  return step.does === "edited" || (step.does === "skip" && (!step.sure || step.doneFor !== undefined));
}

const NAMES_PERSON = /\{\{\s*person\./;

/** The person that an action's work was done for, where that is another one than the event is about now. */
function findOther(
  { needsPerson, action }: LiveAction,
  work: Work | null,
  personId: string | null,
): string | undefined {
  if (work?.state !== "done" || work.personId === null || personId === null) return undefined;
  if (work.personId === personId) return undefined;
  return needsPerson || NAMES_PERSON.test(writeJson(action as Json)) ? work.personId : undefined;
}

function judge(action: LiveAction, entry: Entry | null, key: string, place: number, memory: Memory): Step {
  const { work = null, shown = null, over } = entry ?? {};
  if (work === null) return { does: "run", key };
  const isOld = work.fingerprint === null;
  const isSame = isOld
    ? shown === action.fingerprint || (shown === null && work.ordinal === place)
    : work.fingerprint === action.fingerprint;
  if (!isSame) return { does: "edited", key, work, was: memory.actions.get(work.fingerprint ?? shown ?? "") };
  return work.state === "intended"
    ? { does: "settle", key: work.key, work, ...(over === undefined ? {} : { instead: over }) }
    : { does: "skip", key, work, sure: !isOld };
}

/**
 * Work that began to leave the house and is to be settled before the list is aligned, because its action is no longer in the list, or because
 * a replay chose it: how it ended decides whether the work it was chosen over is free for another action.
 */
export function listStrayIntents(actions: readonly LiveAction[], memory: Memory): Work[] {
  const intended = [...memory.works.values()].filter(({ state }) => state === "intended");
  if (intended.length === 0) return [];
  const inPlace = new Set(
    alignActions(actions, memory).flatMap((step) =>
      step.does === "settle" && step.instead === undefined ? [step.key] : [],
    ),
  );
  return intended.filter(({ key }) => !inPlace.has(key));
}

/** The work each action stands for from this attempt on; one that was chosen stands for what it was chosen over until it has done its own. */
export function bindKeys(steps: readonly Step[]): BoundKey[] {
  return steps.map((step) => {
    if (step.does === "skip" || step.does === "edited") return step.work.key;
    return step.instead === undefined ? step.key : [step.key, step.instead.key];
  });
}

function listEntries({ works, slots }: Memory): Entry[] {
  const left = new Map(works);
  const entries = slots
    .filter((slot) => !slot.repeats)
    .map(({ type, target, fingerprint, key, over: overKey = "" }): Entry => {
      const [work = null, over] = [left.get(key), left.get(overKey)];
      left.delete(key);
      left.delete(overKey);
      const entry: Entry = { type, target, shown: fingerprint, work, isFree: true };
      return over === undefined ? entry : { ...entry, over };
    });
  for (const work of left.values()) {
    entries.push({ type: work.type, target: work.target, shown: work.fingerprint, work, isFree: true });
  }
  return entries;
}

function isAlike(entry: Entry, { type, target }: LiveAction): boolean {
  return entry.type === type && entry.target === target;
}

/** A key nothing stands under, for every action that does or would do new work; the work's own for the others. */
function makeKeys(
  actions: readonly LiveAction[],
  found: readonly (Entry | null)[],
  { works }: Memory,
  doneFor: readonly (string | undefined)[],
): string[] {
  // Work for another person is other work.
  const isOwn = (at: number): boolean =>
    doneFor[at] === undefined &&
    found[at]?.work?.fingerprint !== undefined &&
    found[at]?.work?.fingerprint === actions[at]?.fingerprint;
  const fresh = actions.filter((_, at) => !isOwn(at));
  const keys = makeFreshKeys(fresh, works.keys());
  return actions.map((_, at) => (isOwn(at) ? (found[at]?.work?.key ?? "") : (keys.shift() ?? "")));
}

const MAX_TOLD_BYTES = 160;
const MAX_TOLD_FIELDS = 3;

/** One sentence: which action was edited after its work, both texts, and what to do. `at`: its place in the list, from 0. */
export function tellEdited(at: number, action: unknown, was: unknown): string {
  const name = `actions.${at} (${isJsonObject(action) ? String(action.type) : "unknown"})`;
  const texts = was === undefined ? "the text it ran with was not kept" : tellDifference(was, action);
  return `${name} was edited after it had done its work, so it is skipped: ${texts}. To run it as well, replay the event and choose it.`;
}

/** One sentence: the work was done for another person than the event is about now. `sells`: choosing it moves the purchase. */
export function tellOtherPerson(was: string, is: string, sells: boolean): string {
  const moves = sells ? `, which moves the purchase from ${was} to ${is}` : "";
  return `Its work was done for ${was}, and the event is about ${is} now, so it is skipped. To do it for ${is}, replay the event and choose it${moves}.`;
}

/** One sentence on an action that an earlier version's work stands for, where nobody knows whether it reads as it did then. */
export function tellUnsure(at: number, type: string): string {
  return `actions.${at} (${type}) is skipped, because an earlier version of the service did its work, under a text that was not kept. If it was edited since, replay the event and choose it.`;
}

/** `subject was "Old" and is "New"`, for the fields that differ. */
export function tellDifference(was: unknown, is: unknown): string {
  const [before, after] = [was, is].map((value) => (isJsonObject(value) ? value : {})) as [
    { [name: string]: Json },
    { [name: string]: Json },
  ];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  const told = names.flatMap((name) => {
    const [old, present] = [tell(before[name]), tell(after[name])];
    return old.text === present.text ? [] : [`${name} was ${old.shown} and is ${present.shown}`];
  });
  const more = told.length - MAX_TOLD_FIELDS;
  return `${told.slice(0, MAX_TOLD_FIELDS).join("; ")}${more > 0 ? `; and ${more} more fields differ` : ""}`;
}

function tell(value: Json | undefined): { text: string; shown: string } {
  if (value === undefined) return { text: "", shown: "absent" };
  const text = writeCanonicalJson(value);
  const shown = cutUtf8(text, MAX_TOLD_BYTES);
  return { text, shown: shown.length < text.length ? `${shown}…` : shown };
}
