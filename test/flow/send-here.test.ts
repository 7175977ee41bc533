/** Tests `relay send` without a webhook request, through real processes: a dry run, a manual tick, and a watched record. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CliProcess, startCli } from "../kit/cli-process.ts";

let cwd: string;
let dev: CliProcess;

const order = (text: string) => [{ type: "write_record", collection: "orders", data: { order: text } }];
const RELAYS = {
  paid: {
    trigger: {
      kind: "receiver",
      verify: { scheme: "signature", header: "x-signature", signedPayload: "{body}" },
      map: { event_id: "id", event_type: "type" },
      when: { event_type: "paid" },
    },
    actions: order("{{mapped.event_id}}"),
  },
  bare: {
    trigger: { kind: "receiver", verify: { scheme: "signature", header: "x-signature", signedPayload: "{body}" }, map: { event_type: "type" } },
    actions: order("{{mapped.event_type}}"),
  },
  daily: { trigger: { kind: "schedule", every: "1d" }, actions: order("{{tick.periodStart}}") },
  told: {
    trigger: { kind: "data_change", collection: "letters", on: ["created"] },
    actions: order("{{record.data.state}}"),
  },
  noted: {
    trigger: { kind: "data_change", collection: "notes", on: ["updated"], where: { state: "paid" } },
    actions: order("{{record.data.state}}"),
  },
};

beforeEach(async () => {
  cwd = mkdtempSync(join(tmpdir(), "relay-send-"));
  mkdirSync(join(cwd, "service", "relays"), { recursive: true });
  const text = { type: "text" };
  const collections = {
    orders: { kind: "shared", fields: { order: text } },
    letters: { kind: "addressed", fields: { state: text } },
    notes: { kind: "shared", fields: { state: text, title: text } },
  };
  writeFileSync(join(cwd, "service", "catalog.json"), JSON.stringify({ collections }));
  for (const [name, relay] of Object.entries(RELAYS))
    writeFileSync(join(cwd, "service", "relays", `${name}.json`), JSON.stringify({ name, ...relay }));
  dev = startCli(["dev", "--port", "0"], { cwd });
  await dev.line("Press Ctrl+C");
});

afterEach(async () => {
  await dev[Symbol.asyncDispose]();
  rmSync(cwd, { recursive: true });
});

async function relay(...line: string[]): Promise<{ code: number; said: string }> {
  await using run = startCli(line, { cwd });
  const code = await run.exited;
  await run.silent;
  return { code, said: run.lines().join("\n") };
}

describe("relay send", () => {
  test("on a schedule runs one tick, marked as a test", async () => {
    const { code, said } = await relay("send", "daily");
    expect(said).toContain("is done");
    expect(code).toBe(0);
    expect(await dev.line("RELAY ·")).toStartWith("RELAY · daily · schedule · 1 action · ok");
    const id = /evt_[0-9a-z]+/.exec(said)?.[0] ?? "";
    const { said: shown } = await relay("events", "show", id);
    expect(shown).toContain('"test":true');
    expect(shown).toContain("sent by hand");
  });

  test("of a duplicate says what matched: its event_id or its body", async () => {
    writeFileSync(join(cwd, "event.json"), '{"id":"a","type":"paid"}');
    const twice = async (name: string) => {
      expect((await relay("send", name, "--data", "event.json")).said).toContain("is done");
      return (await relay("send", name, "--data", "event.json")).said;
    };
    expect(await twice("paid")).toContain("An event with this id was received before, so nothing runs. Send another event_id.");
    expect(await twice("bare")).toContain("The same body was received before on this day (UTC), so nothing runs. Send another body, or add event_id");
  });

  test("on a record change writes a marked record that the relay watches", async () => {
    const { code, said } = await relay("send", "noted");
    expect(said).toMatch(/Wrote the record rec_\w+ in notes, by relay send\. It stays there until you delete it\./);
    expect(said).toContain("is done");
    expect(code).toBe(0);
    const toNobody = await relay("send", "told");
    expect(toNobody.said).toContain("person is missing, and every record of letters needs a person");
    expect(toNobody.said).toContain("relay send: --person");
    expect(toNobody.code).toBe(1);
  });

  test("with --explain shows each step and changes nothing", async () => {
    const example = await relay("send", "paid", "--explain");
    expect(example.said).toContain("Would run: Every action would be done.");
    expect(example.said).toContain("Nothing was written, mailed or called.");
    expect(example.code).toBe(0);
    writeFileSync(join(cwd, "event.json"), '{"id":"a","type":"open"}');
    const ignored = await relay("send", "paid", "--explain", "--data", "event.json", "--json");
    expect(JSON.parse(ignored.said)).toMatchObject({ from: "body", would: "ignore" });
    expect((await relay("send", "daily", "--explain")).said).toContain("Would run");
    expect((await relay("send", "noted", "--explain")).said).toContain("Would run");
    expect((await relay("events", "list", "--json")).said).toContain('"items": []');
    const missing = await relay("send", "nobody", "--explain");
    expect(missing.code).toBe(1);
    expect(missing.said).toContain("not_found");
  });

  test("with --explain --file explains a definition that is not saved", async () => {
    const write = (definition: object) => writeFileSync(join(cwd, "draft.json"), JSON.stringify(definition));
    const draft = (...more: string[]) => relay("send", "fresh", "--explain", "--file", "draft.json", ...more);
    write({ name: "fresh", ...RELAYS.paid });
    const example = await draft();
    expect(example.said).toContain("with an example secret, because the relay has no secret yet.");
    expect(example.said).toContain("Would run: Every action would be done.");
    expect(example.code).toBe(0);
    writeFileSync(join(cwd, "record.json"), '{"state":"paid","title":"a"}');
    write({ name: "fresh", ...RELAYS.noted });
    expect((await draft("--data", "record.json")).said).toContain('"order":"paid"');
    write({ name: "fresh", ...RELAYS.paid, actions: [] });
    const invalid = await draft();
    expect(invalid.said).toContain("`actions` is empty");
    expect(invalid.code).toBe(1);
    write({ name: "other", ...RELAYS.paid });
    expect((await draft()).said).toContain("draft.json has the relay other, not fresh: write relay send other --explain --file draft.json.");
    const alone = await relay("send", "paid", "--file", "draft.json");
    expect(alone.said).toContain("--file works only with --explain: add --explain, or leave --file out.");
    expect((await relay("relays", "list", "--json")).said).not.toContain("fresh");
  });
});
