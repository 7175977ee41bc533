/** The sentences of a person's story. Each is one line, and says who did it where no relay did. */
import { toIso } from "../../base/clock.ts";
import { currencyDigits } from "../../base/currency.ts";
import { explainCode } from "../../base/result-code.ts";
import { cutToLine } from "../../base/text.ts";

const MAX_LINE_CHARS = 300;

/** Cut to a line; null where nothing is left. */
export function lineOf(text: string | null | undefined): string | null {
  return text === null || text === undefined ? null : cutToLine(text, MAX_LINE_CHARS) || null;
}

/** `2026-11-22 09:05 UTC`. */
export function formatTime(ms: number): string {
  return `${toIso(ms).slice(0, 16).replace("T", " ")} UTC`;
}

/** Who, in the audit's words, as a person says it: `by ann@example.com`, `by the relay shop`. */
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

/** An amount in the currency's smallest unit as people write it: `99.00 EUR`. */
export function formatAmount(minor: number | null, currency: string | null): string | null {
  if (minor === null) return null;
  const digits = currency === null ? 0 : currencyDigits(currency);
  return `${(minor / 10 ** digits).toFixed(digits)} ${currency?.toUpperCase() ?? "(no currency)"}`;
}

/** A code's own sentence, where no message was kept. */
export function formatCode(code: string): string {
  return explainCode(code)?.when ?? code.replaceAll("_", " ");
}

const CHANGES: Readonly<Record<string, string>> = {
  "person.token_filed": "A store account token was filed",
  "person.token_removed": "A store account token was taken back",
  "person.mail_stopped": "They take no more event mail",
  "person.mail_allowed": "They take event mail again",
};

/** What was done to the person themself. */
export function formatChange(action: string, before: string | null, after: string | null): string {
  if (action === "person.changed" && before !== after) {
    if (after === "suspended") return "Suspended: may use nothing until they are active again";
    return before === "suspended" ? "Active again" : `Now ${after ?? "changed"}`;
  }
  return CHANGES[action] ?? (action === "person.changed" ? "Attributes were changed" : action);
}
