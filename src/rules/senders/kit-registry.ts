/** Lists the files of kits/ and finds the kit of a provider. */
import chargebee from "../../../kits/chargebee.json" with { type: "json" };
import gumroad from "../../../kits/gumroad.json" with { type: "json" };
import lemonSqueezy from "../../../kits/lemon-squeezy.json" with { type: "json" };
import paddle from "../../../kits/paddle.json" with { type: "json" };
import polar from "../../../kits/polar.json" with { type: "json" };
import revenuecat from "../../../kits/revenuecat.json" with { type: "json" };
import shopify from "../../../kits/shopify.json" with { type: "json" };
import stripe from "../../../kits/stripe.json" with { type: "json" };
import type { Kit } from "./kit.ts";

/** Every kit, in alphabetical order of the providers. A test checks each file against the shape. */
export const KITS = [
  chargebee,
  gumroad,
  lemonSqueezy,
  paddle,
  polar,
  revenuecat,
  shopify,
  stripe,
] as readonly Kit[];

export function findKit(sender: string): Kit | null {
  return KITS.find((kit) => kit.sender === sender) ?? null;
}
