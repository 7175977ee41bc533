/** Tests requests to unknown receiver names over HTTP: their environment, their stored fields, and the commands next to the server. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { runCommand } from "../kit/cli-io.ts";
import { until } from "../kit/event-flow.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";

const BARE = { headers: { "content-type": "application/json" }, body: '{"private":"of nobody known"}' };

let running: RunningService;

beforeEach(async () => {
  running = await startRunningService({ environments: ["development", "production"], config: { trustedProxies: ["127.0.0.1"] } });
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({}));
});

afterEach(async () => {
  await running[Symbol.asyncDispose]();
});

const from = (address: string) => ({ ...BARE, headers: { ...BARE.headers, "x-forwarded-for": address } });

// biome-ignore lint/suspicious/noExplicitAny: items are asserted whole
async function unknown(environment: "development" | "production" = "development", query = ""): Promise<any[]> {
  const answer = await running.api("GET", `/unknown-calls${query}`, undefined, environment);
  expect(answer.status).toBe(200);
  return answer.body.items;
}

describe("the log of unknown names", () => {
  test("lists a name once, with the nearest receiver, the count and the last caller", async () => {
    await running.hook("order", BARE);
    await running.clock.advance(5_000);
    await running.hook("order", from("198.51.100.7"));
    expect(await unknown()).toEqual([
      {
        id: "u1",
        name: "order",
        hidden: false,
        nearest: "orders",
        cause: "no receiver of the app has this name; did the sender mean orders?",
        source: "198.51.100.7",
        count: 2,
        firstAt: "2026-01-15T12:00:00.000Z",
        at: "2026-01-15T12:00:05.000Z",
      },
    ]);
  });

  test("shows a name in the environment of the nearest receiver, or in all if none is near", async () => {
    await running.hook("order", BARE);
    expect([(await unknown()).length, (await unknown("production")).length]).toEqual([1, 0]);
    await running.hook("never-here", BARE);
    expect((await unknown("production")).map(({ name, nearest }) => ({ name, nearest }))).toEqual([{ name: "never-here", nearest: null }]);
  });

  test("stores 50 names, longest those near a receiver, each cleaned and truncated", async () => {
    await running.hook("order", BARE);
    for (let n = 0; n < 120; n++) await running.hook(`scan-${n}-${"x".repeat(300)}`, from(`198.51.100.${n}`));
    await unknown();
    for (let n = 0; n < 70; n++) await running.hook(`again-${n}`, from(`203.0.113.${n}`));
    const items = await unknown("development", "?limit=200");
    expect(items).toHaveLength(50);
    expect(items.at(-1)).toMatchObject({ name: "order", nearest: "orders" });
    expect(items.every(({ name }) => name.length <= 63)).toBe(true);
    expect(await running.rows("SELECT 1 FROM unknown_request")).toHaveLength(100);
  });

  test("is paged, and survives a restart", async () => {
    for (const name of ["one-name", "two-name", "three-name"]) await running.hook(name, BARE);
    await running.clock.advance(1_000);
    await running.restart();
    const first = await running.api("GET", "/unknown-calls?limit=2");
    expect(first.body.items).toHaveLength(2);
    const rest = await running.api("GET", `/unknown-calls?limit=2&cursor=${first.body.next}`);
    expect([rest.body.items.length, rest.body.next]).toEqual([1, null]);
  });

  test("stores nothing for an unknown app, and the response is the same", async () => {
    const answers = [];
    for (const path of [`/hooks/${APP}/order`, `/hooks/${APP}/never-here`, "/hooks/no-app/order"]) {
      const response = await fetch(`${running.service.url}${path}`, { method: "POST", ...BARE });
      answers.push([response.status, await response.text()]);
    }
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect((await unknown()).map(({ name }) => name).sort()).toEqual(["never-here", "order"]);
    expect(await running.rows("SELECT 1 FROM unknown_request WHERE environment_id NOT IN (SELECT id FROM environment)")).toEqual([]);
  });
});

describe("relay calls next to the running server", () => {
  const run = (...line: string[]) =>
    runCommand(["calls", ...line, "--data-dir", running.dataDir], { cwd: running.dataDir, env: running.commandEnv, clock: running.clock });

  beforeEach(async () => {
    await running.hook("orders", BARE);
    await running.clock.advance(1_000);
    await running.hook("orders", signedCall({ id: "a" }));
    await running.hook("orders", signedCall({ id: "a" }));
    await running.clock.advance(1_000);
    await running.hook("order", BARE);
    await running.clock.advance(1_000);
  });

  test("list shows requests newest first, including those to unknown names", async () => {
    const { said, code } = await run("list");
    expect(code).toBe(0);
    expect(said.split("\n").map((line) => line.replaceAll(/ {2,}/g, " | "))).toEqual([
      "AT | ANSWER | RELAY | TIMES | EVENT | FROM | ID | CAUSE",
      "2026-01-15T12:00:02.000Z | 404 unknown_receiver | order | 1 | 127.0.0.1 | u1 | no receiver of the app has this name; did the sender mean orders?",
      '2026-01-15T12:00:01.000Z | 200 duplicate | orders | 1 | evt_019bc186e1e880008000000000000001 done | 127.0.0.1 | 2 | an event with the id "a" was received before',
      "2026-01-15T12:00:00.000Z | 401 bad_signature | orders | 1 | 127.0.0.1 | 1 | header x-signature is missing",
    ]);
  });

  test.each([
    [["--outcome", "duplicate"], ["2"]],
    [
      ["--relay", "orders"],
      ["2", "1"],
    ],
    [["--relay", "order"], ["u1"]],
    [
      ["--since", "2026-01-15T12:00:01Z"],
      ["u1", "2"],
    ],
    [["--limit", "1"], ["u1"]],
    [["--environment", "production"], []],
  ])("list applies %p", async (filter, ids) => {
    const { said } = await run("list", "--json", ...filter);
    expect(JSON.parse(said).items.map(({ id }: { id: string }) => id)).toEqual(ids);
  });

  test("show prints the cause and the remedy", async () => {
    expect((await run("show", "1")).said.split("\n")).toEqual([
      "1  401 bad_signature",
      "  relay          orders",
      "  at             2026-01-15T12:00:00.000Z",
      "  from           127.0.0.1",
      "  cause          header x-signature is missing",
      expect.stringMatching(/^ {2}What happened {2}The signature or token/),
      expect.stringMatching(/^ {2}Why {12}The relay has an old secret/),
      expect.stringMatching(/^ {2}What to do {5}Store the provider's current secret/),
    ]);
    expect((await run("show", "2")).said).toMatch(/event +(evt_\w+) done, see relay events show \1$/);
    expect(JSON.parse((await run("show", "u1", "--json")).said).call).toMatchObject({ id: "u1", relay: "order" });
    expect(await run("show", "77")).toMatchObject({ code: 1, told: expect.stringContaining("relay requests list") });
  });

  test("tail prints a line per new request", async () => {
    let stop = (): void => undefined;
    const untilStopped = () => new Promise<void>((resolve) => (stop = resolve));
    const line = ["calls", "tail", "--json", "--data-dir", running.dataDir];
    const heard: string[] = [];
    const hear = (text: string): void => void heard.push(text);
    const timers = running.clock.pending.length;
    const tailed = runCommand(line, { cwd: running.dataDir, env: running.commandEnv, clock: running.clock, untilStopped, hear });
    await until("it looks again and again", () => running.clock.pending.length > timers);
    await running.clock.advance(121_000);
    await running.hook("orders", BARE);
    await until("it is told", async () => {
      await running.clock.advance(500);
      return heard.length > 0;
    });
    await running.clock.advance(1_000);
    stop();
    expect((await tailed).said.split("\n").map((text) => JSON.parse(text).id)).toEqual(["3"]);
  });
});
