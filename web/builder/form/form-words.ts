/** Short labels of the form. The schema has every other word. A field without an entry shows its name in words. */

const LABELS: Readonly<Record<string, string>> = {
  "trigger.kind": "Starts with",
  "trigger.verify.scheme": "Scheme",
  "trigger.verify": "Verification",
  "trigger.verify.toleranceSeconds": "Tolerance in seconds",
  "trigger.map": "Values from the payload",
  "trigger.when": "Only when",
  "trigger.where": "Only where",
  "trigger.customer": "Provider's customer",
  "trigger.customer.id": "Customer ID",
  "trigger.customer.space": "Shared with",
  "trigger.trustUnsignedEvents": "Act on unsigned events",
  "trigger.on": "On",
  "trigger.at": "At (UTC)",
  type: "Action",
  data: "Fields of the record",
  to: "Address the record to the event's person",
  url: "URL",
  standardWebhooks: "Standard Webhooks headers",
  expiresAt: "Ends",
  ref: "Payment reference",
  kind: "Sender address",
};

/** Words of coded choices. The code stays visible, because the explanations name it. */
const CHOICES: Readonly<Record<string, string>> = {
  "15m": "15 minutes",
  "30m": "30 minutes",
  "1h": "hour",
  "6h": "6 hours",
  "12h": "12 hours",
  "1d": "day",
  "1w": "week",
};

/** Returns the words of a choice, such as "week (1w)". */
export function formatChoice(choice: string): string {
  const words = CHOICES[choice];
  return words === undefined ? choice : `${words} (${choice})`;
}

/** Returns the label of a field by its path, such as `trigger.map` or `actions.0.url`. */
export function labelOf(path: string): string {
  const name = path.split(".").at(-1) ?? path;
  const known = LABELS[path] ?? (path.startsWith("trigger.") ? undefined : LABELS[name]);
  if (known !== undefined) return known;
  const words = name
    .replaceAll(/([a-z])([A-Z])/g, "$1 $2")
    .replaceAll(/[_-]/g, " ")
    .toLowerCase();
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

interface RowWords {
  /** Label of the name and of the value. */
  name: string;
  value: string;
  add: string;
}

const ROWS: Readonly<Record<string, RowWords>> = {
  map: { name: "Name", value: "Path", add: "Add a value" },
  when: { name: "Value", value: "equals", add: "Add a condition" },
  where: { name: "Field", value: "equals", add: "Add a condition" },
  data: { name: "Field", value: "Value", add: "Add a field" },
};
const OTHER_ROWS: RowWords = { name: "Name", value: "Value", add: "Add a value" };

export function rowWordsOf(name: string): RowWords {
  return ROWS[name] ?? OTHER_ROWS;
}
