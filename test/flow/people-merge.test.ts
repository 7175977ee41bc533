/** Tests `relay people merge` on a data directory and on a server, with records and a session, and the similar people that `relay people show` names. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { COMMAND_PLACES, runAt } from "../kit/cli-place.ts";
import { editRelay, sendEvent } from "../kit/event-flow.ts";
import { type ActionLike, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const [OLD, NEW] = ["ada.old@example.com", "adaold@example.org"];
let running: RunningService;
let [old, now] = ["", ""];

beforeEach(async () => {
  running = await startRunningService();
  old = (await running.api("POST", "/persons", { email: OLD })).body.person.id;
  now = (await running.api("POST", "/persons", { email: NEW })).body.person.id;
  await running.api("PUT", "/products/lamp", { credits: 5 });
  await running.api("POST", "/receipts", { ref: "pay_7", person: old, product: "lamp" });
});
afterEach(() => running[Symbol.asyncDispose]());

const has = async (person: string) => {
  const { access, credits } = (await running.api("GET", `/persons/${person}`)).body;
  return [access.grants.length, credits];
};
const PLAN = `Moves 1 purchase, 5 credits from ${OLD} to ${NEW}. After the merge, ${OLD} keeps the timeline and has no access. A later payment that names ${OLD} goes to ${OLD} again: change the address at the provider, or merge again.`;

describe.each(COMMAND_PLACES)("%s", (place) => {
  const run = (line: string, more = {}) => runAt(place, running, ["people", ...line.split(" ")], "", more);

  test("show names the similar buyer, and merge moves everything once", async () => {
    const shown = await run(`show ${NEW}`);
    expect(shown.told).toContain(`Similar: ${OLD} bought lamp`);
    expect(shown.told).toContain(`relay receipts move pay_7 ${NEW}`);
    expect((await run(`show ${OLD}`)).told).not.toContain("Similar");
    const planned = await run(`merge ${OLD} ${NEW} --plan`);
    expect([planned.code, planned.said.trim(), await has(now)]).toEqual([0, PLAN, [0, 0]]);
    const { code, told } = await run(`merge ${OLD} ${NEW} --yes`);
    expect([code, told.trim()]).toEqual([0, `${PLAN}\n${OLD} is merged into ${NEW}.`]);
    expect([await has(old), await has(now)]).toEqual([
      [0, 0],
      [1, 5],
    ]);
    const again = await run(`merge ${OLD} ${NEW} --yes --json`);
    expect([again.code, JSON.parse(again.said)]).toMatchObject([0, { merged: false }]);
    expect([await has(old), await has(now)]).toEqual([
      [0, 0],
      [1, 5],
    ]);
  });

  test("merges nothing without a yes", async () => {
    const silent = await run(`merge ${OLD} ${NEW}`);
    expect([silent.code, silent.told]).toEqual([1, expect.stringContaining(`relay people merge ${OLD} ${NEW} --yes`)]);
    expect([await has(old), await has(now)]).toEqual([
      [1, 5],
      [0, 0],
    ]);
  });
});

test("the list of similar people is empty for a person with live access or a purchase", async () => {
  const similar = async (person: string) => (await running.api("GET", `/persons/${person}/similar`)).body.similar;
  expect([await similar(old), await similar(now)]).toMatchObject([[], [{ email: OLD, reason: "same_letters" }]]);
  await running.api("PUT", "/access", { items: [{ slug: "beta" }] });
  const { grant } = (await running.api("POST", `/persons/${now}/grants`, { entitlement: "access:beta" })).body;
  expect(await similar(now)).toEqual([]);
  await running.api("DELETE", `/grants/${grant.id}`);
  expect(await similar(now)).toHaveLength(1);
  await running.api("POST", "/receipts", { ref: "pay_8", person: now, product: "lamp" });
  expect(await similar(now)).toEqual([]);
});

test("records move, and an erasure of the new person deletes them", async () => {
  await running.api("POST", "/collections", { name: "notes", kind: "private", fields: { text: { type: "text" } } });
  await running.api("POST", "/collections/notes/records", { owner: old, data: { text: "mine" } });
  const merged = await running.api("POST", `/persons/${old}/merge`, { into: NEW });
  expect(merged.body).toMatchObject({ merged: true, plan: { records: 1 } });
  const records = async () => (await running.api("GET", "/collections/notes/records")).body.items;
  expect(await records()).toMatchObject([{ owner: now }]);
  await running.api("DELETE", `/persons/${now}`);
  expect(await records()).toEqual([]);
  const { items } = (await running.api("GET", "/purchases?ref=pay_7")).body;
  expect(items.filter(({ movedTo }: { movedTo: string | null }) => movedTo === null)).toMatchObject([{ personEmail: null }]);
  expect((await running.api("POST", `/persons/${old}/merge`, { into: now })).body.code).toBe("not_found");
});

test("records move with the merging actor as their last writer, and no relay that watches them runs", async () => {
  const fields = { text: { type: "text" } };
  const trigger = { kind: "data_change", collection: "letters", on: ["created", "updated"] };
  const actions = [{ type: "write_record", collection: "seen", data: { text: "{{record.data.text}}" } }];
  await running.api("POST", "/collections", { name: "letters", kind: "direct", fields });
  await running.api("POST", "/collections", { name: "seen", kind: "shared", fields });
  const send = async (owner: string, to: string, text: string) =>
    (await running.api("POST", "/collections/letters/records", { owner, to, data: { text } })).body.record;
  const read = async (collection: string) => (await running.api("GET", `/collections/${collection}/records`)).body.items;
  const sent = [await send(old, old, "to me"), await send(old, now, "from me"), await send(now, old, "to both")];
  await running.service.store.write("erasure", (tx) => tx.run("UPDATE record SET written_by = 'relay:orders', event_id = 'evt_1'"));
  expect((await running.api("POST", "/relays", { definition: { name: "watch", trigger, actions } })).status).toBe(201);
  await running.clock.advance(5_000);
  const merged = await running.api("POST", `/persons/${old}/merge`, { into: NEW });
  expect(merged.body).toMatchObject({ merged: true, plan: { records: 3 } });
  const [{ actor }] = (await running.api("GET", "/audit?action=person.merged")).body.items;
  const updatedAt = new Date(Date.parse(sent[0].updatedAt) + 5_000).toISOString();
  const moved = { owner: now, recipient: now, by: actor, eventId: null, updatedAt };
  expect(await read("letters")).toMatchObject(sent.map(({ id, createdAt, data }) => ({ id, createdAt, data, ...moved })).toReversed());
  await send(now, now, "later");
  await running.clock.advance(5_000);
  await running.drain();
  expect(await read("seen")).toMatchObject([{ data: { text: "later" } }]);
});

test("a merge, a refund and a payment at the same time lose and double nothing", async () => {
  const answers = await Promise.all([
    running.api("POST", `/persons/${old}/merge`, { into: now }),
    running.api("POST", "/receipts", { kind: "refund", ref: "pay_7", person: old, product: "lamp" }),
    running.api("POST", "/receipts", { ref: "pay_8", person: old, product: "lamp" }),
    running.api("POST", `/persons/${old}/merge`, { into: now }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 201, 201, 200]);
  await running.api("POST", `/persons/${old}/merge`, { into: now });
  expect([await has(old), await has(now)]).toEqual([
    [0, 0],
    [1, 5],
  ]);
});

describe("access that the first person got before an event revoked the same of the second", () => {
  const KINDS: [kind: string, gives: ActionLike, entitlement: string][] = [
    ["granted by a relay", { type: "grant_access", entitlement: "access:beta" }, "access:beta"],
    ["of a product", { type: "fulfil_product", product: "desk", ref: "pay_9" }, "desk"],
    ["of a plan", { type: "grant_plan", plan: "pro", ref: "pay_9" }, "pro"],
  ];
  const live = async (person: string) =>
    (await running.api("GET", `/persons/${person}`)).body.access.grants.map((one: { entitlement: string }) => one.entitlement);
  const run = async (relay: string, id: string, email: string) => {
    await sendEvent(running, id, { email }, relay);
    await running.drain();
  };

  async function prepare(gives: ActionLike, entitlement: string) {
    await running.api("PUT", "/access", { items: [{ slug: "beta" }] });
    const sold = { soldThrough: { kind: "relay", relay: "sales" } };
    const map = { event_id: "id", person_email: "email" };
    await saveRelay(running, receiverDefinition({ name: "sales", map, actions: [{ type: "grant_credits", amount: 1 }] }));
    await running.api("PUT", "/products/desk", sold);
    await running.api("PUT", "/plans/free", {});
    await running.api("PUT", "/plans/pro", sold);
    await editRelay(running, receiverDefinition({ name: "sales", map, actions: [gives] }));
    await saveRelay(running, receiverDefinition({ name: "ends", map, actions: [{ type: "revoke_access", entitlement }] }));
    await run("sales", "s1", OLD);
    await run("ends", "r1", NEW);
    expect([await live(old), await live(now)]).toEqual([expect.arrayContaining([entitlement]), []]);
  }

  test.each(KINDS)("stays live after a merge, and a later event revokes it: %s", async (_kind, gives, entitlement) => {
    await prepare(gives, entitlement);
    expect((await running.api("POST", `/persons/${old}/merge`, { into: NEW })).body.merged).toBe(true);
    expect([await live(old), await live(now)]).toEqual([[], expect.arrayContaining([entitlement])]);
    await run("ends", "r2", NEW);
    expect(await live(now)).toEqual(["lamp"]);
  });

  test.each(KINDS.slice(1))("stays live after a move of the purchase: %s", async (_kind, gives, entitlement) => {
    await prepare(gives, entitlement);
    const [{ id }] = (await running.api("GET", "/purchases?ref=pay_9")).body.items;
    expect((await running.api("POST", `/purchases/${id}/move`, { person: now })).body.moved).toBe(true);
    expect(await live(now)).toEqual([entitlement]);
    await run("ends", "r2", NEW);
    expect(await live(now)).toEqual([]);
  });
});
