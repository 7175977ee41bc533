/**
 * No request may block the event loop for long, even with a full store, because every receiver waits meanwhile. These tests make each route's most
 * expensive calls once, and count the work between two turns of the loop. `npm run bench -- --only lag` measures the milliseconds.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROUTES } from "../../src/interfaces/api/route-list.ts";
import { type FilledService, startFilledService } from "../kit/filled-service.ts";
import { LoopMeter, type TurnWork } from "../kit/loop-meter.ts";
import { START_MS, VirtualClock } from "../kit/virtual-clock.ts";
import { listWorstCalls, nameRoute, WORST_CALLS } from "../kit/worst-call.ts";
import { type Caller, openCaller } from "../kit/worst-caller.ts";

/** Fraction of the rows of a store that years of use filled. In each table this is several times what one turn may read. */
const SHARE = 0.1;
/** The most work of one turn of the loop. A management body holds at most 25,000 values, which are read, checked and written. */
const BOUND: TurnWork = { statements: 300, rows: 2_500, bytes: 700_000, values: 60_000 };

/** Calls with a wider limit, each with its reason. */
const WIDER: Readonly<Record<string, Partial<TurnWork>>> = {
  // The funnel reads the failed and dead events of a relay 10,000 at a time.
  "GET {E}/relays/:name/funnel, call 1": { rows: 10_100 },
  // A catalog of 1,000 entitlements is replaced in one transaction.
  "PUT {E}/access, call 2": { statements: 1_200, rows: 4_500 },
  "PUT {E}/access, call 3": { statements: 1_200, rows: 4_500 },
  // The relays and the catalog of a kit are saved in one transaction, which reads the environment's large catalog before.
  "POST {E}/kits/:sender, call 1": { statements: 500, bytes: 2_200_000 },
  // The document names every field of every route, and is written once.
  "GET /openapi.json, call 1": { values: 120_000 },
  // A stored file has at most 5 MiB.
  "GET {E}/files/:id, call 1": { bytes: 5_300_000 },
  // The body of one event is read once.
  "POST {E}/relays/guess, call 1": { values: 90_000 },
  // An event has at most 256 KiB, which hold 85,000 values. They are read, and written once.
  // The response has the result of 999 lines at 21 relays, and is written once.
  "POST {E}/relays/:name/import-missed, call 1": { values: 160_000 },
  "POST {E}/relays/:name/import-missed, call 2": { values: 160_000 },
  // The events of one request at 21 relays are stored in one transaction.
  "POST {E}/relays/:name/import-missed, call 7": { bytes: 2_900_000 },
  "POST {E}/relays/:name/import-missed, call 3": { values: 175_000 },
  "POST {E}/relays/:name/import-missed, call 4": { values: 175_000 },
  "POST {E}/relays/:name/test-event, call 1": { values: 175_000 },
  "POST {E}/relays/:name/explain, call 1": { values: 175_000 },
  "POST {E}/relays/explain, call 1": { values: 175_000 },
  // 24,000 values are read, stored and returned.
  "POST {E}/collections/:name/records, call 2": { values: 75_000 },
};

let folder: string;
let filled: FilledService;
let ask: Caller;
let meter: LoopMeter;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "relay-worst-"));
  filled = await startFilledService(folder, { clock: new VirtualClock(START_MS), share: SHARE });
  ask = await openCaller(filled.access);
  meter = new LoopMeter();
});

afterAll(async () => {
  meter[Symbol.dispose]();
  await filled.service[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

test("every route of the service has its most expensive calls", () => {
  const routes = ROUTES.map((route) => nameRoute(route.method, route.path));
  const extra = ["GET /openapi.json", "GET /", "POST /hooks/:appId/:name"];
  expect(Object.keys(WORST_CALLS).sort()).toEqual([...routes, ...extra].sort());
});

test("a call with a wider limit is one of the calls", () => {
  const names = listWorstCalls().map(({ name }) => name);
  expect(Object.keys(WIDER).filter((name) => !names.includes(name))).toEqual([]);
});

for (const call of listWorstCalls()) {
  test(`${call.name}, does a limited amount of work in each turn of the loop`, async () => {
    const asked = call.ask(0);
    if (asked === undefined) throw new Error("there is no such call");
    const send = ask.prepare(asked);
    meter.reset();
    const { isExpected, status, text } = await send();
    const most = await meter.rest();
    if (!isExpected) throw new Error(`status ${status}: ${text.slice(0, 500)}`);
    const bound = { ...BOUND, ...WIDER[call.name] };
    const over = (Object.keys(bound) as (keyof TurnWork)[]).filter((unit) => most[unit] > bound[unit]);
    expect(over.map((unit) => `${most[unit]} ${unit} in one turn, at most ${bound[unit]}`)).toEqual([]);
  });
}
