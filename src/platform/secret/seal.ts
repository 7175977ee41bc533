/**
 * Secrets at rest: AES-256-GCM under keys derived from the master key. Each sealed text is bound to its context. Keyed digests compare secrets
 * without opening them, and shorter fingerprints may be shown. Source: decisions, section 6 ("secrets at rest"); NIST SP 800-38D; RFC 5869.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from "node:crypto";

const FORMAT = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const SHOWN_HEX = 16;
/** Characters of 6 bits each. */
const VERIFY_TOKEN_CHARS = 32;
const CAPTURE_TOKEN_CHARS = 32;

export class Sealer {
  readonly #sealKey: Buffer;
  readonly #digestKey: Buffer;
  readonly #fingerprintKey: Buffer;
  readonly #verifyTokenKey: Buffer;
  readonly #captureKey: Buffer;

  /** `masterKey`: 32 bytes, as `loadMasterKey` gives them. */
  constructor(masterKey: Uint8Array) {
    this.#sealKey = deriveKey(masterKey, "seal");
    this.#digestKey = deriveKey(masterKey, "digest");
    this.#fingerprintKey = deriveKey(masterKey, "fingerprint");
    this.#verifyTokenKey = deriveKey(masterKey, "verify token");
    this.#captureKey = deriveKey(masterKey, "capture");
  }

  /** Seals a text. `context` names its owner (`receiver:<relay id>`) and is required to unseal it. */
  seal(text: string, context: string): Uint8Array {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.#sealKey, nonce).setAAD(Buffer.from(context));
    const sealed = [cipher.update(text, "utf8"), cipher.final()];
    return Buffer.concat([Buffer.of(FORMAT), nonce, ...sealed, cipher.getAuthTag()]);
  }

  /** Opens a sealed text with the same context and master key. Throws otherwise. */
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

  /** Returns a fingerprint that may be shown: `hmac:` and the first 64 bits, in hex, of a keyed hash with its own key. */
  fingerprint(text: string): string {
    const hash = createHmac("sha256", this.#fingerprintKey).update(text).digest("hex");
    return `hmac:${hash.slice(0, SHOWN_HEX)}`;
  }

  /**
   * Returns the verify token that the owner registers at a sender. It depends only on the master key and the relay's id and has no other use,
   * so it may be shown at any time.
   */
  verifyToken(relayId: string): string {
    const hash = createHmac("sha256", this.#verifyTokenKey).update(relayId).digest("base64url");
    return `vt_${hash.slice(0, VERIFY_TOKEN_CHARS)}`;
  }

  /** Returns the secret part of the URL of a capture. It depends only on the master key, the app and the capture. */
  captureToken(appId: string, id: string): string {
    const hash = createHmac("sha256", this.#captureKey).update(`${appId}/${id}`).digest("base64url");
    return hash.slice(0, CAPTURE_TOKEN_CHARS);
  }

  /** Returns a keyed hash of a text: 32 bytes. */
  digest(text: string): Uint8Array {
    return createHmac("sha256", this.#digestKey).update(text).digest();
  }
}

const UNREADABLE =
  "A sealed secret cannot be opened, because another master key sealed it or it was moved from another row: restore the master.key of this database.";

function deriveKey(masterKey: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", masterKey, "", `relay-service ${purpose}`, KEY_BYTES));
}

/** The prefix of fingerprints of earlier versions: plain hashes, against which guesses can be tested. */
export const UNKEYED_FINGERPRINT = "sha256:";

/** Formats a public key's fingerprint as OpenSSH does: `SHA256:` and the base64 of the SHA-256 of its SPKI DER. */
function fingerprintPublicKey(spki: Uint8Array): string {
  return `SHA256:${createHash("sha256").update(spki).digest("base64").replace(/=+$/, "")}`;
}

/**
 * Formats the fingerprint of a stored secret or public key for display and logs. A secret's fingerprint is keyed by the master key, so that
 * guesses cannot be tested without it; equal secrets have equal fingerprints, which shows an owner that two places hold the same one. A public
 * key has its usual fingerprint.
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
