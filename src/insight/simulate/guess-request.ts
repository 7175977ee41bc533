/**
 * Guesses the start of a relay from one request: its sender, its recipe, and what the values of its body mean. Each guess has its reason. Nothing is
 * saved, and no answer has the secret.
 */
import { type Static, Type } from "typebox";
import { type Json, type JsonObject, scalarText } from "../../base/json.ts";
import { MAX_RECEIVER_BODY_BYTES } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, orNull } from "../../base/schema.ts";
import { RELAY_NAME } from "../../base/shape.ts";
import { utf8Bytes } from "../../base/text.ts";
import { parsePath } from "../../platform/template/template.ts";
import { arrivesUnsigned } from "../../rules/relay/unsigned-rule.ts";
import { guessRecipe } from "../../rules/senders/guess-recipe.ts";
import { guessSender } from "../../rules/senders/guess-sender.ts";
import { tryGivenSecret } from "../../rules/senders/guess-verified.ts";
import type { Sender } from "../../rules/senders/sender.ts";
import {
  type BodyGuesses,
  guessValues,
  type ValueGuess,
  warnFixedIndex,
} from "../../rules/trigger/guess-value.ts";
import type { ParsedBody, ReceivedRequest, VerifyFields } from "../../rules/verify/contract.ts";
import { ReceivedBody, readBodyField, receiveRequest } from "../../rules/verify/received-request.ts";
import { signingMethodOf } from "../../rules/verify/signing-method.ts";
import { readUnverifiedEventId } from "../../rules/verify/unverified-event-id.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import { makeHeaders } from "./signature.ts";
import { simulateInput } from "./step.ts";

export const guessInput = fields({
  body: Type.String({ maxLength: MAX_RECEIVER_BODY_BYTES, description: "the request's body, as text" }),
  contentType: simulateInput.properties.contentType,
  headers: Type.Optional(
    Type.Record(Type.String(), Type.String({ maxLength: 4_000 }), {
      maxProperties: 60,
      description: "the headers of the request",
    }),
  ),
  search: simulateInput.properties.search,
  url: Type.Optional(
    Type.String({
      maxLength: 2_000,
      description:
        "the URL without its query, for a sender that signs it; absent: the receiver URL of the guessed relay",
    }),
  ),
  secret: Type.Optional(
    orNull(
      Type.String({
        maxLength: 20_000,
        description: "the sender's secret or public key, to try the recipe with",
      }),
    ),
  ),
});
type GuessInput = Static<typeof guessInput>;

const valueGuess = Type.Object({
  path: Type.String({ description: "dotted path in the body" }),
  value: Type.String({ description: "its value, cut at 200 characters" }),
  why: Type.String(),
});

export const guessView = Type.Object({
  sender: orNull(Type.Object({ name: Type.String(), title: Type.String(), why: Type.String() })),
  verify: Type.Object({
    value: Type.Unsafe<VerifyFields>(Type.Object({ scheme: Type.String() })),
    why: Type.String(),
    verified: orNull(
      Type.Boolean({ description: "whether the given secret verifies the request; null: it was not tried" }),
    ),
  }),
  eventType: orNull(valueGuess),
  eventId: orNull(
    Type.Object({
      path: orNull(Type.String({ description: "dotted path in the body; null: a header has the ID" })),
      header: orNull(
        Type.String({
          description: "the header that has the ID, which Relay uses without a map; null: the body has it",
        }),
      ),
      value: Type.String(),
      why: Type.String(),
    }),
  ),
  person: orNull(
    Type.Object({
      ...valueGuess.properties,
      name: Type.String({ description: "the name of map for it: person_email or person_id" }),
    }),
  ),
  customer: orNull(valueGuess),
  definition: Type.Unsafe<JsonObject>({
    type: "object",
    description: "the start of a relay: name, trigger, and an empty list of actions",
  }),
});
export type RequestGuess = Static<typeof guessView>;

interface GuessPlace {
  nowMs: number;
  /** Returns the receiver URL of a relay. */
  urlOf(name: string): string;
  /** Reports whether the environment has a relay of this name. */
  isTaken(name: string): boolean;
}

/** Guesses the start of a relay. Throws `invalid_input` for a header that HTTP does not have, or a body that is too large. */
export async function guessRequest(input: GuessInput, place: GuessPlace): Promise<RequestGuess> {
  if (utf8Bytes(input.body) > MAX_RECEIVER_BODY_BYTES)
    throw new Refusal(
      "invalid_input",
      `body is longer than the ${MAX_RECEIVER_BODY_BYTES} bytes that a receiver accepts: give a shorter request.`,
    );
  const read = readInput(input);
  const { headers } = read;
  const callAt = (receiverUrl: string): ReceivedRequest =>
    receiveRequest({ ...read, receiverUrl, nowMs: place.nowMs });
  const received = callAt(input.url ?? "");
  received.parsed();
  await yieldToEventLoop();
  const names = [...headers.keys()];
  const known = guessSender(received, names);
  const sender = known?.sender ?? null;
  const list = [...headers];
  const guess =
    sender === null
      ? guessRecipe(received, list)
      : { verify: { ...sender.verify }, why: `${sender.title} proves its requests in this way.` };
  const name = makeName(sender, guess.verify, received, place);
  const secret = input.secret?.trim() ?? "";
  const tried =
    secret !== "" && hasProof(guess.verify, received, input)
      ? await tryGivenSecret(guess, {
          received: input.url === undefined ? callAt(place.urlOf(name)) : received,
          headers: list,
          secret,
          isOpen: sender === null,
          pause: yieldToEventLoop,
        })
      : { ...guess, verified: null };
  await yieldToEventLoop();
  const { verify, ...reason } = tried;
  const meaning = guessMeaning(sender, verify, received);
  return {
    sender: known === null ? null : { name: known.sender.name, title: known.sender.title, why: known.why },
    verify: { value: verify, ...reason },
    ...meaning,
    definition: makeDefinition(name, verify, sender, meaning, received.parsed()),
  };
}

function readInput({ body, contentType, headers: given = {}, search = "" }: GuessInput) {
  const headers = makeHeaders(given);
  const likely = /^\s*[[{]/.test(body.slice(0, 100)) ? "application/json" : FORM_TYPE;
  const type = contentType ?? headers.get("content-type") ?? likely;
  headers.set("content-type", type);
  const bytes = new ReceivedBody(Buffer.from(body), type, () => undefined);
  return { headers, body: bytes, search: search === "" || search.startsWith("?") ? search : `?${search}` };
}

const FORM_TYPE = "application/x-www-form-urlencoded";

/** Reports whether the request has anything that a secret could verify: headers, a query, or a signature in its body. */
function hasProof(
  verify: VerifyFields,
  received: ReceivedRequest,
  { headers, search = "" }: GuessInput,
): boolean {
  if (headers !== undefined || search !== "") return true;
  const { signatureField } = signingMethodOf(verify).fields;
  return signatureField !== undefined && readText(received.parsed(), signatureField) !== null;
}

type Meaning = Pick<RequestGuess, "eventType" | "eventId" | "person" | "customer">;

/** Guesses what the values mean: first by the sender's own map, then by their names and forms. */
function guessMeaning(sender: Sender | null, verify: VerifyFields, received: ReceivedRequest): Meaning {
  const parsed = received.parsed();
  const found: BodyGuesses = parsed.ok
    ? guessValues(parsed.value, parsed.form !== null)
    : { eventType: null, eventId: null, email: null, personId: null, customer: null };
  const own = (path: string | null | undefined, why: string): ValueGuess | null => {
    const value = path == null ? null : readText(parsed, path);
    return path == null || value === null
      ? null
      : { path, value: cut(value), why: `${why}${warnFixedIndex(path)}` };
  };
  const { title = "", map = {}, personEmail = null } = sender ?? {};
  const hasOwnType = sender === null || map.event_type !== undefined;
  const email = own(personEmail, `${title} writes the person's address there.`) ?? found.email;
  return {
    eventType:
      own(map.event_type, `${title} names the type of an event there.`) ??
      (hasOwnType ? found.eventType : null),
    eventId:
      asBodyId(own(map.event_id, `${title} identifies an event by it.`)) ??
      findHeaderId(verify, received) ??
      (sender === null ? asBodyId(found.eventId) : null),
    person: personOf(found.personId, email, verify),
    customer: found.customer,
  };
}

function asBodyId(guess: ValueGuess | null): RequestGuess["eventId"] {
  return guess === null ? null : { ...guess, header: null };
}

/** Finds the header from which the scheme takes the ID of an event. */
function findHeaderId(verify: VerifyFields, received: ReceivedRequest): RequestGuess["eventId"] {
  const value = readUnverifiedEventId(verify, received);
  if (value === null || value === "") return null;
  const { requiredHeaders } = signingMethodOf(verify);
  const header = [...requiredHeaders, "webhook-id", "svix-id", "hooks-id"].find(
    (name) => received.header(name) === value,
  );
  if (header === undefined) return null;
  const why = `The header ${header} identifies the message, and Relay uses it where map has no event_id.`;
  return { path: null, header, value: cut(value), why };
}

function personOf(
  id: ValueGuess | null,
  email: ValueGuess | null,
  verify: VerifyFields,
): RequestGuess["person"] {
  if (id !== null) return { ...id, name: "person_id" };
  if (email === null) return null;
  const trigger = { kind: "receiver", verify, map: { person_email: email.path } };
  if (!arrivesUnsigned(trigger)) return { ...email, name: "person_email" };
  const why = `${email.why} The sender does not sign this value, so the relay can act on the address only with trustUnsignedEvents.`;
  return { ...email, why, name: "person_email" };
}

/** Makes the start of a relay. It maps what was found, and matches the type of this event. */
function makeDefinition(
  name: string,
  verify: VerifyFields,
  sender: Sender | null,
  { eventType, eventId, person, customer }: Meaning,
  parsed: ParsedBody,
): JsonObject {
  const map = new Map<string, string>();
  const add = (key: string, path: string | null | undefined): void => {
    if (path != null && !map.has(key) && ![...map.values()].includes(path)) map.set(key, path);
  };
  add("event_id", eventId?.path);
  add("event_type", eventType?.path);
  const isUnsigned =
    person !== null && arrivesUnsigned({ kind: "receiver", verify, map: { [person.name]: person.path } });
  if (person !== null) add(isUnsigned && person.name === "person_email" ? "email" : person.name, person.path);
  for (const [key, path] of Object.entries(sender?.map ?? {}))
    if (readText(parsed, path) !== null) add(key, path);
  add("customer_id", customer?.path);
  const when = makeWhen(sender, map, parsed);
  return {
    name,
    trigger: {
      kind: "receiver",
      verify: { ...verify },
      map: Object.fromEntries(map),
      ...(Object.keys(when).length === 0 ? {} : { when }),
    },
    actions: [],
  };
}

/** Matches this event's type. For a sender without types, it matches the sender's own `when` where this event fits it. */
function makeWhen(
  sender: Sender | null,
  map: ReadonlyMap<string, string>,
  parsed: ParsedBody,
): Record<string, string> {
  const names = map.has("event_type") ? ["event_type"] : Object.keys(sender?.when ?? {});
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = readText(parsed, map.get(name) ?? "");
      const isWanted = name === "event_type" || [sender?.when[name] ?? []].flat().includes(value ?? "");
      return value === null || !isWanted ? [] : [[name, value]];
    }),
  );
}

/** Words of headers and of HTTP libraries, which name no sender. */
const PLAIN_WORD =
  /^(x|webhooks?|hooks?|hub|sign|sig|signature|hmac|hash|sha\d*|v?\d+|token|secret|auth|authorization|api|key|mozilla|curl|axios|node|fetch|undici|python|requests|okhttp|go|http|client|java|ruby|php|guzzle|guzzlehttp|bun)$/;
const MAX_NAME_CHARS = 50;

/** Makes a free name: that of the sender, or a word of its signature header or of its user agent. */
function makeName(
  sender: Sender | null,
  verify: VerifyFields,
  received: ReceivedRequest,
  place: GuessPlace,
): string {
  const [agent = ""] = (received.header("user-agent") ?? "").split(/[/ ]/);
  const words = (text: string): string =>
    text
      .toLowerCase()
      .split(/[^a-z0-9]+/)
      .filter((word) => word !== "" && !PLAIN_WORD.test(word))
      .join("-");
  const texts = [sender?.name ?? "", words(String(verify.header ?? "")), words(agent)];
  const fit = texts
    .map((text) => text.slice(0, MAX_NAME_CHARS).replace(/-+$/, ""))
    .find((text) => RELAY_NAME.test(text));
  const base = fit ?? "new-relay";
  let name = base;
  for (let next = 2; place.isTaken(name); next++) name = `${base}-${next}`;
  return name;
}

function readText(parsed: ParsedBody, text: string): string | null {
  const path = parsePath(text);
  return path === null ? null : scalarText(readBodyField(parsed, path) as Json | undefined);
}

function cut(value: string): string {
  return value.slice(0, MAX_SHOWN_CHARS);
}

const MAX_SHOWN_CHARS = 200;
