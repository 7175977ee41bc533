/** Ways to tamper with a signed request. The service must refuse each form and store nothing for it. */
import type { SentRequest } from "./executable-api.ts";
import type { PackageSender } from "./executable-sender.ts";

interface TamperedForm {
  what: string;
  code: "bad_signature" | "too_many_signatures";
  /** Reports whether the form exists for this sender. */
  exists(sender: PackageSender): boolean;
  make(good: SentRequest, sender: PackageSender, nowSeconds: number): SentRequest | Promise<SentRequest>;
  /** True if every sender's own package refuses the form as well. Some check only for stale requests, or accept any number of signatures. */
  refusedByPackages: boolean;
}

const ALWAYS = (): boolean => true;
const OUTSIDE_WINDOW_SECONDS = 330;

function withHeaders(good: SentRequest, change: Record<string, string | null>): SentRequest {
  const headers = Object.entries({ ...good.headers, ...change }).filter((entry) => entry[1] !== null);
  return { ...good, headers: Object.fromEntries(headers) as Record<string, string> };
}

async function signAt(good: SentRequest, sender: PackageSender, secret: string, atSeconds: number) {
  return withHeaders(good, await sender.sign(good.body, secret, atSeconds));
}

/** Changes the first character of the signature itself, after `v1=` or another prefix. */
function changeSignature(value: string): string {
  const start = Math.max(value.lastIndexOf("=", value.length - 4), value.lastIndexOf(",")) + 1;
  return `${value.slice(0, start)}${value[start] === "0" ? "1" : "0"}${value.slice(start + 1)}`;
}

function form(what: string, make: TamperedForm["make"], more: Partial<Omit<TamperedForm, "what" | "make">> = {}): TamperedForm {
  return { what, make, code: "bad_signature", exists: ALWAYS, refusedByPackages: true, ...more };
}

const timestamped = { exists: (sender: PackageSender) => sender.timestamped };

export const TAMPERED_FORMS: readonly TamperedForm[] = [
  form("a value of the body changed", (good) => ({
    ...good,
    body: good.body.replace(/\d(?=\D*$)/, (digit) => String((Number(digit) + 1) % 10)),
  })),
  form("one byte after the body", (good) => ({ ...good, body: `${good.body}\n` })),
  form("another whole body", (good, sender) => ({ ...good, body: sender.makeBody("666") })),
  form("no body", (good) => ({ ...good, body: "" })),
  form("one character of the signature changed", (good, { signatureHeader }) =>
    withHeaders(good, { [signatureHeader]: changeSignature(good.headers[signatureHeader] ?? "") }),
  ),
  form("signed with another secret", (good, sender, nowSeconds) => signAt(good, sender, `${sender.secret.slice(0, -4)}AAAA`, nowSeconds)),
  form("the signature missing", (good, { signatureHeader }) => withHeaders(good, { [signatureHeader]: null })),
  form("the signature empty", (good, { signatureHeader }) => withHeaders(good, { [signatureHeader]: "" })),
  form("the signature in another header", (good, { signatureHeader }) =>
    withHeaders(good, {
      [signatureHeader]: null,
      [`X-${signatureHeader}`]: good.headers[signatureHeader] ?? "",
    }),
  ),
  form("the signature in the URL", (good, { signatureHeader }) => ({
    ...withHeaders(good, { [signatureHeader]: null }),
    search: `?${new URLSearchParams({ [signatureHeader]: good.headers[signatureHeader] ?? "" })}`,
  })),
  form(
    "nine signatures, the first one good",
    (good, { signatureHeader, separator }) => {
      const value = good.headers[signatureHeader] ?? "";
      return withHeaders(good, { [signatureHeader]: `${value}${`${separator}${"0".repeat(64)}`.repeat(8)}` });
    },
    { code: "too_many_signatures", exists: (sender) => sender.separator !== null, refusedByPackages: false },
  ),
  form(
    "signed longer than five minutes ago",
    (good, sender, nowSeconds) => signAt(good, sender, sender.secret, nowSeconds - OUTSIDE_WINDOW_SECONDS),
    timestamped,
  ),
  form(
    "signed for more than five minutes ahead",
    (good, sender, nowSeconds) => signAt(good, sender, sender.secret, nowSeconds + OUTSIDE_WINDOW_SECONDS),
    { ...timestamped, refusedByPackages: false },
  ),
  form(
    "the timestamp changed after signing",
    async (good, sender, nowSeconds) => {
      const signed = await signAt(good, sender, sender.secret, nowSeconds);
      const headers = Object.entries(signed.headers).map(([name, value]) => [name, value.replace(String(nowSeconds), String(nowSeconds + 1))]);
      return { ...signed, headers: Object.fromEntries(headers) };
    },
    timestamped,
  ),
  form("the message id changed", (good) => withHeaders(good, { "webhook-id": "msg_other" }), {
    exists: (sender) => sender.provider === "standardwebhooks",
  }),
];
