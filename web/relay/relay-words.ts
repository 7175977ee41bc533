/** Texts for a relay's actions. The API provides the text for its trigger. The module checks nothing. */
import { formatCount } from "../base/count-words.ts";
import { isObject, type Json } from "../base/exact-json.ts";

const ACTION_WORDS: Readonly<Record<string, (action: { [name: string]: Json }) => string>> = {
  write_record: ({ collection, to }) =>
    `Write a record to ${text(collection)}${to === "person" ? ", addressed to the person" : ""}`,
  grant_access: ({ entitlement, expiresAt }) =>
    `Grant ${text(entitlement)}${expiresAt === undefined ? "" : ` for ${text(expiresAt)}`}`,
  revoke_access: ({ entitlement }) => `Revoke ${text(entitlement)}`,
  grant_credits: ({ amount }) => `Grant ${formatCount(Number(text(amount)), "credit")}`,
  fulfil_product: ({ product }) => `Fulfill the product ${text(product)}`,
  refund_product: ({ product }) => `Refund the product ${text(product)}`,
  grant_plan: ({ plan }) => `Grant the plan ${text(plan)}`,
  revoke_plan: ({ plan }) => `Revoke the plan ${text(plan)}`,
  email_person: ({ subject }) =>
    text(subject) === "" ? "Email the person" : `Email the person: “${text(subject)}”`,
  call_url: ({ url }) => `Call ${text(url)}`,
};

const ACTION_TITLES: Readonly<Record<string, string>> = {
  person: "Find the person",
  write_record: "Write a record",
  grant_access: "Grant access",
  revoke_access: "Revoke access",
  grant_credits: "Grant credits",
  fulfil_product: "Fulfill a product",
  refund_product: "Refund a product",
  grant_plan: "Grant a plan",
  revoke_plan: "Revoke a plan",
  email_person: "Email the person",
  call_url: "Call a URL",
};

/** Describes an action of a definition in one line. */
export function formatAction(action: unknown): string {
  if (!isObject(action)) return "An action";
  const type = text(action.type);
  return ACTION_WORDS[type]?.(action) ?? type;
}

export function formatActionType(type: string): string {
  return ACTION_TITLES[type] ?? type;
}

/** Returns the message of an action's step without the code of its kind, because its title says the kind. */
export function formatActionStep(type: string, message: string): string {
  if (!message.startsWith(`${type} `)) return message;
  const sentence = message.slice(type.length + 1);
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

function text(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" && "text" in value ? String(value.text) : String(value);
}
