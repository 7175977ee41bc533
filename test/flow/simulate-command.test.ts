/** Plays a life with `relay simulate`: what the screen shows, the wait of --speed, JSON, refusals, and that no key of production can play one. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Io } from "../../src/interfaces/cli/io.ts";
import type { EnvironmentName } from "../../src/platform/account/environment.ts";
import { fillNames, KIT_NAMES } from "../../src/rules/senders/kit-definitions.ts";
import { KITS } from "../../src/rules/senders/kit-registry.ts";
import { runCommand } from "../kit/cli-io.ts";
import { until } from "../kit/event-flow.ts";
import { FakeCaller, OK } from "../kit/fake-caller.ts";
import { receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { saveSellingKit } from "../kit/saved-kit.ts";

const KIT = KITS.filter(({ sender }) => sender === "lemon-squeezy");

let running: RunningService;
beforeEach(async () => {
  running = await startRunningService({ environments: ["development", "production"] });
});
afterEach(() => running[Symbol.asyncDispose]());

async function saveKit(environment: EnvironmentName = "development"): Promise<void> {
  for (const kit of KIT) await saveSellingKit(running, kit, { environment });
}

/** Runs the command with a key of the environment, and moves the clock until it ends. */
async function simulate(words: readonly string[], parts: Partial<Io> = {}, stepMs = 1_000) {
  const env = { RELAY_URL: running.service.url, RELAY_KEY: running.keys.development ?? "" };
  let isOver = false;
  const run = runCommand(["simulate", ...words], { cwd: running.dataDir, env, clock: running.clock, ...parts }).finally(() => {
    isOver = true;
  });
  await until("the command ends", async () => {
    await running.clock.advance(stepMs);
    return isOver;
  });
  return await run;
}

/** Replaces what differs from run to run. */
const settled = (text: string) => text.replaceAll(/evt_[0-9a-f]{32}/g, "evt_…").replaceAll(/https?:\/\/[^ )]+/g, "http://here");

test("shows each step with its relays and what changed for the person", async () => {
  await saveKit();
  const { code, said, told } = await simulate(["lemon-squeezy", "refund", "--person", "ada@example.com"]);
  const steps = KIT.flatMap(({ lives }) => lives.filter(({ name }) => name === "refund")).flatMap((life) => life.steps);
  const does = steps.map((step) => fillNames(step.does, KIT_NAMES));
  expect(settled(said)).toBe(`Lemon Squeezy: A purchase that is refunded, 3 steps, for ada@example.com (app_test/development at http://here).

Day 0: ${does[0]}
  lemon-squeezy           done  write_record  evt_…
  lemon-squeezy-purchase  done  fulfil_product  evt_…
  access    none → course
  credits   0 → 100
  receipts  none → course

Day 3: ${does[1]}
  lemon-squeezy  done  write_record  evt_…
  Nothing changed for the person.

Day 5: ${does[2]}
  lemon-squeezy         done  write_record  evt_…
  lemon-squeezy-refund  done  refund_product  evt_…
  access    course → none
  credits   100 → 0
  receipts  course → course refunded`);
  expect(told).toContain("relay people show ada@example.com");
  expect(code).toBe(0);
});

test("prints one JSON value with each step, before and after", async () => {
  await saveKit();
  const { code, said } = await simulate(["lemon-squeezy", "purchase", "--json"]);
  const { simulation } = JSON.parse(said);
  expect(code).toBe(0);
  expect(simulation).toMatchObject({ kit: "lemon-squeezy", life: "purchase", missing: [] });
  expect(simulation.steps).toHaveLength(1);
  expect(simulation.steps[0]).toMatchObject({
    day: 0,
    settled: true,
    before: { credits: 0, person: null },
    after: { credits: 100, access: ["course"] },
  });
});

test("waits for each day of the life with --speed", async () => {
  await saveKit();
  const drawn: (string | null)[] = [];
  const { code } = await simulate(["lemon-squeezy", "refund", "--speed", "1x"], { watched: true, redraw: (text) => drawn.push(text) }, 30_000);
  expect(code).toBe(0);
  expect(drawn).toEqual(["Waiting 180 s for 3 days of the life.", null, "Waiting 120 s for 2 days of the life.", null]);
});

test("says why an event is not done, and exits with 1", async () => {
  await saveKit();
  const path = "/relays/lemon-squeezy-purchase";
  const { relay } = (await running.api("GET", path)).body;
  const actions = [{ type: "call_url", url: "https://unreachable.example.test/notice" }];
  await running.api("PUT", path, { definition: { ...relay.definition, actions }, version: relay.version });
  const { code, said, told } = await simulate(["lemon-squeezy", "purchase"]);
  expect(code).toBe(1);
  expect(said).toMatch(/lemon-squeezy-purchase {2}queued {2}call_url failed {2}evt_\w+ {2}It will be retried at /);
  expect(told).toContain("Not every event is done");
});

test("sends a payment after the event that tells whose customer pays, also when that event waits for its turn", async () => {
  const caller = new FakeCaller((url) => (url.includes("busy") ? "hang" : OK));
  await running[Symbol.asyncDispose]();
  running = await startRunningService({ config: { concurrency: 1 }, ports: { caller } });
  const notify = (url: string) => [{ type: "call_url", url }];
  await saveRelay(running, receiverDefinition({ name: "busy", actions: notify("https://busy.example.test/") }));
  for (const kit of KITS.filter(({ sender }) => sender === "paddle")) await saveSellingKit(running, kit);
  // An event that calls a URL needs the only place, which the other relay's call has.
  const { relay } = (await running.api("GET", "/relays/paddle-customer")).body;
  await running.api("PUT", "/relays/paddle-customer", {
    definition: { ...relay.definition, actions: notify("https://free.example.test/") },
    version: relay.version,
  });
  await running.hook("busy", signedCall({ id: "one" }));
  await until("the place is taken", () => caller.hanging() === 1);
  const simulated = simulate(["paddle", "purchase"], {}, 1);
  const countOf = async (name: string) => (await running.api("GET", `/events?relay=${name}`)).body.items.length;
  await until("the customer waits", async () => (await countOf("paddle-customer")) === 1);
  expect(await countOf("paddle-purchase")).toBe(0);
  caller.letGo();
  const { code, said } = await simulated;
  expect([code, said]).toEqual([0, expect.stringMatching(/paddle-purchase +done {2}fulfil_product {2}/)]);
});

const REFUSED: [name: string, words: string[], code: number, told: string][] = [
  ["an unknown provider", ["nobody", "purchase"], 1, 'kit is "nobody", which has no selling kit'],
  ["no life", ["lemon-squeezy"], 1, "life is missing: choose one of purchase"],
  ["no kit here", ["lemon-squeezy", "purchase"], 1, "relay init --from lemon-squeezy --sell"],
  ["a speed that is none", ["lemon-squeezy", "purchase", "--speed", "fast"], 2, "--speed is"],
];
test.each(REFUSED)("refuses %s", async (_name, words, code, sentence) => {
  const refused = await simulate(words);
  expect([refused.code, refused.said]).toEqual([code, ""]);
  expect(refused.told).toContain(sentence);
});

test("refuses a key of production, and stores nothing", async () => {
  await saveKit("production");
  const { code, said, told } = await simulate(["lemon-squeezy", "purchase"], {
    env: { RELAY_URL: running.service.url, RELAY_KEY: running.keys.production ?? "" },
  });
  expect([code, said]).toEqual([1, ""]);
  expect(told).toContain("The environment is production");
  expect(told).not.toContain("PRODUCTION:");
  expect(await running.rows("SELECT id FROM person")).toEqual([]);
});
