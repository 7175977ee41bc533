/**
 * Secrets at rest: AES-256-GCM under keys derived from the master key, each sealed text bound to what it belongs to, and a keyed
 * digest that compares two secrets without opening either, and a shorter one that may be shown. It never writes anything and never shows a key.
 * Source: decisions, section 6 ("secrets at rest"); NIST SP 800-38D; RFC 5869.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from "node:crypto";

const FORMAT = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const SHOWN_HEX = 16;
/** Of 6 bits each. */
const VERIFY_TOKEN_CHARS = 32;

export class Sealer {
  readonly #sealKey: Buffer;
  readonly #digestKey: Buffer;
  readonly #fingerprintKey: Buffer;
  readonly #verifyTokenKey: Buffer;

  /** `masterKey`: 32 bytes, as `loadMasterKey` gives them. */
  constructor(masterKey: Uint8Array) {
    this.#sealKey = deriveKey(masterKey, "seal");
    this.#digestKey = deriveKey(masterKey, "digest");
    this.#fingerprintKey = deriveKey(masterKey, "fingerprint");
    this.#verifyTokenKey = deriveKey(masterKey, "verify token");
  }

  /** Seals a text. `context` says what it belongs to (`receiver:<relay id>`), and the same is needed to unseal it. */
  seal(text: string, context: string): Uint8Array {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.#sealKey, nonce).setAAD(Buffer.from(context));
    const sealed = [cipher.update(text, "utf8"), cipher.final()];
    return Buffer.concat([Buffer.of(FORMAT), nonce, ...sealed, cipher.getAuthTag()]);
  }

  /** Opens what `seal` made with the same context and master key; throws an Error on anything else. */
  unseal(bytes: Uint8Array, context: string): string {
    const sealed = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const textStart = 1 + NONCE_BYTES;
    const textEnd = sealed.length - TAG_BYTES;
    if (sealed[0] !== FORMAT || textEnd < textStart) throw new Error(UNREADABLE);
    try {
      const decipher = createDecipheriv("aes-256-gcm", this.#sealKey, sealed.subarray(1, textStart), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(textEnd));
      const opened = [decipher.update(sealed.subarray(textStart, textEnd)), decipher.final()];
      return Buffer.concat(opened).toString("utf8");
    } catch {
      throw new Error(UNREADABLE);
    }
  }

  /** What may be shown of a secret: `hmac:` and the first 64 bits, in hex, of a keyed hash that is used for nothing else. */
  fingerprint(text: string): string {
    const hash = createHmac("sha256", this.#fingerprintKey).update(text).digest("hex");
    return `hmac:${hash.slice(0, SHOWN_HEX)}`;
  }

  /**
   * What a sender says so that its question is known as the one that the owner registered: the same as long as the relay is there, told by the
   * master key and the relay's id alone, and good for nothing else, so that it may be shown whenever somebody asks.
   */
  verifyToken(relayId: string): string {
    const hash = createHmac("sha256", this.#verifyTokenKey).update(relayId).digest("base64url");
    return `vt_${hash.slice(0, VERIFY_TOKEN_CHARS)}`;
  }

  /** A keyed hash of a text, the same for the same text: 32 bytes. */
  digest(text: string): Uint8Array {
    return createHmac("sha256", this.#digestKey).update(text).digest();
  }
}

const UNREADABLE =
  "A sealed secret cannot be opened: it was sealed under another master key or belongs to something else; restore the master.key that came with this database.";

function deriveKey(masterKey: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", masterKey, "", `relay-service ${purpose}`, KEY_BYTES));
}

/** What a fingerprint of an earlier version begins with: a plain hash, against which guesses can be tested. */
export const UNKEYED_FINGERPRINT = "sha256:";

/** Of a public key: `SHA256:` and the base64 of the SHA-256 of its SPKI DER, as OpenSSH writes one. */
function fingerprintPublicKey(spki: Uint8Array): string {
  return `SHA256:${createHash("sha256").update(spki).digest("base64").replace(/=+$/, "")}`;
}

/**
 * Of a secret or public key as it is stored: what may be shown and logged of it, enough to tell two apart and nothing more. A secret's is
 * keyed by the master key, so that nobody without it tests guesses against one; equal secrets show equal ones wherever they stand, which is
 * how an owner sees that two places hold the same. A public key is no secret: its own is the plain one that every other tool shows.
 */
export function fingerprintStored(
  sealer: Sealer,
  kind: "minted" | "pasted" | "public_key",
  stored: string,
): string {
  return kind === "public_key"
    ? fingerprintPublicKey(Buffer.from(stored, "base64"))
    : sealer.fingerprint(stored);
}
