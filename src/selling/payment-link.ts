/**
 * Where a signed-in person goes to pay: the client's buy and checkout. Only what is sold by a payment link has such a place; what a relay
 * sells is paid at its provider. It starts nothing and writes nothing. Source: the specification's "Relay-sold products and plans".
 */
import { Refusal } from "../ground/refusal.ts";
import type { Reader } from "../store/port.ts";
import { requirePlan } from "./plan.ts";
import { requireProduct } from "./product.ts";
import type { SoldThrough } from "./sold-through.ts";

/** The product's payment link. Refuses with `not_found` and `product_not_sellable`. */
export async function requireProductLink(tx: Reader, environmentId: number, name: string): Promise<string> {
  const { soldThrough } = await requireProduct(tx, environmentId, name);
  if (soldThrough?.kind === "payment_link") return soldThrough.url;
  throw new Refusal("product_not_sellable", sayNotSellable("product", name, soldThrough));
}

/** The plan's payment link. Refuses with `not_found` and `plan_not_sellable`. */
export async function requirePlanLink(tx: Reader, environmentId: number, name: string): Promise<string> {
  const { soldThrough } = await requirePlan(tx, environmentId, name);
  if (soldThrough?.kind === "payment_link") return soldThrough.url;
  throw new Refusal("plan_not_sellable", sayNotSellable("plan", name, soldThrough));
}

function sayNotSellable(kind: string, name: string, soldThrough: SoldThrough | null): string {
  return soldThrough === null
    ? `The ${kind} ${name} is not sold: give it a payment link or a relay in soldThrough first.`
    : `The ${kind} ${name} is sold through a relay, so it has no payment to start here: send the buyer to the provider that sells it.`;
}
