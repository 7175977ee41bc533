/** Where the signed-in person goes to pay for a product or a plan. Nothing is started or written: the provider's webhook is what counts. */
import { Type } from "typebox";
import { fields } from "../ground/schema.ts";
import { requirePlanLink, requireProductLink } from "../selling/payment-link.ts";
import { personRoute } from "./client-route.ts";

const answer = Type.Object({ url: Type.String() });

export const clientBuyRoutes = [
  personRoute({
    method: "POST",
    path: "/payments/buy",
    summary: "Answers a product's payment link; 409 product_not_sellable where a relay sells it.",
    body: fields({ product: Type.String({ description: "a product's name" }) }),
    answer,
    async handle({ deps, client, body }) {
      const { environmentId } = client;
      return { url: await deps.store.read((tx) => requireProductLink(tx, environmentId, body.product)) };
    },
  }),
  personRoute({
    method: "POST",
    path: "/subscriptions/checkout",
    summary: "Answers a plan's payment link; 409 plan_not_sellable where a relay sells it.",
    body: fields({ plan: Type.String({ description: "a plan's name" }) }),
    answer,
    async handle({ deps, client, body }) {
      const { environmentId } = client;
      return { url: await deps.store.read((tx) => requirePlanLink(tx, environmentId, body.plan)) };
    },
  }),
];
