/**
 * Decides how an unknown receiver name is stored and shown. A sender may have pasted a secret into the URL, so a name that looks like one is shown
 * only as its length and a fingerprint. The fingerprint of a secret is the same everywhere (secret/seal.ts).
 */
import { RELAY_NAME } from "../../base/shape.ts";

/** The beginnings of keys and tokens of this service and of providers, in the characters of a relay's name. */
const KEY_START =
  /^(?:sk|pk|rk|ak|re|tok|key|token|secret|whsec|gh[opsu]|xox[abp]|shp[a-z]{2}|relay-(?:dev|live))-/;
/** A part between hyphens that is no word and no number of a date or version: letters mixed with digits, or many digits. */
const ODD_PART = /^(?:(?=.*\d)(?=.*[a-z]).{4,}|\d{6,})$/;
const MAX_ODD_CHARS = 11;
const MAX_ODD_CHARS_OF_KEY = 3;
const MAX_WORD_CHARS = 27;

/** Reports whether the name looks like a relay's name and not like a secret. */
export function mayBeRelayName(name: string): boolean {
  if (!RELAY_NAME.test(name)) return false;
  let odd = 0;
  for (const part of name.split("-")) {
    if (part.length > MAX_WORD_CHARS) return false;
    if (ODD_PART.test(part)) odd += part.length;
  }
  return odd <= (KEY_START.test(name) ? MAX_ODD_CHARS_OF_KEY : MAX_ODD_CHARS);
}

/** Returns the name, or for a possible secret its length and fingerprint, as in `44 characters, hmac:9f86d081884c7d65`. */
export function showUnknownName(name: string, sealer: { fingerprint(text: string): string }): string {
  if (mayBeRelayName(name)) return name;
  return `${name.length} characters, ${sealer.fingerprint(name)}`;
}

/** Reports whether the shown name is only a length and a fingerprint. */
export function isHiddenName(shown: string): boolean {
  return !RELAY_NAME.test(shown);
}
