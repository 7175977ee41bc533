/**
 * Makes the first relay of a sender: a definition that writes the mapped fields as a record, its collection, and the steps that remain. Also
 * makes the body of a sample event.
 */
import { randomBytes, randomInt } from "node:crypto";
import { isJsonObject, type Json, type JsonObject, scalarText, writeJson } from "../../base/json.ts";
import { parsePath, readPath } from "../../platform/template/template.ts";
import type { ReceiverTrigger } from "../trigger/receiver.ts";
import { bindScheme } from "../verify/registry.ts";
import type { Sender, SenderExample } from "./sender.ts";

/** Mapped names of a payment. A second payment with the same id would have no effect. */
const PAYMENT = /^(order|payment|invoice|charge|transaction)(_id|_ref|_number)?$/;

/** Makes a definition that only writes the mapped fields as a record. Nothing acts on a person until the owner adds such an action. */
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

/** Makes the collection that the definition names, in the shape of catalog.json. */
export function startCatalog(sender: Sender): JsonObject {
  const fields = Object.fromEntries(Object.keys(sender.map).map((field) => [field, { type: "text" }]));
  return { collections: { [collectionOf(sender)]: { kind: "private", fields } } };
}

function collectionOf({ name }: Sender): string {
  return `${name.replaceAll("-", "_")}_events`;
}

/** Reports whether the sender signs the event itself. If not, the unsigned-event rule applies to its relays. */
export function signsEvent({ verify }: Sender): boolean {
  return bindScheme(verify)?.signsEvent() ?? false;
}

/** Lists the steps that remain after the first save, one sentence each, in order. */
export function startSteps(sender: Sender): string[] {
  const { title, register, secret, personEmail } = sender;
  const steps = [
    `Register the receiver URL at ${title}: ${register}`,
    `Set the secret: ${secret.where}`,
    "Replace write_record with the actions that you need, or add them next to it. To sell a product, read the page People and selling (relay docs people-and-selling).",
  ];
  if (personEmail === null) return steps;
  if (signsEvent(sender))
    return [...steps, `To act for the event's person, add "person_email": "${personEmail}" to the map.`];
  return [
    ...steps,
    `${title} does not sign the event. To act for a person, map person_id or person_token, or opt in with trustUnsignedEvents and map "person_email": "${personEmail}".`,
  ];
}

/**
 * Makes the example as a body with new ids of event and payment, so that it is no duplicate, and with the person if one is given. null: the trigger reads a
 * field that the example does not have, or does not match it.
 */
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
    const isPayment = PAYMENT.test(name) && wanted === undefined && scalarText(found) !== null;
    if (name === "event_id" || isPayment) value = replaceAt(value, text.split("."), newIdLike(found));
    else if (name.startsWith("person_") && person !== null) value = replaceAt(value, text.split("."), person);
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

/** Makes a new id of the same type as the value. */
function newIdLike(value: Json): Json {
  if (typeof value === "number") return randomInt(1, 2 ** 47);
  return `test_${randomBytes(8).toString("hex")}`;
}

/** Copies the value with `leaf` at the path. */
function replaceAt(value: Json, path: readonly string[], leaf: Json): Json {
  const [first, ...rest] = path;
  if (first === undefined) return leaf;
  if (Array.isArray(value))
    return value.map((item, index) => (String(index) === first ? replaceAt(item, rest, leaf) : item));
  if (!isJsonObject(value)) return value;
  return { ...value, [first]: replaceAt(value[first] ?? {}, rest, leaf) };
}
