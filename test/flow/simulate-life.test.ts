/** Plays lives of selling kits over the API: their effect step by step, repeated steps, every refusal, and that production takes none. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { JsonObject } from "../../src/base/json.ts";
import type { LifeView } from "../../src/insight/simulate/life.ts";
import type { Effect } from "../../src/insight/simulate/life-effect.ts";
import type { LifeOutcome } from "../../src/rules/senders/kit.ts";
import { fillNames, KIT_NAMES } from "../../src/rules/senders/kit-definitions.ts";
import { KITS } from "../../src/rules/senders/kit-registry.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { saveSellingKit } from "../kit/saved-kit.ts";
import { SIGNERS, secretOf } from "../kit/sender-signer.ts";

const [KIT] = KITS.filter(({ sender }) => sender === "lemon-squeezy");
if (KIT === undefined) throw new Error("no kit of lemon-squeezy");
const kit = KIT;

let running: RunningService;
beforeEach(async () => {
  running = await startRunningService({ environments: ["development", "production"] });
});
afterEach(() => running[Symbol.asyncDispose]());

const ask = (body: object, environment: "development" | "production" = "development") =>
  running.api("POST", "/simulations", { kit: "lemon-squeezy", life: "purchase", ...body }, environment);

async function play(body: object): Promise<LifeView> {
  const { status, body: answer } = await ask(body);
  expect([status, answer.message]).toEqual([200, undefined]);
  return answer.simulation;
}

/** Sends a step and returns its effect once its events have run. */
async function step(begun: LifeView, number: number): Promise<Effect> {
  const { kit, life, person, run } = begun;
  const sent = await play({ kit, life, person, run, step: number });
  await running.drain();
  const query = new URLSearchParams({ person, events: sent.effect.events.map(({ id }) => id).join(",") });
  return (await running.api("GET", `/simulations/effect?${query}`)).body.effect;
}

function secretFor(sender: string): string {
  const signer = SIGNERS[sender];
  if (signer === undefined) throw new Error(`nothing signs as ${sender} does`);
  return secretOf(signer);
}

const countEvents = async () => (await running.rows<{ count: number }>("SELECT count(*) AS count FROM event"))[0]?.count;

describe("a life", () => {
  const lives = KITS.flatMap((one) => one.lives.map((life) => [`${one.sender} ${life.name}`, one, life] as const));
  test.each(lives)("%s has the effect of the kit's table after each step", async (_name, one, life) => {
    const secret = secretFor(one.sender);
    await saveSellingKit(running, one, { secret });
    const begun = await play({ kit: one.sender, life: life.name });
    const nothing = { events: [], settled: true, holdings: { person: null, access: [], credits: 0, receipts: [] } };
    expect(begun).toMatchObject({ step: null, missing: [], effect: nothing });
    for (const [at, { outcome }] of life.steps.entries()) {
      const { events, settled, holdings } = await step(begun, at + 1);
      expect([settled, events.filter(({ state }) => state !== "done")]).toEqual([true, []]);
      const { access, plan, credits, receipts } = holdings;
      const wanted = fillNames(outcome as JsonObject, KIT_NAMES) as LifeOutcome;
      const sorted = { access: wanted.access.toSorted(), receipts: wanted.receipts.toSorted() };
      expect({ access, plan: plan ?? "free", credits, receipts: receipts.toSorted() }).toEqual({ ...wanted, ...sorted });
    }
  });

  test("shows each relay's event with its results, marked as a test that does not count for the sender", async () => {
    await saveSellingKit(running, kit);
    const begun = await play({});
    const { events } = await step(begun, 1);
    expect(events.map(({ relay, results }) => [relay, results.map(({ type, outcome }) => [type, outcome])])).toEqual([
      ["lemon-squeezy", [["write_record", "done"]]],
      ["lemon-squeezy-purchase", [["fulfil_product", "done"]]],
    ]);
    const { body } = await running.api("GET", `/events/${events[1]?.id}`);
    expect(body.event).toMatchObject({ cameBy: "test", person: { email: begun.person } });
    const [source] = await running.rows<{ acceptedAt: number | null }>("SELECT accepted_at AS acceptedAt FROM relay WHERE name = 'lemon-squeezy'");
    expect(source?.acceptedAt).toBe(null);
    const audit = await running.api("GET", "/audit?action=event.test_sent");
    expect(audit.body.items.map(({ target, after }: Record<string, unknown>) => [target, after])).toEqual([
      ["relay:lemon-squeezy", { kit: "lemon-squeezy", life: "purchase", run: begun.run, step: 1 }],
    ]);
  });

  test("a step that is sent again returns the same events and changes nothing", async () => {
    await saveSellingKit(running, kit);
    const begun = await play({});
    const first = await step(begun, 1);
    const count = await countEvents();
    expect(await step(begun, 1)).toEqual(first);
    expect(await countEvents()).toBe(count);
  });

  test("another run is another life of another person, and a person can be named", async () => {
    await saveSellingKit(running, kit);
    const one = await play({});
    await step(one, 1);
    running.clock.jump(1_000);
    const other = await play({});
    expect(other.person).not.toBe(one.person);
    expect((await step(other, 1)).holdings.credits).toBe(100);
    running.clock.jump(1_000);
    const named = await play({ person: "ada@example.com" });
    expect((await step(named, 1)).holdings).toMatchObject({ access: ["course"], credits: 100 });
  });

  test("plays with the names that the seller gave, also where when has the provider's own name", async () => {
    await saveSellingKit(running, kit, { names: { product: "guide", plan: "solo", plan2: "team" } });
    const path = "/relays/lemon-squeezy-purchase";
    const { relay } = (await running.api("GET", path)).body;
    const { trigger } = relay.definition;
    const definition = { ...relay.definition, trigger: { ...trigger, when: { ...trigger.when, product: "The Guide 2nd edition" } } };
    expect((await running.api("PUT", path, { definition, version: relay.version })).status).toBe(200);
    const bought = await play({});
    expect(bought.steps[0]?.does).toContain("The Guide 2nd edition");
    expect((await step(bought, 1)).holdings.access).toEqual(["guide"]);
    const subscribed = await play({ life: "unpaid", person: "ada@example.com" });
    expect((await step(subscribed, 1)).holdings.plan).toBe("solo");
  });

  test("names the relays of the kit that are missing, and plays without them", async () => {
    await saveSellingKit(running, kit);
    await running.api("DELETE", "/relays/lemon-squeezy-refund");
    expect((await play({ life: "refund" })).missing).toEqual(["lemon-squeezy-refund"]);
  });

  test("says that an event waits for its retry", async () => {
    await saveSellingKit(running, kit);
    const path = "/relays/lemon-squeezy-purchase";
    const { relay } = (await running.api("GET", path)).body;
    const actions = [{ type: "call_url", url: "https://unreachable.example.test/notice" }];
    expect((await running.api("PUT", path, { definition: { ...relay.definition, actions }, version: relay.version })).status).toBe(200);
    const { events, settled } = await step(await play({}), 1);
    const waiting = events.find(({ relay: name }) => name === "lemon-squeezy-purchase");
    expect([settled, waiting?.state, waiting?.nextAttemptAt, waiting?.waits]).toEqual([
      true,
      "queued",
      expect.any(String),
      expect.stringContaining("retried at"),
    ]);
  });
});

/** A refusal: what to change in the saved kit before, what to ask, and the field and the words of the sentence. */
const REFUSALS: [name: string, field: string, words: string[], asked: object, before?: () => Promise<unknown>][] = [
  ["an unknown provider", "kit", ['"nobody"', "choose one of", "lemon-squeezy"], { kit: "nobody" }],
  ["an unknown life", "life", ['"wedding"', "choose one of", "subscription-life"], { life: "wedding" }],
  ["an address that is none", "person", ["no email address"], { person: "ada" }],
  ["a step without a run", "run", ["send the run"], { step: 1 }],
  ["a step after the last one", "step", ["has 1 step"], { run: "178000000000", step: 2 }],
  ["a paused source", "kit", ["lemon-squeezy is paused", "relay relays resume"], {}, () => running.api("POST", "/relays/lemon-squeezy/pause")],
  ["a paused follower", "kit", ["lemon-squeezy-refund is paused"], {}, () => running.api("POST", "/relays/lemon-squeezy-refund/pause")],
  [
    "an environment on hold",
    "environment",
    ["development is on hold", "relay settings set held off"],
    {},
    async () => {
      const { settings } = (await running.api("GET", "/settings")).body;
      expect((await running.api("PUT", "/settings", { held: true, version: settings.version })).status).toBe(200);
    },
  ],
];

describe("a simulation is refused", () => {
  test.each(REFUSALS)("for %s", async (_name, field, words, asked, before) => {
    await saveSellingKit(running, kit);
    await before?.();
    const { status, body } = await ask(asked);
    expect([status, body.code, body.problems?.[0]?.field]).toEqual([400, "invalid_input", field]);
    for (const word of words) expect(body.message).toContain(word);
    expect(await countEvents()).toBe(0);
  });

  test("without the kit", async () => {
    expect((await ask({})).body).toMatchObject({ code: "invalid_input", message: expect.stringContaining("relay init --from lemon-squeezy --sell") });
  });

  test("for a source without its followers, and without its secret", async () => {
    const trigger = {
      kind: "receiver",
      verify: { scheme: "signature", header: "x-signature", encoding: "hex", signedPayload: "{body}" },
      map: { object: "data.id" },
    };
    const definition = {
      name: "lemon-squeezy",
      trigger,
      actions: [{ type: "write_record", collection: "notes", data: { id: "{{mapped.object}}" } }],
    };
    expect((await running.api("POST", "/relays", { definition, secret: "life-secret-of-this-test" })).status).toBe(201);
    expect((await ask({})).body).toMatchObject({ code: "invalid_input", message: expect.stringContaining("No relay of the kit") });
    expect((await running.api("DELETE", "/relays/lemon-squeezy")).status).toBeLessThan(300);
    await saveSellingKit(running, kit);
    await running.direct.run("UPDATE relay SET secret = NULL, secret_digest = NULL WHERE name = 'lemon-squeezy'");
    await running.restart();
    expect((await ask({})).body).toMatchObject({ code: "invalid_input", message: expect.stringContaining("relay relays set-secret lemon-squeezy") });
  });

  test("in production, on every step, and it stores nothing", async () => {
    await saveSellingKit(running, kit, { environment: "production" });
    for (const asked of [{}, { run: "178000000000", step: 1 }, { kit: "nobody" }]) {
      const { status, body } = await ask(asked, "production");
      expect([status, body.code, body.problems]).toEqual([403, "forbidden", [{ field: "environment", message: body.message }]]);
      expect(body.message).toContain("play it in local development or in the development environment");
    }
    expect(await countEvents()).toBe(0);
  });

  test("no request of a life reaches production, although it has the same source", async () => {
    await saveSellingKit(running, kit, { environment: "production", secret: "the-secret-of-production-here" });
    await saveSellingKit(running, kit);
    await step(await play({}), 1);
    const names = await running.rows<{ name: string }>(
      "SELECT DISTINCT environment.name AS name FROM event JOIN relay_key ON relay_key.key = event.relay_key JOIN relay ON relay.id = relay_key.relay_id JOIN environment ON environment.id = relay.environment_id",
    );
    expect(names).toEqual([{ name: "development" }]);
  });
});
