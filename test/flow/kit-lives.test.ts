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

/** Arranges the requests of one step. An hour passes after each list, so that an event whose customer is known by then is retried. */
type Arrange = (requests: readonly LifeRequest[]) => (readonly LifeRequest[])[];

const DELIVERIES: readonly (readonly [name: string, arrange: Arrange])[] = [
  ["in order", (requests) => [requests]],
  ["with each request twice", (requests) => [requests.flatMap((one) => [one, one])]],
  ["with all requests twice", (requests) => [[...requests, ...requests]]],
  ["out of order", (requests) => [requests.toReversed()]],
  [
    "with the request that names the customer an hour late",
    (requests) => [requests.filter(({ namesCustomer }) => !namesCustomer), requests.filter(({ namesCustomer }) => namesCustomer)],
  ],
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

async function passHour(running: RunningService): Promise<void> {
  await running.drain();
  running.clock.jump(HOUR_MS);
  await running.clock.advance(5_000);
  await running.drain();
}

/** Creates the person and files the token, as the app does before the first purchase. */
async function fileToken(running: RunningService, email: string, token: string): Promise<void> {
  const { body } = await running.api("POST", "/persons", { email });
  const filed = await running.api("PUT", `/persons/${body.person.id}/tokens/${token}`);
  if (filed.status >= 300) throw new Error(`The token was refused: ${JSON.stringify(filed.body)}`);
}

let playings = 0;

/** Makes the requests of a life for a new person. */
async function startLife(running: RunningService, kit: Kit, life: KitLife) {
  const run = String(100_000_000_000 + ++playings);
  const person = `p${run}@example.com`;
  if (kit.token !== undefined) await fileToken(running, person, kit.token.replace("{run}", run));
  return { person, played: playLife(kit, life, { names: KIT_NAMES, person, run, startMs: running.clock.now() }) };
}

async function play(running: RunningService, kit: Kit, life: KitLife, arrange: Arrange): Promise<void> {
  const { person, played } = await startLife(running, kit, life);
  const [had, wanted] = [[] as unknown[], [] as unknown[]];
  for (const { does, requests, outcome } of played) {
    for (const sent of arrange(requests)) {
      for (const request of sent) await deliver(running, senderOf(kit), request);
      await passHour(running);
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

    test.each(kit.lives.flatMap((life) => DELIVERIES.map(([name, arrange]) => [`${life.name} ${name}`, life, arrange] as const)))(
      "%s",
      (_name, life, arrange) => play(running, kit, life, arrange),
    );

    const subscription = kit.lives.find(({ name }) => name === "subscription-life");
    if (subscription !== undefined)
      test("an event that arrives after the end of its subscription gives the plan again", async () => {
        const steps = await startLife(running, kit, subscription);
        const upgrade = steps.played.find(({ outcome }) => outcome.plan === KIT_NAMES.plan2);
        const end = steps.played.findIndex(({ outcome }) => outcome.access.length === 0);
        for (const step of steps.played.slice(0, end + 1)) {
          if (step === upgrade) continue;
          for (const request of step.requests) await deliver(running, senderOf(kit), request);
          await passHour(running);
        }
        expect(await lookAt(running, steps.person)).toMatchObject({ access: [], plan: "free" });
        for (const request of upgrade?.requests ?? []) await deliver(running, senderOf(kit), request);
        await passHour(running);
        expect(await lookAt(running, steps.person)).toMatchObject({ access: [KIT_NAMES.plan2], plan: KIT_NAMES.plan2 });
      });

    test("no event of these lives failed", async () => {
      const failed = await running.rows("SELECT state, payload FROM event WHERE state NOT IN ('done') LIMIT 3");
      expect(failed).toEqual([]);
    });
  });
}
