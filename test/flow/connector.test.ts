/** Tests the connector with the protocol's official client: over HTTP, and over standard input and output of the real command. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { parseJson } from "../../src/base/json.ts";
import { RELEASES } from "../../src/base/release/change.ts";
import { type ApiServer, startApi } from "../kit/api-server.ts";
import { startCli } from "../kit/cli-process.ts";

const MAIN = join(import.meta.dir, "..", "..", "src", "main.ts");
const WRITES = ["pause_relay", "replay_event", "resume_relay", "retry_event", "send_test_event", "simulate_life", "start_bulk_replay"];

const definition = (name: string) => ({
  name,
  trigger: { kind: "schedule", every: "1h" },
  actions: [{ type: "write_record", collection: "notes", data: { text: "hour" } }],
});

interface Told {
  isError: boolean;
  texts: string[];
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers by their fields
  json: any;
}

async function call(client: Client, name: string, given: Record<string, unknown> = {}): Promise<Told> {
  const answer = await client.callTool({ name, arguments: given });
  const texts = (answer.content as { type: string; text: string }[]).map(({ text }) => text);
  return { isError: answer.isError === true, texts, json: parseJson(texts.at(-1) ?? "null") };
}

async function connect(url: string, key: string): Promise<Client> {
  const client = new Client({ name: "test", version: "1.0.0" });
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit });
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  return client;
}

describe("over HTTP", () => {
  let api: ApiServer;
  let client: Client;
  beforeAll(async () => {
    api = await startApi();
    await api.call(`${api.E}/collections`, { method: "POST", key: api.keys.dev, body: { name: "notes", kind: "owned", fields: {} } });
    const made = await api.call(`${api.E}/relays`, { method: "POST", key: api.keys.dev, body: { definition: definition("hourly") } });
    expect(made.status).toBe(201);
    client = await connect(`${api.base}${api.E}/mcp`, api.keys.dev);
  });
  afterAll(async () => {
    await client.close();
    await api[Symbol.asyncDispose]();
  });

  test("every tool declares its purpose, its input and whether it writes", async () => {
    const { tools } = await client.listTools();
    expect(
      tools
        .filter(({ annotations }) => annotations?.readOnlyHint !== true)
        .map(({ name }) => name)
        .sort(),
    ).toEqual(WRITES);
    for (const { name, description, inputSchema, annotations } of tools) {
      expect([name, description?.endsWith("."), inputSchema.type, inputSchema.additionalProperties]).toEqual([name, true, "object", false]);
      expect(annotations?.destructiveHint === true && annotations.readOnlyHint === true).toBe(false);
    }
    expect(tools.find(({ name }) => name === "replay_event")?.annotations?.destructiveHint).toBe(true);
    const events = tools.find(({ name }) => name === "list_events")?.inputSchema;
    expect(Object.keys(events?.properties ?? {})).toContain("state");
  });

  test("numbers and switches in inputs are numbers and booleans", async () => {
    const { tools } = await client.listTools();
    const typed = tools.flatMap(({ name, inputSchema }) =>
      Object.entries((inputSchema.properties ?? {}) as Record<string, { type?: string; description?: string }>).map(([field, one]) => ({
        at: `${name}.${field}`,
        ...one,
      })),
    );
    const ofType = (type: string) => typed.filter((one) => one.type === type).map(({ at }) => at);
    expect(typed.filter(({ description, type }) => description?.startsWith("an integer") && type !== "integer")).toEqual([]);
    expect(JSON.stringify(typed)).not.toContain('"true"');
    expect(ofType("integer")).toContain("list_events.limit");
    expect(ofType("boolean")).toEqual(expect.arrayContaining(["list_alerts.open", "list_problems.all"]));
    expect((await call(client, "list_alerts", { open: true, limit: 1 })).isError).toBe(false);
  });

  test("the documentation and the schemas are resources", async () => {
    const { resources } = await client.listResources();
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual(["relay://docs/errors/{code}", "relay://docs/senders/{name}"]);
    const read = async (uri: string) => {
      const [content] = (await client.readResource({ uri })).contents as { uri: string; mimeType: string; text: string }[];
      return content;
    };
    for (const { uri, mimeType } of resources) expect(await read(uri)).toMatchObject({ uri, mimeType, text: expect.stringMatching(/^[#{]/) });
    const schema = parseJson((await read("relay://docs/definition.schema.json"))?.text ?? "") as { properties: object };
    expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining(["trigger", "actions"]));
    expect((await read("relay://docs/definition#conditions"))?.text).toStartWith("# ");
    expect((await read("relay://docs/errors/bad_signature"))?.text).toContain("What to do");
    expect((await read("relay://docs/senders/stripe"))?.text).toContain("Stripe");
  });

  const LISTS = ["list_relays", "list_events", "list_calls", "list_unknown_calls", "list_problems", "list_alerts", "list_people", "list_senders"];
  for (const name of LISTS)
    test(`${name} returns the answer of its route`, async () => {
      const { isError, texts, json } = await call(client, name, { limit: 5 });
      expect([isError, texts.length]).toEqual([false, 2]);
      expect(texts[0]).toContain("Strangers");
      expect(json.items).toBeArray();
    });

  test("a relay can be read, explained, paused and resumed", async () => {
    expect((await call(client, "read_relay", { name: "hourly" })).json.relay.definition).toEqual(definition("hourly"));
    expect((await call(client, "explain_relay", { name: "hourly" })).json.explanation.steps).toBeArray();
    expect((await call(client, "pause_relay", { name: "hourly" })).json.relay.state).toBe("paused");
    expect((await call(client, "resume_relay", { name: "hourly" })).json.relay.state).toBe("active");
    const audit = await api.call(`${api.E}/audit?action=relay.paused`, { key: api.keys.dev });
    expect(audit.json.items[0].actor).toStartWith("key:");
  });

  test("a definition can be validated without saving it", async () => {
    const { json } = await call(client, "validate_relay", { definition: { ...definition("other"), actions: [] } });
    expect(json.problems.map(({ field }: { field: string }) => field)).toEqual(["actions"]);
    expect((await call(client, "list_relays")).json.items).toHaveLength(1);
  });

  test("the changes since a version match the feed", async () => {
    const versionsOf = ({ releases }: { releases: { version: string }[] }) => releases.map(({ version }) => version);
    const all = RELEASES.map(({ version }) => version);
    expect(versionsOf((await call(client, "changes", { since: all[4] })).json)).toEqual(all.slice(0, 4));
    const { json } = await call(client, "changes", { since: "0.2.0" });
    expect(versionsOf(json)).toEqual(all.slice(0, json.releases.length));
    expect(json).toMatchObject({ cut: true, note: expect.stringContaining("since") });
  });

  const REFUSED: [string, Record<string, unknown>, string][] = [
    ["read_relay", { name: "nobody" }, "not_found"],
    ["read_relay", {}, "invalid_input"],
    ["read_relay", { name: { toString: 1, valueOf: 1 } }, "invalid_input"],
    ["read_relay", { name: ["orders"] }, "invalid_input"],
    ["pause_relay", { name: "../keys" }, "not_found"],
    ["list_events", { relay: null }, "invalid_input"],
    ["read_event", { id: "evt_0" }, "not_found"],
    ["list_events", { state: "odd" }, "invalid_input"],
    ["list_events", { nothing: "x" }, "invalid_input"],
    ["replay_event", { id: "evt_0", run: "all" }, "invalid_input"],
    ["plan_bulk_replay", {}, "invalid_input"],
    ["start_bulk_replay", { state: "dead", perSecond: 0 }, "invalid_input"],
    ["read_bulk_replay", { id: "rpl_none" }, "not_found"],
    ["changes", { since: "latest" }, "invalid_input"],
    ["read_call", { id: "99999" }, "not_found"],
    ["read_call", { id: "u1" }, "not_found"],
    ["read_catalog", { version: "x" }, "invalid_input"],
    ["compare", { relays: [] }, "invalid_input"],
    ["read_sender", { name: "nobody" }, "not_found"],
    ["search_docs", { q: "x".repeat(300) }, "invalid_input"],
    ["no_such_tool", {}, "not_found"],
  ];
  for (const [name, given, code] of REFUSED)
    test(`${name} ${JSON.stringify(given)} is rejected like in the API`, async () => {
      const { isError, json } = await call(client, name, given);
      expect([isError, json.code, json.docs]).toEqual([true, code, `${api.base}/docs/errors/${code}`]);
      expect(json.message.length).toBeGreaterThan(10);
    });

  test("an error for a live key has no docs", async () => {
    const live = await connect(`${api.base}/api/apps/shop/production/mcp`, api.keys.live);
    const { json } = await call(live, "read_relay", { name: "nobody" });
    expect(Object.keys(json).sort()).toEqual(["code", "message"]);
    await live.close();
  });

  for (const [who, key, status] of [
    ["no key", undefined, 401],
    ["an app key", "app", 403],
    ["another environment's key", "live", 403],
    ["another app's key", "other", 403],
  ] as const)
    test(`${who} reaches no tool`, async () => {
      const body = { jsonrpc: "2.0", id: 1, method: "tools/list" };
      const answer = await api.call(`${api.E}/mcp`, { method: "POST", body, ...(key === undefined ? {} : { key: api.keys[key] }) });
      expect([answer.status, Object.keys(answer.json).includes("code")]).toEqual([status, true]);
    });

  test("an owner's session from another page's origin is rejected", async () => {
    const body = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    const headers = { origin: "https://evil.example" };
    expect((await api.call(`${api.E}/mcp`, { method: "POST", body, session: true, headers })).json.code).toBe("wrong_origin");
  });

  test("read-only mode and the environment's setting hide and reject tools that write", async () => {
    const asked = await connect(`${api.base}${api.E}/mcp?readOnly=true`, api.keys.dev);
    const names = (await asked.listTools()).tools.map(({ name }) => name);
    expect(names.filter((name) => WRITES.includes(name))).toEqual([]);
    expect((await call(asked, "pause_relay", { name: "hourly" })).json.code).toBe("forbidden");
    await asked.close();
    const { version } = (await api.call(`${api.E}/settings`, { key: api.keys.dev })).json.settings;
    const body = { version, connector: { writes: false } };
    expect((await api.call(`${api.E}/settings`, { method: "PUT", session: true, body })).json.settings.connector).toEqual({
      writes: false,
      saves: false,
    });
    expect((await call(client, "pause_relay", { name: "hourly" })).json.code).toBe("forbidden");
    expect((await client.listTools()).tools).toHaveLength(names.length);
    expect((await call(client, "read_relay", { name: "hourly" })).json.relay.state).toBe("active");
    await api.call(`${api.E}/settings`, { method: "PUT", session: true, body: { version: version + 1, connector: { writes: true } } });
  });

  test("long text from outside is truncated, and the answer stays valid JSON", async () => {
    const text = "x".repeat(3_000);
    for (let at = 0; at < 30; at++)
      await api.call(`${api.E}/relays`, { method: "POST", key: api.keys.dev, body: { definition: { ...definition(`no${at}`), [text]: 1 } } });
    const big = { ...definition("other"), trigger: Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`${at}${text}`, at])) };
    const { texts, json } = await call(client, "validate_relay", { definition: big });
    expect(texts[1]?.length).toBeLessThan(70_000);
    expect(json).toBeObject();
  });
});

test("relay mcp works next to a service, and with RELAY_URL and RELAY_KEY", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "relay-mcp-"));
  try {
    await using service = startCli(["dev", "--port", "0"], { cwd });
    const url = new URL((await service.line("Dashboard")).split(/\s+/)[1] ?? "").origin;
    const start = async (line: string[], env: Record<string, string> = {}): Promise<Client> => {
      const client = new Client({ name: "test", version: "1.0.0" });
      const args = [MAIN, "mcp", ...line];
      const own = { PATH: process.env.PATH ?? "", HOME: cwd, ...env };
      await client.connect(new StdioClientTransport({ command: process.execPath, args, cwd, env: own, stderr: "pipe" }));
      return client;
    };
    const direct = await start([]);
    const { tools } = await direct.listTools();
    expect(tools.map(({ name }) => name)).toContain("pause_relay");
    expect((await call(direct, "list_relays")).json.items).toEqual([]);
    expect((await call(direct, "read_relay", { name: "missing" })).json).toMatchObject({ code: "not_found", docs: `${url}/docs/errors/not_found` });
    await using set = startCli(["settings", "set", "connector.saves", "on"], { cwd });
    expect(await set.exited).toBe(0);
    const { version } = (await call(direct, "read_catalog")).json;
    const catalog = { collections: { notes: { kind: "shared", fields: { text: { type: "text" } } } } };
    expect((await call(direct, "save_catalog", { catalog, version })).json).toMatchObject({ changes: 1, file: "service/catalog.json" });
    const saved = await call(direct, "save_relay", { name: "hourly", definition: definition("hourly"), version: 0 });
    expect(saved.json).toMatchObject({ relay: { version: 1 }, file: "service/relays/hourly.json" });
    expect(parseJson(readFileSync(join(cwd, "service/relays/hourly.json"), "utf8"))).toMatchObject(definition("hourly"));
    const readOnly = await start(["--read-only"]);
    expect((await readOnly.listTools()).tools).toHaveLength(tools.length - WRITES.length);
    await direct.close();
    await readOnly.close();

    const cli = async (...line: string[]) => {
      await using ran = startCli(line, { cwd });
      await ran.exited;
      return parseJson(ran.lines().join("\n")) as Record<string, string> & { items: { name: string }[] };
    };
    // Both runs used the one key that the data directory holds.
    expect((await cli("keys", "list", "--json")).items.map(({ name }) => name)).toEqual(["relay mcp"]);
    const { key = "" } = await cli("keys", "create", "--json");
    const far = await start([], { RELAY_URL: url, RELAY_KEY: key });
    // The newest releases come first, as many as a result can hold, and the result says that more exist.
    const { releases, cut, note } = (await call(far, "changes")).json;
    expect({ cut, first: releases[0].version }).toEqual({ cut: true, first: RELEASES[0].version });
    expect(releases.length).toBeLessThan(RELEASES.length);
    expect(note).toContain("limit or since");
    const { releases: newer } = (await call(far, "changes", { since: "0.12.0" })).json;
    expect(newer.map(({ version }: { version: string }) => version)).toEqual(RELEASES.slice(0, -12).map(({ version }) => version));
    service.kill("SIGTERM");
    await service.exited;
    expect(call(far, "list_relays")).rejects.toThrow("No server answers at");
    await far.close();
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
});
