/**
 * Every sender, one line each, in the order of the alphabet, and which one a relay's recipe is of. The command line, the dashboard and the
 * documentation read this; a server loads it when it is first asked for.
 */
import { type JsonObject, writeJson } from "../../base/json.ts";
import type { ReceiverTrigger } from "../trigger/receiver.ts";
import { adyen } from "./adyen.ts";
import { attio } from "./attio.ts";
import { bitbucket } from "./bitbucket.ts";
import { box } from "./box.ts";
import { buildkite } from "./buildkite.ts";
import { calCom } from "./cal-com.ts";
import { calendly } from "./calendly.ts";
import { chargebee } from "./chargebee.ts";
import { checkoutCom } from "./checkout-com.ts";
import { circleci } from "./circleci.ts";
import { clerk } from "./clerk.ts";
import { coinbaseCommerce } from "./coinbase-commerce.ts";
import { customerIo } from "./customer-io.ts";
import { discord } from "./discord.ts";
import { docusign } from "./docusign.ts";
import { easypost } from "./easypost.ts";
import { elevenlabs } from "./elevenlabs.ts";
import { facebook } from "./facebook.ts";
import { flutterwave } from "./flutterwave.ts";
import { gitea } from "./gitea.ts";
import { github } from "./github.ts";
import { gitlab } from "./gitlab.ts";
import { gocardless } from "./gocardless.ts";
import { gumroad } from "./gumroad.ts";
import { heroku } from "./heroku.ts";
import { hubspot } from "./hubspot.ts";
import { huggingFace } from "./hugging-face.ts";
import { intercom } from "./intercom.ts";
import { jira } from "./jira.ts";
import { lemonSqueezy } from "./lemon-squeezy.ts";
import { line } from "./line.ts";
import { linear } from "./linear.ts";
import { mailgun } from "./mailgun.ts";
import { mux } from "./mux.ts";
import { openai } from "./openai.ts";
import { paddle } from "./paddle.ts";
import { pagerduty } from "./pagerduty.ts";
import { paystack } from "./paystack.ts";
import { persona } from "./persona.ts";
import { polar } from "./polar.ts";
import { postmark } from "./postmark.ts";
import { razorpay } from "./razorpay.ts";
import { render } from "./render.ts";
import { replicate } from "./replicate.ts";
import { resend } from "./resend.ts";
import { revenuecat } from "./revenuecat.ts";
import { sanity } from "./sanity.ts";
import type { Sender } from "./sender.ts";
import { sendgrid } from "./sendgrid.ts";
import { sentry } from "./sentry.ts";
import { shopify } from "./shopify.ts";
import { slack } from "./slack.ts";
import { square } from "./square.ts";
import { standardWebhooks } from "./standard-webhooks.ts";
import { stripe } from "./stripe.ts";
import { supabase } from "./supabase.ts";
import { tally } from "./tally.ts";
import { telegram } from "./telegram.ts";
import { telnyx } from "./telnyx.ts";
import { twilio } from "./twilio.ts";
import { twitch } from "./twitch.ts";
import { typeform } from "./typeform.ts";
import { vercel } from "./vercel.ts";
import { webflow } from "./webflow.ts";
import { whatsapp } from "./whatsapp.ts";
import { woocommerce } from "./woocommerce.ts";
import { workos } from "./workos.ts";
import { zendesk } from "./zendesk.ts";
import { zoom } from "./zoom.ts";

export const SENDERS: readonly Sender[] = [
  adyen,
  attio,
  bitbucket,
  box,
  buildkite,
  calCom,
  calendly,
  chargebee,
  checkoutCom,
  circleci,
  clerk,
  coinbaseCommerce,
  customerIo,
  discord,
  docusign,
  easypost,
  elevenlabs,
  facebook,
  flutterwave,
  gitea,
  github,
  gitlab,
  gocardless,
  gumroad,
  heroku,
  hubspot,
  huggingFace,
  intercom,
  jira,
  lemonSqueezy,
  line,
  linear,
  mailgun,
  mux,
  openai,
  paddle,
  pagerduty,
  paystack,
  persona,
  polar,
  postmark,
  razorpay,
  render,
  replicate,
  resend,
  revenuecat,
  sanity,
  sendgrid,
  sentry,
  shopify,
  slack,
  square,
  standardWebhooks,
  stripe,
  supabase,
  tally,
  telegram,
  telnyx,
  twilio,
  twitch,
  typeform,
  vercel,
  webflow,
  whatsapp,
  woocommerce,
  workos,
  zendesk,
  zoom,
];

export function findSender(name: string): Sender | null {
  return SENDERS.find((sender) => sender.name === name) ?? null;
}

/** Those whose name, title or summary holds the text; all of them for none. */
export function searchSenders(text: string): readonly Sender[] {
  const wanted = text.trim().toLowerCase();
  return SENDERS.filter(({ name, title, summary }) =>
    `${name} ${title} ${summary}`.toLowerCase().includes(wanted),
  );
}

/** The sender whose recipe a receiver has; where several share one, the one whose fields and types it reads. null: none, or it is not to be told. */
export function recogniseSender({ verify, map, when = {} }: ReceiverTrigger): Sender | null {
  const own = normalVerify(verify);
  const paths = new Set(Object.values(map));
  const wanted = new Set(Object.values(when).flat());
  const scored = SENDERS.filter((sender) => normalVerify(sender.verify) === own)
    .map((sender) => {
      const shared = Object.values(sender.map).filter((path) => paths.has(path)).length;
      const types = sender.eventTypes.filter(({ type }) => wanted.has(type)).length;
      return { sender, score: shared + 2 * types };
    })
    .sort((one, other) => other.score - one.score);
  const [best, next] = scored;
  if (best === undefined || best.score === 0 || best.score === next?.score) return null;
  return best.sender;
}

const DEFAULTS = { algorithm: "hmac-sha256", encoding: "hex" };

/** What a recipe says, without regard to what it leaves to defaults and to the case of headers; a handshake is not how it signs. */
function normalVerify(verify: ReceiverTrigger["verify"]): string {
  const { handshake: _, toleranceSeconds: __, ...fields } = verify;
  const said: JsonObject = fields.scheme === "signature" ? { ...DEFAULTS, ...fields } : { ...fields };
  if (said.signatureKey !== undefined) said.separator ??= ",";
  for (const name of ["header", "timestampHeader"]) {
    const header = said[name];
    if (typeof header === "string") said[name] = header.toLowerCase();
  }
  return writeJson(Object.fromEntries(Object.entries(said).sort(([one], [other]) => (one < other ? -1 : 1))));
}
