import { describe, expect, test } from "bun:test";
import { createPublicKey, ECDH, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import type { PublicKeyAlgorithm } from "../../src/base/key-text.ts";
import { Refusal } from "../../src/base/refusal.ts";
import { readPublicKey } from "../../src/platform/secret/public-key.ts";
import { readPastedSecret } from "../../src/platform/secret/secret-text.ts";
import { signature } from "../../src/rules/verify/signature.ts";
import { bytes, EVENT, makeCall, outcome, recipe } from "../kit/sender-call.ts";

const ed = generateKeyPairSync("ed25519");
const ec = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
const otherCurve = generateKeyPairSync("ec", { namedCurve: "secp384r1" });
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const x25519 = generateKeyPairSync("x25519");

const spki = (key: KeyObject): Buffer => key.export({ format: "der", type: "spki" });
const pem = (key: KeyObject): string => key.export({ format: "pem", type: "spki" }) as string;
const edSpki = spki(ed.publicKey);
const ecSpki = spki(ec.publicKey);
const edRaw = edSpki.subarray(-32);
const point = ecSpki.subarray(-65);
const compressed = ECDH.convertKey(point, "prime256v1", undefined, undefined, "compressed") as Buffer;
const compressedSpki = Buffer.concat([Buffer.from("3039301306072a8648ce3d020106082a8648ce3d030107032200", "hex"), compressed]);
const wrapped = edSpki.toString("base64").replace(/.{20}/g, "$&\r\n");

const ED = "ed25519";
const EC = "ecdsa-p256-sha256";

describe("a public key that is stored", () => {
  const rows: [string, PublicKeyAlgorithm, string, Buffer][] = [
    ["Ed25519, 32 raw bytes in hex", ED, edRaw.toString("hex"), edSpki],
    ["Ed25519, 32 raw bytes in hex, upper case", ED, edRaw.toString("hex").toUpperCase(), edSpki],
    ["Ed25519, 32 raw bytes in base64", ED, edRaw.toString("base64"), edSpki],
    ["Ed25519, 32 raw bytes in base64 without padding", ED, edRaw.toString("base64").replace(/=+$/, ""), edSpki],
    ["Ed25519, SPKI in hex", ED, edSpki.toString("hex"), edSpki],
    ["Ed25519, SPKI in base64", ED, edSpki.toString("base64"), edSpki],
    ["Ed25519, SPKI in base64 over several lines", ED, wrapped, edSpki],
    ["Ed25519, PEM", ED, pem(ed.publicKey), edSpki],
    ["Ed25519, PEM with CRLF", ED, pem(ed.publicKey).replaceAll("\n", "\r\n"), edSpki],
    ["Ed25519, PEM with white space around it", ED, `\n\t ${pem(ed.publicKey)}  \n`, edSpki],
    ["P-256, SPKI in hex", EC, ecSpki.toString("hex"), ecSpki],
    ["P-256, SPKI in base64", EC, ` ${ecSpki.toString("base64")}\r\n`, ecSpki],
    ["P-256, PEM", EC, pem(ec.publicKey), ecSpki],
    ["P-256, PEM on one line", EC, pem(ec.publicKey).replaceAll("\n", ""), ecSpki],
    ["P-256, a 65-byte point in hex", EC, point.toString("hex"), ecSpki],
    ["P-256, a 65-byte point in base64", EC, point.toString("base64"), ecSpki],
    ["P-256, a 33-byte point in hex", EC, compressed.toString("hex"), ecSpki],
    ["P-256, a 33-byte point in base64", EC, compressed.toString("base64"), ecSpki],
    ["P-256, SPKI that holds a 33-byte point", EC, compressedSpki.toString("base64"), ecSpki],
  ];
  test.each(rows)("%s", (_rule, algorithm, value, expected) => {
    expect(readPublicKey(algorithm, value).equals(expected)).toBe(true);
  });

  test.each([
    [ED, sign(null, bytes(EVENT), ed.privateKey), edRaw.toString("hex")],
    [EC, sign("sha256", bytes(EVENT), ec.privateKey), compressed.toString("hex")],
  ] as const)("%s: what is stored verifies the sender's signature", (algorithm, given, value) => {
    const fields = recipe({ header: "X-Sig", algorithm });
    const pasted = readPastedSecret(fields, value);
    expect(pasted.kind).toBe("public_key");
    const call = makeCall({ headers: { "X-Sig": given.toString("hex") } });
    expect(outcome(signature.prepare(fields, pasted.stored).verify(call))).toBe("verified");
  });
});

describe("a public key that is refused with invalid_input", () => {
  const offCurve = Buffer.from(point);
  offCurve[64] = (offCurve[64] ?? 0) ^ 1;
  const offCurveSpki = Buffer.concat([ecSpki.subarray(0, -65), offCurve]);
  const offCurveX = Array.from({ length: 64 }, (_, at) => Buffer.concat([compressed.subarray(0, 32), Buffer.of(at)])).find((candidate) => {
    try {
      ECDH.convertKey(candidate, "prime256v1");
      return false;
    } catch {
      return true;
    }
  });
  const certificate = `-----BEGIN CERTIFICATE-----\n${Buffer.alloc(60, 7).toString("base64")}\n-----END CERTIFICATE-----`;
  const pkcs8 = (key: KeyObject): Buffer => key.export({ format: "der", type: "pkcs8" });
  const sec1 = (key: KeyObject): Buffer => key.export({ format: "der", type: "sec1" });

  const rows: [string, PublicKeyAlgorithm, string, string][] = [
    ["nothing", ED, " \n", "empty"],
    ["words", ED, "my public key", "not a key"],
    ["a shared secret", ED, "whsec_Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS", "not a key"],
    ["31 bytes", ED, edRaw.subarray(1).toString("hex"), "not a key"],
    ["33 bytes that are no curve point", EC, Buffer.alloc(33, 9).toString("hex"), "not a key"],
    ["hex with a character missing", ED, edRaw.toString("hex").slice(1), "not a key"],
    ["base64url", EC, point.toString("base64url").replace(/^./, "-"), "not a key"],
    ["an SPKI cut off", EC, ecSpki.subarray(0, -1).toString("base64"), "not a key"],
    ["an SPKI with bytes after it", ED, Buffer.concat([edSpki, Buffer.of(0)]).toString("base64"), "not a key"],
    ["a PEM block cut off", ED, pem(ed.publicKey).slice(0, 60), "not a key"],
    ["two PEM blocks", ED, pem(ed.publicKey).repeat(2), "not a key"],
    ["a PEM block of another type", ED, pem(ed.publicKey).replaceAll("PUBLIC KEY", "EC PARAMETERS"), "not a key"],
    ["a very long text", ED, "A".repeat(100_000), "not a key"],
    ["a private key, PKCS#8 PEM", ED, ed.privateKey.export({ format: "pem", type: "pkcs8" }) as string, "private key"],
    ["a private key, SEC1 PEM", EC, ec.privateKey.export({ format: "pem", type: "sec1" }) as string, "private key"],
    ["a private key, PKCS#8 in base64", ED, pkcs8(ed.privateKey).toString("base64"), "private key"],
    ["a private key, PKCS#8 in hex", EC, pkcs8(ec.privateKey).toString("hex"), "private key"],
    ["a private key, SEC1 in base64", EC, sec1(ec.privateKey).toString("base64"), "private key"],
    ["an RSA private key", EC, rsa.privateKey.export({ format: "pem", type: "pkcs1" }) as string, "private key"],
    ["a certificate", EC, certificate, "certificate"],
    ["an RSA key, PEM", ED, pem(rsa.publicKey), "RSA"],
    ["an RSA key, SPKI in base64", EC, spki(rsa.publicKey).toString("base64"), "RSA"],
    ["an RSA key, PKCS#1 PEM", ED, rsa.publicKey.export({ format: "pem", type: "pkcs1" }) as string, "RSA"],
    ["an X25519 key, PEM", ED, pem(x25519.publicKey), "X25519"],
    ["an X25519 key, SPKI in hex", ED, spki(x25519.publicKey).toString("hex"), "X25519"],
    ["another curve, PEM", EC, pem(otherCurve.publicKey), "secp384r1"],
    ["another curve, SPKI in base64", EC, spki(otherCurve.publicKey).toString("base64"), "secp384r1"],
    ["a P-256 key on an Ed25519 recipe", ED, pem(ec.publicKey), "P-256"],
    ["a P-256 point on an Ed25519 recipe", ED, point.toString("hex"), "P-256"],
    ["an Ed25519 key on a P-256 recipe", EC, pem(ed.publicKey), "Ed25519"],
    ["32 raw bytes on a P-256 recipe", EC, edRaw.toString("hex"), "Ed25519"],
    ["a P-256 point off the curve, 65 bytes", EC, offCurve.toString("hex"), "not on the P-256 curve"],
    ["a P-256 point off the curve, 33 bytes", EC, offCurveX?.toString("hex") ?? "", "not on the P-256 curve"],
    ["a P-256 point off the curve in an SPKI", EC, offCurveSpki.toString("base64"), "not on the P-256 curve"],
    ["an Ed25519 point off the curve", ED, Buffer.alloc(32, 2).toString("hex"), "not on the curve"],
    ["an Ed25519 point that is not encoded canonically", ED, `ed${"ff".repeat(30)}7f`, "not on the curve"],
    ["the Ed25519 neutral point", ED, `01${"00".repeat(31)}`, "small order"],
    ["an Ed25519 point of order 4", ED, "00".repeat(32), "small order"],
    ["an Ed25519 point of order 2", ED, `ec${"ff".repeat(30)}7f`, "small order"],
    ["an Ed25519 point of order 8", ED, "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", "small order"],
    ["an Ed25519 point of small order in an SPKI", ED, `302a300506032b6570032100${"00".repeat(32)}`, "small order"],
  ];
  test.each(rows)("%s", (_rule, algorithm, value, words) => {
    let refused: unknown = null;
    try {
      readPublicKey(algorithm, value);
    } catch (error) {
      refused = error;
    }
    expect(refused).toBeInstanceOf(Refusal);
    const { code, message } = refused as Refusal;
    expect(code).toBe("invalid_input");
    expect(message).toContain(words);
    expect(message).toMatch(/: .+\.$/);
    if (value.length > 30) expect(message).not.toContain(value.slice(0, 30));
  });
});

test("many Ed25519 keys are all accepted", () => {
  for (let round = 0; round < 50; round++) {
    const key = spki(generateKeyPairSync("ed25519").publicKey);
    expect(createPublicKey({ key: readPublicKey(ED, key.toString("hex")), format: "der", type: "spki" }).type).toBe("public");
  }
});
