/** Tests that the list of problems has what Home shows: a hold, dead events and open alerts, among the stored problems, in the same order on each page. */
import { afterAll, describe, expect, test } from "bun:test";
import { MINUTE_MS } from "../../src/base/limit.ts";
import { raiseAlert } from "../../src/platform/audit/alert.ts";
import { raiseProblem } from "../../src/platform/audit/problem.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { startRunningService } from "../kit/running-service.ts";

interface Item {
  id: string;
  code: string;
  target: string;
  message: string;
  raisedAt: string;
  clearedAt: string | null;
}

const running = await startRunningService({});
afterAll(() => running[Symbol.asyncDispose]());
await makeOrders(running);

const GRANTER = receiverDefinition({
  name: "granter",
  map: { event_id: "id", person_email: "buyer" },
  actions: [{ type: "grant_access", entitlement: "access:nothing" }],
});

async function hold(held: boolean): Promise<void> {
  const { version } = (await running.api("GET", "/settings")).body.settings;
  expect((await running.api("PUT", "/settings", { version, held })).status).toBe(200);
}

async function list(query = ""): Promise<Item[]> {
  const { status, body } = await running.api("GET", `/problems${query}`);
  expect(status).toBe(200);
  return body.items;
}

const codesOf = (items: readonly Item[]): string[] => items.map(({ code }) => code);

async function homeCodes(): Promise<string[]> {
  const { needs } = (await running.api("GET", "/overview")).body;
  return needs.map(({ code }: { code: string }) => code).sort();
}

describe("the list of problems", () => {
  test("is empty while nothing is wrong", async () => {
    expect(await list()).toEqual([]);
  });

  test("has dead events, a stored problem, an alert without a problem and a hold, newest first, as Home does", async () => {
    await saveRelay(running, GRANTER);
    const event = { id: "dead-1", buyer: "ada@example.com" };
    expect((await running.hook("granter", signedCall(event))).status).toBe(200);
    await running.drain();
    const [environment] = await running.rows<{ id: number }>("SELECT id FROM environment WHERE name = 'development'");
    const environmentId = Number(environment?.id);
    for (const act of ["problem", "alert"]) {
      await running.clock.advance(MINUTE_MS);
      const row = { environmentId, target: "relay:granter", message: `A ${act}.`, nowMs: running.clock.now() };
      await running.service.store.write("app", async (tx) =>
        act === "problem"
          ? void (await raiseProblem(tx, { ...row, code: "relay_uncalled" }))
          : void (await raiseAlert(tx, { ...row, code: "events_dropped" })),
      );
    }
    await running.clock.advance(MINUTE_MS);
    await hold(true);
    const items = await list();
    expect(codesOf(items)).toEqual(["environment_held", "events_dropped", "relay_uncalled", "relay_failed"]);
    expect(codesOf(items).sort()).toEqual(await homeCodes());
    expect(items[0]?.message).toContain("on hold");
    expect(items.at(-1)).toMatchObject({ target: "relay:granter", clearedAt: null, message: expect.stringMatching(/^1 event is dead since /) });
  });

  test("gives the same items page by page, with the same ids", async () => {
    const all = await list();
    for (const limit of [1, 2, 3]) {
      const paged: Item[] = [];
      let next: string | null = null;
      do {
        const { body } = await running.api("GET", `/problems?limit=${limit}${next === null ? "" : `&cursor=${next}`}`);
        expect(body.items.length).toBeLessThanOrEqual(limit);
        paged.push(...body.items);
        next = body.next;
      } while (next !== null);
      expect([limit, paged]).toEqual([limit, all]);
    }
  });

  test("drops each item with its cause", async () => {
    await hold(false);
    const { body } = await running.api("GET", "/alerts?open=true");
    for (const { id } of body.items) await running.api("POST", `/alerts/${id}/resolve`);
    expect(codesOf(await list())).toEqual(["relay_uncalled"]);
    expect(codesOf(await list("?all=true"))).toEqual(["relay_uncalled"]);
  });
});
