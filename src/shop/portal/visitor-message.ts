/**
 * Messages of the client library's routes for an app's visitors: what happened, and what they can do. No message names a setting or command;
 * those are for the app's owner and appear in the log.
 */

import type { RefusalCode } from "../../base/code/refusal-code.ts";
import type { Refusal } from "../../base/refusal.ts";

const CONTACT_OWNER = "contact the owner of this app";

/** The rejection of a page that uses a secret key, for the developer. */
export const SECRET_KEY_REFUSED =
  "A secret key is for servers and the management routes: use an app key (ak_…) here.";

const UNSOLD = `This cannot be bought on this page: buy it where the app shows, or ${CONTACT_OWNER}.`;

function formatWhereSold({ extra }: Refusal): string {
  const url = extra.details?.url;
  return typeof url === "string" ? `This is bought at another address: go to ${url}.` : UNSOLD;
}

/** Messages of codes whose own message is for an owner or developer; other codes keep theirs. */
const MESSAGES: Partial<Record<RefusalCode, (refusal: Refusal) => string>> = {
  unauthenticated: () => `This page's key for its service is missing or no longer valid: ${CONTACT_OWNER}.`,
  wrong_origin: () =>
    `This page has an address that its service does not allow: open the app at its usual address, or ${CONTACT_OWNER}.`,
  forbidden: ({ message }) =>
    message === SECRET_KEY_REFUSED
      ? `This page has a key that is not for pages, so its service refuses it: ${CONTACT_OWNER}.`
      : message,
  code_not_sent: () =>
    `The sign-in code was not sent, because this app cannot send mail now: retry later, or ${CONTACT_OWNER}.`,
  not_found({ message }) {
    const [what = message, todo] = message.replace("this environment", "this app").split(":");
    return todo === undefined ? what : `${what}: go back, or ${CONTACT_OWNER}.`;
  },
  product_not_sellable: formatWhereSold,
  plan_not_sellable: formatWhereSold,
  signup_capped: () => "The app has reached its limit of new people for today: sign in after resetAt.",
  storage_capped: ({ message, extra }) =>
    extra.details?.limit === "person"
      ? message
      : `This app has no space left, so nothing was saved: retry later, or ${CONTACT_OWNER}.`,
  not_recorded: () => "This app cannot save data now, so nothing was saved: retry in a moment.",
  internal: () => `An error happened in the app's service, not in your input: retry, or ${CONTACT_OWNER}.`,
};

/** Formats a refusal for a visitor of the app. */
export function formatForVisitor(refusal: Refusal): string {
  return MESSAGES[refusal.code]?.(refusal) ?? refusal.message;
}
