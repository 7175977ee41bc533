/**
 * Tests that no way to save or carry a definition lets unsigned events act on people through a source: neither a source whose scheme widens under its
 * followers, nor a follower that comes to a source whose sender signs nothing.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { HOOK_SECRET, makeOrders, receiverDefinition, TOKEN_RECIPE } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";

type Definition = Record<string, unknown> & { name?: string };
type Environment = "development" | "production";

const UNSIGNED = { scheme: "shared_token" };
const GRANT = { type: "grant_access", entitlement: "access:course" };
const source = (verify?: Record<string, unknown>, name = "stripe"): Definition =>
  receiverDefinition({ name, ...(verify === undefined ? {} : { verify }) });
const grants = (change: { receiver?: string; trustUnsignedEvents?: boolean } = {}): Definition => {
  const { receiver = "stripe", ...trust } = change;
  return receiverDefinition({
    ...trust,
    name: "grants",
    verify: { scheme: "receiver", receiver },
    map: { event_id: "id", person_email: "email" },
    actions: [GRANT],
  });
};
/** The follower without effects on people, which any source may have. */
const harmless = (): Definition => receiverDefinition({ name: "grants", verify: { scheme: "receiver", receiver: "stripe" } });
const trusted = grants({ trustUnsignedEvents: true });

let running: RunningService;

beforeEach(async () => {
  running = await startRunningService({ environments: ["development", "production"] });
  await makeOrders(running);
  const fields = { order: { type: "text" }, amount: { type: "text" } };
  await running.api("POST", "/collections", { name: "orders", kind: "shared", fields }, "production");
});
afterEach(() => running[Symbol.asyncDispose]());

/** Saves the relay over the API, as a new version if it exists. Returns the response as a text. */
async function save(definition: Definition, environment: Environment = "development"): Promise<string> {
  const path = `/relays/${definition.name}`;
  const known = await running.api("GET", path, undefined, environment);
  const version = known.status === 200 ? known.body.relay.version : 0;
  return JSON.stringify((await running.api("PUT", path, { definition, version }, environment)).body);
}

/** Saves the relays, which must be accepted. A source gets its secret, another one in each environment. */
async function prepare(relays: readonly Definition[], environment: Environment = "development"): Promise<void> {
  for (const definition of relays) {
    const isSource = (definition["trigger"] as { verify: { scheme: string } }).verify.scheme !== "receiver";
    const secret = `${HOOK_SECRET}${environment}${definition.name}`;
    const made = await running.api("POST", "/relays", { definition, ...(isSource ? { secret } : {}) }, environment);
    expect([definition.name, made.status, made.body.message]).toEqual([definition.name, 201, undefined]);
  }
}

async function plan(body: Record<string, unknown>): Promise<string> {
  const { status, body: planned } = await running.api("POST", "/sync/plan", body);
  expect([status, planned.message]).toEqual([200, undefined]);
  return JSON.stringify(planned);
}

async function saveAsAssistant(definition: Definition): Promise<string> {
  const { settings } = (await running.api("GET", "/settings")).body;
  const allowed = await running.api("PUT", "/settings", { version: settings.version, connector: { saves: true } });
  expect([allowed.status, allowed.body.message]).toEqual([200, undefined]);
  const client = new Client({ name: "test", version: "1.0.0" });
  const url = new URL(`${running.service.url}/api/apps/${APP}/development/mcp`);
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers: { authorization: `Bearer ${running.keys.development}` } } });
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  const known = await running.api("GET", `/relays/${definition.name}`);
  const version = known.status === 200 ? known.body.relay.version : 0;
  const answer = await client.callTool({ name: "save_relay", arguments: { name: definition.name, definition, version } });
  await client.close();
  return JSON.stringify(answer.content).replaceAll("\\\\", "\\").replaceAll('\\"', '"');
}

/** A way to bring relays into an environment with other relays. `carry` returns what the way says, refusals and warnings. */
interface Way {
  name: string;
  environment: Environment;
  carry(change: Definition, isNew: boolean): Promise<string>;
}
const WAYS: readonly Way[] = [
  { name: "a save", environment: "development", carry: (change) => save(change) },
  { name: "a save in production", environment: "production", carry: (change) => save(change, "production") },
  { name: "a save by an assistant", environment: "development", carry: saveAsAssistant },
  { name: "a sync", environment: "development", carry: (change) => plan({ relays: [change], replaceEdited: true }) },
  {
    name: "a sync to production",
    environment: "production",
    carry: (change) => plan({ relays: [change], replaceEdited: true, to: "production" }),
  },
  {
    name: "a promote",
    environment: "production",
    async carry(change, isNew) {
      // In development, the change is right: its own source signs, or it has no followers.
      await prepare(isNew ? [source(), source(undefined, "other"), change] : [change]);
      return await plan({ from: "development", to: "production", replaceEdited: !isNew });
    },
  },
];

const REFUSED: [what: string, before: Definition[], change: Definition, isNew: boolean, says: string][] = [
  [
    "a source whose scheme widens under a follower",
    [source(), grants()],
    source(UNSIGNED),
    false,
    "The relay grants follows stripe, and this scheme would break it",
  ],
  [
    "a follower that comes to a widened source",
    [source(UNSIGNED), source(undefined, "other")],
    grants(),
    true,
    "this sender does not sign the event",
  ],
];
const WARNED: [what: string, before: Definition[], change: Definition, isNew: boolean, says: string][] = [
  [
    "a source whose scheme widens under a follower with the opt-in",
    [source(TOKEN_RECIPE), trusted],
    source(UNSIGNED),
    false,
    "The relay grants follows stripe: ",
  ],
];

for (const { name, environment, carry } of WAYS)
  describe(name, () => {
    for (const [what, before, change, isNew, says] of REFUSED)
      test(`refuses ${what}`, async () => {
        await prepare(before, environment);
        const told = await carry(change, isNew);
        expect(told).toContain('"code":"invalid_definition"');
        expect(told).toContain(says);
        const stored = await running.api("GET", `/relays/${change.name}`, undefined, environment);
        if (isNew) expect(stored.status).toBe(404);
        else expect(stored.body.relay.definition).toEqual(before.find(({ name: of }) => of === change.name));
      });
    for (const [what, before, change, isNew, says] of WARNED)
      test(`warns of ${what}`, async () => {
        await prepare(before, environment);
        const told = await carry(change, isNew);
        expect(told).toContain('"code":"unsigned_events"');
        expect(told).toContain(says);
      });
  });

describe("a restore of a version", () => {
  test("refuses a source whose scheme widens under a follower", async () => {
    await prepare([source(UNSIGNED)]);
    await save(source());
    await prepare([grants()]);
    const { body } = await running.api("POST", "/relays/stripe/restore", { restores: 1, version: 2 });
    expect([body.code, body.message]).toEqual(["invalid_definition", expect.stringContaining("The relay grants follows stripe")]);
  });

  test("refuses a follower whose source has widened since", async () => {
    await prepare([source(), grants()]);
    await save(harmless());
    await save(source(UNSIGNED));
    const { body } = await running.api("POST", "/relays/grants/restore", { restores: 1, version: 2 });
    expect([body.code, body.message]).toEqual(["invalid_definition", expect.stringContaining("does not sign the event")]);
  });
});

describe("a follower", () => {
  test("is refused if it moves to a source whose sender does not sign", async () => {
    await prepare([source(), source(UNSIGNED, "other"), grants()]);
    expect(await save(grants({ receiver: "other" }))).toContain("does not sign the event");
    expect(await plan({ relays: [grants({ receiver: "other" })], replaceEdited: true })).toContain("does not sign the event");
  });

  test("is refused if its source becomes a follower of a receiver whose sender does not sign", async () => {
    await prepare([source(), source(UNSIGNED, "other"), grants()]);
    const change = receiverDefinition({ name: "stripe", verify: { scheme: "receiver", receiver: "other" } });
    expect(await save(change)).toContain('"code":"receiver_followed"');
    expect(await plan({ relays: [change, grants({ receiver: "other" })], replaceEdited: true })).toContain("does not sign the event");
  });
});

describe("an approval", () => {
  test("applies nothing if a follower came to the source since its plan", async () => {
    await prepare([source()], "production");
    const wish = { relays: [source(UNSIGNED)], replaceEdited: true, to: "production" };
    const { body: planned } = await running.api("POST", "/sync/plan", wish);
    const asked = await running.api("POST", "/approvals", { ...wish, plan: planned.plan });
    expect([asked.status, asked.body.message]).toEqual([201, undefined]);
    await prepare([grants()], "production");
    // The plan that the owner would approve now has the refusal.
    const again = await running.api("POST", "/approvals", { ...wish, plan: planned.plan });
    expect([again.status, again.body.code]).not.toEqual([201, undefined]);
    const { id } = asked.body.approval;
    const url = `${running.service.url}/api/approvals/${id}/apply`;
    const headers = { authorization: `Bearer ${running.keys.development}`, "content-type": "application/json" };
    expect((await fetch(url, { method: "POST", headers, body: "{}" })).status).toBe(409);
    const { relay } = (await running.api("GET", "/relays/stripe", undefined, "production")).body;
    expect(relay.definition).toEqual(source());
  });
});
