/** The warm-up stores, takes and starts a made-up event before the first event that sends, and rolls it back. It stores nothing and sends nothing. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { warmUpSending } from "../../src/engine/runner/sending.ts";
import type { FencedStore } from "../../src/store/port.ts";
import { CALL, putEvents, sendEvent, showEvent, WRITE } from "../kit/event-flow.ts";
import { FakeCaller } from "../kit/fake-caller.ts";
import { makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const MAIL = { type: "email_person", subject: "Hello", text: "Thank you." };
const PERSON_MAP = { event_id: "id", person_email: "email" };

let running: RunningService;
let caller: FakeCaller;
const mailer = { send: () => Promise.reject(new Error("a mail left the house")) };

beforeEach(async () => {
  caller = new FakeCaller();
  running = await startRunningService({ ports: { caller, mailer } });
  await makeOrders(running);
});
afterEach(() => running[Symbol.asyncDispose]());

/** Returns the state inside the transaction, before it is rolled back. */
async function warmUp(): Promise<unknown> {
  const { relays, leases, log } = running.service;
  const [relay] = (await relays.current()).relays;
  if (relay === undefined) throw new Error("There is no relay.");
  const store = leases.storeOf(relay.environmentId);
  let seen: unknown;
  const write: FencedStore["write"] = (origin, work) =>
    store.write(origin, async (tx) => {
      try {
        return await work(tx);
      } finally {
        seen = await tx.get("SELECT state, attempts, (SELECT count(*) FROM run) AS runs FROM event ORDER BY seq DESC LIMIT 1");
      }
    });
  const ports = { caller, mailer };
  const deps = { store: { ...store, write }, leases, relays, clock: running.clock, log, limits: DEFAULT_LIMITS, ports };
  await warmUpSending(relay, deps);
  return seen;
}

async function standing(): Promise<unknown[]> {
  const count = async (table: string) => [table, ...(await running.rows(`SELECT count(*) AS rows FROM ${table}`))];
  return Promise.all(["event", "run", "effect", "action_list", "record", "email", "person", "alert", "audit"].map(count));
}

const lists: [rule: string, definition: Parameters<typeof receiverDefinition>[0], within: object][] = [
  ["only a call", { actions: [CALL] }, { state: "running", attempts: 1, runs: 1 }],
  ["a write before a call", { actions: [WRITE, CALL] }, { state: "running", attempts: 1, runs: 1 }],
  ["a mail to a person whom the made-up event does not have", { map: PERSON_MAP, actions: [MAIL] }, { state: "failed", attempts: 1, runs: 1 }],
];
test.each(lists)("%s is reached and rolled back, and the first event is unaffected", async (_rule, definition, within) => {
  await saveRelay(running, receiverDefinition(definition));
  const before = await standing();
  running.logged.length = 0;
  expect(await warmUp()).toEqual(within);
  expect(await standing()).toEqual(before);
  expect({ requests: caller.requests, lines: running.lines, logged: running.logged }).toEqual({ requests: [], lines: [], logged: [] });
  if (definition.map !== undefined) return;
  const id = await sendEvent(running, "first");
  await running.drain();
  expect(await showEvent(running, id)).toMatchObject({ state: "done", attempts: 1 });
  expect(caller.ids).toEqual([id]);
  expect(await running.rows("SELECT count(*) AS count FROM event")).toEqual([{ count: 1 }]);
});

test("a relay with a due event gets no made-up event", async () => {
  await saveRelay(running, receiverDefinition({ actions: [CALL] }));
  await running.service.runner.stop();
  await putEvents(running, ["waiting"]);
  expect(await warmUp()).toEqual({ state: "queued", attempts: 0, runs: 0 });
  expect(await running.rows("SELECT state, attempts FROM event")).toEqual([{ state: "queued", attempts: 0 }]);
});
