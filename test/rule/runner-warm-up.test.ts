/** Before the first event that sends, one that is made up is stored, taken and begun, and undone: nothing of it stays, and nothing leaves the house. */
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

/** What stands within the transaction before it is undone. */
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
  return Promise.all(["event", "run", "effect", "ran_actions", "record", "email", "person", "alert", "audit"].map(count));
}

const lists: [rule: string, definition: Parameters<typeof receiverDefinition>[0], within: object][] = [
  ["a call alone", { actions: [CALL] }, { state: "running", attempts: 1, runs: 1 }],
  ["what is written before a call", { actions: [WRITE, CALL] }, { state: "running", attempts: 1, runs: 1 }],
  ["a mail to a person whom the made-up event does not name", { map: PERSON_MAP, actions: [MAIL] }, { state: "failed", attempts: 1, runs: 1 }],
];
test.each(lists)("%s: is come to and undone, and the first event is as if nothing had been", async (_rule, definition, within) => {
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
  expect(await running.rows("SELECT seq FROM event")).toEqual([{ seq: 1 }]);
});

test("where an event of the relay is due, none is made up", async () => {
  await saveRelay(running, receiverDefinition({ actions: [CALL] }));
  await running.service.runner.stop();
  await putEvents(running, ["waiting"]);
  expect(await warmUp()).toEqual({ state: "queued", attempts: 0, runs: 0 });
  expect(await running.rows("SELECT state, attempts FROM event")).toEqual([{ state: "queued", attempts: 0 }]);
});
