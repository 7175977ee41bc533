/** Tests that a new relay can sell the products and plans that its actions name and that nothing sells, in the transaction of its save. */
import { expect, test } from "bun:test";
import { HOOK_SECRET, receiverDefinition, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const REF = "{{mapped.event_id}}";
const MAP = { event_id: "id", person_email: "email" };
const definition = receiverDefinition({
  name: "shop",
  map: MAP,
  actions: [
    { type: "fulfil_product", product: "course", ref: REF },
    { type: "grant_plan", plan: "pro", ref: `plan-${REF}` },
  ],
});

async function start(): Promise<RunningService> {
  const running = await startRunningService();
  for (const [path, body] of [
    ["/products/course", { title: "The course", credits: 5, key: "access:course" }],
    ["/plans/free", { default: true }],
    ["/plans/pro", { title: "Pro" }],
  ] as const)
    expect((await running.api("PUT", path, body)).status).toBeLessThan(300);
  return running;
}
const create = (running: RunningService, more: object, of: object = definition) =>
  running.api("POST", "/relays", { definition: of, secret: HOOK_SECRET, ...more });
const soldOf = async (running: RunningService, path: string) => (await running.api("GET", path)).body;

test("with sell, the new relay sells both, the items keep their other fields, and a purchase is fulfilled", async () => {
  await using running = await start();
  const made = await create(running, { sell: true });
  expect([made.status, made.body.warnings]).toEqual([201, []]);
  const { product } = await soldOf(running, "/products/course");
  expect(product).toMatchObject({ title: "The course", credits: 5, key: "access:course", soldThrough: { kind: "relay", relay: "shop" }, version: 2 });
  const { plan } = await soldOf(running, "/plans/pro");
  expect(plan).toMatchObject({ title: "Pro", default: false, soldThrough: { kind: "relay", relay: "shop" }, version: 2 });
  const sent = await running.hook("shop", signedCall({ id: "pi_1", email: "ada@example.com" }));
  await running.drain();
  expect((await running.api("GET", `/events/${sent.body.eventId}`)).body.event.state).toBe("done");
  const changes = await running.rows<{ target: string }>(
    "SELECT target FROM audit WHERE action IN ('product.changed', 'plan.changed') ORDER BY target",
  );
  expect(changes.map(({ target }) => target)).toEqual(["plan:pro", "product:course"]);
});

test.each([
  ["without sell", {}, null],
  ["with sell: false", { sell: false }, null],
])("%s, nothing sells the items", async (_what, more, soldThrough) => {
  await using running = await start();
  expect((await create(running, more)).status).toBe(201);
  expect((await soldOf(running, "/products/course")).product.soldThrough).toBe(soldThrough);
});

test("with sell, an item that another relay or a payment link sells does not change, and a missing one is no error", async () => {
  await using running = await start();
  const link = { kind: "payment_link", url: "https://pay.example.com/course" };
  await running.api("PUT", "/products/course", { soldThrough: link });
  const other = receiverDefinition({
    name: "shop",
    map: MAP,
    actions: [
      { type: "fulfil_product", product: "course", ref: REF },
      { type: "fulfil_product", product: "missing", ref: REF },
    ],
  });
  expect((await create(running, { sell: true }, other)).status).toBe(201);
  expect((await soldOf(running, "/products/course")).product.soldThrough).toEqual(link);
});

test("a refused relay sells nothing", async () => {
  await using running = await start();
  expect((await create(running, { sell: true, signingSecret: "x".repeat(32) })).status).toBe(400);
  expect((await soldOf(running, "/products/course")).product).toMatchObject({ soldThrough: null, version: 1 });
});

test("an explained draft with sell would fulfill the product, and without it would fail", async () => {
  await using running = await start();
  const explain = async (more: object) => (await running.api("POST", "/relays/explain", { definition, ...more })).body.explanation;
  const body = JSON.stringify({ id: "pi_1", email: "ada@example.com" });
  expect(await explain({ body })).toMatchObject({ would: "fail", message: expect.stringContaining("product_not_sold_here") });
  expect(await explain({ body, sell: true })).toMatchObject({ would: "run" });
  expect((await soldOf(running, "/products/course")).product).toMatchObject({ soldThrough: null, version: 1 });
});
