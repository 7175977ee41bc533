/**
 * What is begun with from a sender: a definition with one honest action, which keeps what was mapped, its collection, and what is left to do;
 * and its example as a body to send.
 */
import { randomBytes, randomInt } from "node:crypto";
import { isJsonObject, type Json, type JsonObject, scalarText, writeJson } from "../../base/json.ts";
import { parsePath, readPath } from "../../platform/template/template.ts";
import type { ReceiverTrigger } from "../trigger/receiver.ts";
import { bindScheme } from "../verify/registry.ts";
import type { Sender, SenderExample } from "./sender.ts";

/** It writes what was mapped as a record of the app's own: nothing acts on a person until somebody writes so. */
export function startDefinition(sender: Sender, name: string = sender.name): JsonObject {
  const { verify, map, when } = sender;
  return {
    name,
    trigger: {
      kind: "receiver",
      verify: { ...verify },
      map: { ...map },
      ...(Object.keys(when).length === 0 ? {} : { when: { ...when } }),
    },
    actions: [
      {
        type: "write_record",
        collection: collectionOf(sender),
        data: Object.fromEntries(Object.keys(map).map((field) => [field, `{{mapped.${field}}}`])),
      },
    ],
  };
}

/** In the shape of catalog.json: what the definition names. */
export function startCatalog(sender: Sender): JsonObject {
  const fields = Object.fromEntries(Object.keys(sender.map).map((field) => [field, { type: "text" }]));
  return { collections: { [collectionOf(sender)]: { kind: "private", fields } } };
}

function collectionOf({ name }: Sender): string {
  return `${name.replaceAll("-", "_")}_events`;
}

/** Whether the sender signs the event itself; else the unsigned-event rule holds. */
export function signsEvent({ verify }: Sender): boolean {
  return bindScheme(verify)?.signsEvent() ?? false;
}

/** What is left to do, in order, one sentence each. */
export function startSteps(sender: Sender): string[] {
  const { title, register, secret, personEmail } = sender;
  const person =
    personEmail === null
      ? []
      : signsEvent(sender)
        ? [`To act for the person it is about, add "person_email": "${personEmail}" to the map.`]
        : [
            `${title} does not sign the event: to act for a person, map person_id or person_token, or opt in with trustUnsignedEvents and map "person_email": "${personEmail}".`,
          ];
  return [
    `The receiver URL goes to ${title}: ${register}`,
    `The secret: ${secret.where}`,
    "Put what shall happen in the place of write_record, or beside it.",
    ...person,
  ];
}

/** The example with an id of its own and, where one is given, a person, so that it may be sent again; null where the trigger reads what it has not. */
export function exampleFor(
  sender: Sender,
  trigger: ReceiverTrigger,
  person: string | null,
): { body: string; contentType: string } | null {
  const { example } = sender;
  let value: Json = "json" in example ? (example.json as Json) : { ...example.form };
  for (const [name, text] of Object.entries(trigger.map)) {
    const path = parsePath(text);
    const found = path === null ? undefined : readPath(value, path);
    if (found === undefined) return null;
    const wanted = trigger.when?.[name];
    if (wanted !== undefined && ![wanted].flat().includes(scalarText(found) ?? "")) return null;
    if (name === "event_id") value = put(value, text.split("."), freshLike(found));
    else if (name.startsWith("person_") && person !== null) value = put(value, text.split("."), person);
  }
  return exampleBody(
    "json" in example ? { json: value as JsonObject } : { form: value as Record<string, string> },
  );
}

export function exampleBody(example: SenderExample): { body: string; contentType: string } {
  if ("form" in example)
    return {
      body: new URLSearchParams(example.form).toString(),
      contentType: "application/x-www-form-urlencoded",
    };
  return { body: writeJson(example.json as Json), contentType: "application/json" };
}

function freshLike(value: Json): Json {
  if (typeof value === "number") return randomInt(1, 2 ** 47);
  return `test_${randomBytes(8).toString("hex")}`;
}

function put(value: Json, [first = "", ...rest]: readonly string[], leaf: Json): Json {
  if (Array.isArray(value))
    return value.map((one, at) =>
      String(at) === first ? (rest.length === 0 ? leaf : put(one, rest, leaf)) : one,
    );
  if (!isJsonObject(value)) return value;
  return { ...value, [first]: rest.length === 0 ? leaf : put(value[first] ?? {}, rest, leaf) };
}
