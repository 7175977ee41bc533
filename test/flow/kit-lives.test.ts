/**
 * Plays the lives of every kit against its relays, with the provider's bodies and signature. After each step, access, plan, credits and receipts
 * equal the kit's table: in order, with each request twice, with the requests of a step reversed, and with the request that names the customer late.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import type { Kit, KitLife, LifeOutcome } from "../../src/rules/senders/kit.ts";
import { KIT_NAMES, kitDefinitions } from "../../src/rules/senders/kit-definitions.ts";
import { type LifeRequest, playLife } from "../../src/rules/senders/kit-life.ts";
import { KITS } from "../../src/rules/senders/kit-registry.ts";
import { findSender } from "../../src/rules/senders/registry.ts";
import type { Sender } from "../../src/rules/senders/sender.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { SIGNERS, secretOf } from "../kit/sender-signer.ts";

const HOUR_MS = 3_600_000;

interface Delivery {
  name: string;
  /** Arranges the requests of one step. Each list is followed by its wait. */
  arrange(requests: readonly LifeRequest[]): { requests: readonly LifeRequest[]; waitMs: number }[];
}

const DELIVERIES: readonly Delivery[] = [
  { name: "in order", arrange: (requests) => [{ requests, waitMs: 0 }] },
  { name: "twice", arrange: (requests) => [{ requests: requests.flatMap((one) => [one, one]), waitMs: 0 }] },
  { name: "twice, the second time after all others", arrange: (requests) => [{ requests: [...requests, ...requests], waitMs: 0 }] },
  { name: "out of order", arrange: (requests) => [{ requests: requests.toReversed(), waitMs: HOUR_MS }] },
  {
    name: "with the request that names the customer an hour late",
    arrange: (requests) => [
      { requests: requests.filter(({ namesCustomer }) => !namesCustomer), waitMs: HOUR_MS },
      { requests: requests.filter(({ namesCustomer }) => namesCustomer), waitMs: HOUR_MS },
    ],
  },
];

function senderOf({ sender }: Kit): Sender {
  const found = findSender(sender);
  if (found === null) throw new Error(`no sender ${sender}`);
  return found;
}

function signerOf({ name }: Sender) {
  const signer = SIGNERS[name];
  if (signer === undefined) throw new Error(`nothing signs as ${name} does`);
  return signer;
}

async function saveKit(running: RunningService, kit: Kit): Promise<void> {
  const sender = senderOf(kit);
  const { relays, catalog } = kitDefinitions(kit, sender, KIT_NAMES);
  const save = async (method: string, path: string, body: unknown) => {
    const saved = await running.api(method, path, body);
    if (saved.status >= 300) throw new Error(`${method} ${path}: ${saved.status} ${JSON.stringify(saved.body)}`);
  };
  const { collections, plans, products } = catalog as Record<string, Record<string, object>>;
  for (const [name, collection] of Object.entries(collections ?? {})) await save("POST", "/collections", { name, ...collection });
  for (const [index, definition] of relays.entries())
    await save("POST", "/relays", { definition, ...(index === 0 ? { secret: secretOf(signerOf(sender)) } : {}) });
  for (const [name, product] of Object.entries(products ?? {})) await save("PUT", `/products/${name}`, product);
  for (const [name, plan] of Object.entries(plans ?? {})) await save("PUT", `/plans/${name}`, plan);
}

async function deliver(running: RunningService, sender: Sender, { body, contentType }: LifeRequest): Promise<void> {
  const { name } = sender;
  const signer = signerOf(sender);
  const url = `https://relay.example.test/hooks/app_test/${name}`;
  const signed = await signer.sign({ body, secret: secretOf(signer), nowMs: running.clock.now(), url });
  const call = { search: "", body, ...signed, headers: { "content-type": contentType, ...signed.headers } };
  const answer = await running.hook(name, call);
  if (answer.status !== 200) throw new Error(`The receiver answered ${answer.status} ${JSON.stringify(answer.body)}`);
}

/** Reads what the person has, in the shape of the kit's table. */
async function lookAt(running: RunningService, email: string): Promise<LifeOutcome> {
  const [person] = await running.rows<{ id: string }>("SELECT id FROM person WHERE email = ?1", email);
  const id = person?.id ?? "";
  const grants = await running.rows<{ name: string }>(
    "SELECT DISTINCT entitlement AS name FROM access_grant WHERE person_id = ?1 AND revoked_at IS NULL",
    id,
  );
  const [plan] = await running.rows<{ plan: string }>("SELECT plan FROM subscription WHERE person_id = ?1 AND status = 'active'", id);
  const [credit] = await running.rows<{ balance: number }>("SELECT balance FROM credit WHERE person_id = ?1 ORDER BY seq DESC LIMIT 1", id);
  const receipts = await running.rows<{ name: string }>(
    `SELECT sold.item || CASE WHEN refund.id IS NULL THEN '' ELSE ' refunded' END AS name FROM purchase AS sold
     LEFT JOIN purchase AS refund ON refund.kind = 'refund' AND refund.refunds = sold.id
     WHERE sold.person_id = ?1 AND sold.kind = 'purchase' AND sold.confirmation = 0`,
    id,
  );
  return {
    access: grants.map(({ name }) => name).sort(),
    plan: plan?.plan ?? "free",
    credits: credit?.balance ?? 0,
    receipts: receipts.map(({ name }) => name).sort(),
  };
}

async function waitFor(running: RunningService, waitMs: number): Promise<void> {
  await running.drain();
  if (waitMs === 0) return;
  running.clock.jump(waitMs);
  await running.clock.advance(2_000);
  await running.drain();
}

let playings = 0;

async function play(running: RunningService, kit: Kit, life: KitLife, delivery: Delivery): Promise<void> {
  const run = String(100_000_000_000 + ++playings);
  const person = `p${run}@example.com`;
  const steps = playLife(kit, life, { names: KIT_NAMES, person, run, startMs: running.clock.now() });
  const [had, wanted] = [[] as unknown[], [] as unknown[]];
  for (const { does, requests, outcome } of steps) {
    for (const { requests: sent, waitMs } of delivery.arrange(requests)) {
      for (const request of sent) await deliver(running, senderOf(kit), request);
      await waitFor(running, waitMs);
    }
    had.push({ does, ...(await lookAt(running, person)) });
    wanted.push({ does, ...outcome, access: outcome.access.toSorted(), receipts: outcome.receipts.toSorted() });
  }
  expect(had).toEqual(wanted);
}

for (const kit of KITS) {
  describe(`sells with ${kit.sender}`, () => {
    let running: RunningService;
    beforeAll(async () => {
      running = await startRunningService({
        config: { limits: { ...DEFAULT_LIMITS, verifiedEventsPerMinute: 10_000, eventlessCallsPerMinute: 10_000, invitesPerDay: 10_000 } },
      });
      await saveKit(running, kit);
    });
    afterAll(() => running[Symbol.asyncDispose]());

    test.each(kit.lives.flatMap((life) => DELIVERIES.map((delivery) => [`${life.name} ${delivery.name}`, life, delivery] as const)))(
      "%s",
      (_name, life, delivery) => play(running, kit, life, delivery),
    );

    test("no event of these lives failed", async () => {
      const failed = await running.rows("SELECT state, payload FROM event WHERE state NOT IN ('done') LIMIT 3");
      expect(failed).toEqual([]);
    });
  });
}
