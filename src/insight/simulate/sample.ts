/**
 * Makes examples of what starts a relay, and stores nothing.
 * An event looks as its provider would send it. The known sender's example is used where it has every value that the relay reads. Otherwise the
 * definition gives the body: every mapped path has a value, `when` matches, and ids are fresh.
 * Two examples are never duplicates: without a mapped event id, the body has an added field with a fresh value.
 * A record has an example value in every field, and `where` matches.
 */
import { randomBytes } from "node:crypto";
import { toIso } from "../../base/clock.ts";
import { type Json, type JsonObject, parseJson, writeJson } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import { showChoices, showText } from "../../base/shape.ts";
import { exampleFor } from "../../rules/senders/sender-start.ts";
import type { DataChangeTrigger } from "../../rules/trigger/data-change.ts";
import { findPersonKey, type ReceiverTrigger } from "../../rules/trigger/receiver.ts";
import { type CollectionRow, listFields } from "../../shop/records/collection.ts";
import type { FieldRule } from "../../shop/records/collection-definition.ts";

export interface SampleEvent {
  body: Uint8Array;
  contentType: string;
}

const FORM = "application/x-www-form-urlencoded";
const SAMPLE_EMAIL = "ada@example.com";
const NUMBERS = /amount|total|price|quantity|count|credits|cents/i;
const IDS = /(^|_)(id|ref|order|payment|invoice|charge|transaction|number)$/i;
/** The field that makes an example unique. */
const UNIQUE_FIELD = "relay_test";
/** An index above this becomes the key of an object, which a path reads in the same way. */
const MAX_LIST = 20;
const MAX_SHOWN_CHOICES = 4;
const SAMPLE_DAY_MS = Date.UTC(2026, 0, 15);

/** Makes an event for `person`, or for a sample person where that is null. Throws `invalid_definition` where no body can match `when`. */
export async function makeSampleEvent(trigger: ReceiverTrigger, person: string | null): Promise<SampleEvent> {
  const sample = await makeExample(trigger, person);
  return Object.hasOwn(trigger.map, "event_id") ? sample : makeUnique(sample);
}

/** Adds a field with a fresh value. Relay compares the bodies of events without an id. */
function makeUnique({ body, contentType }: SampleEvent): SampleEvent {
  const text = Buffer.from(body).toString("utf8");
  const unique = { [UNIQUE_FIELD]: fresh("test") };
  if (contentType === FORM) {
    const form = new URLSearchParams([...new URLSearchParams(text), ...Object.entries(unique)]);
    return { body: Buffer.from(form.toString()), contentType };
  }
  const root = parseJson(text);
  const marked = Array.isArray(root) ? [...root, unique] : { ...(root as JsonObject), ...unique };
  return { body: Buffer.from(writeJson(marked)), contentType };
}

async function makeExample(trigger: ReceiverTrigger, person: string | null): Promise<SampleEvent> {
  const wanted = readWanted(trigger);
  const { recogniseSender } = await import("../../rules/senders/registry.ts");
  const sender = recogniseSender(trigger);
  const known = sender === null ? null : exampleFor(sender, trigger, person);
  if (known !== null) return { body: Buffer.from(known.body), contentType: known.contentType };
  const customer = findPersonKey(trigger.map) === null ? trigger.customer?.id : undefined;
  const values = Object.keys(trigger.map).map((name): [path: string, value: Json] => {
    const path = trigger.map[name] ?? "";
    if (name === customer && person !== null) return [path, person];
    const isWanted = trigger.when !== undefined && Object.hasOwn(trigger.when, name);
    return [path, isWanted ? (wanted.get(path) ?? "") : sampleValue(name, person)];
  });
  if (signsForm(trigger)) {
    const form = new URLSearchParams(values.map(([path, value]) => [path, String(value)]));
    return { body: Buffer.from(form.toString()), contentType: FORM };
  }
  // Values for `when` are set last, so that no other value replaces them.
  const needed = new Set(Object.keys(trigger.when ?? {}).map((name) => trigger.map[name]));
  const ordered = [...values].sort(([one], [other]) => Number(needed.has(one)) - Number(needed.has(other)));
  let root: Json = {};
  for (const [path, value] of ordered) root = setPath(root, path.split("."), value);
  return { body: Buffer.from(writeJson(root)), contentType: "application/json" };
}

function sampleValue(name: string, person: string | null): Json {
  switch (name) {
    case "event_id":
      return fresh("test");
    case "person_email":
      return person ?? SAMPLE_EMAIL;
    case "person_id":
    case "person_token":
      return person ?? fresh("nobody");
    default:
      if (NUMBERS.test(name)) return 4200;
      return IDS.test(name) ? fresh(name) : `sample ${name}`;
  }
}

function fresh(word: string): string {
  return `${word}_${randomBytes(8).toString("hex")}`;
}

/** Maps each path to the text that `when` requires; of several choices, the first. Throws where two names require different texts at one path. */
function readWanted({ map, when = {} }: ReceiverTrigger): Map<string, string> {
  const byPath = new Map<string, readonly string[]>();
  for (const [name, value] of Object.entries(when)) {
    const path = map[name] ?? "";
    const choices = typeof value === "string" ? [value] : value;
    const other = byPath.get(path);
    const common = other === undefined ? choices : other.filter((one) => choices.includes(one));
    if (common.length === 0) {
      throw new Refusal(
        "invalid_definition",
        `No event can match: \`when\` wants ${path} to be both ${formatChoices(other ?? [])} and ${formatChoices(choices)}.`,
      );
    }
    byPath.set(path, common);
  }
  return new Map([...byPath].map(([path, choices]) => [path, choices[0] ?? ""]));
}

function formatChoices(choices: readonly string[]): string {
  return showChoices(choices.map(showText), MAX_SHOWN_CHOICES);
}

function signsForm({ verify }: ReceiverTrigger): boolean {
  return verify.scheme === "signature" && String(verify.signedPayload ?? "").includes("{params}");
}

function setPath(value: Json | undefined, path: readonly string[], leaf: Json): Json {
  const [first, ...rest] = path;
  if (first === undefined) return leaf;
  if (/^\d+$/.test(first) && Number(first) < MAX_LIST && (value === undefined || Array.isArray(value))) {
    const list: Json[] = Array.isArray(value) ? [...value] : [];
    while (list.length < Number(first)) list.push(null);
    list[Number(first)] = setPath(list[Number(first)] ?? undefined, rest, leaf);
    return list;
  }
  const object: JsonObject =
    typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
  object[first] = setPath(Object.hasOwn(object, first) ? object[first] : undefined, rest, leaf);
  return object;
}

export function makeSampleRecord(collection: CollectionRow, where: DataChangeTrigger["where"]): JsonObject {
  const made = [...listFields(collection)].flatMap(([name, rule]): [string, Json][] => {
    const value = sampleOf(name, rule);
    return value === undefined ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(made), ...where };
}

/** Makes an example value of the field's type. Returns undefined for a file. */
function sampleOf(name: string, { type, max }: FieldRule): Json | undefined {
  switch (type) {
    case "text":
      return `sample ${name}`.slice(0, max ?? undefined);
    case "number":
      return Math.min(1, max ?? 1);
    case "boolean":
      return true;
    case "date":
      return toIso(SAMPLE_DAY_MS);
    case "json":
      return {};
    case "file":
      return undefined;
  }
}
