/**
 * Tests `relay records list`, `show`, `set` and `delete` on a data directory and on a server. Changes trigger relays, and errors and audit equal the
 * dashboard's.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { COMMAND_PLACES, runAt } from "../kit/cli-place.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const ADA = "ada@example.com";
let running: RunningService;
let ada: string;

beforeEach(async () => {
  running = await startRunningService();
  ada = (await running.api("POST", "/persons", { email: ADA })).body.person.id;
  await running.api("POST", "/collections", { name: "orders", kind: "shared", fields: { order: { type: "text", required: true } } });
  await running.api("POST", "/collections", { name: "notes", kind: "private", fields: { text: { type: "text" } } });
});
afterEach(() => running[Symbol.asyncDispose]());

const stored = async (name: string) => (await running.api("GET", `/collections/${name}/records`)).body.items;

describe.each(COMMAND_PLACES)("%s", (place) => {
  const run = (words: string[], input = "", more = {}) => runAt(place, running, ["records", ...words], input, more);

  test("writes, finds, shows, replaces and deletes a record, with a message each", async () => {
    const { code, told } = await run(["set", "orders", '{"order":"A-7"}']);
    const [record] = await stored("orders");
    expect([code, told.trim()]).toEqual([
      0,
      `The record ${record.id} is written to orders. Relays with a data_change trigger on this collection get the change.`,
    ]);
    const ending = record.id.slice(-8);
    expect((await run(["list", "orders", "--text", "a-7"])).said).toContain(`${record.id}  ${record.by}`);
    expect((await run(["list", "orders", "--text", "b-7"])).told).toContain("No records match.");
    expect(JSON.parse((await run(["show", "orders", ending, "--json"])).said)).toEqual({ record });
    expect((await run(["show", "orders", ending])).said).toBe(
      `orders  ${record.id}\n  written   ${record.createdAt}, last by ${record.by}\n{\n  "order": "A-7"\n}`,
    );
    const anew = await run(["set", "orders", "--id", ending, "--json"], '{"order":"A-8"}');
    expect([anew.code, anew.told.trim()]).toEqual([
      0,
      `The record ${record.id} of orders has the new data. Relays with a data_change trigger on this collection get the change.`,
    ]);
    expect(await stored("orders")).toEqual([JSON.parse(anew.said).record]);
    expect((await stored("orders"))[0].data).toEqual({ order: "A-8" });
    const gone = await run(["delete", "orders", ending, "--confirm", ending]);
    expect([gone.code, gone.told.trim()]).toEqual([
      0,
      `The record ${record.id} of orders is deleted. Relays with a data_change trigger on this collection get the change.`,
    ]);
    expect(await stored("orders")).toEqual([]);
    const audited = (await running.api("GET", "/audit")).body.items.filter(({ action }: { action: string }) => action.startsWith("record."));
    const owners = ["record.deleted", "record.changed", "record.created"].map((action) => ({ action, actor: "command line" }));
    // A key acts as the app, and only the record names it as the writer.
    expect(audited).toMatchObject(place === "beside the server" ? owners : []);
    expect(JSON.stringify(audited)).not.toContain("A-7");
  });

  test("shows the data as written below the other fields, and truncates it in the question before a deletion", async () => {
    const data = { order: `2026-01-15T12:00:00.000Z ${"lamp ".repeat(99)}.` };
    await run(["set", "orders"], JSON.stringify(data));
    const [{ id }] = await stored("orders");
    const screen = { columns: 80, rows: 24, colour: false, clever: false };
    expect((await run(["show", "orders", id], "", { screen })).said).toEndWith(`\n\n${JSON.stringify(data, null, 2)}`);
    const [says = ""] = (await run(["delete", "orders", id])).told.split("\n").filter((line) => line.startsWith("The data of "));
    expect(says).toMatch(/: \{"order":"2026-01-15T12:00:00\.000Z lamp /);
    expect(says.length).toBeLessThan(360);
  });

  test("sets the owner by address, and keeps it when a change does not name one", async () => {
    await run(["set", "notes", '{"text":"hi"}', "--owner", ADA]);
    const [note] = await stored("notes");
    expect(note).toMatchObject({ owner: ada, data: { text: "hi" } });
    await run(["set", "notes", '{"text":"ho"}', "--id", note.id]);
    expect(await stored("notes")).toMatchObject([{ id: note.id, owner: ada, data: { text: "ho" } }]);
    expect(JSON.parse((await run(["list", "notes", "--owner", ADA, "--json"])).said).items).toHaveLength(1);
    expect((await run(["show", "notes", note.id])).said).toContain(`\n  owner     ${ada}\n`);
  });

  test("triggers a relay that watches the collection", async () => {
    const trigger = { kind: "data_change", collection: "orders", on: ["created"] };
    const actions = [{ type: "write_record", collection: "notes", data: { text: "heard" } }];
    await running.api("PUT", "/collections/notes", { kind: "shared", fields: { text: { type: "text" } } });
    expect((await running.api("POST", "/relays", { definition: { name: "watch", trigger, actions } })).status).toBe(201);
    await run(["set", "orders", '{"order":"A-7"}']);
    await running.clock.advance(2_000);
    await running.drain();
    expect(await stored("notes")).toMatchObject([{ data: { text: "heard" } }]);
  });

  test("rejects invalid data, and deletes nothing without a confirmation", async () => {
    const refusal = async (words: string[], input = "") => {
      const { code, told } = await run(words, input);
      return [code, told.split("\n").slice(0, -1).join("\n")];
    };
    expect(await refusal(["set", "orders", "{}"])).toEqual([1, expect.stringContaining("order")]);
    expect(await refusal(["set", "orders"], "[1]")).toEqual([2, expect.stringContaining("is not a JSON object")]);
    expect(await refusal(["set", "nothing", "{}"])).toEqual([
      1,
      "No collection with this name exists in this environment: relay catalog list collection shows the existing ones.",
    ]);
    expect(await refusal(["set", "notes", "{}", "--owner", "eve@example.com"])).toEqual([1, expect.stringContaining("exists in this environment")]);
    await run(["set", "orders", '{"order":"A-7"}']);
    const [{ id }] = await stored("orders");
    expect(await refusal(["delete", "orders", id])).toEqual([
      1,
      expect.stringContaining(
        `The data of ${id}: {"order":"A-7"}\nNothing was deleted, because there is no terminal for the question: write relay records delete orders ${id} --confirm ${id} to confirm.`,
      ),
    ]);
    expect(await refusal(["delete", "orders", id, "--confirm", "x"])).toEqual([
      2,
      expect.stringContaining(`--confirm is "x", but the record is ${id}`),
    ]);
    expect(await refusal(["delete", "orders", "rec_nothing", "--confirm", "rec_nothing"])).toEqual([
      1,
      expect.stringContaining("No record with this id exists in this collection"),
    ]);
    const yes = { interactive: true, confirm: () => Promise.resolve(true) };
    expect((await run(["delete", "orders", id], "", yes)).code).toBe(0);
    expect(await stored("orders")).toEqual([]);
  });
});
