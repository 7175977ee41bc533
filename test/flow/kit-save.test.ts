/** Tests the save of a selling kit through the API: its relays and its catalog in one transaction, and the checklist that the first sale ticks. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { KIT_NAMES } from "../../src/rules/senders/kit-definitions.ts";
import { playLife } from "../../src/rules/senders/kit-life.ts";
import { findKit, KITS } from "../../src/rules/senders/kit-registry.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { SIGNERS } from "../kit/sender-signer.ts";

const SOURCE = "lemon-squeezy";
const RELAYS = [SOURCE, ...["purchase", "refund", "plan-basic", "plan-pro", "end-plans"].map((name) => `${SOURCE}-${name}`)];

let running: RunningService;
beforeEach(async () => {
  running = await startRunningService({ environments: ["development", "production"] });
});
afterEach(() => running[Symbol.asyncDispose]());

const save = (names: object = {}, sender = SOURCE) => running.api("POST", `/kits/${sender}`, names);
/** Lists what the environment has: its relays, and the items of its catalog. */
async function listAll(): Promise<string[]> {
  const relays = (await running.api("GET", "/relays?limit=100")).body.items.map(({ name }: { name: string }) => name);
  const { catalog } = (await running.api("GET", "/catalog")).body;
  return [
    ...relays.sort(),
    ...Object.entries(catalog as Record<string, object>).flatMap(([kind, items]) => Object.keys(items).map((name) => `${kind} ${name}`)),
  ];
}

test("a kit is saved completely, and its response names the relays, the source and the new secret", async () => {
  const { status, body } = await save();
  expect([status, body.source, body.relays]).toEqual([201, SOURCE, RELAYS]);
  expect(body.secrets).toEqual([{ relay: SOURCE, receiverSecret: expect.stringMatching(/^\S{20,40}$/) }]);
  expect(await listAll()).toEqual([
    ...RELAYS.toSorted(),
    `collections lemon_squeezy_events`,
    "products course",
    "plans basic",
    "plans free",
    "plans pro",
  ]);
  expect(body.changes).toBe(RELAYS.length + 5);
  const { relay } = (await running.api("GET", `/relays/${SOURCE}`)).body;
  expect([relay.followers, relay.origin.kind]).toEqual([RELAYS.slice(1).sort(), "dashboard"]);
});

test("the seller's names are those of the relays and of the catalog", async () => {
  const { body } = await save({ product: "atlas", plan: "solo", plan2: "team" });
  expect(body.relays).toContain(`${SOURCE}-plan-team`);
  expect(await listAll()).toContain("products atlas");
});

test("a second save changes nothing and makes no secret", async () => {
  await save();
  const { status, body } = await save();
  expect([status, body.changes, body.secrets]).toEqual([201, 0, []]);
});

test("the environment's own default plan stays", async () => {
  await running.api("PUT", "/plans/starter", { default: true });
  expect((await save()).status).toBe(201);
  const { catalog } = (await running.api("GET", "/catalog")).body;
  expect([catalog.plans.starter.default, catalog.plans.free]).toEqual([true, undefined]);
});

const SHAPE = { kind: "private", fields: { event_id: { type: "text" }, event_type: { type: "text" }, object: { type: "text" } } };

test("a collection that also has other fields stays, so the first relay of a sender and the kit share it", async () => {
  const fields = { ...SHAPE.fields, amount: { type: "number" } };
  await running.api("POST", "/collections", { ...SHAPE, name: "stripe_events", fields });
  expect((await save({}, "stripe")).status).toBe(201);
  const { catalog } = (await running.api("GET", "/catalog")).body;
  expect(Object.keys(catalog.collections.stripe_events.fields)).toContain("amount");
});

interface Refused {
  name: string;
  names?: object;
  sender?: string;
  stage?(): Promise<unknown>;
  code: string;
  message: RegExp;
}
const REFUSED: readonly Refused[] = [
  { name: "a provider without a kit", sender: "nowhere", code: "not_found", message: /no kit for this provider: GET \/api\/kits lists the kits/ },
  { name: "an invalid name", names: { product: "My Course" }, code: "invalid_input", message: /`product`.*1 to 40 lowercase letters/ },
  { name: "two equal names", names: { plan: "pro" }, code: "invalid_input", message: /`plan2`.*already the name of the first plan/ },
  { name: "a name of 41 characters", names: { product: "a".repeat(41) }, code: "invalid_input", message: /at most 40 characters/ },
  {
    name: "a plan with the name of another entry of the kit",
    sender: "stripe",
    names: { plan: "course-free" },
    code: "invalid_input",
    message: /Two entries of the kit's catalog would have the name course-free/,
  },
  {
    name: "another kit of the same provider",
    stage: () => save({ product: "atlas" }),
    code: "name_taken",
    message: /The relay lemon-squeezy-purchase exists with other content, so nothing was saved: edit that relay, or delete it first/,
  },
  {
    name: "an item that exists with other content",
    stage: () => running.api("PUT", "/products/course", { credits: 5 }),
    code: "name_taken",
    message: /The product course exists with other content, so nothing was saved/,
  },
  ...[
    { name: "without a field of the kit", fields: { event_id: { type: "text" } } },
    { name: "that requires another field", fields: { ...SHAPE.fields, more: { type: "text", required: true } } },
    { name: "of another kind", kind: "shared", fields: SHAPE.fields },
  ].map(({ name, ...shape }) => ({
    name: `a collection ${name}`,
    sender: "stripe",
    stage: () => running.api("POST", "/collections", { kind: "private", ...shape, name: "stripe_events" }),
    code: "name_taken",
    message:
      /The collection stripe_events exists with other content, so nothing was saved: add the missing fields to it in Records, or delete it there/,
  })),
];
test.each(REFUSED)("$name is refused, and nothing is saved", async ({ names, sender, stage, code, message }) => {
  await stage?.();
  const before = await listAll();
  const { body } = await save(names, sender);
  expect(body).toMatchObject({ code, message: expect.stringMatching(message) });
  expect(await listAll()).toEqual(before);
});

test("production accepts no kit, and the refusal says how a kit gets there", async () => {
  const { body } = await running.api("POST", `/kits/${SOURCE}`, {}, "production");
  expect(body).toMatchObject({ code: "approval_needed", message: expect.stringContaining("then promote it with relay promote") });
  expect((await running.api("GET", "/relays", undefined, "production")).body.items).toEqual([]);
});

describe("the checklist of the source", () => {
  const steps = async (name = SOURCE): Promise<string[]> => {
    const { checklist } = (await running.api("GET", `/relays/${name}/checklist`)).body;
    return checklist.steps.map(({ step, done }: { step: string; done: boolean }) => (done ? step : `-${step}`));
  };

  async function play(secret: string, life: string): Promise<void> {
    const kit = findKit(SOURCE);
    const found = kit?.lives.find(({ name }) => name === life);
    if (kit === null || found === undefined) throw new Error(`no life ${life}`);
    const played = playLife(kit, found, { names: KIT_NAMES, person: "ada@example.com", run: "100000000001", startMs: running.clock.now() });
    for (const { body, contentType } of played.flatMap(({ requests }) => requests)) {
      const url = `https://relay.example.test/hooks/app_test/${SOURCE}`;
      const signed = await SIGNERS[SOURCE]?.sign({ body, secret, nowMs: running.clock.now(), url });
      const headers = { "content-type": contentType, ...signed?.headers };
      expect((await running.hook(SOURCE, { search: "", body, ...signed, headers })).status).toBe(200);
      await running.drain();
    }
  }

  test("a purchase and a refund tick its last steps, each when it is done", async () => {
    const secret: string = (await save()).body.secrets[0].receiverSecret;
    expect((await steps()).slice(-2)).toEqual(["-purchase", "-refund"]);
    await play(secret, "purchase");
    expect((await steps()).slice(-3)).toEqual(["done", "purchase", "-refund"]);
    await play(secret, "refund");
    expect((await steps()).filter((step) => step.startsWith("-"))).toEqual([]);
  });

  test.each(KITS.map(({ sender, eventTypes }) => [sender, eventTypes] as const))(
    "names the event types of the kit of %s",
    async (sender, eventTypes) => {
      await save({}, sender);
      const { checklist } = (await running.api("GET", `/relays/${sender}/checklist`)).body;
      const named = checklist.eventTypes.map(({ type }: { type: string }) => type);
      if (eventTypes.length > 0) expect(named.toSorted()).toEqual(eventTypes.toSorted());
    },
  );

  test("a follower has no such steps", async () => {
    await save();
    expect(await steps(`${SOURCE}-purchase`)).not.toContain("-purchase");
  });
});
