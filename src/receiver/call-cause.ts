/**
 * Why a verified call became no event of its own, in words for the owner. The sender is known, so what its call says may be shown, cut
 * short; nothing of an unverified call ever comes here.
 */

import { showChoices } from "../ground/shape.ts";
import { cutToLine } from "../ground/text.ts";
import type { WhenMismatch } from "../relay/event-map.ts";

const MAX_SHOWN_CHARS = 100;
const MAX_SHOWN_CHOICES = 4;

/** Which name of `when` did not match, and what the call says instead. */
export function tellIgnored({ name, wanted, found }: WhenMismatch): string {
  const says = found === null ? "names nothing there" : `says ${show(found)}`;
  const must = showChoices(typeof wanted === "string" ? [show(wanted)] : wanted.map(show), MAX_SHOWN_CHOICES);
  return `when.${name} must be ${must} and the call ${says}`;
}

/** What the call was recognised by; null: it names no event of its own. */
export function tellDuplicate(eventId: string | null): string {
  return eventId === null
    ? "the same body was received before on this day (UTC)"
    : `an event with the id ${show(eventId)} was received before`;
}

function show(text: string): string {
  const line = cutToLine(text, MAX_SHOWN_CHARS);
  return `"${line}${line.length < text.trim().length ? "…" : ""}"`;
}
