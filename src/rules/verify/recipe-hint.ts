/**
 * How a relay verifies, whatever its scheme, in the words of a recipe; and a signature or token that fits another way, told by what the
 * relay's definition, its secret or its URL would have to be. It names fields, headers and secrets by their names, never by a value.
 */
import type { Encoding } from "../../base/text.ts";
import { ADYEN_PAYLOAD, ADYEN_SIGNATURE } from "./adyen.ts";
import type { VerifyFields } from "./contract.ts";
import type { CarriedSignature, Place } from "./found-signature.ts";
import { findNamedSender, type NamedSender } from "./named-sender.ts";
import {
  type Algorithm,
  DEFAULT_ALGORITHM,
  DEFAULT_ENCODING,
  DEFAULT_SEPARATOR,
  namesPlaceholder,
  type SignatureFields,
  signedPayloadOf,
} from "./recipe.ts";
import { type Guess, HOOKS_PAYLOAD } from "./signed-payload-guess.ts";

/** How a secret's text becomes a key. */
export type Reading = "text" | "whsec" | "after_prefix" | "base64" | "hex" | "unquoted" | "prefixed";

/** A relay's way of verifying. */
export interface Way {
  scheme: string;
  /** Where the proof is looked for; the first is the one that is named. */
  headers: readonly string[];
  /** Headers that must be there beside it. */
  beside: readonly string[];
  fields: RecipeWords;
  algorithm: Algorithm;
  encoding: Encoding;
  payload: string;
  reading: Reading;
}

/** The fields of a recipe that say where and how a sender signs. */
type RecipeWords = Pick<
  SignatureFields,
  | "algorithm"
  | "header"
  | "signatureField"
  | "signatureKey"
  | "separator"
  | "timestampHeader"
  | "timestampKey"
  | "timestampField"
  | "toleranceSeconds"
  | "tokenField"
  | "signedPayload"
  | "encoding"
>;

const PROCESSOR: RecipeWords = {
  header: "processor-signature",
  signatureKey: "v1",
  timestampKey: "t",
  signedPayload: "{timestamp}.{body}",
};

/** The way of a definition's `verify`. */
export function wayOf(verify: VerifyFields): Way {
  switch (verify.scheme) {
    case "processor":
      return { ...recipeWay("processor", PROCESSOR), headers: ["processor-signature", "stripe-signature"] };
    case "hooks":
      return {
        ...recipeWay("hooks", { header: "webhook-signature", encoding: "base64" }),
        headers: ["webhook-signature", "hooks-signature", "svix-signature"],
        payload: HOOKS_PAYLOAD,
        reading: "whsec",
      };
    case "shared_token":
      return recipeWay("shared_token", { header: tokenPlaces(verify).header });
    case "adyen":
      return {
        ...recipeWay("adyen", { signatureField: ADYEN_SIGNATURE, encoding: "base64" }),
        payload: ADYEN_PAYLOAD,
        reading: "hex",
      };
    default: {
      const sender = findNamedSender(verify.scheme);
      return sender === null ? recipeWay("signature", verify as RecipeWords) : namedWay(sender);
    }
  }
}

function namedWay({ name, signatures, signatureKey, timestamp, id, ...sender }: NamedSender): Way {
  const { algorithm, encoding, toleranceSeconds, payload } = sender;
  const [header] = signatures;
  const key = signatureKey === undefined ? {} : { signatureKey };
  const words = { algorithm, encoding, header, ...key, timestampHeader: timestamp, toleranceSeconds };
  const beside = [timestamp, ...(id === undefined ? [] : [id])];
  return { ...recipeWay(name, words), headers: signatures, beside, payload };
}

function recipeWay(scheme: string, words: RecipeWords): Way {
  const { algorithm = DEFAULT_ALGORITHM, encoding = DEFAULT_ENCODING, header, timestampHeader } = words;
  const payload = signedPayloadOf({ scheme: "signature", ...words });
  const fields = { ...words, algorithm, encoding, signedPayload: payload };
  return {
    scheme,
    headers: header === undefined ? [] : [header],
    beside: timestampHeader === undefined ? [] : [timestampHeader],
    fields,
    algorithm,
    encoding,
    payload,
    reading: "text",
  };
}

function tokenPlaces(verify: VerifyFields): { header: string; query: string } {
  const { header = "x-webhook-token", query = "token" } = verify as { header?: string; query?: string };
  return { header, query };
}

/** A signature over a guessed text that one reading of one secret verifies. */
export interface Fit {
  signature: CarriedSignature;
  guess: Guess;
  algorithm: Algorithm;
  /** What the secret is called; null: the relay's own. */
  called: string | null;
  reading: Reading;
}

/** What has to be otherwise for the call to verify, one phrase each; none: nothing has to. null: the fit says nothing that can be named. */
export function listChanges(way: Way, fit: Fit): string[] | null {
  const { guess, called } = fit;
  const how = listSchemeChanges(way, fit);
  if (how === null) return null;
  const rest = [guess.url, guess.body].flatMap((differs) => differs ?? []);
  return [
    ...how.changes,
    ...rest,
    ...tellReading(how.reading, fit.reading),
    ...(called === null ? [] : [called]),
  ];
}

function listSchemeChanges(way: Way, fit: Fit): { changes: string[]; reading: Reading } | null {
  const { scheme } = fit.guess;
  if (scheme !== null) {
    const named = wayOf({ scheme });
    if (!isSignedBy(named, fit)) return null;
    return { changes: way.scheme === scheme ? [] : [`scheme \`${scheme}\``], reading: named.reading };
  }
  const words = wordsOf(fit);
  if (words === null) return null;
  if (way.scheme === "processor" || way.scheme === "signature") {
    const header = way.headers.find((name) => sameName(name, words.header)) ?? way.fields.header;
    const own = header === undefined ? way.fields : { ...way.fields, header };
    const changes = compareWords(own, keepOwn(own, words));
    if (way.scheme === "signature" || changes.length === 0) return { changes, reading: "text" };
  }
  return { changes: ["scheme `signature`", ...compareWords({}, words)], reading: "text" };
}

/** Whether the signature stands where a scheme without fields looks for it, written as it reads it. */
function isSignedBy({ scheme, headers, fields, ...way }: Way, { signature, algorithm }: Fit): boolean {
  const { place, encoding } = signature;
  if (encoding !== way.encoding || algorithm !== way.algorithm) return false;
  if (scheme === "hooks") return place.behind === "version";
  if (place.field !== null) return place.field === fields.signatureField;
  const isHere = headers.some((name) => sameName(name, place.header ?? undefined));
  return isHere && place.behind === null && place.key === (fields.signatureKey ?? null);
}

/** The recipe that the fit would be; null where no recipe can say it. */
function wordsOf({ signature, guess, algorithm }: Fit): RecipeWords | null {
  const { header, field, key, separator, behind } = signature.place;
  if (behind !== null) return null;
  const stamp = guess.timestamp?.place ?? null;
  if (stamp !== null && (stamp.behind !== null || (stamp.key !== null && stamp.header !== header)))
    return null;
  return {
    ...(algorithm === DEFAULT_ALGORITHM ? {} : { algorithm }),
    ...(header === null ? {} : { header }),
    ...(field === null ? {} : { signatureField: field }),
    ...(key === null ? {} : { signatureKey: key }),
    ...(separator === null ? {} : { separator }),
    ...stampWords(stamp),
    signedPayload: guess.payload,
    ...(signature.encoding === DEFAULT_ENCODING ? {} : { encoding: signature.encoding }),
  };
}

/** With what of the relay's own recipe may stay: another signed text leaves no room for what it does not name. */
function keepOwn(own: RecipeWords, fit: RecipeWords): RecipeWords {
  const { toleranceSeconds, tokenField, separator } = own;
  const signsToken = namesPlaceholder(fit.signedPayload ?? "", "token");
  const isTimed = namesPlaceholder(fit.signedPayload ?? "", "timestamp");
  return {
    ...(isTimed && toleranceSeconds !== undefined ? { toleranceSeconds } : {}),
    ...(signsToken && tokenField !== undefined ? { tokenField } : {}),
    // A header of one part is not split, whatever the separator.
    ...(fit.signatureKey !== undefined && separator !== undefined ? { separator } : {}),
    ...fit,
  };
}

function stampWords(place: Place | null): RecipeWords {
  if (place === null) return {};
  if (place.field !== null) return { timestampField: place.field };
  return place.key !== null ? { timestampKey: place.key } : { timestampHeader: place.header ?? "" };
}

const NAMED = [
  "algorithm",
  "header",
  "signatureField",
  "signatureKey",
  "separator",
  "timestampHeader",
  "timestampKey",
  "timestampField",
  "toleranceSeconds",
  "signedPayload",
  "tokenField",
  "encoding",
] as const satisfies (keyof RecipeWords)[];

const DEFAULTS: RecipeWords = {
  algorithm: DEFAULT_ALGORITHM,
  encoding: DEFAULT_ENCODING,
};

function compareWords(own: RecipeWords, fit: RecipeWords): string[] {
  return NAMED.flatMap((name) => {
    const [was, is] = [own[name] ?? DEFAULTS[name], fit[name] ?? DEFAULTS[name]];
    if (was === is || (name.endsWith("eader") && sameName(String(was), String(is)))) return [];
    if (name === "separator" && was === undefined && is === DEFAULT_SEPARATOR) return [];
    return is === undefined ? [`no ${name}`] : [`${name} \`${is}\``];
  });
}

function sameName(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && one.toLowerCase() === other?.toLowerCase();
}

const READINGS: Readonly<Record<Reading, string>> = {
  text: "the secret as it is, without decoding it",
  whsec: "the secret decoded from the base64 behind whsec_, which a recipe does not do",
  after_prefix: "the secret without whsec_ in front of it",
  base64: "the secret decoded from base64, which a recipe does not do",
  hex: "the secret decoded from hex, which a recipe does not do",
  unquoted: "the secret without the quotation marks around it",
  prefixed: "the secret with whsec_ in front of it",
};

function tellReading(needed: Reading, used: Reading): string[] {
  if (used === needed) return [];
  if (needed === "whsec" && used === "base64") return [READINGS.prefixed];
  return [READINGS[used]];
}

/** Where a secret itself stood in the call. */
interface TokenFit {
  place: Place | null;
  query: string | null;
  called: string | null;
  /** Whether the secret as it is stored begins with a word that the call left out. */
  withoutWord: boolean;
}

/** What has to be otherwise for the token to verify, one phrase each. */
export function listTokenChanges(
  verify: VerifyFields,
  { place, query, called, withoutWord }: TokenFit,
): string[] {
  const own = verify.scheme === "shared_token" ? tokenPlaces(verify) : null;
  const header = place?.header ?? null;
  const changes = own === null ? ["scheme `shared_token`"] : [];
  if (header !== null && !sameName(own?.header, header)) changes.push(`header \`${header}\``);
  if (query !== null && own?.query !== query) changes.push(`query \`${query}\``);
  if (place?.behind === "word")
    changes.push(`the secret stored together with the word that header \`${header}\` has in front of it`);
  if (withoutWord) changes.push("the secret stored without the word in front of it");
  return called === null ? changes : [...changes, called];
}
