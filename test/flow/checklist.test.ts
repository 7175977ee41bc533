/** Tests the checklist of a relay: each step is done because of what happened, and the API and the command show the same steps. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { findSender } from "../../src/rules/senders/registry.ts";
import { startCatalog, startDefinition } from "../../src/rules/senders/sender-start.ts";
import { COMMAND_PLACES, runAt } from "../kit/cli-place.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall, writeOrder } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const SECRET = "whsec_theSecretOfThisDestination1";
const OTHER = "whsec_theSecretOfSomeOtherPlace22";
const EXAMPLE = (stripe().example as { json: { type: string } }).json;

let running: RunningService;
beforeEach(async () => {
  running = await startRunningService();
  await makeOrders(running);
});
afterEach(() => running[Symbol.asyncDispose]());

function stripe() {
  const sender = findSender("stripe");
  if (sender === null) throw new Error("There is no sender stripe.");
  return { definition: startDefinition(sender, "orders"), catalog: startCatalog(sender), example: sender.example };
}

/** Sends a request the way Stripe signs it. */
async function callAsStripe(secret: string, type = EXAMPLE.type): Promise<void> {
  const body = JSON.stringify({ ...EXAMPLE, id: `evt_${type}`, type });
  const seconds = Math.floor(running.clock.now() / 1_000);
  const signature = createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex");
  const headers = { "content-type": "application/json", "stripe-signature": `t=${seconds},v1=${signature}` };
  await running.hook("orders", { headers, body });
  await running.drain();
}

const save = async (definition: object): Promise<void> => {
  const { status, body } = await running.api("POST", "/relays", { definition });
  if (status !== 201) throw new Error(JSON.stringify(body));
};
const saveStripe = async (): Promise<void> => {
  for (const [name, shape] of Object.entries(stripe().catalog.collections as Record<string, object>))
    await running.api("POST", "/collections", { name, ...shape });
  await save(stripe().definition);
};
const storeSecret = (): Promise<unknown> => running.api("PUT", "/relays/orders/secret", { value: SECRET });
const checklist = async () => (await running.api("GET", "/relays/orders/checklist")).body.checklist;

interface Row {
  name: string;
  stage(): Promise<unknown>;
  /** The steps in their order; an open one begins with a minus sign. */
  steps: string[];
  /** The instruction of the first open step. */
  todo?: RegExp;
}

const NEW = ["catalog", "-url", "-event_types", "-secret_place", "-secret", "-verified", "-done"];
const ROWS: readonly Row[] = [
  { name: "a new relay of Stripe has every step left", stage: saveStripe, steps: NEW, todo: /Add destination.* The URL is .*\/hooks\/.*\/orders$/ },
  {
    name: "a rejected request shows that the URL is registered",
    stage: async () => {
      await saveStripe();
      await callAsStripe(SECRET);
    },
    steps: NEW.with(1, "url"),
    todo: /checkout\.session\.completed/,
  },
  {
    name: "a pasted secret is asked for no longer",
    stage: async () => {
      await saveStripe();
      await storeSecret();
    },
    steps: ["catalog", "-url", "-event_types", "secret_place", "secret", "-verified", "-done"],
  },
  {
    name: "a pasted secret that does not match is asked for again",
    stage: async () => {
      await saveStripe();
      await storeSecret();
      await callAsStripe(OTHER);
    },
    steps: NEW.with(1, "url"),
  },
  {
    name: "a test event marks no step as done",
    stage: async () => {
      await saveStripe();
      await storeSecret();
      expect((await running.api("POST", "/relays/orders/test-event", {})).status).toBeLessThan(300);
      await running.drain();
    },
    steps: ["catalog", "-url", "-event_types", "secret_place", "secret", "-verified", "-done"],
  },
  {
    name: "an imported event shows no verified request",
    stage: async () => {
      await saveStripe();
      await storeSecret();
      await callAsStripe(OTHER);
      const imported = await running.api("POST", "/relays/orders/import-missed", EXAMPLE);
      expect(imported.body.lines).toMatchObject([{ outcome: "new", unsigned: true }]);
      await running.drain();
    },
    steps: ["catalog", "url", "event_types", "-secret_place", "-secret", "-verified", "done"],
  },
  {
    name: "an ignored request verified, and its event type is not one of the relay's",
    stage: async () => {
      await saveStripe();
      await storeSecret();
      await callAsStripe(SECRET, "customer.created");
    },
    steps: ["catalog", "url", "-event_types", "secret_place", "secret", "verified", "-done"],
  },
  {
    name: "a done event ends the list",
    stage: async () => {
      await saveStripe();
      await storeSecret();
      await callAsStripe(SECRET);
    },
    steps: ["catalog", "url", "event_types", "secret_place", "secret", "verified", "done"],
  },
  {
    name: "a generated secret marks no step as done before a request verified",
    stage: () => save(receiverDefinition({})),
    steps: ["catalog", "-url", "-secret", "-verified", "-done"],
  },
  {
    name: "a missing collection is the first step",
    stage: async () => {
      await saveRelay(running, receiverDefinition({ actions: [{ ...writeOrder, collection: "nowhere" }] }));
      await running.hook("orders", signedCall({ id: "1", type: "paid", amount: "1" }));
      await running.drain();
    },
    steps: ["-catalog", "url", "secret_place", "secret", "verified", "-done"],
    todo: /collection nowhere/,
  },
  {
    name: "a schedule has no secret",
    stage: () =>
      save({
        name: "orders",
        trigger: { kind: "schedule", every: "1d" },
        actions: [{ type: "write_record", collection: "orders", data: { order: "a", amount: "1" } }],
      }),
    steps: ["catalog", "-occurred", "-done"],
  },
];

test.each(ROWS.map((row) => [row.name, row] as const))("%s", async (_name, { stage, steps, todo }) => {
  await stage();
  const { steps: shown, left, next } = await checklist();
  expect(shown.map(({ step, done }: { step: string; done: boolean }) => (done ? step : `-${step}`))).toEqual(steps);
  expect(left).toBe(steps.filter((step) => step.startsWith("-")).length);
  for (const { done, todo: told } of shown) expect(told === null).toBe(done);
  if (todo !== undefined) expect(next.todo).toMatch(todo);
});

test("the reason of the last rejection is with the step that waits for a verified request", async () => {
  await saveStripe();
  await storeSecret();
  await callAsStripe(OTHER);
  const { steps } = await checklist();
  expect(steps.find(({ step }: { step: string }) => step === "verified").todo).toContain("because the signature does not match");
});

describe("relay relays checklist", () => {
  test.each(COMMAND_PLACES)("%s exits with 3 until every step is done", async (place) => {
    await saveStripe();
    const open = await runAt(place, running, ["relays", "checklist", "orders"]);
    expect(open.code).toBe(3);
    expect(open.said).toContain("orders: 6 steps are left");
    expect(open.said).toContain("[ ] Paste the secret here");
    expect(open.said).toContain("checkout.session.completed");
    const json = await runAt(place, running, ["relays", "checklist", "orders", "--json"]);
    const told = JSON.parse(json.said);
    const { steps, left } = await checklist();
    const idsOf = (all: { step: string; done: boolean }[]) => all.map(({ step, done }) => `${step} ${done}`);
    expect([json.code, told.left, idsOf(told.steps)]).toEqual([3, left, idsOf(steps)]);
    await storeSecret();
    await callAsStripe(SECRET);
    const done = await runAt(place, running, ["relays", "checklist", "orders"]);
    expect([done.code, done.said.split("\n")[0]]).toEqual([0, "orders: every step is done"]);
  });
});

test("the relay names the provider that issues its secret", async () => {
  await saveStripe();
  expect((await running.api("GET", "/relays/orders")).body.relay.secret).toEqual({ kind: "none", setAt: null, issuedBy: "Stripe" });
});
