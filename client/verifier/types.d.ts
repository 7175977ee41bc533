/** The types of relay-service-verifier, which verifies the notices of a relay. */

export interface VerifyOptions {
  /** The raw body, as it arrived: bytes (such as a Buffer) or text. A parsed body cannot be verified. */
  body: string | Uint8Array | ArrayBuffer;
  /** The headers of the request: a `Headers` object, the `headers` of Node, or a plain object. Upper and lower case do not matter. */
  headers:
    | { get(name: string): string | null | undefined }
    | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The signing secret of the relay. During a rotation: both secrets. Empty entries of a list are skipped. */
  secret: string | readonly (string | undefined)[];
  /** The largest difference between the time of the signature and this clock, in seconds. Default: 300. */
  toleranceSeconds?: number;
}

/**
 * Resolves with the notice if a secret matches its signature. Rejects with a `VerificationError` if the request must be refused, and with a `TypeError`
 * if the options are wrong.
 */
export function verify(options: VerifyOptions): Promise<Notice>;

/** Why a request was refused. */
export type VerificationCode =
  | "signature_missing"
  | "signature_malformed"
  | "signature_mismatch"
  | "too_old"
  | "too_new";

/** The request is not a fresh notice of the relay. Answer it with 401. */
export class VerificationError extends Error {
  constructor(code: VerificationCode, message: string);
  readonly name: "VerificationError";
  readonly code: VerificationCode;
}

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** The body of a request. Integers of more than 15 digits lose digits: read them from the raw body. */
export interface Notice {
  /** The id of the event, the same for each retry and replay. Store the ids that you handled, and skip them. */
  id: string;
  relay: { id: string; name: string };
  trigger: "receiver" | "schedule" | "data_change";
  /** `{ event, mapped }` of a receiver, `{ tick }` of a schedule, `{ record, previous }` of a changed record. */
  event: { [name: string]: Json };
  /** Present if the event was larger than 32 KB. `event` then has only the mapped values. */
  truncated?: true;
  person: { id: string; email: string } | null;
  /** The results of the actions that ran before this one. */
  results: { type: string; outcome: string; [name: string]: Json }[];
}
