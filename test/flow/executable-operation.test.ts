/**
 * Tests an operator's tasks on the compiled executable: hold and release an environment, rotate a secret with an overlap, and read metrics. Also
 * copies, checks and restores its data.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { makeBackupStarter } from "../../src/operator/backup/schedule.ts";
import { dumpTables } from "../kit/data-directory.ts";
import { until } from "../kit/event-flow.ts";
import { type Executable, placeExecutable, type StartedExecutable } from "../kit/executable.ts";
import { type Environment, openEnvironment, postHook } from "../kit/executable-api.ts";
import { sampleOf } from "../kit/prometheus-text.ts";
import { HOOK_SECRET, receiverDefinition, signedCall } from "../kit/relay-definition.ts";

const SHOP = { app: "shop", environment: "production" };
const NEXT_SECRET = "theNextSecretOfTwentyFour1";
const ORDERS = {
  name: "orders",
  kind: "shared",
  fields: { order: { type: "text" }, amount: { type: "text" } },
};

let executable: Executable;
let service: StartedExecutable;
let shop: Environment;
let cwd: string;

beforeAll(async () => {
  executable = placeExecutable();
  cwd = executable.makeFolder();
  service = await executable.start(["serve"], { cwd });
  expect((await executable.run(["apps", "create", "My shop", "--id", "shop"], { cwd })).code).toBe(0);
  shop = await openEnvironment(executable, service, cwd, SHOP);
  expect((await shop.call("POST", "/collections", ORDERS)).status).toBe(201);
  const relay = { definition: receiverDefinition({}), secret: HOOK_SECRET };
  expect((await shop.call("POST", "/relays", relay)).status).toBe(201);
});

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  executable[Symbol.dispose]();
});

const send = async (id: string, secret = HOOK_SECRET): Promise<number> =>
  (await postHook(service, "orders", signedCall({ id }, secret), "shop")).status;

async function hold(held: boolean): Promise<void> {
  const { version } = (await shop.call("GET", "/settings")).body.settings;
  expect((await shop.call("PUT", "/settings", { version, held })).status).toBe(200);
}

/** Lists the written orders, oldest first. */
async function written(): Promise<string[]> {
  return (await shop.list("/collections/orders/records")).map((record) => record.data.order).reverse();
}

/** Reads the metrics after they count the given number of accepted requests. Metrics can be a second old. */
async function readMetrics(accepted: number): Promise<string> {
  for (;;) {
    const text = await (await fetch(`${service.url}/metrics`)).text();
    if (sampleOf(text, 'relay_receiver_calls_total{outcome="accepted"}') >= accepted) return text;
  }
}

test("on hold it answers 200 and runs nothing, and after the release it runs the events in order and updates the metrics", async () => {
  await hold(true);
  const ids = ["a", "b", "c", "d"];
  for (const id of ids) expect(await send(id)).toBe(200);
  const states = (await shop.list("/events")).map((event) => [event.state, event.attempts]);
  expect(states).toEqual(Array(4).fill(["queued", 0]));
  const during = await readMetrics(4);
  expect(sampleOf(during, 'relay_events{state="queued"}')).toBe(4);
  expect(sampleOf(during, 'relay_runs_total{trigger="receiver",outcome="ok"}')).toBe(0);
  expect(await written()).toEqual([]);
  await hold(false);
  expect(await send("e")).toBe(200);
  while ((await shop.list("/events?state=done")).length < 5);
  expect(await written()).toEqual([...ids, "e"]);
  // Standard output arrives separately from the HTTP answers.
  const printed = () => service.said.lines.filter((line) => line.endsWith("1 action · ok"));
  await until("every run is told", () => printed().length >= 5);
  expect(printed()).toHaveLength(5);
  const after = await readMetrics(5);
  expect(sampleOf(after, 'relay_receiver_calls_total{outcome="accepted"}')).toBe(5);
  expect(sampleOf(after, 'relay_runs_total{trigger="receiver",outcome="ok"}')).toBe(5);
});

test("a rotation with an overlap accepts both secrets, and one without an overlap invalidates the old secret at once", async () => {
  const rotate = (value: string, overlapSeconds?: number) =>
    shop.call("PUT", "/relays/orders/secret", { value, ...(overlapSeconds && { overlapSeconds }) });
  expect((await rotate(NEXT_SECRET, 3_600)).body.previousUntil).toBeString();
  expect([await send("f"), await send("g", NEXT_SECRET), await send("h", "nobodysSecretOfTwentyFour1")]).toEqual([200, 200, 401]);
  expect((await rotate(NEXT_SECRET)).status).toBe(200);
  expect([await send("i"), await send("j", NEXT_SECRET)]).toEqual([401, 200]);
});

test("its data is copied while it runs, checked, and restored elsewhere with every row of every table", async () => {
  const run = (...line: string[]) => executable.run(line, { cwd });
  expect((await run("doctor")).code).toBe(0);
  expect((await run("backup", "copy.db", "--with-key")).code).toBe(0);
  const refused = await run("restore", "copy.db");
  expect(refused).toMatchObject({ code: 1, said: "" });
  expect(refused.told).toContain(`in use by relay serve, process ${service.pid}`);
  const copied = dumpTables(join(cwd, "copy.db"));
  const restored = await run("restore", "copy.db", "--key", "copy.db.key", "--data-dir", "elsewhere");
  expect(restored).toMatchObject({ code: 0, said: expect.stringContaining("Restored 8 events") });
  expect(dumpTables(join(cwd, "elsewhere", "relay.db"))).toEqual(copied);
  await using second = await executable.start(["serve", "--data-dir", "elsewhere"], { cwd });
  const again = await postHook(second, "orders", signedCall({ id: "a" }, NEXT_SECRET), "shop");
  expect(again).toMatchObject({ status: 200, body: { duplicate: true } });
});

test("the scheduled backup process creates a backup, and reports the reason if it cannot", async () => {
  const file = join(cwd, "scheduled.db");
  await makeBackupStarter(join(cwd, ".relay"), [executable.file])(file).done;
  expect(Object.keys(dumpTables(file))).toEqual(Object.keys(dumpTables(join(cwd, "copy.db"))));
  const nowhere = makeBackupStarter(join(cwd, "nowhere"), [executable.file])(join(cwd, "none.db"));
  await expect(nowhere.done).rejects.toThrow("nowhere");
});
