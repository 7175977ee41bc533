/**
 * Messages of the client library's routes for an app's visitors: what happened, and what they can do. No message names a setting or command;
 * those are for the app's owner and appear in the log.
 */

import type { RefusalCode } from "../../base/code/refusal-code.ts";
import type { Refusal } from "../../base/refusal.ts";

const CONTACT_OWNER = "tell whoever runs this app";

/** The rejection of a page that uses a secret key, for the developer. */
export const SECRET_KEY_REFUSED =
  "A secret key is for servers and the management routes: use an app key (ak_…) here.";

const UNSOLD = `This cannot be bought on this page: buy it where the app says, or ${CONTACT_OWNER}.`;

function formatWhereSold({ extra }: Refusal): string {
  const url = extra.details?.url;
  return typeof url === "string" ? `This is bought at another address: go to ${url}.` : UNSOLD;
}

/** Messages of codes whose own message is for an owner or developer; other codes keep theirs. */
const MESSAGES: Partial<Record<RefusalCode, (refusal: Refusal) => string>> = {
  unauthenticated: () => `This page's key of its service is missing or good no more: ${CONTACT_OWNER}.`,
  wrong_origin: () =>
    `This page stands at an address that its service does not answer: open the app where you usually do, or ${CONTACT_OWNER}.`,
  forbidden: ({ message }) =>
    message === SECRET_KEY_REFUSED
      ? `This page has a key that is not for pages, so its service does not answer it: ${CONTACT_OWNER}.`
      : message,
  code_not_sent: () =>
    `The sign-in code was not sent, as this app cannot send mail at present: try again in a while, or ${CONTACT_OWNER}.`,
  not_found({ message }) {
    const [what = message, todo] = message.replace("this environment", "this app").split(":");
    return todo === undefined ? what : `${what}: go back, or ${CONTACT_OWNER}.`;
  },
  product_not_sellable: formatWhereSold,
  plan_not_sellable: formatWhereSold,
  signup_capped: () =>
    "So many people joined this app today that nobody new can before tomorrow: sign in after resetAt.",
  storage_capped: ({ message, extra }) =>
    extra.details?.limit === "person"
      ? message
      : `This app has no room for more at present, so nothing was saved: try again later, or ${CONTACT_OWNER}.`,
  not_recorded: () =>
    "This app can save nothing at present, and saved nothing of this: try again in a moment.",
  internal: () => `Something went wrong in the app's service, not with you: try again, or ${CONTACT_OWNER}.`,
};

/** Formats a refusal for a visitor of the app. */
export function formatForVisitor(refusal: Refusal): string {
  return MESSAGES[refusal.code]?.(refusal) ?? refusal.message;
}
