/** Many calls that are stored in one work of the store: each gets its own answer, a broken one alone is refused, and nobody's key or place in the minute is taken by what was undone. */
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

/** All at once. */
const send = (ids: readonly string[]): Promise<Answer[]> =>
  Promise.all(ids.map(async (id) => ({ id, ...(await running.hook("orders", signedCall({ id }))) }) as Answer));
const range = (name: string, count: number): string[] => Array.from({ length: count }, (_, at) => `${name}${at}`);
const stored = async (): Promise<Map<string, string>> => {
  const rows = await running.rows<{ seq: number; id: string }>("SELECT seq, json_extract(payload, '$.event.id') AS id FROM event");
  return new Map(rows.map(({ seq, id }) => [id, Number(seq).toString(16).padStart(15, "0")]));
};
const refuse = (ids: readonly string[]) =>
  refuseRows(running.service.store, "BEFORE INSERT ON event", `json_extract(NEW.payload, '$.event.id') IN (${ids.map((id) => `'${id}'`).join()})`);
const mend = () => takeRowsAgain(running.service.store);

test("the same events many times over: one row each, and every answer names the row of its own event", async () => {
  const ids = range("a", 20);
  const answers = await send([...ids, ...ids.toReversed(), ...ids]);
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  const rows = await stored();
  expect([...rows.keys()].sort()).toEqual(ids.toSorted());
  for (const { id, body } of answers) expect(body.eventId?.endsWith(rows.get(id) ?? "none")).toBe(true);
  expect(answers.filter(({ body }) => body.duplicate !== true)).toHaveLength(20);
});

test.each([[[0]], [[15]], [[29]], [[0, 1, 13, 28, 29]]])(
  "those at %j break: they alone are told to send again, take no key and no place, and are taken when they come again",
  async (places) => {
    const ids = range("b", 30);
    const broken = places.map((at) => `b${at}`);
    await refuse(broken);
    const answers = await send(ids);
    for (const { id, status, body } of answers)
      expect([id, status, body.code]).toEqual([id, broken.includes(id) ? 503 : 200, broken.includes(id) ? "not_recorded" : undefined] as never);
    expect((await stored()).size).toBe(30 - broken.length);
    await mend();
    const again = await send(ids);
    for (const { id, status, body } of again) expect([id, status, body.duplicate ?? false]).toEqual([id, 200, !broken.includes(id)]);
    // Thirty places are taken, however often they were tried.
    const more = await send(range("c", 15));
    expect(more.filter(({ status }) => status === 200)).toHaveLength(MOST - 30);
    expect(more.filter(({ status }) => status === 429)).toHaveLength(5);
    expect((await stored()).size).toBe(MOST);
  },
);

test("a minute that fills up in the middle of them takes as many as it has places, and the next minute as many again", async () => {
  for (const minute of [1, 2, 3]) {
    const answers = await send(range(`m${minute}-`, MOST + 25));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(MOST);
    expect(answers.filter(({ status, body }) => status === 429 && body.code !== undefined)).toHaveLength(25);
    // A duplicate is told so, full or not.
    const [first] = answers.filter(({ status }) => status === 200);
    expect(await send([first?.id ?? ""])).toMatchObject([{ status: 200, body: { duplicate: true, eventId: first?.body.eventId } }]);
    expect((await stored()).size).toBe(MOST * minute);
    await running.clock.advance(60_000);
  }
});
