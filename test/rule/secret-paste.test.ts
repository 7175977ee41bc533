import { describe, expect, test } from "bun:test";
import { createHash, createHmac } from "node:crypto";
import { Refusal } from "../../src/base/refusal.ts";
import { fingerprintStored, Sealer } from "../../src/platform/secret/seal.ts";
import { mintReceiverSecret, mintSigningSecret, readPastedSecret, type SecretFields } from "../../src/platform/secret/secret-text.ts";
import { makeKeys, SECRET } from "../kit/sender-call.ts";

const hmac: SecretFields = { scheme: "signature" };
const hooks: SecretFields = { scheme: "hooks" };
const token: SecretFields = { scheme: "shared_token" };
const ed = makeKeys("ed25519");
const edPem = `-----BEGIN PUBLIC KEY-----\n${ed.stored}\n-----END PUBLIC KEY-----\n`;

function refusal(fields: SecretFields, value: string): Refusal | null {
  try {
    readPastedSecret(fields, value);
    return null;
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

describe("a pasted secret that is stored", () => {
  const rows: [string, SecretFields, string, string][] = [
    ["has at least 24 characters", hmac, "abcdefghijklmnopqrstuvwx", "abcdefghijklmnopqrstuvwx"],
    ["has at least 22 when it mixes upper case, lower case and digits", hmac, "Abcdefghijklmnopqrstu1", "Abcdefghijklmnopqrstu1"],
    ["loses outer white space", hmac, ` \t${SECRET}\r\n`, SECRET],
    ["can contain an ASCII space", token, `Bearer ${SECRET}`, `Bearer ${SECRET}`],
    ["for Standard Webhooks starts with whsec_", hooks, `whsec_${SECRET}`, `whsec_${SECRET}`],
    ["keeps whsec_ as part of it on an HMAC recipe", hmac, `whsec_${SECRET}`, `whsec_${SECRET}`],
    ["can contain every visible ASCII character", hmac, "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~", "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~"],
    ["can be hexadecimal with 32 characters", hmac, "4748a41fa74c7793de49e5d1fcf50ba3", "4748a41fa74c7793de49e5d1fcf50ba3"],
  ];
  test.each(rows)("%s", (_rule, fields, value, stored) => {
    expect(readPastedSecret(fields, value)).toMatchObject({ kind: "pasted", stored });
  });
});

describe("one HMAC key is one Standard Webhooks secret in every spelling", () => {
  const key = createHash("sha256").update("a key of a Standard Webhooks sender").digest();
  const long = Buffer.concat([key, key, key.subarray(0, 1)]);
  const hash = createHash("sha256").update(long).digest();
  const write = (bytes: Buffer): string => `whsec_${bytes.toString("base64")}`;
  test.each<[string, string, Buffer]>([
    ["without its padding", write(key).replace(/=+$/, ""), key],
    ["with a zero byte appended", write(Buffer.concat([key, Buffer.alloc(1)])), key],
    ["padded with zeros to a block", write(Buffer.concat([key, Buffer.alloc(32)])), key],
    ["as its hash, if longer than a block", write(long), hash],
    ["as the hash itself", write(hash), hash],
  ])("%s", (_words, value, stored) => {
    expect(readPastedSecret(hooks, value).stored).toBe(write(stored));
    const sign = (bytes: Buffer): string => createHmac("sha256", bytes).update("text").digest("hex");
    expect(sign(stored)).toBe(sign(Buffer.from(value.slice("whsec_".length), "base64")));
  });
});

describe("a pasted secret that is refused with invalid_input", () => {
  const rows: [string, SecretFields, string, string][] = [
    ["nothing", hmac, "", "empty"],
    ["white space", hmac, " \n ", "empty"],
    ["23 characters", hmac, "abcdefghijklmnopqrstuvw", "too short"],
    ["23 characters without digits", hmac, "AbcdefghijklmnopqrstuvW", "too short"],
    ["23 characters without upper case", hmac, "abcdefghijklmnopqrstuv1", "too short"],
    ["23 characters without lower case", hmac, "ABCDEFGHIJKLMNOPQRSTUV1", "too short"],
    ["21 characters that mix all three", hmac, "Abcdefghijklmnopqrst1", "too short"],
    ["white space that makes it long enough", hmac, `${"abcdefghijklmnopqrst"}          `, "too short"],
    ["a letter outside ASCII", hmac, `${SECRET}é`, "U+00E9, which is not plain ASCII"],
    ["an invisible character", hmac, `${SECRET}\u200b${SECRET}`, "U+200B, which is not plain ASCII"],
    ["a line break inside", hmac, `${SECRET}\n${SECRET}x`, "contains a line break"],
    ["a tab inside", token, `Bearer\t${SECRET}`, "contains a tab"],
    ["a control character", hmac, `${SECRET}\x00a`, "contains the control character U+0000"],
    ["one character repeated", hmac, "a".repeat(30), "repeated pattern"],
    ["a word repeated", hmac, "secret".repeat(5), "repeated pattern"],
    ["a word repeated whose last repetition is cut off", hmac, "secret".repeat(4).concat("sec"), "repeated pattern"],
    ["two equal halves", hmac, `${SECRET}${SECRET}`, "repeated pattern"],
    ["a pattern after whsec_", hooks, `whsec_${"AAAA".repeat(8)}`, "repeated pattern"],
    ["a Standard Webhooks secret without whsec_", hooks, SECRET, "does not start with whsec_"],
    ["a Standard Webhooks secret in capitals", hooks, `WHSEC_${SECRET}`, "does not start with whsec_"],
    ["a Standard Webhooks secret that is not base64", hooks, "whsec_not-base64-at-all_nono", "not base64"],
    ["a text longer than any secret", hmac, `${SECRET}${"ab1".repeat(3000)}`, "longer than"],
    ["a public key in PEM on an HMAC recipe", hmac, edPem, "is a key"],
    ["a public key in DER, base64, on an HMAC recipe", hmac, ed.stored, "is a key"],
    ["a public key in DER, hex, on an HMAC recipe", hmac, Buffer.from(ed.stored, "base64").toString("hex"), "is a key"],
    ["a private key on an HMAC recipe", hmac, ed.privateKey, "is a key"],
    ["a key for HMAC-SHA1", { scheme: "signature", algorithm: "hmac-sha1" }, edPem, "is a key"],
    ["a key as the processor's secret", { scheme: "processor" }, edPem, "is a key"],
  ];
  test.each(rows)("%s", (_rule, fields, value, words) => {
    const refused = refusal(fields, value);
    expect(refused?.code).toBe("invalid_input");
    expect(refused?.message).toContain(words);
    expect(refused?.message).toMatch(/: .+\.$/);
    if (value.trim().length > 8) expect(refused?.message).not.toContain(value.trim());
  });
});

describe("a repeated pattern", () => {
  const rows: [string, boolean][] = [
    ["abab", true],
    ["ababa", true],
    ["abcabcab", true],
    ["aa", true],
    ["abcab", false],
    ["abcda", false],
    ["abcdefabc", false],
    ["aab", false],
    ["a", false],
    ["", false],
  ];
  test.each(rows)("%s: %p", (text, repeated) => {
    const long = [...text].map((letter) => `${letter}X7bQ2kVw9tZ`).join("");
    expect(refusal(token, long)?.message.includes("repeated pattern") ?? false).toBe(repeated);
  });
});

describe("a fingerprint", () => {
  const sealer = new Sealer(new Uint8Array(32).fill(7));
  const fingerprintOf = (fields: SecretFields, value: string, by = sealer): string => {
    const { kind, stored } = readPastedSecret(fields, value);
    return fingerprintStored(by, kind, stored);
  };

  test("of a secret is short, the same for the same secret, and different without the master key", () => {
    const fingerprint = fingerprintOf(hmac, SECRET);
    expect(fingerprint).toMatch(/^hmac:[0-9a-f]{16}$/);
    expect(fingerprintOf(token, ` ${SECRET}`)).toBe(fingerprint);
    expect(fingerprintOf(hmac, `${SECRET}x`)).not.toBe(fingerprint);
    expect(fingerprintOf(hmac, SECRET, new Sealer(new Uint8Array(32).fill(8)))).not.toBe(fingerprint);
    const plain = [SECRET, `relay-service secret fingerprint\n${SECRET}`];
    for (const text of plain) expect(fingerprint).not.toContain(createHash("sha256").update(text).digest("hex").slice(0, 16));
  });

  test("of a public key is the SHA-256 of its SPKI, in whatever format it was pasted", () => {
    const fields = { scheme: "signature", algorithm: "ed25519" };
    const expected = createHash("sha256").update(Buffer.from(ed.stored, "base64")).digest("base64").replace("=", "");
    for (const value of [ed.stored, edPem]) {
      expect(fingerprintOf(fields, value)).toBe(`SHA256:${expected}`);
    }
  });
});

describe("a minted secret", () => {
  const rows: [string, SecretFields, () => string, RegExp][] = [
    ["for hooks starts with whsec_ and is base64", hooks, () => mintReceiverSecret("hooks"), /^whsec_[A-Za-z0-9+/]{43}=$/],
    ["for a recipe survives a header and a query", hmac, () => mintReceiverSecret("signature"), /^rcv_[\w-]{43}$/],
    ["for a shared token survives a header and a query", token, () => mintReceiverSecret("shared_token"), /^rcv_[\w-]{43}$/],
    ["for call_url", hmac, () => mintSigningSecret(), /^whsec_[\w+/]{43}=$/],
  ];
  test.each(rows)("%s, passes the rules of a pasted one, and never repeats", (_rule, fields, mint, form) => {
    const secret = mint();
    expect(secret).toMatch(form);
    expect(readPastedSecret(fields, secret).stored).toBe(secret);
    expect(mint()).not.toBe(secret);
  });
});
