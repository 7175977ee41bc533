/**
 * Two people of an earlier version share one address, with its domain in letters and in punycode. Erasing one leaves what belongs to the other. After
 * the second erasure, the address is found nowhere.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../kit/cli-io.ts";
import { replay, sendEvent, showEvent } from "../kit/event-flow.ts";
import { receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";

const PUNYCODE = "zoe@xn--bcher-kva.example";
const LETTERS = "zoe@bücher.example";
const ACTIONS = [{ type: "grant_credits", amount: 5, reason: "for {{person.email}}" }];

let dataDir: string;
let running: RunningService;
let first: string;
let second: string;

/** The first person has the key that a domain in punycode had before the two spellings became one. */
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "relay-namesake-"));
  running = await startRunningService({ config: { dataDir } });
  const invite = async (email: string): Promise<string> => (await running.api("POST", "/persons", { email })).body.person.id;
  first = await invite("zoe@before.example");
  second = await invite(LETTERS);
  const sql = "UPDATE person SET email = ?2, email_key = ?2 WHERE id = ?1";
  await running.service.store.write("app", (tx) => tx.run(sql, first, PUNYCODE));
  await saveRelay(running, receiverDefinition({ name: "by-address", map: { event_id: "id", person_email: "who" }, actions: ACTIONS }));
  await saveRelay(running, receiverDefinition({ name: "by-id", map: { event_id: "id", person_id: "who" }, actions: ACTIONS }));
});
afterEach(() => running[Symbol.asyncDispose]());

async function erase(id: string): Promise<void> {
  expect((await running.api("DELETE", `/persons/${id}`)).status).toBe(204);
  for (let turn = 0; turn < 200; turn++) {
    await running.clock.advance(100);
    const [open] = await running.rows<{ count: number }>("SELECT count(*) AS count FROM erasure WHERE target IS NOT NULL");
    if (open?.count === 0) break;
  }
  await running.clock.advance(1_000);
}

/** Returns the files of the database that contain the text. */
async function filesThatHold(text: string): Promise<string[]> {
  await running.service.store.vacuumStep({ everything: true });
  const files = readdirSync(dataDir).filter((name) => name.startsWith("relay.db"));
  return files.filter((name) => readFileSync(join(dataDir, name)).includes(text));
}

const ORDERS: [what: string, erased: () => string, stays: () => string][] = [
  ["the one in punycode", () => first, () => second],
  ["the one in letters", () => second, () => first],
];

describe.each(ORDERS)("erasing %s", (_what, erased, stays) => {
  test("leaves a waiting event that names the address in either spelling to the other person", async () => {
    await running.api("POST", "/relays/by-address/pause");
    const waiting = [
      await sendEvent(running, "w1", { who: PUNYCODE }, "by-address"),
      await sendEvent(running, "w2", { who: LETTERS.toUpperCase() }, "by-address"),
    ];
    await erase(erased());
    await running.api("POST", "/relays/by-address/resume");
    await running.drain();
    for (const event of waiting) expect(await showEvent(running, event)).toMatchObject({ state: "done", person: { id: stays() } });
  });

  test("leaves the other's events, runs and audit, so a replay finds them", async () => {
    const event = await sendEvent(running, "hers", { who: LETTERS }, "by-address");
    const named = await sendEvent(running, "by-id", { who: stays(), also: PUNYCODE }, "by-id");
    await running.drain();
    const before = await Promise.all([event, named].map((id) => showEvent(running, id)));
    // The address names the person with the domain in letters, and her own events are erased with her.
    const kept = before.filter(({ person }) => person?.id === stays());
    await erase(erased());
    expect(kept.length).toBe(erased() === first ? 2 : 1);
    for (const { id, ...shown } of kept) {
      expect(await showEvent(running, id)).toEqual({ id, ...shown });
      expect((await replay(running, id)).status).toBe(202);
    }
    await running.drain();
    for (const { id } of kept) expect(await showEvent(running, id)).toMatchObject({ state: "done", person: { id: stays() } });
  });

  test("lets a missed request that names the address be recorded for the other", async () => {
    await sendEvent(running, "one", { who: LETTERS }, "by-address");
    await running.drain();
    await erase(erased());
    const url = `${running.service.url}/api/apps/${APP}/development/relays/by-address/import-missed?dryRun=true`;
    const headers = { authorization: `Bearer ${running.keys.development}` };
    const reply = await fetch(url, { method: "POST", headers, body: JSON.stringify(signedCall({ id: "late", type: "order.paid", who: LETTERS })) });
    expect(await reply.json()).toMatchObject({ lines: [{ outcome: "new" }] });
  });

  test("erases what names the person by id, and reports in the audit and on their page who keeps the address", async () => {
    const own = await sendEvent(running, "own", { who: erased(), also: LETTERS }, "by-id");
    await running.drain();
    expect((await running.api("GET", `/persons/${erased()}`)).body).toMatchObject({ namesake: stays() });
    const { said } = await runCommand(["people", "show", erased(), "--data-dir", dataDir], { cwd: dataDir, env: running.commandEnv });
    expect(said).toContain(`also      ${stays()} has the same address with another spelling of its domain`);
    await erase(erased());
    expect(await showEvent(running, own)).toMatchObject({ payload: null, expunged: "person_erased" } as object);
    const { items } = (await running.api("GET", `/audit?target=person:${erased()}`)).body;
    const [gone] = items.filter(({ action }: { action: string }) => action === "person.erased");
    expect(gone.after).toEqual({ status: "erased", addressStaysWith: stays() });
    expect((await running.api("GET", `/persons/${stays()}`)).body).toMatchObject({ namesake: null });
    const reasons = await running.rows("SELECT DISTINCT reason FROM credit WHERE person_id = ?1", erased());
    expect(reasons).toEqual([{ reason: "erased" }]);
  });

  test("and then the other leaves the address nowhere, and an earlier event creates no person", async () => {
    await running.api("POST", "/relays/by-address/pause");
    const waiting = await sendEvent(running, "w", { who: LETTERS }, "by-address");
    await sendEvent(running, "own", { who: erased(), also: [LETTERS, PUNYCODE] }, "by-id");
    await sendEvent(running, "others", { who: stays(), also: [LETTERS, PUNYCODE] }, "by-id");
    await running.drain();
    await erase(erased());
    await erase(stays());
    await running.api("POST", "/relays/by-address/resume");
    await running.drain();
    expect(await showEvent(running, waiting)).toMatchObject({ state: "failed", reason: "person_erased" });
    expect(await running.rows("SELECT id FROM person WHERE email IS NOT NULL")).toEqual([]);
    for (const address of [LETTERS, PUNYCODE]) expect(await filesThatHold(address)).toEqual([]);
  });
});
