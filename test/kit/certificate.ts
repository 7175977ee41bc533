/** Creates a certificate authority and server certificates in memory (ECDSA P-256, X.509 v3), so TLS tests need no files and no tools. */
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";

export interface Issued {
  /** PEM. */
  cert: string;
  /** PEM, PKCS#8. */
  key: string;
}

export interface Authority extends Issued {
  /** Issues a server certificate for these DNS names. `validUntil` has the form YYYYMMDDHHMMSSZ. */
  issue(names: readonly string[], validUntil?: string): Issued;
}

const VALID_FROM = "20200101000000Z";
const VALID_UNTIL = "20991231235959Z";
const ECDSA_SHA256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
let serial = 1;

/** Creates an authority with a self-signed certificate. */
export function makeAuthority(name: string): Authority {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const extensions = [
    extension([0x55, 0x1d, 0x13], true, sequence(tlv(0x01, Buffer.of(0xff)))),
    extension([0x55, 0x1d, 0x0f], true, tlv(0x03, Buffer.of(1, 0x06))),
    extension([0x55, 0x1d, 0x0e], false, tlv(0x04, keyId(publicKey))),
  ];
  const own = { subject: name, issuer: name, publicKey, signer: privateKey, until: VALID_UNTIL, extensions };
  return {
    cert: makeCertificate(own),
    key: pemKey(privateKey),
    issue: (names, until = VALID_UNTIL) => issueFor(names, until, name, privateKey, keyId(publicKey)),
  };
}

function issueFor(names: readonly string[], until: string, issuer: string, signer: KeyObject, issuerId: Buffer): Issued {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const altNames = sequence(...names.map((name) => tlv(0x82, Buffer.from(name))));
  const extensions = [
    extension([0x55, 0x1d, 0x11], false, altNames),
    extension([0x55, 0x1d, 0x25], false, sequence(oid(0x2b, 6, 1, 5, 5, 7, 3, 1))),
    extension([0x55, 0x1d, 0x23], false, sequence(tlv(0x80, issuerId))),
  ];
  const cert = makeCertificate({ subject: names[0] ?? "", issuer, publicKey, signer, until, extensions });
  return { cert, key: pemKey(privateKey) };
}

interface Draft {
  subject: string;
  issuer: string;
  publicKey: KeyObject;
  signer: KeyObject;
  until: string;
  extensions: Buffer[];
}

function makeCertificate({ subject, issuer, publicKey, signer, until, extensions }: Draft): string {
  const unsigned = sequence(
    tlv(0xa0, tlv(0x02, Buffer.of(2))),
    tlv(0x02, Buffer.of(0x40, serial++)),
    ECDSA_SHA256,
    commonName(issuer),
    sequence(tlv(0x18, Buffer.from(VALID_FROM)), tlv(0x18, Buffer.from(until))),
    commonName(subject),
    publicKey.export({ type: "spki", format: "der" }),
    tlv(0xa3, sequence(...extensions)),
  );
  const signature = sign("sha256", unsigned, signer);
  const der = sequence(unsigned, ECDSA_SHA256, tlv(0x03, Buffer.concat([Buffer.of(0), signature])));
  const lines = der.toString("base64").replace(/.{64}(?=.)/g, "$&\n");
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}

function pemKey(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}

function keyId(key: KeyObject): Buffer {
  return createHash("sha1")
    .update(key.export({ type: "spki", format: "der" }))
    .digest();
}

function commonName(name: string): Buffer {
  return sequence(tlv(0x31, sequence(oid(0x55, 0x04, 0x03), tlv(0x0c, Buffer.from(name)))));
}

function extension(id: number[], critical: boolean, value: Buffer): Buffer {
  return sequence(oid(...id), ...(critical ? [tlv(0x01, Buffer.of(0xff))] : []), tlv(0x04, value));
}

function oid(...bytes: number[]): Buffer {
  return tlv(0x06, Buffer.from(bytes));
}

function sequence(...parts: Buffer[]): Buffer {
  return tlv(0x30, Buffer.concat(parts));
}

function tlv(tag: number, value: Buffer): Buffer {
  const length = value.length;
  const head = length < 0x80 ? [tag, length] : length < 0x100 ? [tag, 0x81, length] : [tag, 0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from(head), value]);
}
