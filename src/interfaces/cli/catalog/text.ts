/** Describes an item of the catalog for a list: what a product grants and where it is sold, or a collection's fields. */
import { isJsonObject, type Json, type JsonObject } from "../../../base/json.ts";

export const KINDS = ["access", "product", "plan", "collection"] as const;
export type Kind = (typeof KINDS)[number];

const MAX_SHOWN_FIELDS = 8;

export function formatItem(kind: Kind, item: JsonObject): string {
  const { name, title, key, credits, soldThrough, fields } = item;
  if (kind === "access") return `“${title}”`;
  if (kind === "collection") return `${item.kind}, ${formatFields(fields as JsonObject)}`;
  const called = title === name ? [] : [`“${title}”`];
  if (kind === "plan") {
    const everybody = item.default === true ? ["default plan"] : [];
    return [...called, ...everybody, formatSold(soldThrough)].join(", ");
  }
  const granted = credits === 0 ? [] : [`${credits} credit${credits === 1 ? "" : "s"}`];
  return [...called, `grants ${key}`, ...granted, formatSold(soldThrough)].join(", ");
}

function formatSold(soldThrough: Json | undefined): string {
  if (!isJsonObject(soldThrough ?? null)) return "not sold";
  const { kind, relay, url } = soldThrough as JsonObject;
  const at = url === undefined ? "" : ` at ${url}`;
  return kind === "relay" ? `sold${at} through the relay ${relay}` : `sold${at}`;
}

/** Formats fields, such as `with order text (required), amount number`. */
function formatFields(fields: JsonObject): string {
  const each = Object.entries(fields).map(([name, field]) => {
    const { type, required } = field as JsonObject;
    return `${name} ${type}${required === true ? " (required)" : ""}`;
  });
  const shown = each.slice(0, MAX_SHOWN_FIELDS);
  const more = each.length - shown.length;
  return `with ${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
