/**
 * The shapes that several actions share: entitlement, reason, ref, expiresAt, names. It decides what a definition may contain and looks
 * nothing up. Source: the specification's "Actions" and "Templates".
 */
import { type TProperties, Type } from "typebox";
import { parseIso } from "../../base/clock.ts";
import { DAY_MS, HOUR_MS, MAX_REASON_CHARS, MAX_REF_CHARS } from "../../base/limit.ts";
import type { Problem } from "../../base/refusal.ts";
import { CATALOG_NAME, ENTITLEMENT_NAME } from "../../base/shape.ts";
import { cutToLine } from "../../base/text.ts";
import type { ActionRun } from "./contract.ts";

/** Makes an action's title and shape from its type and fields. `title`: "Grant access"; `description`: one sentence for editors. */
export function defineActionShape<const Name extends string, Fields extends TProperties>(
  type: Name,
  title: string,
  description: string,
  fields: Fields,
) {
  const literal = Type.Literal(type, { description: `${title}.`, expects: `"${type}"` });
  const rest = { additionalProperties: false, description, expects: "an action object" };
  return { type, title, shape: Type.Object({ type: literal, ...fields }, rest) };
}

/** The name of a collection, product or plan; `what` completes "the name of a …". */
export function catalogNameShape(what: "collection" | "product" | "plan") {
  return Type.String({
    pattern: CATALOG_NAME.source,
    description: `The name of the ${what}.`,
    expects: `the name of a ${what} (lowercase letters, digits, hyphens and underscores, starting with a letter, at most 63 characters)`,
    names: what,
  });
}

/** A plan or product name, or `access:<slug>`; never a template. */
export const entitlementShape = Type.String({
  pattern: ENTITLEMENT_NAME.source,
  description: "The entitlement to grant or revoke: a plan name, a product name, or access:<slug>.",
  expects: "a plan name, a product name, or access:<slug> (lowercase letters, digits, hyphens, underscores)",
  names: "entitlement",
});

/** A reason that the person may read. Templated; at most 200 characters as written and as rendered. */
export const reasonShape = Type.String({
  minLength: 1,
  maxLength: MAX_REASON_CHARS,
  description: "The reason, as text; {{paths}} are filled in.",
  expects: `a text of 1 to ${MAX_REASON_CHARS} characters`,
  templated: true,
});

/** Renders the reason as one line, "" where there is none. Cuts a longer one, with a warning. */
export function renderReason(
  reason: string | undefined,
  { render, warn }: Pick<ActionRun, "render" | "warn">,
): string {
  if (reason === undefined) return "";
  const full = cutToLine(render(reason), Number.POSITIVE_INFINITY);
  const line = cutToLine(full, MAX_REASON_CHARS);
  if (line !== full)
    warn(`reason was cut to ${MAX_REASON_CHARS} characters: with its {{paths}} filled in it is longer.`);
  return line;
}

/** The provider's unique payment identifier. Templated; each action decides what its absence means. */
export const refShape = Type.String({
  minLength: 1,
  maxLength: MAX_REF_CHARS,
  description:
    "The provider's unique payment identifier, such as {{mapped.payment_id}}; {{paths}} are filled in.",
  expects: `a text of 1 to ${MAX_REF_CHARS} characters, such as "{{mapped.payment_id}}"`,
  templated: true,
});

/** The end of a grant: a duration (`30d`, `12h`, `2w`) from the moment the action runs, or an ISO date. */
export const expiresAtShape = Type.String({
  maxLength: 40,
  description: 'The end of the grant: "30d", "12h" or "2w" after the grant begins, or an ISO date.',
  expects: 'a duration such as "30d", "12h" or "2w", or an ISO date such as "2030-01-31"',
});

const UNIT_MS: Readonly<Record<string, number>> = { h: HOUR_MS, d: DAY_MS, w: 7 * DAY_MS };
const DURATION = /^([1-9]\d{0,4})([hdw])$/;

/**
 * Parses when a grant ends, in ms since the epoch. A duration (1 to 99,999 h, d or w) counts from `nowMs`. A date means its first moment
 * in UTC; a date-time needs `Z` or an offset. The result may lie in the past. null: the text is neither.
 */
export function parseExpiry(text: string, nowMs: number): number | null {
  const duration = DURATION.exec(text);
  if (duration) return nowMs + Number(duration[1]) * (UNIT_MS[duration[2] ?? ""] ?? 0);
  return parseIso(text);
}

/** Checks the rule of `expiresAt` beyond its shape. */
export function checkExpiry(field: string, text: string | undefined): Problem[] {
  if (text === undefined || parseExpiry(text, 0) !== null) return [];
  const message = `\`${field}\` is neither a duration nor an ISO date: write "30d", "12h", "2w", or a date such as "2030-01-31" or "2030-01-31T12:00:00Z".`;
  return [{ field, message }];
}
