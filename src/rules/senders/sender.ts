/**
 * The shape of a file of senders/: how one provider signs, names and sets up its webhooks. The JSON files hold the data. registry.ts lists
 * them, and a test checks each file against this shape.
 */
import { type Static, Type } from "typebox";
import type { Json, JsonObject } from "../../base/json.ts";
import { fields, oneOf, textOrNull } from "../../base/schema.ts";
import type { When } from "../trigger/receiver.ts";
import type { VerifyFields } from "../verify/contract.ts";

/** `form` is sent as a form post whose fields are texts. */
const example = Type.Union([
  fields({
    json: Type.Unsafe<JsonObject | readonly Json[]>(Type.Union([Type.Object({}), Type.Array(Type.Any())])),
  }),
  fields({ form: Type.Record(Type.String(), Type.String()) }),
]);
export type SenderExample = Static<typeof example>;

/** A form in which a sender's API or tool gives past events. */
const exportForm = fields({
  list: Type.Optional(
    Type.String({ description: "dotted path of the list in the answer; absent: the answer is the list" }),
  ),
  event: Type.Optional(
    Type.String({ description: "dotted path of the event in an item; absent: the item is the event" }),
  ),
  headers: Type.Optional(Type.String({ description: "dotted path of the request's headers in an item" })),
  more: Type.Optional(
    Type.String({ description: "dotted path of the value in the answer that is set if more pages follow" }),
  ),
});
export type ExportForm = Static<typeof exportForm>;

export const senderShape = fields({
  name: Type.String({
    description: "the name of the file, on the command line, in a URL and of its first relay",
  }),
  title: Type.String(),
  summary: Type.String({ description: "which events it sends, in one sentence" }),
  verify: Type.Unsafe<VerifyFields>(Type.Object({ scheme: Type.String() })),
  map: Type.Record(Type.String(), Type.String(), {
    description:
      "mapped names to dotted paths of the body, with the sender's own field names; headers cannot be mapped",
  }),
  when: Type.Unsafe<When>(
    Type.Record(Type.String(), Type.Union([Type.String(), Type.Array(Type.String())]), {
      description: "what the first relay matches; empty: every event",
    }),
  ),
  personEmail: textOrNull,
  secret: fields({
    from: oneOf(["sender", "relay", "either"]),
    where: Type.String({ description: "where the sender's console shows the secret, or takes it" }),
    maxChars: Type.Optional(
      Type.Integer({ description: "the longest secret that the sender's console takes, in characters" }),
    ),
  }),
  register: Type.String({ description: "where to enter the receiver URL in the sender's console" }),
  example,
  eventTypes: Type.Array(fields({ type: Type.String(), meaning: Type.String() })),
  pitfalls: Type.Array(Type.String()),
  export: Type.Optional(
    fields({
      how: Type.String({ description: "the command or the request that gives past events" }),
      forms: Type.Array(exportForm, { description: "the first form that fits an answer decides" }),
    }),
  ),
  retryHours: Type.Optional(
    Type.Integer({
      description:
        "how long the sender repeats a request that gets 401, in whole hours; absent where its documentation does not say it",
    }),
  ),
  docs: Type.String({ description: "the sender's page about its webhooks" }),
  source: Type.String({ description: "the documentation or library that every field is taken from" }),
});

export type Sender = Readonly<Static<typeof senderShape>>;
