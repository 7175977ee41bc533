/** Tests record changes in the running service: every way to write a record, and the relays that watch it. */
import { describe, expect, test } from "bun:test";
import { RELAY_NAME } from "../kit/event-sql.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const ORDERS = {
  name: "orders",
  kind: "private",
  fields: { status: { type: "text" }, total: { type: "number" }, payment: { type: "json" } },
};
const NOTES = { name: "notes", kind: "shared", fields: { text: { type: "text" } } };
const WATCHER = {
  name: "watcher",
  trigger: { kind: "data_change", collection: "orders", on: ["created", "updated", "deleted"] },
  actions: [{ type: "write_record", collection: "notes", data: { text: "{{record.data.status}} {{record.id}}" } }],
};

describe("a record change in the running service", () => {
  test("fires for creates, updates and deletes over the API, and not for the relay's own record", async () => {
    await using running = await startWatcher();
    const deeper = { ...WATCHER, name: "deeper", trigger: { ...WATCHER.trigger, collection: "notes" } };
    expect((await running.api("POST", "/relays", { definition: deeper })).status).toBe(201);
    const made = await running.api("POST", "/collections/orders/records", { data: { status: "open" } });
    const path = `/collections/orders/records/${made.body.record.id}`;
    await running.api("PUT", path, { data: { status: "paid" } });
    await running.api("PUT", path, { data: { status: "paid" } });
    await running.api("DELETE", path);
    await running.drain();
    const { id } = made.body.record;
    expect(await notes(running)).toEqual([`open ${id}`, `paid ${id}`, `paid ${id}`]);
    expect(running.lines).toEqual(Array(3).fill("RELAY · watcher · data_change · 1 action · ok"));
    expect(await fired(running)).toHaveLength(3);
  });

  test("fires for the dashboard, a payment receipt and manual SQL, and not for a relay, an erasure or a move", async () => {
    await using running = await startWatcher();
    const { store } = running.service;
    for (const origin of ["dashboard", "relay", "erasure", "move"] as const) {
      await store.write(origin, (tx) => tx.run(insertOrder(origin)));
    }
    await running.direct.run(insertOrder("by hand"));
    await running.clock.advance(2_000);
    await running.drain();
    expect((await notes(running)).map((text) => text.split(" rec_")[0])).toEqual(["dashboard", "by hand"]);
  });

  test("fires for a payment receipt's record if the relay maps a collection", async () => {
    await using running = await startWatcher();
    const { body } = await running.api("GET", "/settings");
    const mapped = await running.api("PUT", "/settings", {
      version: body.settings.version,
      receipts: { collection: "receipts" },
    });
    expect(mapped.status).toBe(200);
    const receipts = { name: "receipts", kind: "private", fields: RECEIPT_FIELDS };
    expect((await running.api("POST", "/collections", receipts)).status).toBe(201);
    const definition = {
      ...WATCHER,
      name: "paid",
      trigger: { kind: "data_change", collection: "receipts", on: ["created"] },
    };
    expect((await running.api("POST", "/relays", { definition })).status).toBe(201);
    const person = await running.api("POST", "/persons", { email: "ada@example.com" });
    await running.api("PUT", "/products/book", { title: "Book" });
    const receipt = { ref: "pay_1", person: person.body.person.id, product: "book" };
    expect((await running.api("POST", "/receipts", receipt)).status).toBe(201);
    await running.drain();
    expect((await fired(running)).map((event) => event.relay)).toEqual(["paid"]);
    expect((await running.rows("SELECT 1 FROM record WHERE written_by = 'receipt'")).length).toBe(1);
  });

  test("runs for the record's owner, or else for its recipient", async () => {
    await using running = await startWatcher();
    const definition = {
      ...WATCHER,
      name: "granter",
      actions: [{ type: "grant_credits", amount: 5 }],
    };
    expect((await running.api("POST", "/relays", { definition })).status).toBe(201);
    const person = await running.api("POST", "/persons", { email: "ada@example.com" });
    const { id } = person.body.person;
    await running.api("POST", "/collections/orders/records", { data: { status: "paid" }, owner: id });
    await running.drain();
    const credits = await running.api("GET", `/persons/${id}/credits`);
    expect(credits.body.balance).toBe(5);
  });

  test("fires once at the start for a record that was written while the service was down", async () => {
    await using running = await startWatcher();
    await running.service[Symbol.asyncDispose]();
    await running.direct.run(insertOrder("meanwhile"));
    await running.restart();
    await running.drain();
    await running.restart();
    await running.drain();
    expect((await notes(running)).map((text) => text.split(" rec_")[0])).toEqual(["meanwhile"]);
  });

  test.each(["paused", "held"] as const)("waits while its relay is %s, then runs in order", async (how) => {
    await using running = await startWatcher();
    const stop = (stopped: boolean): Promise<unknown> =>
      how === "held" ? hold(running, stopped) : running.api("POST", `/relays/watcher/${stopped ? "pause" : "resume"}`);
    await stop(true);
    for (const status of ["one", "two"]) await running.api("POST", "/collections/orders/records", { data: { status } });
    await running.clock.advance(2_000);
    expect((await fired(running)).map((event) => event.state)).toEqual(["queued", "queued"]);
    expect(await notes(running)).toEqual([]);
    await stop(false);
    await running.drain();
    expect((await notes(running)).map((text) => text.split(" ")[0])).toEqual(["one", "two"]);
  });
});

const RECEIPT_FIELDS = { ref: { type: "text" }, product: { type: "text" } };

async function startWatcher(): Promise<RunningService> {
  const running = await startRunningService();
  for (const collection of [ORDERS, NOTES]) {
    expect((await running.api("POST", "/collections", collection)).status).toBe(201);
  }
  expect((await running.api("POST", "/relays", { definition: WATCHER })).status).toBe(201);
  return running;
}

async function hold(running: RunningService, held: boolean): Promise<void> {
  const { version } = (await running.api("GET", "/settings")).body.settings;
  expect((await running.api("PUT", "/settings", { version, held })).status).toBe(200);
}

function insertOrder(status: string): string {
  const id = `rec_${status.replaceAll(" ", "_")}`;
  return `INSERT INTO record (id, environment_id, collection, data, written_by, created_at, updated_at)
    SELECT '${id}', environment_id, name, '{"status":"${status}"}', 'test', 0, 0 FROM collection WHERE name = 'orders'`;
}

async function notes(running: RunningService): Promise<string[]> {
  const rows = await running.rows<{ data: string }>("SELECT data FROM record WHERE collection = 'notes' ORDER BY seq");
  return rows.map((row) => JSON.parse(row.data).text);
}

function fired(running: RunningService): Promise<{ relay: string; state: string }[]> {
  return running.rows(`SELECT ${RELAY_NAME} AS relay, state FROM event ORDER BY seq`);
}
