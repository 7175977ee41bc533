/**
 * What counts as an e-mail address: one @, bounded lengths, no white space, no control characters, none of the characters that
 * mean something in a mail header. It is deliberately narrower than RFC 5322 (no quoted local parts, no comments, no address
 * literals) and never asks a mail server.
 */
import { MAX_EMAIL_CHARS, MAX_EMAIL_LOCAL_CHARS } from "../ground/limit.ts";

/** Printable ASCII atoms and dots, or letters beyond ASCII (RFC 6531); none of `"(),:;<>@[\]` and no white space. */
const LOCAL = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.\p{L}\p{M}\p{N}-]+$/u;
const LABEL = /^[\p{L}\p{M}\p{N}](?:[\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?$/u;

/** The address with outer spaces trimmed, or null when it is not one. */
export function parseEmailAddress(text: string): string | null {
  const address = text.trim();
  if (address.length > MAX_EMAIL_CHARS || Buffer.byteLength(address) > MAX_EMAIL_CHARS) return null;
  const [local, domain, ...more] = address.split("@");
  if (local === undefined || domain === undefined || more.length > 0) return null;
  if (Buffer.byteLength(local) > MAX_EMAIL_LOCAL_CHARS || !LOCAL.test(local)) return null;
  if (local.startsWith(".") || local.endsWith(".") || local.includes("..")) return null;
  const labels = domain.split(".");
  return labels.length >= 2 && labels.every((label) => LABEL.test(label)) ? address : null;
}

/** What two spellings of one address share: letters' case and composition do not tell people apart. */
export function toEmailKey(address: string): string {
  return address.normalize("NFC").toLowerCase();
}
