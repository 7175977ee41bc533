/** Formats the sentences of a person's timeline. Each is one line, and names the actor where no relay did it. */
import { toIso } from "../../base/clock.ts";
import { findMeaning } from "../../base/code/code.ts";
import { currencyDigits } from "../../base/currency.ts";
import { cutToLine } from "../../base/text.ts";

const MAX_LINE_CHARS = 300;

/** Cuts the text to one line. Returns null where nothing is left. */
export function lineOf(text: string | null | undefined): string | null {
  return text === null || text === undefined ? null : cutToLine(text, MAX_LINE_CHARS) || null;
}

/** Formats a moment as `2026-11-22 09:05 UTC`. */
export function formatTime(ms: number): string {
  return `${toIso(ms).slice(0, 16).replace("T", " ")} UTC`;
}

/** Formats an actor of the audit log, as in `by ann@example.com` or `by the relay shop`. */
export function formatActor(actor: string): string {
  const at = actor.indexOf(":");
  const [kind, name] = at < 0 ? ["", actor] : [actor.slice(0, at), actor.slice(at + 1)];
  switch (kind) {
    case "relay":
      return `by the relay ${name}`;
    case "key":
      return `with the key ${name}`;
    case "owner":
      return `by ${name}`;
    case "person":
      return "by the person";
    default:
      return `by ${actor}`;
  }
}

/** Formats an amount of the currency's smallest unit, as in `99.00 EUR`. */
export function formatAmount(minor: number | null, currency: string | null): string | null {
  if (minor === null) return null;
  const digits = currency === null ? 0 : currencyDigits(currency);
  return `${(minor / 10 ** digits).toFixed(digits)} ${currency?.toUpperCase() ?? "(no currency)"}`;
}

/** Formats a code where no message was stored. */
export function formatCode(code: string): string {
  return findMeaning(code, ["result"])?.what ?? code.replaceAll("_", " ");
}

const CHANGES: Readonly<Record<string, string>> = {
  "person.token_filed": "A store account token was filed",
  "person.merged": "Merged with another person",
  "person.address_changed": "The address was changed",
  "person.token_removed": "A store account token was taken back",
  "person.customer_linked": "A customer ID was linked",
  "person.customer_unlinked": "A customer ID was removed",
  "person.customer_moved": "A customer ID moved from one person to another",
  "person.mail_stopped": "They take no more event mail",
  "person.mail_allowed": "They take event mail again",
};

/** Formats a change of the person. */
export function formatChange(action: string, before: string | null, after: string | null): string {
  if (action === "person.changed" && before !== after) {
    if (after === "suspended") return "Suspended: may use nothing until they are active again";
    return before === "suspended" ? "Active again" : `Now ${after ?? "changed"}`;
  }
  return CHANGES[action] ?? (action === "person.changed" ? "Attributes were changed" : action);
}
