/** Tests the connector's protocol: versions, malformed and oversized messages, notifications, unsupported methods, and origins. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { LATEST_PROTOCOL_VERSION, SUPPORTED_PROTOCOL_VERSIONS } from "@modelcontextprotocol/sdk/types.js";
import { TOOLS } from "../../src/interfaces/api/connector-tool.ts";
import { KITS } from "../../src/rules/senders/kit-registry.ts";
import { type ApiServer, type Reply, startApi } from "../kit/api-server.ts";
import { poll } from "../kit/patience.ts";
import { saveSellingKit } from "../kit/saved-kit.ts";

let api: ApiServer;
beforeAll(async () => {
  api = await startApi();
  const { version } = (await api.call(`${api.E}/settings`, { key: api.keys.dev })).json.settings;
  const { status } = await api.call(`${api.E}/settings`, { method: "PUT", key: api.keys.dev, body: { version, connector: { saves: true } } });
  expect(status).toBe(200);
});
afterAll(() => api[Symbol.asyncDispose]());

const send = (body: unknown, headers: Record<string, string> = {}, method = "POST"): Promise<Reply> =>
  api.call(`${api.E}/mcp`, { method, key: api.keys.dev, headers, ...(method === "POST" ? { body } : {}) });
const ask = (method: string, params?: unknown, id: unknown = 1) => ({ jsonrpc: "2.0", id, method, ...(params === undefined ? {} : { params }) });
const hello = (protocolVersion: string) => ask("initialize", { protocolVersion, capabilities: {}, clientInfo: { name: "x", version: "1" } });

describe("versions", () => {
  test.each(SUPPORTED_PROTOCOL_VERSIONS)("accepts %s", async (version) => {
    const { status, json } = await send(hello(version));
    expect([status, json.result.protocolVersion, json.result.serverInfo.name]).toEqual([200, version, "relay-service"]);
    expect((await send(ask("tools/list"), { "mcp-protocol-version": version })).json.result.tools.length).toBe(TOOLS.length);
  });

  test.each(["1999-01-01", "", "x".repeat(1_000)])("answers an unsupported version (%p) with the newest", async (version) => {
    expect((await send(hello(version))).json.result.protocolVersion).toBe(LATEST_PROTOCOL_VERSION);
  });

  test("rejects an unsupported version in the header", async () => {
    const { status, json } = await send(ask("tools/list"), { "mcp-protocol-version": "1999-01-01" });
    expect([status, json.error.code]).toEqual([400, -32_000]);
  });
});

test.each(["a:99999", "[", "a b"])('under the Host "%s", which no URL can hold, a tool is called all the same', async (host) => {
  expect((await send(ask("tools/list"), { host })).json.result.tools.length).toBe(TOOLS.length);
  expect((await send(ask("tools/call", { name: "list_relays", arguments: { limit: 1 } }), { host })).json.result.isError).toBeUndefined();
});

const ROWS: [what: string, body: unknown, status: number, code: number | string | null][] = [
  ["a ping", ask("ping"), 200, null],
  ["an id that is a text", ask("ping", undefined, "one"), 200, null],
  ["an unknown method", ask("tools/forget"), 200, -32_601],
  ["prompts, which are not offered", ask("prompts/list"), 200, -32_601],
  ["a resource without a URI", ask("resources/read", {}), 200, -32_602],
  ["an unknown resource", ask("resources/read", { uri: "relay://docs/nothing" }), 200, -32_002],
  ["a resource of another scheme", ask("resources/read", { uri: "file:///etc/passwd" }), 200, -32_002],
  ["a resource outside the documentation", ask("resources/read", { uri: "relay://docs/../metrics" }), 200, -32_002],
  ["a call without a name", ask("tools/call", {}), 200, -32_602],
  ["a call whose arguments are a text", ask("tools/call", { name: "list_relays", arguments: "x" }), 200, -32_602],
  ["a call whose arguments are a list", ask("tools/call", { name: "list_relays", arguments: [] }), 200, -32_602],
  ["initialize without required fields", ask("initialize", {}), 200, -32_602],
  ["a notification", { jsonrpc: "2.0", method: "notifications/initialized" }, 202, null],
  ["an unknown notification", { jsonrpc: "2.0", method: "notifications/odd" }, 202, null],
  ["an unsolicited response", { jsonrpc: "2.0", id: 9, result: {} }, 202, null],
  ["another version of JSON-RPC", { jsonrpc: "1.0", id: 1, method: "ping" }, 400, -32_700],
  ["no method", { jsonrpc: "2.0", id: 1 }, 400, -32_700],
  ["an id that is an object", ask("ping", undefined, {}), 400, -32_700],
  ["a batch", [ask("ping"), ask("ping")], 400, "invalid_input"],
  ["a text", '"ping"', 400, "invalid_input"],
  ["no JSON", "{ping", 400, "invalid_json"],
  ["nothing", "", 400, "invalid_input"],
  ["more than a megabyte", JSON.stringify(ask("ping", { pad: "x".repeat(1_050_000) })), 413, "body_too_large"],
  ["endlessly nested JSON", `{"jsonrpc":"2.0","id":1,"method":"ping","params":${"[".repeat(200)}${"]".repeat(200)}}`, 400, "invalid_json"],
];
describe("messages", () => {
  for (const [what, body, status, code] of ROWS)
    test(`${what}: ${status} ${code ?? ""}`, async () => {
      const { json, ...answer } = await send(body);
      expect([answer.status, json?.error?.code ?? json?.code ?? null]).toEqual([status, code]);
      if (status === 202) expect(answer.text).toBe("");
    });
});

describe("the endpoint", () => {
  test.each(["GET", "DELETE"])("rejects %s, because it has no stream and no session", async (method) => {
    expect((await send(undefined, {}, method)).status).toBe(405);
  });

  test("issues no session, and ignores a session in the request", async () => {
    const { headers } = await send(hello(LATEST_PROTOCOL_VERSION));
    expect(headers.get("mcp-session-id")).toBe(null);
    expect((await send(ask("ping"), { "mcp-session-id": "stolen" })).status).toBe(200);
  });

  test("rejects another origin with any key, and accepts the service's own origin", async () => {
    for (const origin of ["https://evil.example", "null", "http://localhost:6274"])
      expect((await send(ask("ping"), { origin })).json.code).toBe("wrong_origin");
    expect((await send(ask("ping"), { origin: api.base })).status).toBe(200);
  });

  test("answers many concurrent messages, each with its own id", async () => {
    const answers = await Promise.all(Array.from({ length: 60 }, (_, id) => send(ask("ping", undefined, id))));
    expect(answers.map(({ json }) => json.id)).toEqual(Array.from({ length: 60 }, (_, id) => id));
  });
});

describe("every tool, with the protocol's official client", () => {
  let client: Client;
  const told = async (name: string, given: Record<string, unknown>) => {
    const { isError = false, content } = await client.callTool({ name, arguments: given });
    return { isError, json: JSON.parse((content as { text: string }[]).at(-1)?.text ?? "null") };
  };
  beforeAll(async () => {
    const requestInit = { headers: { authorization: `Bearer ${api.keys.dev}` } };
    client = new Client({ name: "test", version: "1.0.0" });
    const transport = new StreamableHTTPClientTransport(new URL(`${api.base}${api.E}/mcp`), { requestInit });
    await client.connect(transport as Parameters<typeof client.connect>[0]);
    await api.call(`${api.E}/collections`, {
      method: "POST",
      key: api.keys.dev,
      body: { name: "notes", kind: "shared", fields: { text: { type: "text" } } },
    });
    const trigger = { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id", person_email: "mail" } };
    const actions = [{ type: "write_record", collection: "notes", data: { text: "x" } }];
    const made = await api.call(`${api.E}/relays`, { method: "POST", key: api.keys.dev, body: { definition: { name: "orders", trigger, actions } } });
    expect(made.status).toBe(201);
  });
  afterAll(() => client.close());

  const untilDone = async (id: string): Promise<void> => {
    const isDone = async (): Promise<boolean> => {
      await api.clock.advance(100);
      return (await told("read_event", { id })).json.event.state === "done";
    };
    expect(await poll(isDone, Boolean, 1)).toBe(true);
  };

  test("works, and returns the API's own errors", async () => {
    const sent = await told("send_test_event", { name: "orders" });
    expect([sent.isError, sent.json.outcome]).toEqual([false, "new"]);
    const id = sent.json.eventId;
    await untilDone(id);
    const waiting = (await told("send_test_event", { name: "orders" })).json.eventId;
    await untilDone(waiting);
    // Simulates a failed last attempt.
    const retryMs = api.clock.now() + 60_000;
    await api.service.store.write("app", (tx) =>
      tx.run("UPDATE event SET state = 'queued', next_attempt_at = ?1 WHERE seq = (SELECT max(seq) FROM event)", retryMs),
    );
    const person = (await told("list_people", {})).json.items[0].id;
    await fetch(`${api.base}/hooks/shop/orders`, { method: "POST", body: "{}" });
    const call = (await told("list_calls", {})).json.items[0].id;
    const bulk = (await told("start_bulk_replay", { state: "failed" })).json.replay.id;
    const save = async (method: string, path: string, body?: unknown) => {
      const { status, json, headers } = await api.call(`${api.E}${path}`, { method, body, key: api.keys.dev });
      return { status, body: json, headers };
    };
    for (const kit of KITS.filter(({ sender }) => sender === "lemon-squeezy")) await saveSellingKit({ api: save }, kit);
    const { definition } = (await told("read_relay", { name: "orders" })).json.relay;
    const catalog = (await told("read_catalog", {})).json.version;
    const GIVEN: Record<string, [works: Record<string, unknown>, wrong: Record<string, unknown>]> = {
      list_relays: [{ limit: 1 }, { limit: "many" }],
      read_relay: [{ name: "orders" }, { name: "nobody" }],
      list_events: [{ relay: "orders", state: "done" }, { state: "odd" }],
      read_event: [{ id }, { id: "evt_0" }],
      list_calls: [{ relay: "orders" }, { outcome: "odd" }],
      read_call: [{ id: call }, { id: "none" }],
      list_unknown_calls: [{}, { limit: 0 }],
      list_missing_events: [{ name: "orders" }, { name: "nobody" }],
      list_problems: [{}, { all: "odd" }],
      list_alerts: [{ open: "true" }, { open: "odd" }],
      list_people: [{}, { cursor: 7 }],
      read_person: [{ id: person }, { id: "per_0" }],
      validate_relay: [{ definition: { name: "x" } }, {}],
      explain_definition: [{ definition }, { definition: { name: "x" } }],
      guess_relay: [{ body: "{}" }, {}],
      explain_relay: [
        { name: "orders", event: id },
        { name: "orders", event: "evt_0" },
      ],
      plan_replay: [{ id }, { id: "../relays" }],
      plan_bulk_replay: [{ state: "dead" }, { state: "queued" }],
      start_bulk_replay: [{ state: "dead", perSecond: 5 }, { relay: "orders" }],
      read_bulk_replay: [{ id: bulk }, { id: "rpl_none" }],
      replay_event: [{ id }, { id, run: "all" }],
      retry_event: [{ id: waiting }, { id }],
      pause_relay: [{ name: "orders" }, { name: "orders", why: "x" }],
      resume_relay: [{ name: "orders" }, { name: "" }],
      send_test_event: [
        { name: "orders", person: "bea@example.com" },
        { name: "orders", body: "{no" },
      ],
      simulate_life: [
        { kit: "lemon-squeezy", life: "purchase", run: "178000000000", step: 1 },
        { kit: "lemon-squeezy", life: "wedding" },
      ],
      read_catalog: [{}, { version: 1 }],
      compare: [{}, { prune: true }],
      list_cases: [{ name: "orders" }, { name: "none" }],
      list_senders: [{ q: "stripe", limit: 1 }, { limit: 0 }],
      list_kits: [{ limit: 1 }, { limit: 0 }],
      read_kit: [{ sender: "stripe" }, { sender: "nobody" }],
      read_sender: [{ name: "stripe" }, { name: "nobody" }],
      search_docs: [{ q: "rotate secret" }, { query: "rotate" }],
      save_relay: [
        { name: "orders", definition, version: 1 },
        { name: "orders", definition, version: 1 },
      ],
      save_catalog: [
        { catalog: { access: { beta: { title: "Beta" } } }, version: catalog },
        { catalog: {}, version: catalog },
      ],
      changes: [{ since: "0.1.0" }, { since: "latest" }],
    };
    expect(Object.keys(GIVEN).sort()).toEqual(TOOLS.map(({ name }) => name).sort());
    for (const [name, [works, wrong]] of Object.entries(GIVEN)) {
      const good = await told(name, works);
      expect([name, good.isError, good.json.code]).toEqual([name, false, undefined]);
      const bad = await told(name, wrong);
      expect([name, bad.isError, typeof bad.json.code, bad.json.message?.length > 10]).toEqual([name, true, "string", true]);
    }
  });

  test("reads a person by email address, id and token like the lists do, and names an unknown person", async () => {
    const { person } = (await api.call(`${api.E}/persons`, { method: "POST", key: api.keys.dev, body: { email: "zoe@example.com" } })).json;
    const filed = await api.call(`${api.E}/persons/${person.id}/tokens`, { method: "PUT", key: api.keys.dev, body: { token: "tok-zoe" } });
    expect(filed.status).toBeLessThan(300);
    for (const id of ["zoe@example.com", "Zoe@Example.com", person.id, "tok-zoe"])
      expect((await told("read_person", { id })).json.person?.id).toBe(person.id);
    const nobody = await told("read_person", { id: "nobody@example.com" });
    expect([nobody.isError, nobody.json.code, nobody.json.message]).toEqual([true, "not_found", expect.stringContaining("nobody@example.com")]);
    const { tools } = await client.listTools();
    expect(tools.find(({ name }) => name === "read_person")?.description).toContain("email address");
  });

  test("rejects a field with the name of an Object property like any unknown field", async () => {
    const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pause_relay","arguments":{"name":"orders","__proto__":{"x":1}}}}';
    const { json } = await send(body);
    expect([json.result.isError, JSON.parse(json.result.content[0].text).code]).toEqual([true, "invalid_input"]);
  });

  const production: [name: string, given: object][] = [
    ["send_test_event", { name: "orders" }],
    ["simulate_life", { kit: "lemon-squeezy", life: "purchase" }],
  ];
  test.each(production)("%s sends nothing to production", async (name, given) => {
    const body = ask("tools/call", { name, arguments: given });
    const { json } = await api.call("/api/apps/shop/production/mcp", { method: "POST", key: api.keys.live, body });
    expect(json.result.isError).toBe(true);
    expect(["forbidden", "not_found"]).toContain(JSON.parse(json.result.content[0].text).code);
  });
});
