/**
 * Lists the texts that a sender may have signed where the recipe's own did not verify. It varies the usual signed payloads, the receiver
 * URL as the sender may know it, and the body as it may have been before a proxy rewrote it. It verifies nothing.
 */
import { type Json, measureJson, writeJson } from "../../base/json.ts";
import { ADYEN_PAYLOAD } from "./adyen.ts";
import { HOOKS_PAYLOAD } from "./hooks.ts";
import { NAMED_SENDERS, type NamedSender, signsUrl } from "./named-sender.ts";
import { parseSignedPayload, type SignedPayload } from "./recipe.ts";
import { type HeaderList, placeOf, type TimestampCandidate } from "./signature-candidate.ts";
import { readIsoTime, type SignedText, trimHttpSpace } from "./signature-proof.ts";

/** The payloads that the search tries after the relay's own, the most usual first. */
const USUAL_PAYLOADS = [
  "{body}",
  "{timestamp}.{body}",
  "{timestamp}{body}",
  "{timestamp}:{body}",
  "v0:{timestamp}:{body}",
  "{url}{body}",
  "{url}.{body}",
  "{url}{params}",
  "{timestamp}.{url}.{body}",
];
const ID_HEADERS = ["webhook-id", "svix-id", "hooks-id"];
/** A larger body is not rewritten. */
export const MAX_REWRITTEN_BYTES = 32 * 1024;
const MAX_INDENTED_DEPTH = 12;

/** A text that the sender may have signed. */
export interface SignedTextGuess {
  payload: string;
  /** The scheme that signs this text. null: a recipe does. */
  scheme: string | null;
  text: SignedText;
  timestamp: TimestampCandidate | null;
  /** The difference of the URL or the body from the relay's, completing "it verifies with …". null: not at all. */
  url: string | null;
  body: string | null;
}

interface GuessInput {
  own: string;
  /** The signed values of a notification item; only the scheme adyen has them. */
  item: Uint8Array | null;
  headers: HeaderList;
  timestamps: readonly TimestampCandidate[];
  body: Uint8Array;
  /** The bytes of {params} and {token}; null where the request has none. */
  params: Uint8Array | null;
  token: Uint8Array | null;
  json: Json | undefined;
  receiverUrl: string;
  search: string;
}

interface Variant<Value> {
  value: Value;
  change: string | null;
}

/** Lists every guess, the relay's own signed text first. */
export function guessSignedTexts(from: GuessInput): SignedTextGuess[] {
  const urls = guessUrls(from);
  const plain: Variant<Uint8Array> = { value: from.body, change: null };
  const bodies = [plain, ...rewriteBody(from)];
  const isOwn = ({ payload }: NamedSender): boolean => payload === from.own;
  const named = NAMED_SENDERS.toSorted((one, other) => Number(isOwn(other)) - Number(isOwn(one)));
  const others = USUAL_PAYLOADS.filter((payload) => payload !== from.own);
  return [
    ...guessItem(from),
    ...guessPayload(from, from.own, urls, bodies),
    ...named.flatMap((sender) => guessNamed(from, sender, urls, isOwn(sender) ? bodies : [plain])),
    ...others.flatMap((payload) => guessPayload(from, payload, urls, [plain])),
    ...guessHooks(from),
  ];
}

function guessItem({ item }: GuessInput): SignedTextGuess[] {
  const text = item === null ? null : { head: "", tail: item };
  const rest = { payload: ADYEN_PAYLOAD, scheme: "adyen", timestamp: null, url: null, body: null };
  return text === null ? [] : [{ ...rest, text }];
}

/** Guesses what a named sender signs, where the request has its headers. */
function guessNamed(
  { headers }: GuessInput,
  sender: NamedSender,
  urls: readonly Variant<string>[],
  bodies: readonly Variant<Uint8Array>[],
): SignedTextGuess[] {
  const find = (wanted: string | undefined): string | null =>
    headers.find(([name]) => name.toLowerCase() === wanted)?.[1] ?? null;
  const time = trimHttpSpace(find(sender.timestamp) ?? "");
  const atMs = sender.time === "iso" ? readIsoTime(time) : null;
  const isTime = sender.time === "iso" ? atMs !== null : /^\d{1,13}$/.test(time);
  const id = find(sender.id) ?? "";
  if (!isTime || (sender.id !== undefined && id === "")) return [];
  const timestamp = { place: placeOf(sender.timestamp), digits: time, ...(atMs === null ? {} : { atMs }) };
  const places = signsUrl(sender) ? urls : [{ value: "", change: null }];
  return bodies.flatMap((body) =>
    places.map((url) => ({
      payload: sender.payload,
      scheme: sender.name,
      text: sender.makeText({ id, time, url: url.value, body: body.value }),
      timestamp,
      url: url.change,
      body: body.change,
    })),
  );
}

function guessPayload(
  from: GuessInput,
  payload: string,
  urls: readonly Variant<string>[],
  bodies: readonly Variant<Uint8Array>[],
): SignedTextGuess[] {
  const parsed = parseSignedPayload(payload);
  if ("problems" in parsed) return [];
  const tails = { body: bodies, params: plainVariants(from.params), token: plainVariants(from.token) }[
    parsed.tail
  ];
  const stamps = parsed.usesTimestamp ? from.timestamps : [null];
  const places = parsed.usesUrl ? urls : [{ value: "", change: null }];
  return tails.flatMap((tail) =>
    places.flatMap((url) =>
      stamps.map((timestamp) => ({
        payload,
        scheme: null,
        text: { head: renderHead(parsed, timestamp?.digits ?? "", url.value), tail: tail.value },
        timestamp,
        url: url.change,
        body: tail.change,
      })),
    ),
  );
}

function plainVariants(value: Uint8Array | null): Variant<Uint8Array>[] {
  return value === null ? [] : [{ value, change: null }];
}

function renderHead({ head }: SignedPayload, digits: string, url: string): string {
  return head
    .map((piece) => (piece === "timestamp" ? digits : piece === "url" ? url : piece.literal))
    .join("");
}

function guessHooks({ headers, timestamps, body }: GuessInput): SignedTextGuess[] {
  const ids = headers.filter(([name]) => ID_HEADERS.includes(name.toLowerCase()));
  return ids.flatMap(([, id]) =>
    timestamps.map((timestamp) => ({
      payload: HOOKS_PAYLOAD,
      scheme: "hooks",
      text: { head: `${id}.${timestamp.digits}.`, tail: body },
      timestamp,
      url: null,
      body: null,
    })),
  );
}

/**
 * Lists the receiver URL as the sender may know it. A phrase names the header that gives another host and never shows its value. A
 * request cannot verify by such a URL.
 */
function guessUrls({ receiverUrl, search, headers }: GuessInput): Variant<string>[] {
  const variants = new Map<string, string | null>([[receiverUrl, null]]);
  const add = (url: string, change: string): void => {
    if (!variants.has(url)) variants.set(url, change);
  };
  const vary = (url: string, as: string): void => {
    if (as !== "") add(url, `the receiver URL ${as}`);
    const and = (more: string) => `the receiver URL ${as === "" ? more : `${as}, ${more}`}`;
    if (search !== "") add(`${url}${search}`, and("and everything after it, including the query string"));
    const swapped = url.startsWith("https:") ? `http:${url.slice(6)}` : url.replace(/^http:/, "https:");
    add(swapped, and(url.startsWith("https:") ? "with http instead of https" : "with https instead of http"));
    add(`${url}/`, and("and a slash at its end"));
    const named = /^(https?):\/\/([^/:]+|\[[^\]]+\])(:\d+)?(\/.*)$/.exec(url);
    if (named === null) return;
    const [, protocol, host, port, path] = named;
    if (port !== undefined) add(`${protocol}://${host}${path}`, and("without its port"));
    else
      add(
        `${protocol}://${host}:${protocol === "https" ? 443 : 80}${path}`,
        and("with its port written out"),
      );
  };
  vary(receiverUrl, "");
  const path = receiverUrl.replace(/^[a-z]+:\/\/[^/]*/, "");
  const protocol = /^(https?):/.exec(receiverUrl)?.[1] ?? "https";
  for (const name of ["host", "x-forwarded-host"]) {
    const value = headers.find(([one]) => one.toLowerCase() === name)?.[1];
    if (value === undefined || !/^[A-Za-z0-9.:[\]-]{1,255}$/.test(value)) continue;
    vary(`${protocol}://${value}${path}`, `with the host of the header ${name}`);
  }
  return [...variants].map(([value, change]) => ({ value, change }));
}

/** Lists the body as it may have been before something rewrote its JSON or changed its end. */
function rewriteBody({ body, json }: GuessInput): Variant<Uint8Array>[] {
  if (body.byteLength > MAX_REWRITTEN_BYTES) return [];
  const received = Buffer.from(body).toString("latin1");
  const variants = new Map<string, string>();
  const add = (text: string, change: string): void => {
    if (text !== received && !variants.has(text)) variants.set(text, change);
  };
  add(`${received}\n`, "the body with a newline at its end");
  add(received.trimEnd(), "the body without the white space at its end");
  add(received.replaceAll("\r\n", "\n"), "the body with the line ends \\n instead of \\r\\n");
  if (json === undefined) return [...variants].map(toVariant);
  const compact = writeJson(json);
  for (const [text, how] of [
    [compact, "without white space"],
    [addSpaces(compact), "with a space after each colon and comma"],
    ...(isShallow(body) ? [[writeJson(json, 2), "indented by two spaces"] as const] : []),
  ] as const) {
    add(Buffer.from(text).toString("latin1"), `the body as JSON ${how}`);
  }
  return [...variants].map(toVariant);
}

/** Indenting a deeply nested body makes it hundreds of times as long. */
function isShallow(body: Uint8Array): boolean {
  return (
    measureJson(body, { depth: MAX_INDENTED_DEPTH, values: Number.POSITIVE_INFINITY }).depth <=
    MAX_INDENTED_DEPTH
  );
}

function toVariant([text, change]: [string, string]): Variant<Uint8Array> {
  return { value: Buffer.from(text, "latin1"), change };
}

/** Spaces compact JSON as Python's json.dumps does. */
function addSpaces(json: string): string {
  return json.replace(/("(?:[^"\\]|\\.)*")|([:,])/g, (_all, text, mark) => text ?? `${mark} `);
}
