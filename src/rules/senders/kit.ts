/**
 * The shape of a file of kits/: everything to sell through one provider. A kit has the relays of one endpoint, their catalog, what to register at
 * the provider, and the lives of customers in the provider's own bodies. Its texts name the seller's product and plans as `{product}`,
 * `{plan}` and `{plan2}`. kit-definitions.ts fills them in, kit-life.ts plays the lives. Source: sources, "Selling kits".
 */
import { type Static, Type } from "typebox";
import type { JsonObject } from "../../base/json.ts";
import { fields } from "../../base/schema.ts";
import type { When } from "../trigger/receiver.ts";

const relay = fields({
  name: Type.String({ description: "what follows the source's name and a hyphen in the relay's name" }),
  does: Type.String({ description: "when it acts and what it does, in one sentence" }),
  map: Type.Record(Type.String(), Type.String()),
  customer: Type.Optional(
    Type.String({
      description: "the name in `map` with the provider's own id of the customer (trigger.customer)",
    }),
  ),
  when: Type.Unsafe<When>(Type.Record(Type.String(), Type.Union([Type.String(), Type.Array(Type.String())]))),
  actions: Type.Array(Type.Unsafe<JsonObject>(Type.Object({ type: Type.String() })), { minItems: 1 }),
});

/** The holdings of the customer after a step. A receipt of a refunded purchase ends with ` refunded`. */
export const lifeOutcome = fields({
  access: Type.Array(Type.String(), { description: "every live entitlement, by name" }),
  plan: Type.String(),
  credits: Type.Integer(),
  receipts: Type.Array(Type.String(), { description: "each product and plan with a receipt, by name" }),
});
export type LifeOutcome = Static<typeof lifeOutcome>;

const step = fields({
  day: Type.Integer({ minimum: 0, description: "the day of the life" }),
  does: Type.String({ description: "what the customer or the provider does, in one sentence" }),
  requests: Type.Array(
    fields({
      body: Type.String({ description: "the name of the body in `bodies`" }),
      set: Type.Record(Type.String(), Type.Any(), {
        description: "values at dotted paths of this request's body",
      }),
      namesCustomer: Type.Optional(
        Type.Boolean({
          description: "true: this request says which person the provider's customer id belongs to",
        }),
      ),
    }),
    {
      description:
        "what the provider sends, in its own order; it may deliver the requests of a step in any order",
    },
  ),
  outcome: lifeOutcome,
});

const life = fields({
  name: Type.String({ description: "the name on the command line" }),
  title: Type.String(),
  steps: Type.Array(step, { minItems: 1 }),
});

export const kitShape = fields({
  sender: Type.String({ description: "the name of the file, of the known sender and of the source" }),
  cannot: Type.Array(Type.String(), {
    description: "what the provider's events do not say, and what to do then; one sentence each",
  }),
  prepare: Type.Array(Type.String(), {
    description: "what to set up at the provider before the endpoint, in order; one step each",
  }),
  register: Type.Optional(
    Type.String({
      description: "where to enter the receiver URL, if one endpoint needs other steps than the sender's",
    }),
  ),
  eventTypes: Type.Array(Type.String(), {
    description: "what to choose for the endpoint; empty: the provider offers no choice",
  }),
  source: Type.Record(Type.String(), Type.String(), {
    description: "the map of the source, with names that every event has",
  }),
  relays: Type.Array(relay, { minItems: 1 }),
  catalog: fields({
    products: Type.Unsafe<Record<string, JsonObject>>(Type.Record(Type.String(), Type.Object({}))),
    plans: Type.Unsafe<Record<string, JsonObject>>(Type.Record(Type.String(), Type.Object({}))),
  }),
  bodies: Type.Record(Type.String(), Type.Unsafe<JsonObject>(Type.Object({})), {
    description:
      "complete bodies by name, with {person}, {run}, {event} and {at} for what differs (kit-life.ts)",
  }),
  token: Type.Optional(
    Type.String({
      description: "the store account token that the customer has before a life begins, with {run}",
    }),
  ),
  form: Type.Optional(Type.Boolean({ description: "true: the provider sends a form post" })),
  lives: Type.Array(life, { minItems: 1 }),
});

export type Kit = Readonly<Static<typeof kitShape>>;
export type KitLife = Static<typeof life>;
