import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Value } from "typebox/value";
import { type JsonObject, parseJson } from "../../src/base/json.ts";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import type { CallOutcome, CallRequest } from "../../src/platform/outbound/caller.ts";
import { type CallUrl, callUrl } from "../../src/rules/action/call-url.ts";
import type { ActionOutcome, ActionPorts, ActionRun } from "../../src/rules/action/contract.ts";
import type { Writer } from "../../src/store/port.ts";

const golden = join(import.meta.dir, "../golden");
const noStore = {} as Writer;
const action: CallUrl = { type: "call_url", url: "https://a.example/x" };

function makeRun(more: Partial<ActionRun> = {}): ActionRun {
  return {
    environmentId: 1,
    movesFrom: null,
    appId: "app",
    local: false,
    nowMs: 1_767_603_600_000,
    relay: { id: "rly_0199b7a1f3c07d3e8a5b6c7d8e9f0a1c", name: "order-paid" },
    event: {
      id: "evt_0199b7a1f3c07d3e8a5b6c7d8e9f0a1b",
      arrival: 1,
      arrivedAtMs: 1_767_603_600_000,
      run: 1,
      trigger: "receiver",
      payload: parseJson(
        '{"event":{"id":12345678901234567890,"type":"order.paid","total":42.5,"note":"Grüße 👋\\n\\"quoted\\""},"mapped":{"event_id":12345678901234567890,"event_type":"order.paid","person_email":"ada@example.com"}}',
      ) as JsonObject,
      truncated: false,
    },
    person: { id: "per_0199b7a1f3c07d3e8a5b6c7d8e9f0a1d", email: "ada@example.com", status: "active" },
    results: [{ type: "grant_access", outcome: "done", after: { entitlement: "pro", until: null } }],
    render: (text) => text,
    renderRef: (text) => text,
    renderData: (value) => value,
    warn: () => undefined,
    limits: DEFAULT_LIMITS,
    signingSecret: "secret",
    previousSigningSecret: null,
    ...more,
  };
}

/** Runs the action against a URL that answers `outcome`, and returns the requests too. */
async function runCall(outcome: CallOutcome, run = makeRun()) {
  const requests: CallRequest[] = [];
  const doors: ActionPorts = {
    caller: {
      async call(request) {
        requests.push(request);
        return outcome;
      },
    },
    mailer: { send: () => Promise.reject(new Error("no mail")) },
  };
  const intent = await callUrl.intend(noStore, action, run);
  if ("outcome" in intent) return { result: intent, requests };
  const sent = await callUrl.send(intent.plan, run, doors);
  return { result: await callUrl.settle(noStore, intent.plan, sent, run), requests };
}

const SENT = { method: "POST", url: "https://example.com/relay", headers: { "user-agent": "x" } } as const;
const answered = (status: number, body = "said"): CallOutcome => ({
  kind: "answered",
  ok: status >= 200 && status < 300,
  status,
  body,
});

describe("the notice", () => {
  test("has the specification's body, keeps every digit, and is rendered once", async () => {
    const { requests } = await runCall(answered(200));
    const body = await Bun.file(join(golden, "outbound-notice.json")).text();
    expect(requests).toEqual([{ url: action.url, body, signingSecret: "secret", local: false }]);
  });

  test("is the same on every attempt and replay", async () => {
    const first = await runCall(answered(500));
    const second = await runCall(answered(200), makeRun({ nowMs: 1_767_700_000_000 }));
    expect(second.requests).toEqual(first.requests);
    expect(callUrl.repeats).toBe(true);
  });

  test("with Standard Webhooks headers has the event's id on every attempt and replay", async () => {
    const signingSecret = "whsec_AAEC/w==";
    const intend = (nowMs: number, standardWebhooks: boolean) =>
      callUrl.intend(noStore, { ...action, standardWebhooks }, makeRun({ nowMs, signingSecret }));
    const body = await Bun.file(join(golden, "outbound-notice.json")).text();
    const plan = { url: action.url, body, signingSecret };
    const signed = { plan: { ...plan, webhookId: "evt_0199b7a1f3c07d3e8a5b6c7d8e9f0a1b" } };
    expect(await intend(1_767_603_600_000, true)).toEqual(signed);
    expect(await intend(1_767_700_000_000, true)).toEqual(signed);
    expect(await intend(1_767_603_600_000, false)).toEqual({ plan });
  });

  test("of an event without a person has person null", async () => {
    const run = makeRun({ person: null, results: [] });
    const { requests } = await runCall(answered(200), run);
    expect(parseJson(requests[0]?.body ?? "")).toMatchObject({ person: null, results: [] });
  });

  test("of local development can go to localhost", async () => {
    const { requests } = await runCall(answered(200), makeRun({ local: true }));
    expect(requests[0]?.local).toBe(true);
  });
});

describe("the outcome", () => {
  const failed = (code: string, words: string, answer?: { status: number; body: string }) =>
    ({
      outcome: "failed",
      code,
      final: false,
      message: expect.stringContaining(words) as unknown as string,
      ...(answer ? { answer } : {}),
    }) as ActionOutcome;
  const rows: [rule: string, sent: CallOutcome, expected: ActionOutcome][] = [
    ["reports success for a 2xx response, and stores the response", answered(202), { outcome: "done", answer: { status: 202, body: "said" } }],
    [
      "stores the exchange",
      { kind: "answered", ok: true, status: 200, headers: { server: "x" }, body: "", request: SENT },
      { outcome: "done", request: SENT, answer: { status: 200, headers: { server: "x" }, body: "" } },
    ],
    [
      "stores a request that got no response",
      { kind: "unreachable", code: "timeout", message: "late", request: SENT },
      { ...failed("timeout", "late"), request: SENT },
    ],
    ["reports a failure for a redirect", answered(307), failed("redirect", "redirects are not followed", { status: 307, body: "said" })],
    ["reports a failure for any other response", answered(404), failed("http_error", "404", { status: 404, body: "said" })],
    ["names the address rule that the host breaks", { kind: "refused", code: "private_address", message: "why" }, failed("private_address", "why")],
    [
      "is final if the URL itself breaks an address rule",
      { kind: "refused", code: "own_host", message: "why", final: true },
      { ...failed("own_host", "why"), final: true } as ActionOutcome,
    ],
    ["reports a failure without a response", { kind: "unreachable", code: "timeout", message: "late" }, failed("timeout", "late")],
  ];
  test.each(rows)("%s", async (_rule, sent, expected) => {
    expect((await runCall(sent)).result).toEqual(expected);
  });

  test("without a signing secret is a failure and sends nothing", async () => {
    const { result, requests } = await runCall(answered(200), makeRun({ signingSecret: null }));
    expect(result).toMatchObject({ outcome: "failed", code: "no_signing_secret", final: false });
    expect(requests).toEqual([]);
  });
});

describe("at save", () => {
  const rows: [rule: string, url: string, problems: number][] = [
    ["accepts an https address", "https://a.example/x", 0],
    ["accepts http to localhost, for local development", "http://localhost:3000/x", 0],
    ["refuses other http addresses", "http://a.example/x", 1],
    ["refuses an IP address", "https://8.8.8.8/", 1],
    ["refuses credentials", "https://user:pass@a.example/", 1],
    ["refuses a template", "https://a.example/{{mapped.id}}", 1],
    ["refuses text that is no URL", "a.example", 1],
  ];
  test.each(rows)("%s", (_rule, url, problems) => {
    const found = callUrl.check({ type: "call_url", url });
    expect(found.map((problem) => problem.field)).toEqual(Array(problems).fill("url"));
  });

  const shapes: [rule: string, value: unknown, fits: boolean][] = [
    ["accepts type and url", action, true],
    ["refuses an unknown field", { ...action, method: "GET" }, false],
    ["refuses a missing url", { type: "call_url" }, false],
    ["refuses an empty url", { type: "call_url", url: "" }, false],
  ];
  test.each(shapes)("%s", (_rule, value, fits) => {
    expect(Value.Check(callUrl.shape, value)).toBe(fits);
  });

  test("its examples are valid", () => {
    for (const example of callUrl.examples) {
      expect(Value.Check(callUrl.shape, example)).toBe(true);
      expect(callUrl.check(example)).toEqual([]);
    }
  });
});

test.each(["https://1.2.3.4/", "https://127.0.0.1/", "https://[::1]/", "https://2130706433/", "https://0x7f.1/"])(
  "a save refuses %s, because neither a server nor local development calls it",
  (url) => {
    expect(callUrl.check({ type: "call_url", url })).toEqual([{ field: "url", message: "url names an IP address: use a host name." }]);
  },
);
