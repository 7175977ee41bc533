import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import type { SignatureFields } from "../../src/rules/verify/recipe.ts";
import { signature } from "../../src/rules/verify/signature.ts";
import { readTimestamp } from "../../src/rules/verify/signature-proof.ts";
import {
  bytes,
  type CallChange,
  deliver,
  EVENT,
  FORM_TYPE,
  JSON_TYPE,
  makeCall,
  NOW_MS,
  NOW_SECONDS,
  outcome,
  RECEIVER_URL,
  recipe,
  SECRET,
  signEvent,
} from "../kit/sender-call.ts";

function mac(text: string | Uint8Array, encoding: "hex" | "base64" | "base64url" = "hex"): string {
  return createHmac("sha256", SECRET).update(text).digest(encoding);
}

function run(fields: SignatureFields, change: CallChange): string {
  return outcome(signature.prepare(fields, SECRET).verify(makeCall(change)));
}

const GOOD = mac(EVENT);
const BAD = "00".repeat(32);

describe("header parts", () => {
  const keyed = recipe({ header: "X-Sig", signatureKey: "v1" });
  const eight = Array.from({ length: 7 }, () => `v1=${BAD}`).join(",");
  const rows: [string, SignatureFields, string | null, string][] = [
    ["the named part verifies", keyed, `v1=${GOOD}`, "verified"],
    ["spaces and tabs around each part are trimmed", keyed, `a=1 , \t v1=${GOOD}\t ,b=2`, "verified"],
    ["unknown and empty parts are skipped", keyed, `,,v2=x,nonsense,v1=${GOOD},`, "verified"],
    ["the value is literal, so that a space after = is part of it", keyed, `v1= ${GOOD}`, "bad_signature"],
    ["the name ends at the first =", keyed, `v1=v1=${GOOD}`, "bad_signature"],
    ["names are case-sensitive", keyed, `V1=${GOOD}`, "bad_signature"],
    ["a bare value never verifies with a declared key", keyed, GOOD, "bad_signature"],
    ["an undeclared key never verifies", recipe({ header: "X-Sig" }), `sha256=${GOOD}`, "bad_signature"],
    ["without signatureKey the header is one opaque value", recipe({ header: "X-Sig" }), GOOD, "verified"],
    ["without signatureKey a list never verifies", recipe({ header: "X-Sig" }), `${GOOD},${GOOD}`, "bad_signature"],
    ["several values under the key: a match first passes", keyed, `v1=${GOOD},v1=${BAD}`, "verified"],
    ["several values under the key: a match last passes", keyed, `v1=${BAD},v1=${GOOD}`, "verified"],
    ["several values under the key: none matching fails", keyed, `v1=${BAD},v1=${BAD}`, "bad_signature"],
    ["eight signatures are read", keyed, `${eight},v1=${GOOD}`, "verified"],
    ["a ninth is too many, even when one is good", keyed, `v1=${GOOD},${eight},v1=${BAD}`, "too_many_signatures"],
    ["only the parts named signatureKey are counted", keyed, `${eight.replaceAll("v1", "v2")},x,y,z,v1=${GOOD}`, "verified"],
    ["the other separator does not split", keyed, `a=1;v1=${GOOD}`, "bad_signature"],
    ["; splits if the recipe sets it", { ...keyed, separator: ";" }, `a=1;v1=${GOOD}`, "verified"],
    ["a missing header fails", keyed, null, "bad_signature"],
    ["an empty header fails", keyed, "", "bad_signature"],
    ["an empty value fails", keyed, "v1=", "bad_signature"],
  ];
  test.each(rows)("%s", (_rule, fields, header, expected) => {
    expect(run(fields, { headers: header === null ? {} : { "X-Sig": header } })).toBe(expected);
  });

  test("the header's name is compared without regard to case", () => {
    expect(run(recipe({ header: "X-SIG" }), { headers: { "x-sig": GOOD } })).toBe("verified");
  });

  test("a signature header that appears twice is joined with a comma", () => {
    const headers: [string, string][] = [
      ["X-Sig", `v1=${BAD}`],
      ["X-Sig", `v1=${GOOD}`],
    ];
    expect(run(keyed, { headers })).toBe("verified");
    expect(run(recipe({ header: "X-Sig" }), { headers: headers.map(([name]) => [name, GOOD]) })).toBe("bad_signature");
  });

  test("too many signatures are reported before any timestamp or signature", () => {
    const fields = recipe({ header: "X-Sig", signatureKey: "v1", timestampKey: "t" });
    expect(run(fields, { headers: { "X-Sig": `t=1,${eight},v1=a,v1=b` } })).toBe("too_many_signatures");
  });
});

describe("encodings", () => {
  const event = '{"id":"needs every alphabet 20"}';
  const base64 = mac(event, "base64");
  const url = mac(event, "base64url");
  test("the event's signature differs between the alphabets", () => {
    expect(base64).toMatch(/[+].*\/|\/.*[+]/);
    expect(base64).toEndWith("=");
  });
  const rows: [string, "hex" | "base64" | "base64url", string, string][] = [
    ["hex in lower case", "hex", mac(event), "verified"],
    ["hex in upper case", "hex", mac(event).toUpperCase(), "verified"],
    ["hex with an extra character", "hex", `${mac(event)}0`, "bad_signature"],
    ["hex with an extra byte", "hex", `${mac(event)}00`, "bad_signature"],
    ["hex with a missing byte", "hex", mac(event).slice(2), "bad_signature"],
    ["hex with a prefix 0x", "hex", `0x${mac(event)}`, "bad_signature"],
    ["hex instead of declared base64", "base64", mac(event), "bad_signature"],
    ["base64 instead of declared hex", "hex", base64, "bad_signature"],
    ["base64 padded", "base64", base64, "verified"],
    ["base64 without padding", "base64", base64.replace(/=+$/, ""), "verified"],
    ["base64 with too much padding", "base64", `${base64}=`, "bad_signature"],
    ["base64 in the other alphabet", "base64", url, "bad_signature"],
    ["base64 with a space inside", "base64", `${base64.slice(0, 10)} ${base64.slice(10)}`, "bad_signature"],
    ["base64url without padding", "base64url", url, "verified"],
    ["base64url padded", "base64url", `${url}=`, "verified"],
    ["base64url in the other alphabet", "base64url", base64, "bad_signature"],
    ["characters outside any alphabet", "hex", "é".repeat(64), "bad_signature"],
  ];
  test.each(rows)("%s", (_rule, encoding, header, expected) => {
    expect(run(recipe({ header: "X-Sig", encoding }), { headers: { "X-Sig": header }, body: event })).toBe(expected);
  });

  test("base64 with stray bits in its last character does not match", () => {
    const last = base64.at(-2) ?? "";
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const stray = `${base64.slice(0, -2)}${alphabet[alphabet.indexOf(last) + 1]}=`;
    expect(Buffer.from(stray, "base64").equals(Buffer.from(base64, "base64"))).toBe(true);
    expect(run(recipe({ header: "X-Sig", encoding: "base64" }), { headers: { "X-Sig": stray }, body: event })).toBe("bad_signature");
  });
});

describe("timestamps", () => {
  const fields = recipe({ header: "X-Sig", timestampHeader: "X-Time", signedPayload: "{timestamp}.{body}" });
  const seconds = NOW_MS / 1000;
  const at = (digits: string, given = digits) => run(fields, { headers: { "X-Sig": mac(`${digits}.${EVENT}`), "X-Time": given } });

  const rows: [string, string, string][] = [
    ["the current second verifies", String(seconds), "verified"],
    ["exactly 300 seconds old verifies", String(seconds - 300), "verified"],
    ["301 seconds old does not", String(seconds - 301), "bad_signature"],
    ["exactly 300 seconds ahead verifies", String(seconds + 300), "verified"],
    ["301 seconds ahead does not", String(seconds + 301), "bad_signature"],
    ["13 digits are milliseconds", String(NOW_MS), "verified"],
    ["exactly 300,000 milliseconds old verifies", String(NOW_MS - 300_000), "verified"],
    ["300,001 milliseconds old does not", String(NOW_MS - 300_001), "bad_signature"],
    ["12 digits are milliseconds, here in 2001", "999999999999", "bad_signature"],
    ["11 digits are seconds, with leading zeros as signed", `0${seconds}`, "verified"],
    ["14 digits never verify", `0${NOW_MS}`, "bad_signature"],
    ["no digits never verify", "", "bad_signature"],
    ["a plus sign never verifies", `+${seconds}`, "bad_signature"],
    ["a minus sign never verifies", `-${seconds}`, "bad_signature"],
    ["a fraction never verifies", `${seconds}.0`, "bad_signature"],
    ["an exponent never verifies", "17684784e2", "bad_signature"],
    ["hex never verifies", "0x6968d480", "bad_signature"],
    ["an ISO time never verifies", "2026-01-15T12:00:00Z", "bad_signature"],
  ];
  test.each(rows)("%s", (_rule, digits, expected) => {
    expect(at(digits)).toBe(expected);
  });

  test.each([
    ["12 digits are milliseconds", 999_999_999_999],
    ["11 digits are seconds", 99_999_999_999_000],
  ])("%s at the clock's time", (_rule, nowMs) => {
    const digits = nowMs < 1e12 ? String(nowMs) : String(nowMs / 1_000);
    expect(readTimestamp(digits, { nowMs }, 300)).toMatchObject({ digits });
    expect(readTimestamp(digits, { nowMs: nowMs + 301_000 }, 300)).toContain("seconds old");
  });

  test("digits of other scripts never verify", () => {
    const body = JSON.stringify({ time: "١٧٦٨٤٧٨٤٠٠" });
    const inBody = recipe({ header: "X-Sig", timestampField: "time", signedPayload: "{timestamp}.{body}" });
    expect(run(inBody, { headers: { "X-Sig": mac(`١٧٦٨٤٧٨٤٠٠.${body}`) }, body })).toBe("bad_signature");
  });

  test("a fresh timestamp other than the signed one never verifies", () => {
    expect(at(String(seconds), String(seconds + 7))).toBe("bad_signature");
  });

  test("a missing timestamp never verifies", () => {
    expect(run(fields, { headers: { "X-Sig": mac(`.${EVENT}`) } })).toBe("bad_signature");
  });

  test("a timestamp header that appears twice never verifies, even with equal values", () => {
    const headers: [string, string][] = [
      ["X-Sig", mac(`${seconds}.${EVENT}`)],
      ["X-Time", String(seconds)],
      ["X-Time", String(seconds)],
    ];
    expect(run(fields, { headers })).toBe("bad_signature");
  });

  test("a timestamp part that appears twice never verifies, even with equal values", () => {
    const parts = recipe({ header: "X-Sig", signatureKey: "v1", timestampKey: "t" });
    const good = `v1=${mac(`${seconds}.${EVENT}`)}`;
    expect(run(parts, { headers: { "X-Sig": `t=${seconds},${good}` } })).toBe("verified");
    expect(run(parts, { headers: { "X-Sig": `${good},t=${seconds}` } })).toBe("verified");
    expect(run(parts, { headers: { "X-Sig": `t=${seconds},t=${seconds},${good}` } })).toBe("bad_signature");
  });

  test("toleranceSeconds narrows the window in both directions", () => {
    const narrow = { ...fields, toleranceSeconds: 10 };
    const when = (digits: number) => run(narrow, { headers: { "X-Sig": mac(`${digits}.${EVENT}`), "X-Time": String(digits) } });
    expect([seconds - 11, seconds - 10, seconds + 10, seconds + 11].map(when)).toEqual(["bad_signature", "verified", "verified", "bad_signature"]);
  });

  const jsonRows: [string, unknown, string, string][] = [
    ["a JSON integer counts as its digits", seconds, String(seconds), "verified"],
    ["a JSON string of digits counts", String(seconds), String(seconds), "verified"],
    ["a negative integer never verifies", -seconds, `-${seconds}`, "bad_signature"],
    ["a fraction never verifies", seconds + 0.5, `${seconds}.5`, "bad_signature"],
    ["null never verifies", null, "", "bad_signature"],
    ["a list never verifies", [seconds], String(seconds), "bad_signature"],
  ];
  test.each(jsonRows)("in a body field: %s", (_rule, time, digits, expected) => {
    const body = JSON.stringify({ meta: { time } });
    const inBody = recipe({
      header: "X-Sig",
      timestampField: "meta.time",
      signedPayload: "{timestamp}.{body}",
    });
    expect(run(inBody, { headers: { "X-Sig": mac(`${digits}.${body}`) }, body })).toBe(expected);
  });

  test("the verdict contains the time when the timestamp leaves the window", () => {
    const verdict = signature
      .prepare(fields, SECRET)
      .verify(makeCall({ headers: { "X-Sig": mac(`${seconds}.${EVENT}`), "X-Time": String(seconds) } }));
    expect(verdict).toEqual({
      verified: true,
      onceText: null,
      expiresAtMs: NOW_MS + 301_000,
      senderEventId: null,
    });
  });
});

describe("the signed payload", () => {
  test("{body} is the received bytes before any parsing, even if they are no UTF-8", () => {
    const body = new Uint8Array([0xff, 0x00, 0x7b, 0x0a]);
    expect(run(recipe({ header: "X-Sig" }), { headers: { "X-Sig": mac(body) }, body })).toBe("verified");
  });

  test("{body} is the received bytes for forms too", () => {
    const body = "b=%31&a=+x";
    const headers = { "X-Sig": mac(body), "content-type": FORM_TYPE };
    expect(run(recipe({ header: "X-Sig" }), { headers, body })).toBe("verified");
  });

  const params = recipe({ header: "X-Sig", signedPayload: "{params}" });
  const paramRows: [string, string, string][] = [
    ["names are sorted, and name and value are joined directly", "b=2&a=1", "a1b2"],
    ["names are sorted by code unit", "a=1&B=2&é=3&_=4", "B2_4a1é3"],
    ["+ is a space and escapes are UTF-8", "a=x+y%20z&n=Zo%C3%AB", "ax y znZoë"],
    ["a repeated name gives its distinct values, sorted", "a=2&a=1&a=2", "a1a2"],
    ["an empty value gives the bare name", "a=&b", "ab"],
    ["no fields result in an empty text", "", ""],
    ["names such as __proto__ are ordinary names", "__proto__=1&constructor=2", "__proto__1constructor2"],
    ["a leading ? belongs to the name", "?a=1", "?a1"],
  ];
  test.each(paramRows)("{params}: %s", (_rule, body, signed) => {
    const verdict = signature.prepare(params, SECRET).verify(makeCall({ headers: { "X-Sig": mac(signed), "content-type": FORM_TYPE }, body }));
    expect(verdict).toMatchObject({ verified: true, expiresAtMs: null });
    expect(verdict.verified && Buffer.from(verdict.onceText ?? []).toString()).toBe(signed);
  });

  test("{params} of another content type is refused with bad_signature, JSON or not", () => {
    for (const body of ['{"a":1}', "a=1"]) {
      expect(run(params, { headers: { "X-Sig": mac("a1"), "content-type": JSON_TYPE }, body })).toBe("bad_signature");
    }
  });

  test("a form is recognized by its type, without parameters and case", () => {
    const headers = {
      "X-Sig": mac("a1"),
      "content-type": "Application/X-WWW-Form-Urlencoded; charset=UTF-8",
    };
    expect(run(params, { headers, body: "a=1" })).toBe("verified");
  });

  const url = recipe({ header: "X-Sig", signedPayload: "{url}{body}" });
  test("{url} is the stored receiver URL, never the Host header", () => {
    const headers = {
      "X-Sig": mac(`${RECEIVER_URL}${EVENT}`),
      host: "evil.example",
      "x-forwarded-host": "evil.example",
    };
    expect(run(url, { headers })).toBe("verified");
    expect(run(url, { headers: { ...headers, "X-Sig": mac(`https://evil.example/hooks${EVENT}`) } })).toBe("bad_signature");
  });

  test("{url} with a query string is refused, whether the shown or the longer URL was signed", () => {
    for (const signed of [RECEIVER_URL, `${RECEIVER_URL}?utm=1`]) {
      const headers = { "X-Sig": mac(`${signed}${EVENT}`) };
      expect(run(url, { headers, search: "?utm=1" })).toBe("bad_signature");
    }
    expect(run(url, { headers: { "X-Sig": mac(`${RECEIVER_URL}${EVENT}`) }, search: "?" })).toBe("bad_signature");
  });

  test("a query string is ignored without {url}", () => {
    expect(run(recipe({ header: "X-Sig" }), { headers: { "X-Sig": GOOD }, search: "?utm=1" })).toBe("verified");
  });

  test("literals keep their place in the recipe", () => {
    const fields = recipe({
      header: "X-Sig",
      timestampHeader: "X-Time",
      signedPayload: "v0:{timestamp}:{url}-{body}",
    });
    const signed = `v0:${NOW_SECONDS}:${RECEIVER_URL}-${EVENT}`;
    expect(run(fields, { headers: { "X-Sig": mac(signed), "X-Time": NOW_SECONDS } })).toBe("verified");
  });
});

describe("body fields and tokens", () => {
  const token = recipe({
    signatureField: "s.sig",
    timestampField: "s.time",
    tokenField: "s.token",
    signedPayload: "{timestamp}{token}",
  });
  const good = { sig: mac(`${NOW_SECONDS}abc`), time: NOW_SECONDS, token: "abc" };

  test("a {token} recipe accepts any body with a good signature, once", () => {
    for (const extra of [1, 2]) {
      const verdict = signature.prepare(token, SECRET).verify(makeCall({ body: JSON.stringify({ s: good, extra }) }));
      expect(verdict.verified && Buffer.from(verdict.onceText ?? []).toString()).toBe(`${NOW_SECONDS}abc`);
      expect(verdict.verified && verdict.expiresAtMs).toBe(NOW_MS + 301_000);
    }
  });

  const rows: [string, unknown, string][] = [
    ["a missing signature", { ...good, sig: undefined }, "bad_signature"],
    ["an empty signature", { ...good, sig: "" }, "bad_signature"],
    ["a signature that is a number", { ...good, sig: 12 }, "bad_signature"],
    ["a signature that is a list", { ...good, sig: [good.sig] }, "bad_signature"],
    ["a missing token", { ...good, token: undefined }, "bad_signature"],
    ["an empty token, even if it was signed", { sig: mac(NOW_SECONDS), time: NOW_SECONDS, token: "" }, "bad_signature"],
    ["a token that is an object", { ...good, token: {} }, "bad_signature"],
    ["a changed token", { ...good, token: "abd" }, "bad_signature"],
    ["inherited fields", "text", "bad_signature"],
  ];
  test.each(rows)("%s never verifies", (_rule, s, expected) => {
    expect(run(token, { body: JSON.stringify({ s }) })).toBe(expected);
  });

  test("an integer token counts as its digits, also beyond 2^53", () => {
    const fields = recipe({ header: "X-Sig", tokenField: "t", signedPayload: "{token}" });
    const headers = { "X-Sig": mac("9007199254740993") };
    expect(run(fields, { headers, body: '{"t":9007199254740993}' })).toBe("verified");
  });

  test("in a form, a field whose literal name contains dots wins over the path", () => {
    const body = new URLSearchParams({
      "s.sig": good.sig,
      "s.time": good.time,
      "s.token": good.token,
    }).toString();
    expect(run(token, { headers: { "content-type": FORM_TYPE }, body })).toBe("verified");
  });

  test("a form's repeated name is a list, which is no signature", () => {
    const body = `${new URLSearchParams({ "s.sig": good.sig, "s.time": good.time, "s.token": good.token })}&s.sig=x`;
    expect(run(token, { headers: { "content-type": FORM_TYPE }, body })).toBe("bad_signature");
  });

  test("a body that is not JSON is refused with invalid_json if the recipe needs a body field", () => {
    for (const body of ["not json", "", '{"s":', bytes('{"a":"\u00ff"}').subarray(0, 7), `${"[".repeat(600)}${"]".repeat(600)}`]) {
      expect(run(token, { body })).toBe("invalid_json");
    }
  });

  test("a body that is not JSON is accepted if the recipe needs no body field", () => {
    expect(run(recipe({ header: "X-Sig" }), { headers: { "X-Sig": mac("not json") }, body: "not json" })).toBe("verified");
  });

  test("invalid_json comes before a missing signature", () => {
    const fields = recipe({ header: "X-Sig", timestampField: "time" });
    expect(run(fields, { body: "not json" })).toBe("invalid_json");
  });
});

describe("a recipe", () => {
  const rows: [string, Partial<SignatureFields>, boolean][] = [
    ["signs the event with {body}", { signedPayload: "{body}" }, true],
    ["signs the event without signedPayload", {}, true],
    ["signs the event with {params}", { signedPayload: "{url}{params}" }, true],
    ["does not sign the event with {token}", { signedPayload: "{token}", tokenField: "t" }, false],
  ];
  test.each(rows)("%s", (_rule, fields, signs) => {
    expect(signature.signsEvent(recipe({ header: "X-Sig", ...fields }))).toBe(signs);
  });

  test("refuses a request that is signed in another way with bad_signature", () => {
    const sent = signEvent(recipe({ header: "X-Sig", algorithm: "hmac-sha512" }), SECRET);
    expect(outcome(signature.prepare(recipe({ header: "X-Sig" }), SECRET).verify(deliver(sent)))).toBe("bad_signature");
  });

  test("that breaks a rule when stored refuses every request", () => {
    const broken = recipe({ header: "X-Sig", signedPayload: "{body}", timestampHeader: "X-Time" });
    expect(run(broken, { headers: { "X-Sig": GOOD, "X-Time": NOW_SECONDS } })).toBe("bad_signature");
  });

  test("with an empty secret refuses every request, also one signed with the empty secret", () => {
    const verifier = signature.prepare(recipe({ header: "X-Sig" }), "");
    const signed = createHmac("sha256", "").update(EVENT).digest("hex");
    expect(outcome(verifier.verify(makeCall({ headers: { "X-Sig": signed } })))).toBe("bad_signature");
  });

  test("uses the secret's full text as HMAC key, including whsec_", () => {
    const secret = "whsec_Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";
    const signed = createHmac("sha256", Buffer.from(secret)).update(EVENT).digest("hex");
    const verifier = signature.prepare(recipe({ header: "X-Sig" }), secret);
    expect(outcome(verifier.verify(makeCall({ headers: { "X-Sig": signed } })))).toBe("verified");
  });

  test("never includes the body, the signature or the secret in a cause", () => {
    const verdict = signature.prepare(recipe({ header: "X-Sig" }), SECRET).verify(makeCall({ headers: { "X-Sig": BAD } }));
    const cause = verdict.verified ? "" : verdict.cause;
    expect(cause).not.toBe("");
    for (const text of [SECRET, BAD, "evt_1"]) expect(cause).not.toContain(text);
  });
});
