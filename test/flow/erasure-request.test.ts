/**
 * The erasure of a customer of a selling kit: every event of a request about them is expunged, also that of a source that maps no person, and records
 * that relays wrote lose the customer id (ADR 13).
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { KIT_NAMES } from "../../src/rules/senders/kit-definitions.ts";
import { type LifeRequest, playLife } from "../../src/rules/senders/kit-life.ts";
import { findKit } from "../../src/rules/senders/kit-registry.ts";
import { ON_POSTGRES } from "../kit/chosen-store.ts";
import { until } from "../kit/event-flow.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { saveSellingKit } from "../kit/saved-kit.ts";
import { SIGNERS, secretOf } from "../kit/sender-signer.ts";

const [ADA, BOB] = ["ada@example.com", "bob@example.com"];
const [ADA_RUN, BOB_RUN] = ["100000000001", "100000000002"];
const kit = findKit("stripe");
if (kit === null) throw new Error("There is no kit of stripe.");
const stripe = kit;

let running: RunningService;
beforeEach(async () => {
  running = await startRunningService();
});
afterEach(() => running[Symbol.asyncDispose]());

async function erase(email: string): Promise<void> {
  const { items } = (await running.api("GET", `/persons?email=${email}`)).body;
  expect((await running.api("DELETE", `/persons/${items[0].id}`)).status).toBe(204);
  await until("the erasure ends", async () => {
    await running.clock.advance(1_000);
    const [open] = await running.rows<{ count: number }>("SELECT count(*) AS count FROM erasure WHERE target IS NOT NULL");
    return open?.count === 0;
  });
}

interface Stored {
  seq: number;
  relay: string;
  payload: string;
}
const events = () => running.rows<Stored>("SELECT seq, (SELECT name FROM relay_name WHERE key = name_key) AS relay, payload FROM event ORDER BY seq");
const records = async () => (await running.rows<{ data: string }>("SELECT data FROM record ORDER BY seq")).map(({ data }) => JSON.parse(data));
const EXPUNGED = '{"expunged":"person_erased"}';

/** Lists all texts that an event, its runs, its work or a record left. */
async function listTexts(): Promise<string[]> {
  const rows = await running.rows<{ text: string | null }>(
    `SELECT payload AS text FROM event UNION ALL SELECT preview FROM event UNION ALL SELECT warnings FROM event
     UNION ALL SELECT results FROM run UNION ALL SELECT result FROM effect UNION ALL SELECT data FROM record
     UNION ALL SELECT target FROM audit UNION ALL SELECT before FROM audit UNION ALL SELECT after FROM audit
     UNION ALL SELECT customer_id FROM person_customer UNION ALL SELECT message FROM problem UNION ALL SELECT message FROM alert`,
  );
  return rows.flatMap(({ text }) => text ?? []);
}

async function deliver({ body, contentType }: LifeRequest): Promise<void> {
  const signer = SIGNERS.stripe;
  if (signer === undefined) throw new Error("nothing signs as stripe does");
  const url = "https://relay.example.test/hooks/app_test/stripe";
  const signed = await signer.sign({ body, secret: secretOf(signer), nowMs: running.clock.now(), url });
  const answer = await running.hook("stripe", { search: "", body, ...signed, headers: { "content-type": contentType, ...signed.headers } });
  expect(answer.status).toBe(200);
}

/** Sends the requests of every life of the kit, each of Ada with that of Bob at the same time. */
async function playAll(): Promise<void> {
  if (SIGNERS.stripe === undefined) throw new Error("nothing signs as stripe does");
  await saveSellingKit(running, stripe, { secret: secretOf(SIGNERS.stripe) });
  for (const life of stripe.lives) {
    const played = (person: string, run: string) =>
      playLife(stripe, life, { names: KIT_NAMES, person, run, startMs: running.clock.now() }).flatMap(({ requests }) => requests);
    const bobs = played(BOB, `${BOB_RUN}${life.name.length}`);
    for (const [at, request] of played(ADA, `${ADA_RUN}${life.name.length}`).entries()) {
      await Promise.all([deliver(request), deliver(bobs[at] as LifeRequest)]);
      await running.drain();
    }
  }
}

describe("the erasure of a customer of the Stripe kit", () => {
  test("expunges every event of their requests, and no other customer's", async () => {
    await playAll();
    const before = await events();
    expect(before.filter(({ relay, payload }) => relay === "stripe" && payload.includes(`cus_${ADA_RUN}`))).not.toEqual([]);
    await erase(ADA);
    const bodyOf = (payload: string) => JSON.stringify(JSON.parse(payload).event);
    const taken = new Set(before.filter(({ relay }) => relay !== "stripe").map(({ payload }) => bodyOf(payload)));
    // An event that no follower took and whose body has no customer id, such as an unpaid checkout, only loses the address.
    const expected = before.map(({ payload, ...row }) => {
      const isTheirs = payload.includes(`cus_${ADA_RUN}`) || (payload.includes(ADA) && taken.has(bodyOf(payload)));
      return { ...row, payload: isTheirs ? EXPUNGED : payload.replaceAll(ADA, "erased") };
    });
    expect(await events()).toEqual(expected);
    expect(new Set(expected.filter(({ payload }) => payload.includes('"erased"')).map(({ relay }) => relay))).toEqual(new Set(["stripe"]));
  });

  test("leaves the address and the customer ids in no stored text, and those of another customer in all", async () => {
    await playAll();
    const holding = async (part: string) => (await listTexts()).filter((text) => text.includes(part));
    const kept = [await holding(BOB), await holding(`cus_${BOB_RUN}`)];
    expect([(await holding(ADA)).length > 0, (await holding(`"cus_${ADA_RUN}`)).length > 0]).toEqual([true, true]);
    expect(await records()).toContainEqual({ customer: expect.stringContaining(`cus_${ADA_RUN}`) });
    await erase(ADA);
    expect([await holding(ADA), await holding(`cus_${ADA_RUN}`)]).toEqual([[], []]);
    expect([await holding(BOB), await holding(`cus_${BOB_RUN}`)]).toEqual(kept);
    expect(await records()).toContainEqual({ customer: "erased" });
  });
});

describe("the erasure of a customer of a source and its followers", () => {
  const follow = { scheme: "receiver", receiver: "shop" };
  const write = (order: string) => ({ type: "write_record", collection: "orders", data: { order, amount: "{{event.total}}" } });
  const saveFollower = async (change: Parameters<typeof receiverDefinition>[0]) => {
    const { status } = await running.api("POST", "/relays", { definition: receiverDefinition({ verify: follow, ...change }) });
    expect(status).toBe(201);
  };
  const send = async (event: object) => {
    expect((await running.hook("shop", signedCall(event))).status).toBe(200);
    await running.drain();
  };
  const orders = async () => (await records()).map(({ order, amount }) => `${order} ${amount}`).sort();
  const expunged = async () => (await events()).filter(({ payload }) => payload === EXPUNGED).map(({ relay }) => relay);
  beforeEach(async () => {
    await makeOrders(running);
    await saveRelay(running, receiverDefinition({ name: "shop", map: { event_id: "id" }, actions: [write("{{event.buyer}}")] }));
    const map = { event_id: "id", person_email: "email", customer: "buyer" };
    await saveFollower({ name: "paid", map, customer: { id: "customer" }, actions: [write("{{event.note}}")] });
  });

  test("expunges an event that finds no person by the customer id in its body", async () => {
    await send({ id: "a", email: ADA, buyer: "cus_1", total: "5", note: "cus_1" });
    await send({ id: "b", buyer: "cus_1", total: "6", note: "n" });
    await send({ id: "c", buyer: "cus_10", total: "7", note: "cus_1x" });
    await erase(ADA);
    expect(await expunged()).toEqual(["shop", "paid", "shop", "paid"]);
    expect(await orders()).toEqual(["cus_10 7", "erased 5", "erased 5", "erased 6"]);
  });

  test("takes a customer id of digits only from events and records that are theirs", async () => {
    await send({ id: "a", email: ADA, buyer: "7", total: "7", note: "n" });
    await send({ id: "b", email: BOB, buyer: "8", total: "7", note: "7" });
    await send({ id: "c", buyer: "9", total: "7", note: "7" });
    await erase(ADA);
    expect(await expunged()).toEqual(["shop", "paid"]);
    expect(await orders()).toEqual(["7 7", "8 7", "9 7", "erased erased", "n erased"]);
  });

  test("keeps what a relay of another space wrote", async () => {
    await saveRelay(running, receiverDefinition({ name: "other", map: { event_id: "id" }, actions: [write("{{event.buyer}}")] }));
    await send({ id: "a", email: ADA, buyer: "cus_1", total: "5", note: "n" });
    expect((await running.hook("other", signedCall({ id: "b", buyer: "cus_1", total: "6" }))).status).toBe(200);
    await running.drain();
    await erase(ADA);
    expect(await expunged()).toEqual(["shop", "paid"]);
    expect(await orders()).toEqual(["cus_1 6", "erased 5", "n 5"]);
  });

  test("keeps an event of the same request that waits for another person", async () => {
    const gift = { name: "gift", map: { event_id: "id", person_email: "friend" }, actions: [write("gift")] };
    await saveFollower(gift);
    expect((await running.api("POST", "/relays/gift/pause")).status).toBe(200);
    await send({ id: "a", email: ADA, friend: BOB, buyer: "cus_1", total: "5", note: "n" });
    await erase(ADA);
    expect((await expunged()).sort()).toEqual(["paid", "shop"]);
    const [kept] = (await events()).filter(({ relay }) => relay === "gift");
    expect(JSON.parse(kept?.payload ?? "").mapped).toEqual({ event_id: "a", person_email: BOB });
  });

  if (ON_POSTGRES)
    test("expunges the other events of a request also if other environments took many numbers between theirs", async () => {
      const { store } = running.service;
      await store.write("app", (tx) => tx.run("ALTER SEQUENCE event_number INCREMENT BY 500"));
      for (const id of ["a", "b"]) await send({ id, email: id === "a" ? ADA : BOB, buyer: `cus_${id}`, total: "5", note: "n" });
      await erase(ADA);
      expect((await expunged()).sort()).toEqual(["paid", "shop"]);
    });

  test("expunges the other events of a request also if the body is too large to store", async () => {
    await send({ id: "a", email: ADA, buyer: "cus_1", total: "5", note: "n", name: "Ada", rest: "x".repeat(40_000) });
    await erase(ADA);
    expect((await expunged()).sort()).toEqual(["paid", "shop"]);
    expect(await running.rows("SELECT seq FROM event WHERE preview IS NOT NULL")).toEqual([]);
  });
});
