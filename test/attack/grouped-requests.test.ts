/**
 * Many requests that one write stores. Each gets its own response, only a broken one is refused, and work that is rolled back uses up no key and no
 * place in the minute's limit.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { refuseRows, takeRowsAgain } from "../kit/refused-row.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const MOST = 40;
let running: RunningService;

beforeEach(async () => {
  running = await startRunningService({ config: { limits: { ...DEFAULT_LIMITS, verifiedEventsPerMinute: MOST } } });
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({}));
});
afterEach(() => running[Symbol.asyncDispose]());

interface Answer {
  id: string;
  status: number;
  body: { eventId?: string; duplicate?: true; code?: string };
}

/** Sends all events at once. */
const send = (ids: readonly string[]): Promise<Answer[]> =>
  Promise.all(ids.map(async (id) => ({ id, ...(await running.hook("orders", signedCall({ id }))) }) as Answer));
const range = (name: string, count: number): string[] => Array.from({ length: count }, (_, at) => `${name}${at}`);
const stored = async (): Promise<Map<string, string>> => {
  const rows = await running.rows<{ seq: number; id: string }>("SELECT seq, json_extract(payload, '$.event.id') AS id FROM event");
  return new Map(rows.map(({ seq, id }) => [id, Number(seq).toString(16).padStart(15, "0")]));
};
const refuse = (ids: readonly string[]) =>
  refuseRows(running.service.store, "BEFORE INSERT ON event", `json_extract(NEW.payload, '$.event.id') IN (${ids.map((id) => `'${id}'`).join()})`);
const acceptWrites = () => takeRowsAgain(running.service.store);

test("repeated events are stored once each, and every response names the row of the right event", async () => {
  const ids = range("a", 20);
  const answers = await send([...ids, ...ids.toReversed(), ...ids]);
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  const rows = await stored();
  expect([...rows.keys()].sort()).toEqual(ids.toSorted());
  for (const { id, body } of answers) expect(body.eventId?.endsWith(rows.get(id) ?? "none")).toBe(true);
  expect(answers.filter(({ body }) => body.duplicate !== true)).toHaveLength(20);
});

test.each([[[0]], [[15]], [[29]], [[0, 1, 13, 28, 29]]])(
  "only the broken requests at %j are refused, without using a key or a place, and are accepted when they come again",
  async (places) => {
    const ids = range("b", 30);
    const broken = places.map((at) => `b${at}`);
    await refuse(broken);
    const answers = await send(ids);
    for (const { id, status, body } of answers)
      expect([id, status, body.code]).toEqual([id, broken.includes(id) ? 503 : 200, broken.includes(id) ? "not_recorded" : undefined] as never);
    expect((await stored()).size).toBe(30 - broken.length);
    await acceptWrites();
    const again = await send(ids);
    for (const { id, status, body } of again) expect([id, status, body.duplicate ?? false]).toEqual([id, 200, !broken.includes(id)]);
    // Thirty places are used, however often the requests were tried.
    const more = await send(range("c", 15));
    expect(more.filter(({ status }) => status === 200)).toHaveLength(MOST - 30);
    expect(more.filter(({ status }) => status === 429)).toHaveLength(5);
    expect((await stored()).size).toBe(MOST);
  },
);

test("a limit that is reached in the middle of a batch accepts as many requests as it has places, in every minute", async () => {
  for (const minute of [1, 2, 3]) {
    const answers = await send(range(`m${minute}-`, MOST + 25));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(MOST);
    expect(answers.filter(({ status, body }) => status === 429 && body.code !== undefined)).toHaveLength(25);
    // A duplicate is reported as one, whether the limit is reached or not.
    const [first] = answers.filter(({ status }) => status === 200);
    expect(await send([first?.id ?? ""])).toMatchObject([{ status: 200, body: { duplicate: true, eventId: first?.body.eventId } }]);
    expect((await stored()).size).toBe(MOST * minute);
    await running.clock.advance(60_000);
  }
});
