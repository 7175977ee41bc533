/** Sentence of a trigger that is being edited, in the words of the relay's overview. A missing value is shown as "…". */
import { childOf, type JsonNode } from "../../editor/json-tree.ts";

const MAX_SHOWN = 4;
const SPANS: Readonly<Record<string, string>> = {
  "15m": "Every 15 minutes",
  "30m": "Every 30 minutes",
  "1h": "Every hour",
  "6h": "Every 6 hours, from 00:00 UTC",
  "12h": "Every 12 hours, at 00:00 and 12:00 UTC",
};

export function formatTrigger(trigger: JsonNode | null): string {
  switch (textOf(trigger, "kind")) {
    case "receiver":
      return formatReceiver(trigger);
    case "schedule":
      return formatSchedule(trigger);
    case "data_change": {
      const on = textsOf(trigger === null ? null : childOf(trigger, "on"));
      const where = trigger === null ? null : childOf(trigger, "where");
      return `When a record of ${textOf(trigger, "collection", "…")} is ${formatChoices(on)}${formatMatch(where, "where")}`;
    }
    default:
      return "Choose what starts the relay";
  }
}

function formatReceiver(trigger: JsonNode | null): string {
  const when = trigger === null ? null : childOf(trigger, "when");
  const type = when === null ? null : childOf(when, "event_type");
  if (type !== null && when?.members.length === 1) return `When ${formatChoices(textsOf(type))} arrives`;
  return `When a webhook arrives${formatMatch(when, "with")}`;
}

function formatSchedule(trigger: JsonNode | null): string {
  const [every, at, on] = [
    textOf(trigger, "every"),
    textOf(trigger, "at", "00:00"),
    textOf(trigger, "on", "monday"),
  ];
  if (every === "1d") return `Every day at ${at} UTC`;
  if (every === "1w") return `Every ${on.slice(0, 1).toUpperCase()}${on.slice(1)} at ${at} UTC`;
  return SPANS[every] ?? "Every …";
}

function textOf(node: JsonNode | null, name: string, missing = ""): string {
  const value = node === null ? null : childOf(node, name);
  return value === null || value.value === "" ? missing : value.value;
}

function textsOf(node: JsonNode | null): string[] {
  if (node === null) return [];
  return node.kind === "list" ? node.items.map(({ value }) => value) : [node.value];
}

function formatChoices(texts: readonly string[]): string {
  const shown = texts.map((text) => (text === "" ? "…" : text));
  if (shown.length === 0) return "…";
  if (shown.length > MAX_SHOWN) shown.splice(MAX_SHOWN, shown.length, `${shown.length - MAX_SHOWN} more`);
  return shown.length === 1 ? shown.join("") : `${shown.slice(0, -1).join(", ")} or ${shown.at(-1)}`;
}

function formatMatch(match: JsonNode | null, word: "with" | "where"): string {
  const parts = (match?.members ?? []).map(({ name, value }) => `${name} = ${formatChoices(textsOf(value))}`);
  if (parts.length < 2) return parts.length === 0 ? "" : ` ${word} ${parts[0]}`;
  return ` ${word} ${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}
