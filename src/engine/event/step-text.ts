/** Sentences about steps that are skipped: which action, why, and how to run it all the same. */
import { isJsonObject, type Json, writeCanonicalJson } from "../../base/json.ts";
import { cutUtf8 } from "../../base/text.ts";

const MAX_VALUE_BYTES = 160;
const MAX_FIELDS = 3;

/** Says that the action was edited after its work. `at`: its index in the list. `was`: the text that did the work; undefined if it was not stored. */
export function formatEdited(at: number, action: unknown, was: unknown): string {
  const name = `actions.${at} (${isJsonObject(action) ? String(action.type) : "unknown"})`;
  const texts = was === undefined ? "the text it ran with was not kept" : formatTextDifference(was, action);
  return `${name} was edited after it had done its work, so it is skipped: ${texts}. To run it as well, replay the event and choose it.`;
}

/** Says that the work was done for the person `was`, and the event is about `is` now. `sells`: choosing the action moves the purchase. */
export function formatOtherPerson(was: string, is: string, sells: boolean): string {
  const moves = sells ? `, which moves the purchase from ${was} to ${is}` : "";
  return `Its work was done for ${was}, and the event is about ${is} now, so it is skipped. To do it for ${is}, replay the event and choose it${moves}.`;
}

/** Says that an earlier version did the work, and that its text is unknown. */
export function formatUnsure(at: number, type: string): string {
  return `actions.${at} (${type}) is skipped, because an earlier version of the service did its work, under a text that was not kept. If it was edited since, replay the event and choose it.`;
}

/** Formats the fields of two action texts that differ: `subject was "Old" and is "New"`. */
export function formatTextDifference(was: unknown, is: unknown): string {
  const before = fieldsOf(was);
  const after = fieldsOf(is);
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  const different = names.flatMap((name) => {
    const [old, present] = [formatValue(before[name]), formatValue(after[name])];
    return old.text === present.text ? [] : [`${name} was ${old.shown} and is ${present.shown}`];
  });
  const more = different.length - MAX_FIELDS;
  const shown = different.slice(0, MAX_FIELDS).join("; ");
  return more > 0 ? `${shown}; and ${more} more fields differ` : shown;
}

function fieldsOf(action: unknown): { [name: string]: Json } {
  return isJsonObject(action) ? action : {};
}

/** `text`: to compare; `shown`: what a sentence shows of it. */
function formatValue(value: Json | undefined): { text: string; shown: string } {
  if (value === undefined) return { text: "", shown: "absent" };
  const text = writeCanonicalJson(value);
  const shown = cutUtf8(text, MAX_VALUE_BYTES);
  return { text, shown: shown.length < text.length ? `${shown}…` : shown };
}
