/** Tests the cases of a relay: kept example requests that each save and each plan compares, without any effect. */
import { afterEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { HOUR_MS, MAX_CASE_BODY_BYTES, MAX_RELAY_CASES } from "../../src/base/limit.ts";
import { type ApiServer, changesBetween, startApi } from "../kit/api-server.ts";
import { runCommand } from "../kit/cli-io.ts";
import { poll } from "../kit/patience.ts";

const NOTES = { collections: { notes: { kind: "shared", fields: { text: { type: "text" } } } } };
const orders = (when: object = { status: ["paid", "refunded"] }, text = "{{mapped.order}} of {{person.email}}") => ({
  name: "orders",
  trigger: {
    kind: "receiver",
    verify: { scheme: "hooks" },
    map: { event_id: "id", person_email: "email", status: "status", order: "order" },
    when,
  },
  actions: [{ type: "write_record", collection: "notes", data: { text } }],
});
const bodyOf = (status: string) => JSON.stringify({ id: "evt_1", status, order: "o-1", email: "ada@example.com" });
const LIVE = "/api/apps/shop/production";

const send = (api: ApiServer, method: string, path: string, body?: unknown, place = api.E) =>
  api.call(`${place}${path}`, { method, session: true, ...(body === undefined ? {} : { body }) });
const keep = (api: ApiServer, name: string, body: object = { body: bodyOf(name) }) => send(api, "PUT", `/relays/orders/cases/${name}`, body);
const run = async (api: ApiServer, body: object = {}) => (await send(api, "POST", "/relays/orders/cases/run", body)).json.report;
async function sync(api: ApiServer, relays: unknown[], catalog: unknown = NOTES): Promise<void> {
  const files = { relays, catalog, replaceEdited: true };
  const { plan } = (await send(api, "POST", "/sync/plan", files)).json;
  expect((await send(api, "POST", "/sync/apply", { ...files, plan })).status).toBe(200);
}
/** Starts a service with the relay and three cases. */
async function startWithCases(): Promise<ApiServer> {
  const api = await startApi();
  await sync(api, [orders()]);
  for (const name of ["paid", "refunded", "open"]) expect((await keep(api, name)).status).toBe(200);
  return api;
}
async function save(api: ApiServer, definition: object) {
  const { version } = (await send(api, "GET", "/relays/orders")).json.relay;
  return await send(api, "PUT", "/relays/orders", { definition, version });
}
const codesOf = (warnings: { code: string }[]) => warnings.map(({ code }) => code);

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

test("a case keeps a request with its result, and running it writes nothing", async () => {
  await using api = await startWithCases();
  const { cases } = (await send(api, "GET", "/relays/orders/cases")).json;
  const shown = cases.map(({ name, expected }: { name: string; expected: { ends: string; why: string | null } }) => [
    name,
    expected.ends,
    expected.why,
  ]);
  expect(shown).toEqual([
    ["open", "ignored", "when.status"],
    ["paid", "done", null],
    ["refunded", "done", null],
  ]);
  expect(cases[1].expected.actions).toEqual([
    { type: "write_record", rendered: expect.objectContaining({ data: { text: "o-1 of ada@example.com" } }), code: null },
  ]);
  const before = await api.snapshot();
  expect(await run(api)).toMatchObject({ total: 3, asBefore: 3, message: "3 cases: 3 as before." });
  await run(api, { definition: orders({ status: "paid" }) });
  expect(changesBetween(before, await api.snapshot())).toEqual({});
});

test("a real event of the same id, a pause and a hold change no result", async () => {
  await using api = await startWithCases();
  expect((await send(api, "POST", "/relays/orders/test-event", { body: bodyOf("paid") })).json.outcome).toBe("new");
  await send(api, "POST", "/relays/orders/pause");
  expect((await run(api)).message).toBe("3 cases: 3 as before.");
});

test("a save warns of each case whose result changes, and a dry run of a definition reports the same", async () => {
  await using api = await startWithCases();
  const message = "3 cases: 2 as before, `refunded` now ends ignored (when.status).";
  expect((await run(api, { definition: orders({ status: "paid" }) })).message).toBe(message);
  const saved = await save(api, orders({ status: "paid" }));
  expect([saved.status, saved.json.warnings]).toEqual([200, [{ code: "case_changed", field: "name", message }]]);
  const other = await run(api, { definition: orders({ status: ["paid", "refunded"] }, "{{mapped.order}}") });
  expect(other.message).toBe(
    "3 cases: 1 as before, `paid` now has another value in actions.0.data.text, `refunded` now has another value in actions.0.data.text.",
  );
  // The case that is kept again has the new result.
  expect((await keep(api, "refunded", {})).json.case.expected.ends).toBe("ignored");
  expect((await run(api)).message).toBe("3 cases: 3 as before.");
  expect((await run(api, { definition: { ...orders(), actions: [] } }))?.message).toBeUndefined();
});

test("a plan reports the cases of the relays that it saves, and of production those of development too", async () => {
  await using api = await startWithCases();
  const files = { relays: [orders({ status: "paid" })], catalog: NOTES };
  const entryOf = async (place: string, body: object) =>
    (await send(api, "POST", "/sync/plan", body, place)).json.entries.find(({ kind }: { kind: string }) => kind === "relay");
  const before = await api.snapshot();
  const changed = await entryOf(api.E, files);
  expect(codesOf(changed.warnings)).toEqual(["case_changed"]);
  expect(changed.cases).toBe("3 cases: 2 as before, `refunded` now ends ignored (when.status).");
  expect((await entryOf(api.E, { ...files, relays: [orders()] })).cases).toBeUndefined();
  const live = await entryOf(api.E, { from: "development", to: "production" });
  expect([live.state, live.cases, codesOf(live.warnings)]).toEqual(["created", "3 cases: 3 as before.", []]);
  const broken = await entryOf(api.E, { ...files, to: "production" });
  expect(broken.cases).toContain("`refunded` now ends ignored");
  expect(changesBetween(before, await api.snapshot())).toEqual({});
  expect((await send(api, "GET", "/relays", undefined, LIVE)).json.items).toEqual([]);
});

test("cases have limits, and only a relay with a receiver has them", async () => {
  await using api = await startWithCases();
  for (const name of ["Paid", "-x", "a b", "x".repeat(64)])
    expect((await send(api, "PUT", `/relays/orders/cases/${encodeURIComponent(name)}`, { body: "{}" })).json.code).toBe("invalid_input");
  expect((await keep(api, "none", {})).json.message).toContain("there is no case none yet");
  expect((await keep(api, "big", { body: "ä".repeat(MAX_CASE_BODY_BYTES - 1) })).json.code).toBe("invalid_input");
  for (let at = 3; at < MAX_RELAY_CASES; at++) expect((await keep(api, `case${at}`, { body: "{}" })).status).toBe(200);
  expect((await keep(api, "one-more")).json.message).toContain(`The relay has ${MAX_RELAY_CASES} cases`);
  expect((await keep(api, "paid")).status).toBe(200);
  const large = JSON.stringify({ x: "y".repeat(60_000) });
  const kept: number[] = [];
  for (let at = 3; at < 8; at++) kept.push((await keep(api, `case${at}`, { body: large })).status);
  expect(kept).toEqual([200, 200, 200, 200, 400]);
  expect((await run(api)).total).toBe(MAX_RELAY_CASES);
  expect((await send(api, "DELETE", "/relays/orders/cases/paid")).status).toBe(204);
  expect((await send(api, "DELETE", "/relays/orders/cases/paid")).json.code).toBe("not_found");
  const tick = {
    name: "tick",
    trigger: { kind: "schedule", every: "1d" },
    actions: orders().actions.map((one) => ({ ...one, data: { text: "x" } })),
  };
  expect((await send(api, "POST", "/relays", { definition: tick })).status).toBe(201);
  expect((await send(api, "PUT", "/relays/tick/cases/one", { body: "{}" })).json.message).toContain("this relay has no receiver");
  const { items } = (await send(api, "GET", "/audit?kind=change")).json;
  const actions = items.map(({ action }: { action: string }) => action).filter((one: string) => one.startsWith("relay.case"));
  expect(new Set(actions)).toEqual(new Set(["relay.case_kept", "relay.case_removed"]));
});

test("a body that cannot be read is a case too", async () => {
  await using api = await startWithCases();
  expect((await keep(api, "broken", { body: "{" })).json.case.expected).toEqual({ ends: "refused", why: "unreadable_body", actions: [] });
});

test("cases are deleted with their relay, and erasing a person deletes theirs and redacts the address in others", async () => {
  await using api = await startApi();
  await sync(api, [orders()]);
  await keep(api, "before");
  const { person } = (await send(api, "POST", "/persons", { email: "ada@example.com" })).json;
  await keep(api, "paid");
  const names = async () => (await api.rows<{ name: string }>("SELECT name FROM relay_case ORDER BY name")).map(({ name }) => name);
  expect(await names()).toEqual(["before", "paid"]);
  await api.clock.advance(HOUR_MS);
  await api.confirmSessions();
  expect((await send(api, "DELETE", `/persons/${person.id}`)).status).toBe(204);
  expect(await names()).toEqual(["before"]);
  await api.clock.advance(HOUR_MS);
  const readLeft = async () => {
    await api.clock.advance(1_000);
    return JSON.stringify(await api.rows("SELECT body, expected FROM relay_case"));
  };
  expect(await poll(readLeft, (left) => !left.includes("ada@example.com"))).not.toContain("ada@example.com");
  await api.confirmSessions();
  expect((await send(api, "DELETE", "/relays/orders")).status).toBeLessThan(300);
  expect(await names()).toEqual([]);
});

test("relay relays cases keeps, lists, runs and removes cases, and relay sync prints what they report", async () => {
  await using api = await startApi();
  await sync(api, [orders()]);
  const laptop = mkdtempSync(join(tmpdir(), "relay-laptop-"));
  folders.push(laptop);
  const given = { cwd: laptop, clock: systemClock, env: { RELAY_KEY: api.keys.dev, RELAY_URL: api.base } };
  const cases = (...line: string[]) => runCommand(["relays", "cases", "orders", ...line], given);
  writeFileSync(join(laptop, "paid.json"), bodyOf("paid"));
  expect((await cases()).told).toBe("The relay has no cases. Keep one: --keep <case> --data <file>.");
  expect((await cases("--run")).said).toBe("The relay has no cases.");
  expect((await cases("--keep", "paid", "--data", "paid.json")).told).toBe("Kept the case paid: done: write_record.");
  expect((await cases("--keep", "open", "--data", "gone.json")).code).toBe(1);
  expect((await runCommand(["relays", "cases", "orders", "--keep", "open", "--data", "-"], { ...given, input: bodyOf("open") })).told).toBe(
    "Kept the case open: ignored (when.status).",
  );
  expect((await cases("--run")).code).toBe(0);
  expect((await cases()).said).toContain("paid  done: write_record");
  expect(JSON.parse((await cases("--json")).said).cases).toHaveLength(2);
  mkdirSync(join(laptop, "service", "relays"), { recursive: true });
  writeFileSync(join(laptop, "service", "catalog.json"), JSON.stringify(NOTES));
  const write = (definition: object) => writeFileSync(join(laptop, "service", "relays", "orders.json"), JSON.stringify(definition));
  write({ ...orders(), actions: [...orders().actions] });
  write(orders({ status: ["refunded", "paid"] }));
  expect((await runCommand(["sync", "--dry-run"], given)).said).toContain("2 cases: 2 as before.");
  const check = await runCommand(["sync", "--check"], given);
  expect([check.code, check.said]).toEqual([3, expect.stringContaining("changed<br>2 cases: 2 as before.")]);
  write(orders({ status: ["open"] }));
  const dry = await runCommand(["sync", "--dry-run"], given);
  expect([dry.code, dry.told]).toEqual([
    0,
    expect.stringContaining("warning: relay orders: 2 cases: 0 as before, `open` now ends done, `paid` now ends ignored"),
  ]);
  expect((await runCommand(["sync", "--yes"], given)).code).toBe(0);
  const ran = await cases("--run");
  expect([ran.code, ran.said]).toEqual([3, "2 cases: 0 as before, `open` now ends done, `paid` now ends ignored (when.status)."]);
  expect((await cases("--remove", "open")).told).toBe("The case open is removed.");
  expect((await cases("--keep", "a", "--run")).code).toBe(2);
});
