/** The views of a sender: its line in the list, and all its facts with the first relay. */
import { type Static, Type } from "typebox";
import type { JsonObject } from "../../base/json.ts";
import { oneOf } from "../../base/schema.ts";
import { type Sender, senderShape } from "./sender.ts";
import { exampleBody, signsEvent, startCatalog, startDefinition, startSteps } from "./sender-start.ts";

const line = {
  name: Type.String(),
  title: Type.String(),
  summary: Type.String(),
  signsEvent: Type.Boolean({ description: "false: the unsigned-event rule applies to its relays" }),
};

export const senderLine = Type.Object(line);
export type SenderLine = Static<typeof senderLine>;

export const senderView = Type.Object({
  ...line,
  definition: Type.Unsafe<JsonObject>({ type: "object", description: "a relay to start from" }),
  catalog: Type.Unsafe<JsonObject>({
    type: "object",
    description: "what the definition names, in the shape of catalog.json",
  }),
  personEmail: Type.Union([Type.String(), Type.Null()], {
    description: "where the body holds the person's address; null: nowhere",
  }),
  secret: Type.Object({
    from: oneOf(["sender", "relay", "either"]),
    where: Type.String(),
    maxChars: Type.Optional(Type.Integer()),
  }),
  register: Type.String({ description: "where to enter the receiver URL in its console" }),
  example: Type.Object({ body: Type.String(), contentType: Type.String() }),
  eventTypes: Type.Array(Type.Object({ type: Type.String(), meaning: Type.String() })),
  pitfalls: Type.Array(Type.String()),
  export: senderShape.properties.export,
  retryHours: senderShape.properties.retryHours,
  steps: Type.Array(Type.String(), { description: "the remaining steps, in order" }),
  docs: Type.String(),
});
export type SenderView = Static<typeof senderView>;

export function listSender(sender: Sender): SenderLine {
  const { name, title, summary } = sender;
  return { name, title, summary, signsEvent: signsEvent(sender) };
}

export function viewSender(sender: Sender): SenderView {
  const { personEmail, secret, register, example, eventTypes, pitfalls, retryHours, docs } = sender;
  return {
    ...listSender(sender),
    definition: startDefinition(sender),
    catalog: startCatalog(sender),
    personEmail,
    secret,
    register,
    example: exampleBody(example),
    eventTypes: [...eventTypes],
    pitfalls: [...pitfalls],
    ...(sender.export === undefined ? {} : { export: sender.export }),
    ...(retryHours === undefined ? {} : { retryHours }),
    steps: startSteps(sender),
    docs,
  };
}
