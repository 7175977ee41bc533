/** Every sender, one line each, in the order of the alphabet. The command line, the dashboard and the documentation read this. */
import { github } from "./github.ts";
import { mailgun } from "./mailgun.ts";
import { paddle } from "./paddle.ts";
import type { Sender } from "./sender.ts";
import { shopify } from "./shopify.ts";
import { standardWebhooks } from "./standard-webhooks.ts";
import { stripe } from "./stripe.ts";
import { twilio } from "./twilio.ts";

export const SENDERS: readonly Sender[] = [
  github,
  mailgun,
  paddle,
  shopify,
  standardWebhooks,
  stripe,
  twilio,
];
