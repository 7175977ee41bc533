/**
 * Lists the files of senders/ and finds the sender of a relay's recipe. The command line, the dashboard and the documentation read this list,
 * and a server loads it at the first such request.
 */

import adyen from "../../../senders/adyen.json" with { type: "json" };
import attio from "../../../senders/attio.json" with { type: "json" };
import bitbucket from "../../../senders/bitbucket.json" with { type: "json" };
import box from "../../../senders/box.json" with { type: "json" };
import buildkite from "../../../senders/buildkite.json" with { type: "json" };
import calCom from "../../../senders/cal-com.json" with { type: "json" };
import calendly from "../../../senders/calendly.json" with { type: "json" };
import chargebee from "../../../senders/chargebee.json" with { type: "json" };
import checkoutCom from "../../../senders/checkout-com.json" with { type: "json" };
import circleci from "../../../senders/circleci.json" with { type: "json" };
import clerk from "../../../senders/clerk.json" with { type: "json" };
import coinbaseCommerce from "../../../senders/coinbase-commerce.json" with { type: "json" };
import customerIo from "../../../senders/customer-io.json" with { type: "json" };
import discord from "../../../senders/discord.json" with { type: "json" };
import docusign from "../../../senders/docusign.json" with { type: "json" };
import easypost from "../../../senders/easypost.json" with { type: "json" };
import elevenlabs from "../../../senders/elevenlabs.json" with { type: "json" };
import facebook from "../../../senders/facebook.json" with { type: "json" };
import flutterwave from "../../../senders/flutterwave.json" with { type: "json" };
import gitea from "../../../senders/gitea.json" with { type: "json" };
import github from "../../../senders/github.json" with { type: "json" };
import gitlab from "../../../senders/gitlab.json" with { type: "json" };
import gocardless from "../../../senders/gocardless.json" with { type: "json" };
import gumroad from "../../../senders/gumroad.json" with { type: "json" };
import heroku from "../../../senders/heroku.json" with { type: "json" };
import hubspot from "../../../senders/hubspot.json" with { type: "json" };
import huggingFace from "../../../senders/hugging-face.json" with { type: "json" };
import intercom from "../../../senders/intercom.json" with { type: "json" };
import jira from "../../../senders/jira.json" with { type: "json" };
import lemonSqueezy from "../../../senders/lemon-squeezy.json" with { type: "json" };
import line from "../../../senders/line.json" with { type: "json" };
import linear from "../../../senders/linear.json" with { type: "json" };
import mailgun from "../../../senders/mailgun.json" with { type: "json" };
import mux from "../../../senders/mux.json" with { type: "json" };
import openai from "../../../senders/openai.json" with { type: "json" };
import paddle from "../../../senders/paddle.json" with { type: "json" };
import pagerduty from "../../../senders/pagerduty.json" with { type: "json" };
import paystack from "../../../senders/paystack.json" with { type: "json" };
import persona from "../../../senders/persona.json" with { type: "json" };
import polar from "../../../senders/polar.json" with { type: "json" };
import postmark from "../../../senders/postmark.json" with { type: "json" };
import razorpay from "../../../senders/razorpay.json" with { type: "json" };
import render from "../../../senders/render.json" with { type: "json" };
import replicate from "../../../senders/replicate.json" with { type: "json" };
import resend from "../../../senders/resend.json" with { type: "json" };
import revenuecat from "../../../senders/revenuecat.json" with { type: "json" };
import sanity from "../../../senders/sanity.json" with { type: "json" };
import sendgrid from "../../../senders/sendgrid.json" with { type: "json" };
import sentry from "../../../senders/sentry.json" with { type: "json" };
import shopify from "../../../senders/shopify.json" with { type: "json" };
import slack from "../../../senders/slack.json" with { type: "json" };
import square from "../../../senders/square.json" with { type: "json" };
import standardWebhooks from "../../../senders/standard-webhooks.json" with { type: "json" };
import stripe from "../../../senders/stripe.json" with { type: "json" };
import supabase from "../../../senders/supabase.json" with { type: "json" };
import tally from "../../../senders/tally.json" with { type: "json" };
import telegram from "../../../senders/telegram.json" with { type: "json" };
import telnyx from "../../../senders/telnyx.json" with { type: "json" };
import twilio from "../../../senders/twilio.json" with { type: "json" };
import twitch from "../../../senders/twitch.json" with { type: "json" };
import typeform from "../../../senders/typeform.json" with { type: "json" };
import vercel from "../../../senders/vercel.json" with { type: "json" };
import webflow from "../../../senders/webflow.json" with { type: "json" };
import whatsapp from "../../../senders/whatsapp.json" with { type: "json" };
import woocommerce from "../../../senders/woocommerce.json" with { type: "json" };
import workos from "../../../senders/workos.json" with { type: "json" };
import zendesk from "../../../senders/zendesk.json" with { type: "json" };
import zoom from "../../../senders/zoom.json" with { type: "json" };
import type { ReceiverTrigger } from "../trigger/receiver.ts";
import { SenderIndex } from "./match-sender.ts";
import type { Sender } from "./sender.ts";

/** A sender as TypeScript reads its file, in which each word is any text. A test checks the words. */
type SenderFile = Omit<Sender, "secret"> & { secret: { from: string; where: string; maxChars?: number } };

const FILES: readonly SenderFile[] = [
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

/** Every known sender, in alphabetical order of the names. */
export const SENDERS = FILES as readonly Sender[];

export function findSender(name: string): Sender | null {
  return SENDERS.find((sender) => sender.name === name) ?? null;
}

/** Throws if there is no such sender. */
export function requireSender(name: string): Sender {
  const sender = findSender(name);
  if (sender === null) throw new Error(`There is no known sender ${name}.`);
  return sender;
}

/** Lists the senders whose name, title or summary contains the text; an empty text lists all. */
export function searchSenders(text: string): readonly Sender[] {
  const wanted = text.trim().toLowerCase();
  return SENDERS.filter(({ name, title, summary }) =>
    `${name} ${title} ${summary}`.toLowerCase().includes(wanted),
  );
}

const INDEX = new SenderIndex(SENDERS);

/** Finds the sender whose recipe a receiver uses. null: the sender is unknown, or another one is as likely. */
export function recogniseSender(trigger: ReceiverTrigger): Sender | null {
  const match = INDEX.find(trigger);
  return match?.isCertain === true ? match.sender : null;
}
