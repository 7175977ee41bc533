/**
 * Tries a given secret on a guessed recipe. If the request does not verify, it searches for a recipe with which it does, within the limit of
 * work of the diagnosis. No secret is in a result.
 */
import { checkShape } from "../../base/check-shape.ts";
import { Refusal } from "../../base/refusal.ts";
import { readPastedSecret } from "../../platform/secret/secret-text.ts";
import type { ReceivedRequest, VerifyFields } from "../verify/contract.ts";
import { bindScheme } from "../verify/registry.ts";
import { sharedToken, tokenPlacesOf } from "../verify/shared-token.ts";
import { findTokens, type HeaderList } from "../verify/signature-candidate.ts";
import { diagnoseSignature, formatDiagnosis } from "../verify/signature-diagnosis.ts";
import { type KnownSecret, SignatureEvidence } from "../verify/signature-evidence.ts";
import { verifyOfFit } from "../verify/signature-fit.ts";
import { isSameText } from "../verify/signature-proof.ts";
import { tryKnownSecrets } from "../verify/signature-trial.ts";
import type { RecipeGuess } from "./guess-recipe.ts";

interface TriedRecipe extends RecipeGuess {
  verified: boolean;
}

interface Trial {
  received: ReceivedRequest;
  headers: HeaderList;
  secret: string;
  /** True if the guess may be replaced by another recipe. */
  isOpen: boolean;
  /** Lets other work run between two runs. */
  pause: () => Promise<void>;
}

const MAX_QUERY_FIELDS = 20;

/** Tries the secret on the guess, and returns the recipe that verifies, or the guess with the reason why it does not. */
export async function tryGivenSecret(guess: RecipeGuess, trial: Trial): Promise<TriedRecipe> {
  const { received, secret, isOpen } = trial;
  if (verifies(guess.verify, secret, received))
    return { ...guess, why: `${guess.why} The given secret verifies it.`, verified: true };
  const other = isOpen ? await findRecipe(guess.verify, trial) : null;
  if (other !== null) return { ...other, verified: true };
  return { ...guess, why: `${guess.why} ${await explain(guess.verify, trial)}`, verified: false };
}

/** Reports whether a relay with this secret would accept the request, however old it is. */
function verifies(verify: VerifyFields, secret: string, received: ReceivedRequest): boolean {
  const stored = readSecret(verify, secret);
  if (typeof stored === "string") return false;
  return (
    bindScheme(verify)
      ?.prepare(stored.text)
      .verify({ ...received, isOld: true }).verified === true
  );
}

/** Reads the secret as a save reads it. A string is the reason why it cannot be the secret of such a relay. */
function readSecret(verify: VerifyFields, secret: string): KnownSecret | string {
  try {
    const { kind, stored } = readPastedSecret(verify, secret);
    return { text: stored, isPublicKey: kind === "public_key", label: null };
  } catch (error) {
    if (error instanceof Refusal) return error.message;
    throw error;
  }
}

async function findRecipe(guessed: VerifyFields, trial: Trial): Promise<RecipeGuess | null> {
  const { received, secret } = trial;
  const token = findTokenPlace(trial);
  if (token !== null && verifies(token.verify, secret, received)) return token;
  const keyed = guessed.scheme === "signature" ? guessed : { scheme: "signature", header: "x-signature" };
  for (const algorithm of ["hmac-sha256", "ed25519", "ecdsa-p256-sha256"]) {
    const verify = { ...keyed, algorithm };
    const known = readSecret(verify, secret);
    if (typeof known === "string") continue;
    const { headers, pause } = trial;
    const evidence = new SignatureEvidence({ verify, received, headers, secrets: [known] });
    const { fits } = await tryKnownSecrets(evidence, pause);
    const found = fits.map(verifyOfFit).find((one) => one !== null && verifies(one, secret, received));
    if (found != null)
      return { verify: found, why: "Relay tried the usual recipes, and the given secret verifies this one." };
  }
  return null;
}

/** Finds the header or query parameter that has the secret itself, of those that a recipe can name. */
function findTokenPlace({ received, headers, secret }: Trial): RecipeGuess | null {
  const query = [...new URLSearchParams(received.search)].slice(0, MAX_QUERY_FIELDS);
  const places = [
    ...headers.map(([header, value]) => ({
      place: { header },
      noun: `header ${header}`,
      value: value.trim(),
    })),
    ...query.map(([name, value]) => ({ place: { query: name }, noun: `query parameter ${name}`, value })),
  ];
  const found = places
    .filter(({ value }) => isSameText(value, secret.trim()))
    .map(({ place, noun }) => ({ verify: { scheme: sharedToken.name, ...place }, noun }))
    .find(({ verify }) => checkShape(sharedToken.shape, verify).length === 0);
  return found === undefined
    ? null
    : { verify: found.verify, why: `The ${found.noun} has the given secret itself.` };
}

async function explain(verify: VerifyFields, { received, headers, secret, pause }: Trial): Promise<string> {
  const known = readSecret(verify, secret);
  if (typeof known === "string") return known;
  if (verify.scheme === "shared_token") {
    const { header } = tokenPlacesOf(verify);
    const isAfterWord = findTokens(headers).some(
      ({ place, text }) =>
        place.prefix === "word" && place.header === header && isSameText(text, secret.trim()),
    );
    if (isAfterWord)
      return `The header ${header} has the given secret after another word: store that word, a space and the secret as the secret.`;
  }
  const verdict = bindScheme(verify)
    ?.prepare(known.text)
    .verify({ ...received, isOld: true });
  if (verdict === undefined || verdict.verified) return "";
  const { cause, code, unmatched = false } = verdict;
  const diagnosis =
    code === "bad_signature"
      ? await diagnoseSignature(
          { verify, received: { ...received, isOld: true }, headers, secrets: [known] },
          pause,
        )
      : null;
  const more = diagnosis === null ? "" : formatDiagnosis(diagnosis, unmatched);
  return `With the given secret it does not verify: ${cause}${more}.`;
}
