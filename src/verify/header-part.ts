/**
 * A signature header of several parts, such as `t=1768478400,v1=5c14…`: split on the separator, each part a name, the first `=`, and
 * a value taken verbatim. Names are case-sensitive; unknown and empty parts are skipped. It never decodes a value.
 * Source: recipes, "Header parts".
 */
import { MAX_SIGNATURES } from "../ground/limit.ts";
import { trimHttpSpace } from "./timestamp.ts";

interface HeaderParts {
  /** The values named `signatureKey`, in the order received. */
  signatures: string[];
  /** The value named `timestampKey`; null when there is none, or more than one. */
  timestamp: string | null;
}

/** Reads the named parts. `too_many` where more than 8 are named `signatureKey`. */
export function readHeaderParts(
  header: string,
  separator: string,
  signatureKey: string,
  timestampKey: string | null,
): HeaderParts | "too_many" {
  const signatures: string[] = [];
  let timestamp: string | null = null;
  let timestamps = 0;
  for (let start = 0; start <= header.length; ) {
    const found = header.indexOf(separator, start);
    const end = found < 0 ? header.length : found;
    const part = trimHttpSpace(header.slice(start, end));
    start = end + 1;
    const equals = part.indexOf("=");
    if (equals < 0) continue;
    const name = part.slice(0, equals);
    if (name === signatureKey) {
      if (signatures.length === MAX_SIGNATURES) return "too_many";
      signatures.push(part.slice(equals + 1));
    } else if (name === timestampKey) {
      timestamps++;
      timestamp = part.slice(equals + 1);
    }
  }
  return { signatures, timestamp: timestamps === 1 ? timestamp : null };
}
