/**
 * Answers what some senders ask a URL before they send to it: a challenge to return, a token to sign, a ping. A definition names the
 * handshake (`verify.handshake`). The sender's own check comes first, and no handshake becomes an event. An answer is short and has only
 * characters that are harmless in markup, scripts and JSON. Source: Meta, "Webhooks: getting started"; Slack, "url_verification"; Zoom,
 * "Validate your webhook endpoint"; Discord, "Interactions" and "Webhook events"; Dropbox, "Webhooks"; Twitch, "Responding to a challenge
 * request".
 */
import { Type } from "typebox";
import { isJsonObject, type JsonObject, writeJson } from "../../base/json.ts";
import type { Problem } from "../../base/refusal.ts";
import type { ReceivedRequest, VerifyFields } from "./contract.ts";
import { namesPlaceholder } from "./recipe.ts";
import { computeHmac, isSameText } from "./signature-proof.ts";
import { signingMethodOf } from "./signing-method.ts";

/** The response to a handshake. */
export class HandshakeAnswer {
  readonly body: string;
  readonly contentType: string;
  readonly status: 200 | 204;

  constructor(body: string, contentType = "text/plain; charset=utf-8", status: 200 | 204 = 200) {
    this.body = body;
    this.contentType = contentType;
    this.status = status;
  }
}

/** A string is the reason why there is no answer, completing "…, because". null: the request is no handshake. */
type Answered = HandshakeAnswer | string | null;

interface Question {
  method: "GET" | "HEAD";
  query: URLSearchParams;
  /** The token that Meta must send. */
  verifyToken: string;
}

/** A handshake to try a relay with. */
interface Sample {
  method: "GET" | "HEAD" | "POST";
  search: string;
  /** The body of a POST, which is signed as the sender does. */
  body: JsonObject | null;
}

interface Handshake {
  /** Completes "…was answered". */
  label: string;
  /** The step that a person takes at the sender. */
  todo: string;
  /** True if a person gives the sender the relay's verify token. */
  byToken?: true;
  /** Makes the handshake as the sender does. `challenge` is a made-up text. */
  sample(challenge: string, verifyToken: string): Sample;
  /** Answers a request without a signature. */
  ask?(question: Question): Answered;
  /** Answers a verified request. `secret` is the one that verified it. */
  answer?(body: JsonObject, secret: string): Answered;
  /** Returns why the handshake does not fit `verify` and what to use, completing "handshake is …, ". null: it fits. */
  misfit(verify: VerifyFields): string | null;
}

/** Characters that have no meaning in markup, scripts or JSON. */
const CHALLENGE = /^[A-Za-z0-9._~+/=-]{1,256}$/;
/** No dot and no colon: the signed text of an event has one of them, so a signed token can never verify an event. */
const PLAIN_TOKEN = /^[A-Za-z0-9_-]{1,100}$/;
const MAX_QUERY_CHARS = 2_048;
const NO_ECHO = `has characters other than letters, digits and . _ ~ + / = -, or more than 256 characters`;

const HANDSHAKES = {
  meta: {
    label: "Meta's challenge",
    todo: "Enter the receiver URL and this verify token in the app's dashboard under Webhooks; Meta sends a request to the URL immediately.",
    byToken: true,
    ask({ method, query, verifyToken }) {
      if (method !== "GET" || ![...query.keys()].some((name) => name.startsWith("hub."))) return null;
      const [mode, token, challenge] = ["mode", "verify_token", "challenge"].map((name) =>
        readOnce(query, `hub.${name}`),
      );
      if (token == null || !isSameText(token, verifyToken))
        return "hub.verify_token is not the relay's verify token, or appears twice";
      if (mode !== "subscribe") return "hub.mode is not subscribe, or appears twice";
      return echo(challenge, "hub.challenge");
    },
    sample: (challenge, token) =>
      askBy("GET", { "hub.mode": "subscribe", "hub.verify_token": token, "hub.challenge": challenge }),
    misfit: () => null,
  },
  slack: {
    label: "Slack's url_verification",
    todo: "Store the app's signing secret in the relay, then enter the receiver URL under Event Subscriptions; Slack sends a request to the URL immediately.",
    answer: ({ type, challenge }) => (type === "url_verification" ? echo(challenge, "challenge") : null),
    sample: (challenge) => send({ type: "url_verification", challenge }),
    misfit: (verify) => misfitOf(verify, "hmac-sha256"),
  },
  zoom: {
    label: "Zoom's endpoint.url_validation",
    todo: "Store the app's secret token in the relay, then press Validate next to the receiver URL; Zoom validates it again every 72 hours.",
    answer({ event, payload }, secret) {
      if (event !== "endpoint.url_validation") return null;
      const plainToken = isJsonObject(payload ?? null) ? (payload as JsonObject).plainToken : null;
      if (typeof plainToken !== "string" || !PLAIN_TOKEN.test(plainToken))
        return "payload.plainToken has characters other than letters, digits, - and _, or more than 100 characters";
      const text = { head: plainToken, tail: new Uint8Array() };
      const encryptedToken = computeHmac("sha256", secret, text).toString("hex");
      return new HandshakeAnswer(writeJson({ plainToken, encryptedToken }), "application/json");
    },
    sample: (plainToken) => send({ event: "endpoint.url_validation", payload: { plainToken } }),
    misfit: (verify) => misfitOf(verify, "hmac-sha256") ?? signsToken(verify),
  },
  discord: {
    label: "Discord's PING",
    todo: "Store the app's public key in the relay, then enter the receiver URL as the app's endpoint; Discord sends requests to the URL immediately, also with a wrong signature.",
    answer(body) {
      // Discord's events and the ping of its interactions share a type, but only an event says which event it is.
      if (["event", "data", "token_type"].some((name) => isJsonObject(body[name] ?? null))) return null;
      if (body.type === 1) return new HandshakeAnswer('{"type":1}', "application/json");
      return body.type === 0 ? new HandshakeAnswer("", "application/json", 204) : null;
    },
    sample: () => send({ type: 1 }),
    misfit: (verify) => misfitOf(verify, "ed25519"),
  },
  dropbox: {
    label: "Dropbox's challenge",
    todo: "Enter the receiver URL in the app's console under Webhooks; Dropbox sends a request to the URL immediately.",
    ask({ method, query }) {
      if (method !== "GET" || !query.has("challenge")) return null;
      return echo(readOnce(query, "challenge"), "challenge");
    },
    sample: (challenge) => askBy("GET", { challenge }),
    misfit: () => null,
  },
  twitch: {
    label: "Twitch's challenge",
    todo: "Create the subscription with the receiver URL as callback and the relay's secret; Twitch sends a request to the URL immediately.",
    answer({ challenge, subscription, event }) {
      const status = isJsonObject(subscription ?? null) ? (subscription as JsonObject).status : null;
      const isPending = status === "webhook_callback_verification_pending" && event === undefined;
      return isPending ? echo(challenge, "challenge") : null;
    },
    sample: (challenge) =>
      send({ challenge, subscription: { status: "webhook_callback_verification_pending" } }),
    misfit: ({ scheme }) => (scheme === "twitch" ? null : checkedOnlyBy("scheme twitch")),
  },
  probe: {
    label: "A HEAD or GET probe",
    todo: "Enter the receiver URL at the sender; the sender checks that the URL answers.",
    ask: () => new HandshakeAnswer(""),
    sample: () => askBy("HEAD", {}),
    misfit: () => null,
  },
} as const satisfies Record<string, Handshake>;

type HandshakeName = keyof typeof HANDSHAKES;
const NAMES = Object.keys(HANDSHAKES) as HandshakeName[];

export const handshakeShape = Type.Optional(
  Type.Enum(NAMES, {
    description:
      "The check that the sender sends when you register this URL. The service verifies it as that sender does and answers it; it creates no event.",
    expects: `${NAMES.slice(0, -1).join(", ")} or ${NAMES.at(-1)}`,
  }),
);

export interface NamedHandshake extends Handshake {
  name: HandshakeName;
}

/**
 * Finds the handshake that a definition names. An older definition may combine what a save rejects today; then no request is answered.
 */
export function findHandshake(verify: VerifyFields): NamedHandshake | null {
  const name = NAMES.find((one) => one === verify.handshake);
  if (name === undefined) return null;
  const handshake: NamedHandshake = { ...(HANDSHAKES[name] as Handshake), name };
  const [problem] = checkHandshake(handshake, verify);
  return problem === undefined ? handshake : { ...handshake, answer: () => problem.message };
}

/** Checks a handshake against its scheme, for fields that fit the shape. */
export function checkHandshake({ name, misfit: misfitIn }: NamedHandshake, verify: VerifyFields): Problem[] {
  const misfit = misfitIn(verify);
  if (misfit === null) return [];
  const message = `handshake is ${name}, ${misfit}, or remove handshake.`;
  return [{ field: "handshake", message }];
}

/** Slack, Zoom and Discord sign a handshake as they sign events. Anyone could ask if there were no signature over the body. */
function misfitOf(verify: VerifyFields, algorithm: string): string | null {
  const method = signingMethodOf(verify);
  const fits =
    method.scheme === "signature" &&
    method.algorithm === algorithm &&
    namesPlaceholder(method.payload, "body");
  return fits ? null : checkedOnlyBy(`scheme signature with algorithm ${algorithm} over {body}`);
}

function checkedOnlyBy(verify: string): string {
  return `which is answered only if that sender's own signature is checked: use ${verify}`;
}

/** Zoom's answer signs a token that the caller chose. Such a text must never be the signed text of an event. */
function signsToken(verify: VerifyFields): string | null {
  const { payload } = signingMethodOf(verify);
  const literals = payload.replaceAll(/\{[^{}]*\}/g, "");
  if (/[.:]/.test(literals) || namesPlaceholder(payload, "url")) return null;
  return `whose answer signs the caller's text with the relay's secret; with signedPayload ${payload}, that signature would verify an event: set signedPayload to v0:{timestamp}:{body} and timestampHeader to x-zm-request-timestamp, as Zoom signs`;
}

/** Answers a GET or HEAD of a receiver URL. */
export function askHandshake(
  { ask }: Handshake,
  method: "GET" | "HEAD",
  search: string,
  verifyToken: string,
): Answered {
  if (ask === undefined) return null;
  if (search.length > MAX_QUERY_CHARS) return `the query is longer than ${MAX_QUERY_CHARS} characters`;
  return ask({ method, query: new URLSearchParams(search), verifyToken });
}

/** Answers a verified request where it is a handshake. `secret` is the one that verified it. */
export function answerHandshake({ answer }: Handshake, received: ReceivedRequest, secret: string): Answered {
  if (answer === undefined) return null;
  const parsed = received.parsed();
  return parsed.ok && parsed.form === null && isJsonObject(parsed.value)
    ? answer(parsed.value, secret)
    : null;
}

function echo(challenge: unknown, name: string): HandshakeAnswer | string {
  if (challenge === null) return `${name} is missing or appears twice`;
  return typeof challenge === "string" && CHALLENGE.test(challenge)
    ? new HandshakeAnswer(challenge)
    : `${name} ${NO_ECHO}`;
}

/** null: the parameter is missing, or repeated. */
function readOnce(query: URLSearchParams, name: string): string | null {
  const values = query.getAll(name);
  return values.length === 1 ? (values[0] ?? null) : null;
}

function askBy(method: "GET" | "HEAD", query: Record<string, string>): Sample {
  const search = new URLSearchParams(query).toString();
  return { method, search: search === "" ? "" : `?${search}`, body: null };
}

function send(body: JsonObject): Sample {
  return { method: "POST", search: "", body };
}
