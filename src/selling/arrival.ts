/** Which of the events that sold or ended something arrived last. An event of an earlier version bears no number, and nothing is known of its turn. */
import { readNumberedId } from "../ground/id.ts";

/** Whether the event `one` arrived after `other`; false where either is unknown, `other` null being before all. */
export function arrivedAfter(one: string | null, other: string | null): boolean {
  const number = numberOf(one);
  return number !== null && (other === null || number > (numberOf(other) ?? Number.POSITIVE_INFINITY));
}

/** The one that arrived last, or null where none is known. */
export function lastArrived(ids: readonly (string | null)[]): string | null {
  return ids.reduce((last, id) => (arrivedAfter(id, last) ? id : last), null);
}

function numberOf(id: string | null): number | null {
  return id === null ? null : (readNumberedId("evt", id)?.seq ?? null);
}
