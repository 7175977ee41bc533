/** Tests what a validation says about a trigger that waits for no request: the next ticks of a schedule, and the record changes that would have fired. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeRecord } from "../../src/shop/records/record.ts";
import { type ApiServer, startApi } from "../kit/api-server.ts";

const CALL = { type: "call_url", url: "https://example.com/notice" };
const MINUTE_MS = 60_000;

let api: ApiServer;

beforeAll(async () => {
  api = await startApi();
  for (const name of ["orders", "empty"])
    await call("POST", "/collections", {
      name,
      kind: "shared",
      fields: { status: { type: "text" }, size: { type: "number" }, tags: { type: "json" } },
    });
});

afterAll(async () => {
  await api[Symbol.asyncDispose]();
});

async function call(method: string, path: string, body?: unknown, session = false) {
  const { status, json } = await api.call(api.E + path, { method, body, ...(session ? { session } : { key: api.keys.dev }) });
  if (status >= 400) throw new Error(JSON.stringify(json));
  return json;
}

async function validate(trigger: object, actions: object[] = [CALL]) {
  return await call("POST", "/relays/validate", { definition: { name: "draft", trigger, actions } });
}

/** The virtual clock stands at Thursday, 2026-01-15 12:00 UTC. */
const TICKS: [rule: string, trigger: object, ticks: string[] | undefined][] = [
  [
    "every hour, from the next full hour",
    { kind: "schedule", every: "1h" },
    ["2026-01-15T13:00:00.000Z", "2026-01-15T14:00:00.000Z", "2026-01-15T15:00:00.000Z", "2026-01-15T16:00:00.000Z", "2026-01-15T17:00:00.000Z"],
  ],
  [
    "a quarter that begins now began before the relay exists, so it does not tick",
    { kind: "schedule", every: "15m" },
    ["2026-01-15T12:15:00.000Z", "2026-01-15T12:30:00.000Z", "2026-01-15T12:45:00.000Z", "2026-01-15T13:00:00.000Z", "2026-01-15T13:15:00.000Z"],
  ],
  [
    "every day at a UTC time",
    { kind: "schedule", every: "1d", at: "06:30" },
    ["2026-01-16T06:30:00.000Z", "2026-01-17T06:30:00.000Z", "2026-01-18T06:30:00.000Z", "2026-01-19T06:30:00.000Z", "2026-01-20T06:30:00.000Z"],
  ],
  [
    "every week on a weekday",
    { kind: "schedule", every: "1w", on: "thursday", at: "13:00" },
    ["2026-01-15T13:00:00.000Z", "2026-01-22T13:00:00.000Z", "2026-01-29T13:00:00.000Z", "2026-02-05T13:00:00.000Z", "2026-02-12T13:00:00.000Z"],
  ],
  ["an invalid schedule has no ticks", { kind: "schedule", every: "1h", at: "06:30" }, undefined],
  ["a receiver has no ticks", { kind: "receiver", verify: { scheme: "hooks" }, map: {} }, undefined],
];

test.each(TICKS)("%s", async (_rule, trigger, ticks) => {
  expect((await validate(trigger)).nextTicks).toEqual(ticks as string[]);
});

/** A change of a record, with what is expected of two triggers. */
interface Changed {
  change: string;
  does(): Promise<unknown>;
  watchesAll: [wouldRun: boolean, reason: string];
  watchesPaid: [wouldRun: boolean, reason: string];
}

const made: Record<string, string> = {};

async function create(as: string, data: object): Promise<void> {
  made[as] = (await call("POST", "/collections/orders/records", { data })).record.id;
}

const CHANGES: Record<string, Changed> = {
  open: {
    change: "created",
    does: () => create("open", { status: "open" }),
    watchesAll: [true, "The record was created, which the relay watches for."],
    watchesPaid: [false, "The record was created, and the relay watches only for updated or deleted."],
  },
  byRelay: {
    change: "created",
    does: async () => {
      await api.store.write("relay", async (tx) => {
        const written = { environmentId: api.environments.development.id, collection: "orders", data: { status: "paid" } };
        const people = { ownerId: null, recipientId: null };
        made.byRelay = (await writeRecord(tx, { ...written, ...people, by: "relay:checkout", nowMs: api.clock.now() })).id;
      });
    },
    watchesAll: [false, "The relay checkout wrote it, and a record that a relay writes starts no relay."],
    watchesPaid: [false, "The relay checkout wrote it, and a record that a relay writes starts no relay."],
  },
  paid: {
    change: "updated",
    does: async () => {
      await create("paid", { status: "open", size: 4 });
      await api.clock.advance(MINUTE_MS);
      await call("PUT", `/collections/orders/records/${made.paid}`, { data: { status: "paid", size: 4 } });
    },
    watchesAll: [true, "The record was updated, which the relay watches for."],
    watchesPaid: [true, "The record was updated, which the relay watches for, and it matches where."],
  },
  large: {
    change: "updated",
    does: async () => {
      await create("large", { status: "paid", size: 5 });
      await api.clock.advance(MINUTE_MS);
      await call("PUT", `/collections/orders/records/${made.large}`, { data: { status: "paid", size: 6 } });
    },
    watchesAll: [true, "The record was updated, which the relay watches for."],
    watchesPaid: [false, "where.size must be 4, and the record has 6."],
  },
  gone: {
    change: "deleted",
    does: async () => {
      await create("gone", { status: "paid", size: 4 });
      await call("DELETE", `/collections/orders/records/${made.gone}`, undefined, true);
    },
    watchesAll: [true, "The record was deleted, which the relay watches for."],
    watchesPaid: [false, "The deleted record's fields are not stored, so where cannot be checked."],
  },
};

test("the newest five changes are listed, each with whether it would run and why", async () => {
  await create("first", { status: "open" });
  for (const { does } of Object.values(CHANGES)) {
    await api.clock.advance(MINUTE_MS);
    await does();
  }
  const all = await validate({ kind: "data_change", collection: "orders", on: ["created", "updated", "deleted"] });
  const paid = await validate({ kind: "data_change", collection: "orders", on: ["updated", "deleted"], where: { status: "paid", size: 4 } });
  const expected = (of: "watchesAll" | "watchesPaid") =>
    Object.entries(CHANGES)
      .map(([as, one]) => ({ record: made[as], change: one.change, wouldRun: one[of][0], reason: one[of][1] }))
      .toReversed();
  const shown = (answer: { recentChanges: { at: string }[] }) => answer.recentChanges.map(({ at: _, ...one }) => one);
  expect(shown(all)).toEqual(expected("watchesAll"));
  expect(shown(paid)).toEqual(expected("watchesPaid"));
  const times = all.recentChanges.map(({ at }: { at: string }) => at);
  expect(times).toEqual([...times].sort().toReversed());
  expect(all.recentChanges[0].at).toBe(new Date(api.clock.now()).toISOString());
});

const MISMATCHES: [rule: string, where: object, data: object, reason: string][] = [
  ["a missing field", { status: "paid" }, { size: 1 }, 'where.status must be "paid", and the record does not have the field.'],
  ["a text that is not the number", { size: 4 }, { size: 5 }, "where.size must be 4, and the record has 5."],
  ["a list", { tags: "a" }, { tags: ["a"] }, 'where.tags must be "a", and the record has a list or an object.'],
  ["a truth value", { tags: true }, { tags: false }, "where.tags must be true, and the record has false."],
];

test.each(MISMATCHES)("the reason names %s", async (_rule, where, data, reason) => {
  await api.clock.advance(MINUTE_MS);
  await create("newest", data);
  const { recentChanges } = await validate({ kind: "data_change", collection: "orders", on: ["created"], where });
  expect(recentChanges[0]).toMatchObject({ record: made.newest, wouldRun: false, reason });
});

test("an edit of an owner is listed, however old the record is", async () => {
  const { id } = api.environments.development;
  await api.store.write("app", async (tx) => {
    for (let at = 0; at < 60; at++) {
      const written = { environmentId: id, collection: "orders", data: { status: "many" }, ownerId: null, recipientId: null };
      await writeRecord(tx, { ...written, by: "test", nowMs: api.clock.now() });
    }
  });
  await api.clock.advance(MINUTE_MS);
  await call("PUT", `/collections/orders/records/${made.first}`, { data: { status: "edited" } }, true);
  const { recentChanges } = await validate({ kind: "data_change", collection: "orders", on: ["updated"] });
  expect(recentChanges[0]).toMatchObject({ record: made.first, change: "updated", wouldRun: true });
});

const NONE: [rule: string, trigger: object, changes: unknown][] = [
  ["a collection without records has none", { kind: "data_change", collection: "empty", on: ["created"] }, []],
  ["a missing collection has none", { kind: "data_change", collection: "nowhere", on: ["created"] }, []],
  ["an invalid trigger has no list", { kind: "data_change", collection: "orders", on: [] }, undefined],
  ["a schedule has no list", { kind: "schedule", every: "1h" }, undefined],
];

test.each(NONE)("%s", async (_rule, trigger, changes) => {
  expect((await validate(trigger)).recentChanges).toEqual(changes as never);
});
