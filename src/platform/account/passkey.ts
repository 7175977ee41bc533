/**
 * Passkeys (WebAuthn): key pairs whose private half stays in a person's authenticator. A passkey with user verification is two factors: the device,
 * and what unlocks it. The library reads and verifies what browsers send. Here are the rows, the challenges and the counters.
 */
import { hashToken, newId, newToken } from "../../base/id.ts";
import { isJsonObject } from "../../base/json.ts";
import { MINUTE_MS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { type Reader, UniqueViolation, type Writer } from "../../store/port.ts";
import { bytes, defineTable, integer, json, orNull, type RowOf, text } from "../../store/table.ts";
import type { Sealer } from "../secret/seal.ts";

const PASSKEY = defineTable({
  name: "passkey",
  key: ["id"],
  columns: {
    id: text(),
    ownerId: text(),
    name: text(),
    /** The authenticator's ID of the key pair, in base64url. */
    credentialId: text(),
    /** The public key as the authenticator sent it (COSE). */
    publicKey: bytes(),
    /** The authenticator's count of signatures; 0 from one that does not count. */
    counter: integer(),
    transports: json<string[]>(),
    createdAt: integer(),
    usedAt: orNull(integer()),
  },
});

type Passkey = RowOf<typeof PASSKEY>;

/** The library, which only a passkey loads. */
type PasskeyLibrary = typeof import("@simplewebauthn/server");
export function loadPasskeys(): Promise<PasskeyLibrary> {
  return import("@simplewebauthn/server");
}

/** The site that passkeys belong to, as browsers name it. */
export interface PasskeySite {
  rpId: string;
  origin: string;
}

/** An IP address in a URL, which has four decimal parts or brackets. */
const ADDRESS = /^(\d+(\.\d+){3}$|\[)/;

/** Returns the site of the base URL, or a sentence that says why it can have no passkeys. */
export function findPasskeySite(baseUrl: string): PasskeySite | string {
  const { hostname, protocol, origin } = new URL(baseUrl);
  if (ADDRESS.test(hostname))
    return `Browsers allow passkeys only for a name, and this server is at ${origin}: start it with --base-url and an https address with a name, or http://localhost.`;
  if (protocol === "https:" || hostname === "localhost") return { rpId: hostname, origin };
  return `Browsers allow passkeys only over https, and this server is at ${origin}: start it with --base-url and an https address.`;
}

const CHALLENGE_MS = 5 * MINUTE_MS;
const NONCE_CHARS = 22;
/** `<end>.<nonce>.<mac>`. Browsers return it unchanged in what they sign. */
const CHALLENGE = /^(\d{13,15})\.([A-Za-z0-9]{22})\.([A-Za-z0-9_-]{43})$/;

/**
 * Creates a challenge for one purpose and subject. It is signed and not stored, so that a stranger's requests write nothing. Its use is stored, so
 * that it works once.
 */
export function makeChallenge(sealer: Sealer, purpose: string, nowMs: number): string {
  const end = String(nowMs + CHALLENGE_MS);
  const nonce = newToken(NONCE_CHARS);
  return `${end}.${nonce}.${Buffer.from(signChallenge(sealer, purpose, end, nonce)).toString("base64url")}`;
}

function signChallenge(sealer: Sealer, purpose: string, end: string, nonce: string): Uint8Array {
  return sealer.digest(`passkey challenge\n${purpose}\n${end}\n${nonce}`);
}

/** Reports whether this server made the challenge for the purpose, and it has not ended. `given` is in base64url, as browsers return it. */
function isOwnChallenge(sealer: Sealer, purpose: string, given: string, nowMs: number): boolean {
  const [, end = "", nonce = "", mac = ""] =
    CHALLENGE.exec(Buffer.from(given, "base64url").toString("latin1")) ?? [];
  if (mac === "" || Number(end) <= nowMs) return false;
  return crypto.timingSafeEqual(Buffer.from(mac, "base64url"), signChallenge(sealer, purpose, end, nonce));
}

/** Uses a challenge up. Returns false if it was used before. */
async function useChallenge(tx: Writer, challenge: string, nowMs: number): Promise<boolean> {
  const sql =
    "INSERT INTO used_challenge (challenge_hash, expires_at) VALUES (?1, ?2) ON CONFLICT (challenge_hash) DO NOTHING";
  return (await tx.run(sql, hashToken(challenge), nowMs + CHALLENGE_MS)) > 0;
}

/** The result of a passkey. `counter`: the count of signatures went back, so a copy of the passkey may exist. */
export type PasskeyResult = "right" | "wrong" | "used" | "counter";

/** A passkey whose signature proved right, with what it signed. */
interface SignedPasskey {
  passkey: Passkey;
  challenge: string;
  counter: number;
}

/** A check of what a browser sent. */
interface PasskeyCheck {
  site: PasskeySite;
  sealer: Sealer;
  /** The purpose and the subject of the challenge. */
  purpose: string;
  nowMs: number;
}

/** Parses the JSON text of a browser's credential. Throws `invalid_input`. */
export function readCredential(field: string, given: string): { id: string } & Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(given);
    if (isJsonObject(value) && typeof value.id === "string" && isJsonObject(value.response))
      return value as { id: string } & Record<string, unknown>;
  } catch {
    // The refusal below says the same.
  }
  throw new Refusal(
    "invalid_input",
    `${field} is not the JSON text of a credential: send what navigator.credentials returned, as toJSON() writes it.`,
  );
}

/** Options for navigator.credentials.create. The person's other passkeys are excluded, so that a device has one. */
export async function registrationOptions(
  library: PasskeyLibrary,
  {
    site,
    owner,
    passkeys,
    challenge,
  }: {
    site: PasskeySite;
    owner: { id: string; email: string };
    passkeys: readonly Passkey[];
    challenge: string;
  },
): Promise<object> {
  return await library.generateRegistrationOptions({
    rpName: "Relay Service",
    rpID: site.rpId,
    userName: owner.email,
    userDisplayName: owner.email,
    userID: new TextEncoder().encode(owner.id),
    challenge,
    attestationType: "none",
    excludeCredentials: passkeys.map(describe),
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
    supportedAlgorithmIDs: ALGORITHMS,
  });
}

/** Ed25519, ECDSA with P-256, and RSA: what authenticators have, each with a short key. */
const ALGORITHMS = [-8, -7, -257];

function describe({ credentialId, transports }: Passkey) {
  return { id: credentialId, transports: transports as AuthenticatorTransport[] };
}

/** Options for navigator.credentials.get. `passkeys` null: any passkey of the site, which names its person. */
export async function signinOptions(
  library: PasskeyLibrary,
  {
    site,
    passkeys,
    challenge,
  }: { site: PasskeySite; passkeys: readonly Passkey[] | null; challenge: string },
): Promise<object> {
  return await library.generateAuthenticationOptions({
    rpID: site.rpId,
    challenge,
    userVerification: "required",
    ...(passkeys === null ? {} : { allowCredentials: passkeys.map(describe) }),
  });
}

/** Verifies a new passkey outside of a transaction. Returns null for one that is not valid, or of another site or challenge. */
export async function verifyNewPasskey(
  library: PasskeyLibrary,
  given: { id: string },
  check: PasskeyCheck,
): Promise<{
  challenge: string;
  credential: Pick<Passkey, "credentialId" | "publicKey" | "counter" | "transports">;
} | null> {
  let challenge = "";
  try {
    const { verified, registrationInfo } = await library.verifyRegistrationResponse({
      response: given as Parameters<PasskeyLibrary["verifyRegistrationResponse"]>[0]["response"],
      expectedChallenge: (one) => takeChallenge(check, one, (own) => (challenge = own)),
      expectedOrigin: check.site.origin,
      expectedRPID: check.site.rpId,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    });
    if (!verified) return null;
    const { id, publicKey, counter, transports = [] } = registrationInfo.credential;
    return { challenge, credential: { credentialId: id, publicKey, counter, transports: [...transports] } };
  } catch {
    return null;
  }
}

function takeChallenge(
  { sealer, purpose, nowMs }: PasskeyCheck,
  given: string,
  take: (own: string) => void,
): boolean {
  if (!isOwnChallenge(sealer, purpose, given, nowMs)) return false;
  take(given);
  return true;
}

/** Verifies the signature of a passkey outside of a transaction. Returns null if it is not valid, or of another site or challenge. */
export async function verifyPasskey(
  library: PasskeyLibrary,
  given: { id: string } & Record<string, unknown>,
  passkey: Passkey,
  check: PasskeyCheck,
): Promise<SignedPasskey | null> {
  let challenge = "";
  // The library checks the shape.
  const sent: { id: string } = given;
  try {
    const { verified, authenticationInfo } = await library.verifyAuthenticationResponse({
      response: sent as Parameters<PasskeyLibrary["verifyAuthenticationResponse"]>[0]["response"],
      expectedChallenge: (one) => takeChallenge(check, one, (own) => (challenge = own)),
      expectedOrigin: check.site.origin,
      expectedRPID: check.site.rpId,
      requireUserVerification: true,
      // The transaction compares the counters, because another request may use the passkey at the same time.
      credential: { id: passkey.credentialId, publicKey: new Uint8Array(passkey.publicKey), counter: 0 },
    });
    return verified && isOwnHandle(given, passkey)
      ? { passkey, challenge, counter: authenticationInfo.newCounter }
      : null;
  } catch {
    return null;
  }
}

/** A passkey that names its person must name its owner. */
function isOwnHandle({ response }: Record<string, unknown>, { ownerId }: Passkey): boolean {
  const handle = isJsonObject(response) ? response.userHandle : null;
  if (handle === undefined || handle === null || handle === "") return true;
  return typeof handle === "string" && Buffer.from(handle, "base64url").toString("utf8") === ownerId;
}

/** Accepts a verified signature once. The count of signatures must grow, unless the authenticator does not count. */
export async function usePasskey(
  tx: Writer,
  { passkey, challenge, counter }: SignedPasskey,
  nowMs: number,
): Promise<PasskeyResult> {
  if (!(await useChallenge(tx, challenge, nowMs))) return "used";
  const sql = `UPDATE passkey SET counter = ?2, used_at = ?3
    WHERE id = ?1 AND (counter < ?2 OR (counter = 0 AND ?2 = 0))`;
  if ((await tx.run(sql, passkey.id, counter, nowMs)) > 0) return "right";
  return (await PASSKEY.find(tx, { id: passkey.id })) === null ? "wrong" : "counter";
}

/** Stores a verified passkey. Throws `invalid_input` for a challenge that was used, and `name_taken` for a passkey that is stored. */
export async function addPasskey(
  tx: Writer,
  { ownerId, name, nowMs }: { ownerId: string; name: string; nowMs: number },
  { challenge, credential }: NonNullable<Awaited<ReturnType<typeof verifyNewPasskey>>>,
): Promise<string> {
  if (!(await useChallenge(tx, challenge, nowMs)))
    throw new Refusal("invalid_input", "This passkey was sent before: start again, and create a new one.");
  const id = newId("fac", nowMs);
  try {
    await tx.attempt(() =>
      PASSKEY.insert(tx, { id, ownerId, name, ...credential, createdAt: nowMs, usedAt: null }),
    );
  } catch (error) {
    if (!(error instanceof UniqueViolation)) throw error;
    throw new Refusal("name_taken", "This passkey is stored already: use another device.");
  }
  return id;
}

export function findPasskey(tx: Reader, credentialId: string): Promise<Passkey | null> {
  return PASSKEY.get(tx, "WHERE credential_id = $credentialId", { credentialId });
}

export function listPasskeys(tx: Reader, ownerId: string): Promise<Passkey[]> {
  return PASSKEY.all(tx, "WHERE owner_id = $ownerId ORDER BY created_at, id", { ownerId });
}

/** Reports whether the person has a passkey. */
export async function hasPasskey(tx: Reader, ownerId: string): Promise<boolean> {
  return (await tx.get("SELECT 1 AS one FROM passkey WHERE owner_id = ?1 LIMIT 1", ownerId)) !== null;
}

/** Deletes used challenges that have ended. The daily maintenance calls it. */
export async function deleteUsedChallenges(tx: Writer, nowMs: number): Promise<void> {
  await tx.run("DELETE FROM used_challenge WHERE expires_at <= ?1", nowMs);
}
