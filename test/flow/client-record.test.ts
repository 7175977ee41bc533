/** Tests records as signed-in people use them: who can read and write in each kind of collection, and how the app sees their writes. */
import { expect, test } from "bun:test";
import { type ApiServer, changesBetween, startApi } from "../kit/api-server.ts";
import { manage, type SignedIn, signIn } from "../kit/app-visitor.ts";
import { RELAY_NAME } from "../kit/event-sql.ts";
import { settle } from "../kit/virtual-clock.ts";

interface Town extends AsyncDisposable {
  api: ApiServer;
  ann: SignedIn;
  bo: SignedIn;
  cy: SignedIn;
}

/** Signs in three people and creates one collection of each kind, named after it. */
async function openTown(): Promise<Town> {
  const api = await startApi({ mode: "local" });
  for (const kind of ["shared", "private", "addressed", "direct"]) {
    const body = { name: kind, kind, fields: { text: { type: "text", required: true } } };
    await manage(api, "POST", "/collections", body);
  }
  const [ann, bo, cy] = [await signIn(api, "ann@example.com"), await signIn(api, "bo@example.com"), await signIn(api, "cy@example.com")];
  return { api, ann, bo, cy, [Symbol.asyncDispose]: () => api[Symbol.asyncDispose]() };
}

const path = (kind: string, id?: string) => `/collections/${kind}/records${id === undefined ? "" : `/${id}`}`;

interface Row {
  kind: "shared" | "private" | "addressed" | "direct";
  /** Names the record's owner and its recipient. A record without an owner belongs to the app. */
  owner?: "ann" | "bo";
  to?: "bo";
  readers: string;
  writers: string;
}

const rows: Row[] = [
  { kind: "shared", readers: "ann bo cy", writers: "" },
  { kind: "shared", owner: "ann", readers: "ann bo cy", writers: "" },
  { kind: "private", owner: "ann", readers: "ann", writers: "ann" },
  { kind: "private", owner: "ann", to: "bo", readers: "ann bo", writers: "ann" },
  { kind: "private", readers: "", writers: "" },
  { kind: "addressed", to: "bo", readers: "bo", writers: "" },
  { kind: "direct", owner: "ann", to: "bo", readers: "ann bo", writers: "ann" },
  { kind: "direct", to: "bo", readers: "bo", writers: "" },
];

test.each(rows)("a $kind record (owner $owner, to $to) is read by [$readers] and written by [$writers]", async (row) => {
  await using town = await openTown();
  const { api } = town;
  const { record } = await manage(api, "POST", path(row.kind), {
    data: { text: "hello" },
    ...(row.owner === undefined ? {} : { owner: town[row.owner].id }),
    ...(row.to === undefined ? {} : { to: town[row.to].id }),
  });
  const woken = api.woken.capture;
  const before = await api.snapshot();
  const people = ["ann", "bo", "cy"] as const;
  for (const name of people) {
    const reads = row.readers.includes(name);
    const list = await town[name].call("GET", path(row.kind));
    expect([name, list.json.items.length]).toEqual([name, reads ? 1 : 0]);
    const got = await town[name].call("GET", path(row.kind, record.id));
    expect([name, got.status]).toEqual([name, reads ? 200 : 404]);
    if (row.writers.includes(name)) continue;
    for (const method of ["PUT", "DELETE"]) {
      const body = method === "PUT" ? { data: { text: "mine" } } : undefined;
      const refused = await town[name].call(method, path(row.kind, record.id), body);
      expect([name, refused.status, refused.json.code]).toEqual(reads ? [name, 403, "forbidden"] : [name, 404, "not_found"]);
    }
  }
  expect([changesBetween(before, await api.snapshot()), api.woken.capture]).toEqual([{}, woken]);
  for (const name of people.filter((one) => row.writers.includes(one))) {
    const put = await town[name].call("PUT", path(row.kind, record.id), { data: { text: "mine" } });
    expect(put.json.record).toMatchObject({ data: { text: "mine" }, recipient: record.recipient });
    expect((await town[name].call("DELETE", path(row.kind, record.id))).status).toBe(204);
    expect(api.woken.capture).toBe(woken + 2);
  }
});

test("a person's new record belongs to them, names its writer only to the app, and is announced as a record change", async () => {
  await using town = await openTown();
  const { api, ann } = town;
  const woken = api.woken.capture;
  const before = await api.snapshot();
  const reply = await ann.call("POST", path("private"), { data: { text: "note" } });
  expect(reply.status).toBe(201);
  expect(reply.json.record).toEqual({
    id: expect.stringMatching(/^rec_/),
    collection: "private",
    data: { text: "note" },
    owner: ann.id,
    recipient: null,
    createdAt: "2026-01-15T12:00:00.000Z",
    updatedAt: "2026-01-15T12:00:00.000Z",
  });
  expect(changesBetween(before, await api.snapshot())).toEqual({ record: 1 });
  expect(api.woken.capture).toBe(woken + 1);
  const asApp = await manage(api, "GET", path("private", reply.json.record.id));
  expect(asApp.record.by).toBe(`person:${ann.id}`);
});

test("a person's writes trigger record-change relays, like the app's", async () => {
  await using town = await openTown();
  const { api, ann } = town;
  const definition = {
    name: "on-note",
    trigger: { kind: "data_change", collection: "private", on: ["created", "updated", "deleted"] },
    actions: [{ type: "grant_credits", amount: 1 }],
  };
  await manage(api, "POST", "/relays", { definition });
  const { record } = (await ann.call("POST", path("private"), { data: { text: "note" } })).json;
  await ann.call("PUT", path("private", record.id), { data: { text: "changed" } });
  await ann.call("DELETE", path("private", record.id));
  await settle();
  const payloads = await api.rows<{ payload: string }>(`SELECT payload FROM event WHERE ${RELAY_NAME} = 'on-note' ORDER BY seq`);
  const by = `person:${ann.id}`;
  const written = (text: string) => ({ by, data: { text } });
  expect(payloads.map(({ payload }) => JSON.parse(payload))).toMatchObject([
    { record: written("note"), previous: null },
    { record: written("changed"), previous: written("note") },
    { record: written("changed"), previous: written("changed") },
  ]);
});

const refusals: [string, string, (town: Town) => object, number, string][] = [
  ["into a shared collection", "shared", () => ({ data: { text: "x" } }), 403, "forbidden"],
  ["into an addressed collection", "addressed", ({ bo }) => ({ data: { text: "x" }, to: bo.id }), 403, "forbidden"],
  ["to a person in a private collection", "private", ({ bo }) => ({ data: { text: "x" }, to: bo.id }), 403, "forbidden"],
  ["without a recipient in a direct collection", "direct", () => ({ data: { text: "x" } }), 400, "data_invalid"],
  ["to an unknown person", "direct", () => ({ data: { text: "x" }, to: "per_x" }), 400, "invalid_input"],
  ["owned by another person", "private", ({ bo }) => ({ data: { text: "x" }, owner: bo.id }), 400, "invalid_input"],
  ["that breaks the fields", "private", () => ({ data: { text: 5, more: 1 } }), 400, "data_invalid"],
  ["into an unknown collection", "nowhere", () => ({ data: {} }), 404, "not_found"],
];
test.each(refusals)("a person's record %s is rejected and nothing is written", async (_, kind, body, status, code) => {
  await using town = await openTown();
  const before = await town.api.snapshot();
  const reply = await town.ann.call("POST", path(kind), body(town));
  expect([reply.status, reply.json.code]).toEqual([status, code]);
  expect([changesBetween(before, await town.api.snapshot()), town.api.woken.capture]).toEqual([{}, 0]);
});

test("a record to a suspended person gets the same answer as one to an unknown person", async () => {
  await using town = await openTown();
  await manage(town.api, "PATCH", `/persons/${town.bo.id}`, { status: "suspended" });
  const replies = [];
  for (const to of [town.bo.id, `per_${"0".repeat(32)}`]) replies.push(await town.ann.call("POST", path("direct"), { data: { text: "x" }, to }));
  expect(new Set(replies.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
});

test("a list is paged newest first, and the app owner's record names no writer", async () => {
  await using town = await openTown();
  const { api, ann, bo } = town;
  for (let n = 0; n < 5; n++) await ann.call("POST", path("direct"), { data: { text: `${n}` }, to: bo.id });
  const body = { data: { text: "from the owner" } };
  await api.call(`${api.E}${path("shared")}`, { method: "POST", session: true, body });
  const first = await bo.call("GET", `${path("direct")}?limit=2`);
  const second = await bo.call("GET", `${path("direct")}?limit=2&cursor=${first.json.next}`);
  const texts = [...first.json.items, ...second.json.items].map(({ data }) => data.text);
  expect(texts).toEqual(["4", "3", "2", "1"]);
  const shared = await bo.call("GET", path("shared"));
  expect(shared.json.items).toHaveLength(1);
  expect(shared.text).not.toContain("@");
});
