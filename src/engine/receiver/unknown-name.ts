/**
 * What is kept and shown of a name that a call's path gave and no receiver has. A sender may have pasted a secret there, so a name that cannot be
 * a relay's, or that looks like a secret, leaves only its length and a fingerprint: that of the same secret elsewhere (secret/seal.ts).
 */
import { RELAY_NAME } from "../../base/shape.ts";

/** Beginnings of keys and tokens of this service and of providers, as far as a relay's name can hold them. */
const KEY_START =
  /^(?:sk|pk|rk|ak|re|tok|key|token|secret|whsec|gh[opsu]|xox[abp]|shp[a-z]{2}|relay-(?:dev|live))-/;
/** A part between hyphens that is no word and no number of a date or version: letters with digits in between, or many digits. */
const ODD_PART = /^(?:(?=.*\d)(?=.*[a-z]).{4,}|\d{6,})$/;
const MAX_ODD_CHARS = 11;
const MAX_ODD_CHARS_OF_KEY = 3;
const MAX_WORD_CHARS = 27;

/** Whether the name is of a form that relays' names have, and not of one that secrets have. */
export function mayBeRelayName(name: string): boolean {
  if (!RELAY_NAME.test(name)) return false;
  let odd = 0;
  for (const part of name.split("-")) {
    if (part.length > MAX_WORD_CHARS) return false;
    if (ODD_PART.test(part)) odd += part.length;
  }
  return odd <= (KEY_START.test(name) ? MAX_ODD_CHARS_OF_KEY : MAX_ODD_CHARS);
}

/** The name as it may be kept and shown; of one that may be a secret `44 characters, hmac:9f86d081884c7d65`. */
export function showUnknownName(name: string, sealer: { fingerprint(text: string): string }): string {
  if (mayBeRelayName(name)) return name;
  return `${name.length} characters, ${sealer.fingerprint(name)}`;
}

/** Whether the name was shown by its length and fingerprint. */
export function isHiddenName(shown: string): boolean {
  return !RELAY_NAME.test(shown);
}
