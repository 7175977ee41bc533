/**
 * A signature or token that verifies in another way than the relay checks, described as changes to the relay's definition, secret or URL.
 * It names fields, headers and secrets, and never shows a value of them.
 */
import type { VerifyFields } from "./contract.ts";
import {
  type Algorithm,
  DEFAULT_ALGORITHM,
  DEFAULT_ENCODING,
  DEFAULT_SEPARATOR,
  namesPlaceholder,
} from "./recipe.ts";
import { tokenPlacesOf } from "./shared-token.ts";
import { isSameHeader, type SignatureCandidate, type SignaturePlace } from "./signature-candidate.ts";
import type { SignedTextGuess } from "./signed-text-guess.ts";
import { type KeyForm, type RecipeFields, type SigningMethod, signingMethodOf } from "./signing-method.ts";

/** A signature over a guessed text that one form of one secret verifies. */
export interface SignatureFit {
  signature: SignatureCandidate;
  guess: SignedTextGuess;
  algorithm: Algorithm;
  /** The label of the secret; null: the relay's own. */
  label: string | null;
  keyForm: KeyForm;
}

/** Returns the changes with which the request verifies, one phrase each. null: no phrase can name them. */
export function listChanges(method: SigningMethod, fit: SignatureFit): string[] | null {
  const { guess, label } = fit;
  const scheme = listSchemeChanges(method, fit);
  if (scheme === null) return null;
  return [
    ...scheme.changes,
    ...[guess.url, guess.body, formatKeyForm(scheme.keyForm, fit.keyForm), label].flatMap((one) => one ?? []),
  ];
}

function listSchemeChanges(
  method: SigningMethod,
  fit: SignatureFit,
): { changes: string[]; keyForm: KeyForm } | null {
  const { scheme } = fit.guess;
  if (scheme !== null) {
    const named = signingMethodOf({ scheme });
    if (!isSignedBy(named, fit)) return null;
    return { changes: method.scheme === scheme ? [] : [`scheme \`${scheme}\``], keyForm: named.keyForm };
  }
  const recipe = recipeOf(fit);
  if (recipe === null) return null;
  if (method.scheme === "processor" || method.scheme === "signature") {
    const header = method.headers.find((name) => isSameHeader(name, recipe.header)) ?? method.fields.header;
    const own = header === undefined ? method.fields : { ...method.fields, header };
    const changes = compareRecipes(own, keepOwnFields(own, recipe));
    if (method.scheme === "signature" || changes.length === 0) return { changes, keyForm: "text" };
  }
  return { changes: ["scheme `signature`", ...compareRecipes({}, recipe)], keyForm: "text" };
}

/** Returns the `verify` of a definition with which the unchanged request verifies. null: no definition can express the fit. */
export function verifyOfFit(fit: SignatureFit): VerifyFields | null {
  const { guess, keyForm } = fit;
  if (guess.url !== null || guess.body !== null) return null;
  if (guess.scheme !== null) {
    const method = signingMethodOf({ scheme: guess.scheme });
    return isSignedBy(method, fit) && keyForm === method.keyForm ? { scheme: guess.scheme } : null;
  }
  const recipe = keyForm === "text" ? recipeOf(fit) : null;
  return recipe === null ? null : { scheme: "signature", ...recipe };
}

/** Reports whether a scheme without fields would find the signature in its place and read its encoding. */
function isSignedBy(method: SigningMethod, { signature, algorithm }: SignatureFit): boolean {
  const { place, encoding } = signature;
  if (encoding !== method.encoding || algorithm !== method.algorithm) return false;
  if (method.scheme === "hooks") return place.prefix === "version";
  if (place.field !== null) return place.field === method.fields.signatureField;
  const isInHeader = method.headers.some((name) => isSameHeader(name, place.header));
  return isInHeader && place.prefix === null && place.key === (method.fields.signatureKey ?? null);
}

/** The recipe that verifies the fit; null: no recipe can express it. */
function recipeOf({ signature, guess, algorithm }: SignatureFit): RecipeFields | null {
  const { header, field, key, separator, prefix } = signature.place;
  if (prefix !== null) return null;
  const time = guess.timestamp?.place ?? null;
  if (time !== null && (time.prefix !== null || (time.key !== null && time.header !== header))) return null;
  return {
    ...(algorithm === DEFAULT_ALGORITHM ? {} : { algorithm }),
    ...(header === null ? {} : { header }),
    ...(field === null ? {} : { signatureField: field }),
    ...(key === null ? {} : { signatureKey: key }),
    ...(separator === null ? {} : { separator }),
    ...timestampFields(time),
    signedPayload: guess.payload,
    ...(signature.encoding === DEFAULT_ENCODING ? {} : { encoding: signature.encoding }),
  };
}

function timestampFields(place: SignaturePlace | null): RecipeFields {
  if (place === null) return {};
  if (place.field !== null) return { timestampField: place.field };
  return place.key !== null ? { timestampKey: place.key } : { timestampHeader: place.header ?? "" };
}

/** Adds the relay's own fields that the fit does not determine and its signed payload still allows. */
function keepOwnFields(own: RecipeFields, fit: RecipeFields): RecipeFields {
  const { toleranceSeconds, tokenField, separator } = own;
  const signsToken = namesPlaceholder(fit.signedPayload ?? "", "token");
  const isTimed = namesPlaceholder(fit.signedPayload ?? "", "timestamp");
  return {
    ...(isTimed && toleranceSeconds !== undefined ? { toleranceSeconds } : {}),
    ...(signsToken && tokenField !== undefined ? { tokenField } : {}),
    // A header with one part is not split, so its separator has no effect.
    ...(fit.signatureKey !== undefined && separator !== undefined ? { separator } : {}),
    ...fit,
  };
}

/** The compared fields, in the order in which a sentence lists them. */
const COMPARED_FIELDS = [
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
] as const satisfies (keyof RecipeFields)[];

const DEFAULTS: RecipeFields = { algorithm: DEFAULT_ALGORITHM, encoding: DEFAULT_ENCODING };

function compareRecipes(own: RecipeFields, fit: RecipeFields): string[] {
  return COMPARED_FIELDS.flatMap((name) => {
    const before = own[name] ?? DEFAULTS[name];
    const after = fit[name] ?? DEFAULTS[name];
    if (before === after || (name.endsWith("eader") && isSameHeader(String(before), String(after))))
      return [];
    if (name === "separator" && before === undefined && after === DEFAULT_SEPARATOR) return [];
    return after === undefined ? [`no ${name}`] : [`${name} \`${after}\``];
  });
}

const KEY_FORMS: Readonly<Record<KeyForm, string>> = {
  text: "the secret used directly, without decoding it",
  whsec: "the secret decoded from the base64 after whsec_, which a recipe does not do",
  after_prefix: "the secret without whsec_ in front of it",
  base64: "the secret decoded from base64, which a recipe does not do",
  hex: "the secret decoded from hex, which a recipe does not do",
  unquoted: "the secret without the quotation marks around it",
  prefixed: "the secret with whsec_ in front of it",
};

function formatKeyForm(needed: KeyForm, used: KeyForm): string | null {
  if (used === needed) return null;
  return needed === "whsec" && used === "base64" ? KEY_FORMS.prefixed : KEY_FORMS[used];
}

/** A place in the request that held a secret itself: a header, or a query parameter. */
interface TokenFit {
  place: SignaturePlace | null;
  query: string | null;
  label: string | null;
  /** True if the stored secret begins with a word, such as `Bearer`, that the request left out. */
  withoutWord: boolean;
}

/** Returns the changes with which the token verifies, one phrase each. */
export function listTokenChanges(
  verify: VerifyFields,
  { place, query, label, withoutWord }: TokenFit,
): string[] {
  const own = verify.scheme === "shared_token" ? tokenPlacesOf(verify) : null;
  const header = place?.header ?? null;
  const changes = own === null ? ["scheme `shared_token`"] : [];
  if (header !== null && !isSameHeader(header, own?.header)) changes.push(`header \`${header}\``);
  if (query !== null && own?.query !== query) changes.push(`query \`${query}\``);
  if (place?.prefix === "word")
    changes.push(`the secret stored together with the word before it in header \`${header}\``);
  if (withoutWord) changes.push("the secret stored without the word before it");
  return label === null ? changes : [...changes, label];
}
