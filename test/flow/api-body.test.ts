/** Tests the body reader: at most 1 MB, lossless numbers, and a code and a sentence for each rejection. */
import { describe, expect, test } from "bun:test";
import { MAX_MANAGEMENT_BODY_BYTES } from "../../src/base/limit.ts";
import { runScenarios, type Scenario } from "../kit/api-scenario.ts";
import { startApi } from "../kit/api-server.ts";

const notes = {
  name: "notes",
  kind: "shared",
  fields: { count: { type: "number" }, extra: { type: "json" } },
};

const SCENARIOS: readonly Scenario[] = [
  {
    name: "malformed JSON is invalid_json",
    request: "POST /collections",
    call: { body: '{"name":' },
    status: 400,
    answer: { code: "invalid_json" },
  },
  {
    name: "text that is not UTF-8 is invalid_json",
    request: "POST /collections",
    call: { bytes: new Uint8Array([0x22, 0xff, 0xfe, 0x22]) },
    status: 400,
    answer: { code: "invalid_json" },
  },
  {
    name: "an endlessly nested body is invalid_json",
    request: "POST /relays/validate",
    call: { body: `{"definition":${"[".repeat(200_000)}${"]".repeat(200_000)}}` },
    status: 400,
    answer: { code: "invalid_json" },
  },
  {
    name: "a body nested deeper than 64 levels is invalid_json",
    request: "POST /relays/validate",
    call: { body: `{"definition":${"[".repeat(64)}${"]".repeat(64)}}` },
    status: 400,
    answer: {
      code: "invalid_json",
      message: "The request body is nested deeper than 64 levels: send a flatter body.",
    },
  },
  {
    name: "a list or a string is no valid body",
    request: "POST /collections",
    call: { body: "[]" },
    status: 400,
    answer: {
      code: "invalid_input",
      message: "The request body is not a JSON object: send the fields of this route as one object.",
    },
  },
  {
    name: "an empty body has no fields, and the error names the missing one",
    request: "POST /persons",
    status: 400,
    answer: { code: "invalid_input", message: "`email` is missing: it must be an email address." },
  },
  {
    name: "an unknown field is rejected by name with a suggestion, before a missing one",
    request: "POST /persons",
    call: { body: { emial: "bo@example.com" } },
    status: 400,
    answer: {
      code: "invalid_input",
      message: "`emial` is not a known field: rename it to `email`, or remove it.",
      problems: [{ field: "emial" }, { field: "email" }],
    },
  },
  {
    name: "a nested field is rejected by its path",
    request: "PUT /settings",
    call: { body: { version: 1, mail: { smtp: { host: "smtp.example.com", prot: 25 } } } },
    status: 400,
    answer: { code: "invalid_input" },
  },
  {
    name: "a field named __proto__ is an unknown field like any other",
    request: "POST /persons",
    call: { body: '{"email":"bo@example.com","__proto__":{"admin":true}}' },
    status: 400,
    answer: {
      code: "invalid_input",
      message: "`__proto__` is not a known field: remove it; the only field here is email.",
    },
  },
  {
    name: "an integer beyond 2^53 in place of text is rejected without an internal error",
    request: "POST /persons",
    call: { body: '{"email":12345678901234567890}' },
    status: 400,
    answer: { code: "invalid_input", message: "`email` is a number: it must be an email address." },
  },
  {
    name: "an integer beyond 2^53 in place of a number is rejected by its field",
    request: "PUT /settings",
    call: { body: '{"version":9007199254740993}' },
    status: 400,
    answer: {
      code: "invalid_input",
      problems: [{ field: "version" }],
    },
  },
  {
    name: "an integer beyond 2^53 returns with every digit",
    given: (api) => api.call(`${api.E}/collections`, { method: "POST", key: api.keys.dev, body: notes }),
    request: "POST /collections/notes/records",
    call: { body: '{"data":{"extra":{"order":123456789012345678901234567890}}}' },
    status: 201,
    changes: { record: 1 },
    also: (_, reply) => expect(reply.text).toContain('"order":123456789012345678901234567890'),
  },
  {
    name: "a repeated query parameter is rejected",
    request: "GET /events?limit=1&limit=2",
    status: 400,
    answer: { code: "invalid_input", message: "The query contains limit twice: send it once." },
  },
  {
    name: "a limit over 200 is rejected",
    request: "GET /events?limit=201",
    status: 400,
    answer: { code: "invalid_input" },
  },
  {
    name: "a made-up cursor is rejected",
    request: "GET /events?cursor=%F0",
    status: 400,
    answer: { code: "invalid_input" },
  },
];

runScenarios(SCENARIOS);

describe("a body over 1 MB is body_too_large", () => {
  test("when its declared length says so", async () => {
    await using api = await startApi();
    const body = JSON.stringify({ definition: "x".repeat(MAX_MANAGEMENT_BODY_BYTES) });
    const reply = await api.call(`${api.E}/relays/validate`, { method: "POST", key: api.keys.dev, body });
    expect([reply.status, reply.json.code]).toEqual([413, "body_too_large"]);
  });

  test("when reading exceeds the limit and no length is declared", async () => {
    await using api = await startApi();
    const piece = new TextEncoder().encode("x".repeat(64 * 1024));
    let sent = 0;
    const stream = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += piece.byteLength;
        if (sent > 4 * MAX_MANAGEMENT_BODY_BYTES) controller.close();
        else controller.enqueue(piece);
      },
    });
    const headers = { authorization: `Bearer ${api.keys.dev}` };
    const reply = await fetch(`${api.base}${api.E}/relays/validate`, {
      method: "POST",
      headers,
      body: stream,
    });
    expect(reply.status).toBe(413);
    expect(await reply.json()).toMatchObject({ code: "body_too_large" });
  });

  test("only after authentication, so a stranger gets 401", async () => {
    await using api = await startApi();
    const body = "x".repeat(MAX_MANAGEMENT_BODY_BYTES + 1);
    const reply = await api.call(`${api.E}/relays/validate`, { method: "POST", body });
    expect([reply.status, reply.json.code]).toEqual([401, "unauthenticated"]);
  });
});
