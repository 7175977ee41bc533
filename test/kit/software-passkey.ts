/** An authenticator in software: it makes passkeys and signs with them as a browser does, and lies where a test wants it to. */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { isoCBOR } from "@simplewebauthn/server/helpers";

/** The values of a browser and an authenticator that a test can change. */
interface Lies {
  origin?: string;
  rpId?: string;
  /** The flags of the authenticator data; 0x05 by default: the user is present and verified. */
  flags?: number;
  counter?: number;
  userHandle?: string;
  challenge?: string;
  type?: string;
}

const sha256 = (data: Uint8Array | string): Buffer => createHash("sha256").update(data).digest();
const base64url = (data: Uint8Array | string): string => Buffer.from(data).toString("base64url");

export class SoftwarePasskey {
  readonly #origin: string;
  readonly #rpId: string;
  readonly #key: KeyObject;
  readonly #publicKey: Uint8Array;
  readonly id = randomBytes(16);
  #userHandle = "";
  counter: number;

  /** `counter` 0: the authenticator does not count. */
  constructor(origin: string, counter = 1) {
    this.#origin = origin;
    this.#rpId = new URL(origin).hostname;
    this.counter = counter;
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    this.#key = privateKey;
    const { x = "", y = "" } = publicKey.export({ format: "jwk" });
    // COSE: kty EC2, alg ES256, crv P-256, x, y.
    const cose = new Map<number, number | Uint8Array>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, new Uint8Array(Buffer.from(x, "base64url"))],
      [-3, new Uint8Array(Buffer.from(y, "base64url"))],
    ]);
    this.#publicKey = isoCBOR.encode(cose);
  }

  /** Answers the options of navigator.credentials.create, as JSON text. */
  create(options: string, lies: Lies = {}): string {
    const { challenge, user } = JSON.parse(options);
    this.#userHandle = user.id;
    const length = Buffer.alloc(2);
    length.writeUInt16BE(this.id.length);
    const credential = Buffer.concat([Buffer.alloc(16), length, this.id, this.#publicKey]);
    const authData = Buffer.concat([this.#data({ flags: 0x45, ...lies }), credential]);
    const object = new Map<string, unknown>([
      ["fmt", "none"],
      ["attStmt", new Map()],
      ["authData", new Uint8Array(authData)],
    ]);
    return this.#write({
      clientDataJSON: this.#client("webauthn.create", challenge, lies),
      attestationObject: base64url(isoCBOR.encode(object as Parameters<typeof isoCBOR.encode>[0])),
      transports: ["internal"],
    });
  }

  /** Answers the options of navigator.credentials.get, as JSON text. */
  sign(options: string, lies: Lies = {}): string {
    if (this.counter > 0) this.counter += 1;
    const { challenge } = JSON.parse(options);
    const clientDataJSON = this.#client("webauthn.get", challenge, lies);
    const authData = this.#data(lies);
    const signed = Buffer.concat([authData, sha256(Buffer.from(clientDataJSON, "base64url"))]);
    return this.#write({
      clientDataJSON,
      authenticatorData: base64url(authData),
      signature: base64url(sign("sha256", signed, this.#key)),
      userHandle: lies.userHandle ?? this.#userHandle,
    });
  }

  #client(type: string, challenge: string, lies: Lies): string {
    const origin = lies.origin ?? this.#origin;
    return base64url(JSON.stringify({ type: lies.type ?? type, challenge: lies.challenge ?? challenge, origin, crossOrigin: false }));
  }

  #data({ rpId = this.#rpId, flags = 0x05, counter = this.counter }: Lies): Buffer {
    const count = Buffer.alloc(4);
    count.writeUInt32BE(counter);
    return Buffer.concat([sha256(rpId), Buffer.of(flags), count]);
  }

  #write(response: object): string {
    const id = base64url(this.id);
    return JSON.stringify({ id, rawId: id, type: "public-key", clientExtensionResults: {}, response });
  }
}
