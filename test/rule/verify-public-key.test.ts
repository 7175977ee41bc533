import { describe, expect, test } from "bun:test";
import { createPrivateKey, generateKeyPairSync, sign } from "node:crypto";
import type { Encoding } from "../../src/base/text.ts";
import { signature } from "../../src/rules/verify/signature.ts";
import { bytes, EVENT, makeCall, makeKeys, outcome, recipe, SECRET } from "../kit/sender-call.ts";

const ed = makeKeys("ed25519");
const ec = makeKeys("ecdsa-p256-sha256");
const edRecipe = recipe({ header: "X-Sig", algorithm: "ed25519" });
const ecRecipe = recipe({ header: "X-Sig", algorithm: "ecdsa-p256-sha256" });

const ED_ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const P256_ORDER = BigInt("0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551");

const edSignature = sign(null, bytes(EVENT), ed.privateKey);
const ecPair = sign("sha256", bytes(EVENT), { key: ec.privateKey, dsaEncoding: "ieee-p1363" });

function run(fields: typeof edRecipe, stored: string, given: string, body = EVENT): string {
  return outcome(signature.prepare(fields, stored).verify(makeCall({ headers: { "X-Sig": given }, body })));
}

function toBigInt(buffer: Buffer): bigint {
  return BigInt(`0x${buffer.toString("hex")}`);
}

function toBytes(number: bigint): Buffer {
  return Buffer.from(number.toString(16).padStart(64, "0"), "hex");
}

/** Encodes r and s as DER of an ECDSA signature. */
function toDer(r: bigint, s: bigint): Buffer {
  const integer = (number: bigint) => {
    const hex = number.toString(16);
    const even = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, "hex");
    const value = (even[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.of(0), even]) : even;
    return Buffer.concat([Buffer.of(2, value.length), value]);
  };
  const pair = Buffer.concat([integer(r), integer(s)]);
  return Buffer.concat([Buffer.of(0x30, pair.length), pair]);
}

describe("ed25519", () => {
  test("64 bytes verify in every encoding", () => {
    for (const encoding of ["hex", "base64", "base64url"] satisfies Encoding[]) {
      expect(run({ ...edRecipe, encoding }, ed.stored, edSignature.toString(encoding))).toBe("verified");
    }
  });

  const canonicalS = toBigInt(Buffer.from(edSignature.subarray(32)).reverse());
  const twin = Buffer.concat([edSignature.subarray(0, 32), toBytes(canonicalS + ED_ORDER).reverse()]);
  const rows: [string, Buffer][] = [
    ["a non-canonical S", twin],
    ["63 bytes", edSignature.subarray(0, 63)],
    ["65 bytes", Buffer.concat([edSignature, Buffer.of(0)])],
    ["no bytes", Buffer.alloc(0)],
    ["zeros", Buffer.alloc(64)],
    ["another key's signature", sign(null, bytes(EVENT), makeKeys("ed25519").privateKey)],
  ];
  test.each(rows)("%s never verifies", (_rule, given) => {
    expect(run(edRecipe, ed.stored, given.toString("hex"))).toBe("bad_signature");
  });

  test("a changed body never verifies", () => {
    expect(run(edRecipe, ed.stored, edSignature.toString("hex"), `${EVENT} `)).toBe("bad_signature");
  });
});

describe("ecdsa-p256-sha256", () => {
  const r = toBigInt(ecPair.subarray(0, 32));
  const s = toBigInt(ecPair.subarray(32));
  const low = s <= P256_ORDER / 2n ? s : P256_ORDER - s;
  const high = P256_ORDER - low;
  const rows: [string, Buffer, string][] = [
    ["DER with low S", toDer(r, low), "verified"],
    ["DER with high S", toDer(r, high), "verified"],
    ["exactly 64 bytes as r‖s, low S", Buffer.concat([toBytes(r), toBytes(low)]), "verified"],
    ["exactly 64 bytes as r‖s, high S", Buffer.concat([toBytes(r), toBytes(high)]), "verified"],
    ["DER with bytes after it", Buffer.concat([toDer(r, low), Buffer.of(0)]), "bad_signature"],
    ["DER cut off", toDer(r, low).subarray(0, -1), "bad_signature"],
    ["DER of r and s swapped", toDer(low, r), "bad_signature"],
    ["DER of zeros", toDer(0n, 0n), "bad_signature"],
    ["DER of r and s beyond the order", toDer(r + P256_ORDER, low), "bad_signature"],
    ["64 zeros", Buffer.alloc(64), "bad_signature"],
    ["63 bytes", ecPair.subarray(1), "bad_signature"],
    ["one byte", Buffer.of(0x30), "bad_signature"],
    ["a hundred bytes", Buffer.alloc(100, 0x30), "bad_signature"],
  ];
  test.each(rows)("%s: has the expected result", (_rule, given, expected) => {
    for (const encoding of ["hex", "base64", "base64url"] satisfies Encoding[]) {
      expect(run({ ...ecRecipe, encoding }, ec.stored, given.toString(encoding))).toBe(expected);
    }
  });
});

describe("the stored key", () => {
  test("of the other algorithm refuses every request", () => {
    expect(run(edRecipe, ec.stored, edSignature.toString("hex"))).toBe("bad_signature");
    expect(run(ecRecipe, ed.stored, ecPair.toString("hex"))).toBe("bad_signature");
  });

  test.each(["secp224r1", "secp384r1"])("on the curve %s refuses every request, also one that it signed", (namedCurve) => {
    const pair = generateKeyPairSync("ec", { namedCurve });
    const stored = pair.publicKey.export({ format: "der", type: "spki" }).toString("base64");
    const given = sign("sha256", bytes(EVENT), { key: pair.privateKey, dsaEncoding: "der" });
    expect(run(ecRecipe, stored, given.toString("hex"))).toBe("bad_signature");
  });

  test("that is a shared secret refuses every request", () => {
    for (const stored of [SECRET, "", "????"]) expect(run(edRecipe, stored, edSignature.toString("hex"))).toBe("bad_signature");
  });

  test("that is a private key refuses every request", () => {
    const der = createPrivateKey(ed.privateKey).export({ format: "der", type: "pkcs8" }).toString("base64");
    expect(run(edRecipe, der, edSignature.toString("hex"))).toBe("bad_signature");
  });

  test("on an HMAC recipe refuses every request, also one signed with the public key's text", () => {
    const fields = recipe({ header: "X-Sig" });
    const pem = `-----BEGIN PUBLIC KEY-----\n${ed.stored}\n-----END PUBLIC KEY-----`;
    for (const stored of [ed.stored, ec.stored, pem, Buffer.from(ec.stored, "base64").toString("hex"), ed.privateKey]) {
      const forged = new Bun.CryptoHasher("sha256", stored).update(EVENT).digest("hex");
      expect(run(fields, stored, forged)).toBe("bad_signature");
    }
  });

  test("must match the recipe: a public key for the two, a shared secret for HMAC", () => {
    expect([edRecipe, ecRecipe, recipe({ header: "X" }), recipe({ header: "X", algorithm: "hmac-sha1" })].map(signature.secretNeed)).toEqual([
      "public_key",
      "public_key",
      "shared",
      "shared",
    ]);
  });
});
