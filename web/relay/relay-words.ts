/** A relay in words: its trigger, its actions, where its definition came from. It says what a definition says and checks nothing. */
import { sayCount, sayList } from "../ground/count-words.ts";
import { isObject, type Json } from "../ground/exact-json.ts";

const KIND_WORDS: Readonly<Record<string, string>> = {
  receiver: "when a signed webhook arrives",
  schedule: "on a schedule",
  data_change: "when a record changes",
};

const PERIOD_WORDS: Readonly<Record<string, string>> = {
  "15m": "every 15 minutes",
  "30m": "every 30 minutes",
  "1h": "every hour",
  "6h": "every 6 hours",
  "12h": "every 12 hours",
};

export function sayTriggerKind(kind: string): string {
  return KIND_WORDS[kind] ?? kind;
}

/** The trigger of a definition: "every Monday at 09:00 UTC", "when order.paid arrives". */
export function sayTrigger(trigger: unknown): string {
  if (!isObject(trigger)) return "no trigger";
  const kind = text(trigger.kind);
  if (kind === "schedule") return saySchedule(trigger);
  if (kind === "data_change") {
    const on = Array.isArray(trigger.on) ? trigger.on.map(text) : [];
    return `when a record of ${text(trigger.collection)} is ${sayOr(on)}${sayMatch(trigger.where, "where")}`;
  }
  if (kind === "receiver") return sayReceiver(trigger.when);
  return kind;
}

function sayReceiver(when: unknown): string {
  const names = isObject(when) ? Object.keys(when) : [];
  if (isObject(when) && names.length === 1 && names[0] === "event_type")
    return `when ${text(when.event_type)} arrives`;
  return `when a webhook arrives${sayMatch(when, "with")}`;
}

function saySchedule(trigger: { [name: string]: Json }): string {
  const every = text(trigger.every);
  const at = text(trigger.at) || "00:00";
  if (every === "1d") return `every day at ${at} UTC`;
  if (every === "1w") {
    const day = text(trigger.on) || "monday";
    return `every ${day.slice(0, 1).toUpperCase()}${day.slice(1)} at ${at} UTC`;
  }
  return PERIOD_WORDS[every] ?? every;
}

function sayMatch(match: unknown, word: string): string {
  if (!isObject(match)) return "";
  const parts = Object.entries(match).map(([name, value]) => `${name} = ${text(value)}`);
  return parts.length === 0 ? "" : ` ${word} ${sayList(parts)}`;
}

function sayOr(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

const ACTION_WORDS: Readonly<Record<string, (action: { [name: string]: Json }) => string>> = {
  write_record: ({ collection, to }) =>
    `Write a record to ${text(collection)}${to === "person" ? ", addressed to the person" : ""}`,
  grant_access: ({ entitlement, expiresAt }) =>
    `Grant ${text(entitlement)}${expiresAt === undefined ? "" : ` for ${text(expiresAt)}`}`,
  revoke_access: ({ entitlement }) => `Revoke ${text(entitlement)}`,
  grant_credits: ({ amount }) => `Grant ${sayCount(Number(text(amount)), "credit")}`,
  fulfil_product: ({ product }) => `Fulfil the product ${text(product)}`,
  refund_product: ({ product }) => `Refund the product ${text(product)}`,
  grant_plan: ({ plan }) => `Grant the plan ${text(plan)}`,
  revoke_plan: ({ plan }) => `Revoke the plan ${text(plan)}`,
  email_person: ({ subject }) => `E-mail the person: “${text(subject)}”`,
  call_url: ({ url }) => `Call ${text(url)}`,
};

const ACTION_TITLES: Readonly<Record<string, string>> = {
  person: "Find the person",
  write_record: "Write a record",
  grant_access: "Grant access",
  revoke_access: "Revoke access",
  grant_credits: "Grant credits",
  fulfil_product: "Fulfil a product",
  refund_product: "Refund a product",
  grant_plan: "Grant a plan",
  revoke_plan: "Revoke a plan",
  email_person: "E-mail the person",
  call_url: "Call a URL",
};

/** An action of a definition in one line. */
export function sayAction(action: unknown): string {
  if (!isObject(action)) return "An action";
  const type = text(action.type);
  return ACTION_WORDS[type]?.(action) ?? type;
}

export function sayActionType(type: string): string {
  return ACTION_TITLES[type] ?? type;
}

function text(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" && "text" in value ? String(value.text) : String(value);
}
