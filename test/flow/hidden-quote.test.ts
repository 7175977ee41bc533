/**
 * Values of payloads that other things quote: sentences about requests, reasons that a template filled in, mails on a timeline. And searches and
 * tries whose answers would tell such values one guess at a time.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ROUTES } from "../../src/interfaces/api/route-list.ts";
import type { Role } from "../../src/platform/account/permission.ts";
import { FakeCaller } from "../kit/fake-caller.ts";
import { addMember, makeRole } from "../kit/member.ts";
import { HOOK_SECRET, receiverDefinition, signedCall } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";

const MARK = "zebra-7731";
const ROOT = `/api/apps/${APP}/development`;
const HOUR_MS = 3_600_000;
const MAP = { event_id: "id", event_type: "type", person_email: "email", note: "note", ref: "ref" };

let running: RunningService;
const tokens: Record<string, string> = {};
/** The ids for the first parameter of a path, by its list. */
const ids: Record<string, string[]> = { relays: ["orders", "picky", "lost", "changes"], collections: ["orders"] };
const txt: string[] = [];

async function make(method: string, path: string, body?: unknown) {
  const answer = await running.api(method, path, body);
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

beforeAll(async () => {
  const refused = { kind: "answered", ok: false, status: 404, body: `no ${MARK}` } as const;
  const mailer = { send: async () => ({ kind: "sent" }) as const };
  running = await startRunningService({ ports: { caller: new FakeCaller(refused), mailer, resolveTxt: async () => txt } });
  await makeMail();
  await make("POST", "/collections", { name: "orders", kind: "shared", fields: { order: { type: "text" }, amount: { type: "text" } } });
  await make("PUT", "/access/vip", { title: "VIP" });
  const call = { type: "call_url", url: "https://shop.example.com/notice" };
  const orders = [
    { type: "write_record", collection: "orders", data: { order: "{{mapped.event_id}}", amount: "{{mapped.note}}" } },
    { type: "grant_credits", amount: 3, reason: "for {{mapped.note}}" },
    { type: "grant_access", entitlement: "access:vip", reason: "for {{mapped.note}}" },
    { type: "email_person", subject: "About {{mapped.note}}", text: "{{mapped.note}}" },
    call,
  ];
  const lost = [{ type: "write_record", collection: "gone", data: { order: "{{mapped.note}}" } }];
  const save = (change: object) => make("POST", "/relays", { definition: receiverDefinition({ map: MAP, ...change }), secret: HOOK_SECRET });
  await save({ name: "orders", actions: orders });
  await save({ name: "picky", when: { note: "other" }, actions: [call] });
  await save({ name: "lost", actions: lost });
  const watch = { kind: "data_change", collection: "orders", on: ["created"], where: { amount: "other" } };
  await make("POST", "/relays", { definition: { name: "changes", trigger: watch, actions: [call] } });
  const send = (name: string, id: string, secret?: string) =>
    running.hook(name, signedCall({ id, type: "sale", email: "kim@example.com", note: MARK, ref: "r-1" }, secret));
  await send("orders", `${MARK}-1`);
  await send("orders", `${MARK}-1`);
  await send("orders", `${MARK}-2`, "anotherSecretOfTwentyFour1");
  await send("lost", "3");
  await make("PUT", "/relays/orders/cases/one", { body: signedCall({ id: "4", type: "sale", note: MARK }).body });
  await running.drain();
  for (let at = 0; at < 12; at++) {
    for (let more = 0; more < 3; more++) await send("picky", `picky-${at}-${more}`);
    await running.clock.leap(2 * HOUR_MS);
    await running.drain();
  }
  const listed = async (path: string) => (await make("GET", path)).items.map(({ id }: { id: string }) => id);
  for (const list of ["events", "persons", "calls", "emails"]) ids[list] = await listed(`/${list}`);
  await make("POST", `/persons/${ids.persons?.[0]}/credits`, { amount: 1, reason: "a gift", key: "gift" });
  for (const name of ["owner", "viewer"] as const) await addPerson(name, name);
});
afterAll(async () => {
  await running[Symbol.asyncDispose]();
});

async function makeMail(): Promise<void> {
  const { settings } = await make("GET", "/settings");
  await make("PUT", "/settings", { version: settings.version, mail: { smtp: { host: "smtp.example.com", port: 465, security: "tls" } } });
  txt.push((await make("PUT", "/sender-domain", { domain: "shop.example", eventWord: "orders" })).senderDomain.record.value);
  await make("POST", "/sender-domain/verify");
}

async function addPerson(name: string, role: Role): Promise<void> {
  const memberships = [makeRole(role)];
  const { token } = await running.service.store.write("dashboard", (tx) => addMember(tx, name, { nowMs: running.clock.now(), memberships }));
  tokens[name] = token;
}

async function ask(name: string, method: string, path: string, body?: unknown) {
  const headers = { cookie: `__Host-relay_session=${tokens[name]}`, origin: running.service.baseUrl, "content-type": "application/json" };
  const answer = await fetch(running.service.url + ROOT + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  return { status: answer.status, text: await answer.text() };
}

const PREFIX = "/api/apps/:appId/:environment";
const READS = ROUTES.filter(({ who, method, path }) => who === "environment" && method === "GET" && !path.endsWith("/stream")).map(({ path }) =>
  path.slice(PREFIX.length),
);

/** Returns the paths of a route, one for each id of its list. */
function fill(path: string): string[] {
  const list = /^\/(\w+)\/:/.exec(path)?.[1] ?? "";
  return (ids[list] ?? ["none"]).map((id) => path.replace(/:\w+/, id).replace(":entitlement", "access:vip").replaceAll(/:\w+/g, "one"));
}

async function findMark(name: string): Promise<string[]> {
  const found: string[] = [];
  for (const path of READS)
    for (const one of fill(path)) {
      if ((await ask(name, "GET", one)).text.includes(MARK)) found.push(path);
    }
  return [...new Set(found)];
}

test("a viewer finds no value that a sentence, a reason or a mail quotes, and an owner finds all of them", async () => {
  const shown = await findMark("owner");
  expect(shown).toEqual(
    expect.arrayContaining([
      "/relays/:name",
      "/relays/:name/rejected",
      "/audit",
      "/relays/:name/funnel",
      "/problems",
      "/alerts",
      "/overview",
      "/relays",
      "/calls",
      "/calls/:id",
      "/grants",
      "/persons/:id",
      "/persons/:id/access",
      "/persons/:id/story",
      "/persons/:id/credits",
      "/emails/:id",
    ]),
  );
  expect(await findMark("viewer")).toEqual([]);
});

test("the sentences stay, and so do reasons that a person wrote", async () => {
  const read = async (path: string) => (await ask("viewer", "GET", path)).text;
  expect(await read("/calls?outcome=ignored")).toContain(JSON.stringify('when.note must be "other" and the request has "[hidden]"').slice(1, -1));
  expect(await read("/problems")).toContain("picky has ignored every request");
  const credits = await read(`/persons/${ids.persons?.[0]}/credits`);
  expect([credits.includes("a gift"), credits.includes("[hidden]")]).toEqual([true, true]);
  const story = await read(`/persons/${ids.persons?.[0]}/story`);
  expect([story.includes("a gift"), story.includes("Mail: sent")]).toEqual([true, true]);
});

const draft = (trigger: object) => ({ name: "draft", trigger, actions: [{ type: "call_url", url: "https://shop.example.com/draft" }] });
const receiver = receiverDefinition({
  name: "orders",
  map: MAP,
  when: { note: "z" },
  actions: [{ type: "call_url", url: "https://shop.example.com/a" }],
});

const TRIES: readonly [name: string, method: string, path: () => string, body?: () => unknown][] = [
  ["a search in payloads", "GET", () => "/events?q=zebra"],
  ["a search in mapped values", "GET", () => "/events?mapped=note:z"],
  ["a count of mapped values", "GET", () => "/events/counts?mapped=note:z"],
  ["a histogram of a search", "GET", () => "/events/histogram?q=zebra"],
  ["a search in records", "GET", () => "/collections/orders/records?q=zebra"],
  ["a draft for a stored event", "POST", () => "/relays/explain", () => ({ definition: receiver, event: ids.events?.at(-1) })],
  ["a draft for the stored cases", "POST", () => "/relays/orders/cases/run", () => ({ definition: receiver })],
];
test.each(TRIES)("%s is refused to a viewer, and an owner may do it", async (_name, method, path, body) => {
  const [refused, admitted] = [await ask("viewer", method, path(), body?.()), await ask("owner", method, path(), body?.())];
  expect([refused.status, refused.text.includes("read_payloads"), admitted.status]).toEqual([403, true, 200]);
});

test("a viewer finds events by the address of a person, but not by a part of it", async () => {
  const byAddress = await ask("viewer", "GET", "/events?q=kim@example.com");
  expect([byAddress.status, JSON.parse(byAddress.text).items.length > 0, byAddress.text.includes(MARK)]).toEqual([200, true, false]);
  expect((await ask("viewer", "GET", "/events?q=kim@example")).status).toBe(403);
});

test("a viewer finds an event by its id, and a checked draft does not say which records match", async () => {
  const [id = ""] = ids.events ?? [];
  expect((await ask("viewer", "GET", `/events?q=${id}`)).text).toContain(id);
  const definition = draft({ kind: "data_change", collection: "orders", on: ["created"], where: { amount: "z" } });
  const checked = async (name: string) => JSON.parse((await ask(name, "POST", "/relays/validate", { definition })).text);
  expect([(await checked("owner")).recentChanges.length, (await checked("viewer")).recentChanges]).toEqual([1, undefined]);
});

test("a plan runs no case for a viewer", async () => {
  const body = { relays: [receiver], replaceEdited: true };
  const plan = async (name: string) =>
    JSON.parse((await ask(name, "POST", "/sync/plan", body)).text).entries.find((one: { name: string }) => one.name === "orders").cases;
  expect([await plan("owner"), await plan("viewer")]).toEqual([expect.any(String), undefined]);
});
