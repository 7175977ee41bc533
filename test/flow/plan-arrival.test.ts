/**
 * Tests a person's plan if events run in another order than they arrived. A late, retried or replayed event must not undo the effect of a later
 * arrival. Each row lists a person's events and the plan after each.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { replay, sendEvent, showEvent } from "../kit/event-flow.ts";
import { receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

/**
 * In `fails`, the plan is not sold through its relay, so the event is dead. `sold again` sells it again. `basic fixed` sells it again and replays the
 * event. `stop-basic` ends the same subscription as `end-basic`.
 */
type Does =
  | "basic"
  | "pro"
  | "end-basic"
  | "end-pro"
  | "end by hand"
  | "stop-basic"
  | "basic fails"
  | "basic sold again"
  | "basic fixed"
  | "pause basic"
  | "resume basic"
  | "pause end-basic"
  | "resume end-basic";
type Step = [does: Does, ref: string];

const TABLE: [name: string, steps: Step[], plans: string, payments: number][] = [
  [
    "a renewal that died before the upgrade and is replayed after it",
    [
      ["basic", "1"],
      ["basic fails", "2"],
      ["pro", "3"],
      ["basic fixed", ""],
    ],
    "basic basic pro pro",
    3,
  ],
  [
    "a renewal that waited while its relay was paused",
    [
      ["basic", "1"],
      ["pause basic", ""],
      ["basic", "2"],
      ["pro", "3"],
      ["resume basic", ""],
    ],
    "basic basic basic pro pro",
    3,
  ],
  [
    "a delayed first payment for a plan that the person never had",
    [
      ["pause basic", ""],
      ["basic", "1"],
      ["pro", "2"],
      ["resume basic", ""],
    ],
    "free free pro pro",
    2,
  ],
  [
    "a later plan that was renewed instead of started",
    [
      ["pro", "1"],
      ["basic fails", "2"],
      ["pro", "3"],
      ["basic fixed", ""],
    ],
    "pro pro pro pro",
    3,
  ],
  [
    "a later downgrade that also waited still switches",
    [
      ["pro", "1"],
      ["pause basic", ""],
      ["basic", "2"],
      ["resume basic", ""],
    ],
    "pro pro pro basic",
    2,
  ],
  [
    "a downgrade that died after the last payment for the old plan, and is replayed",
    [
      ["pro", "1"],
      ["pro", "2"],
      ["basic fails", "3"],
      ["basic fixed", ""],
    ],
    "pro pro pro basic",
    3,
  ],
  [
    "a replayed payment for the same plan continues it",
    [
      ["basic", "1"],
      ["basic fails", "2"],
      ["basic fixed", ""],
    ],
    "basic basic basic",
    2,
  ],
  [
    "a downgrade after the delayed payment",
    [
      ["basic", "1"],
      ["basic fails", "2"],
      ["pro", "3"],
      ["basic fixed", ""],
      ["basic", "4"],
    ],
    "basic basic pro pro basic",
    4,
  ],
  [
    "a later plan that has ended too",
    [
      ["basic", "1"],
      ["basic fails", "2"],
      ["pro", "3"],
      ["end-pro", "4"],
      ["basic fixed", ""],
    ],
    "basic basic pro free free",
    3,
  ],
  [
    "a later plan that has ended too, when the person never had the paid plan",
    [
      ["basic fails", "1"],
      ["pro", "2"],
      ["end-pro", "3"],
      ["basic fixed", ""],
    ],
    "free pro free free",
    2,
  ],
  [
    "a later plan that was ended manually, with a replay by the owner",
    [
      ["basic fails", "1"],
      ["pro", "2"],
      ["end by hand", ""],
      ["basic fixed", ""],
    ],
    "free pro free basic",
    2,
  ],
  [
    "an upgrade that waited and was canceled meanwhile leaves nothing of the old plan",
    [
      ["pro", "1"],
      ["pause basic", ""],
      ["basic", "2"],
      ["end-basic", "3"],
      ["resume basic", ""],
    ],
    "pro pro pro pro free",
    2,
  ],
  [
    "a delayed cancellation that repeats with its ref ends nothing",
    [
      ["basic", "1"],
      ["pause end-basic", ""],
      ["end-basic", "1"],
      ["basic", "2"],
      ["resume end-basic", ""],
      ["end-basic", "1"],
    ],
    "basic basic basic basic basic basic",
    2,
  ],
  [
    "the plan was canceled by a later arrival",
    [
      ["basic", "1"],
      ["basic fails", "2"],
      ["end-basic", "3"],
      ["basic fixed", ""],
      ["basic", "4"],
    ],
    "basic basic free free basic",
    3,
  ],
  [
    "the plan was canceled twice, with a payment in between",
    [
      ["basic", "1"],
      ["end-basic", "2"],
      ["basic fails", "3"],
      ["end-basic", "4"],
      ["basic fixed", ""],
    ],
    "basic free free free free",
    2,
  ],
  [
    "a repeated cancellation whose ref is no payment ends the later payment",
    [
      ["basic", "1"],
      ["end-basic", "2"],
      ["basic fails", "3"],
      ["end-basic", "2"],
      ["basic fixed", ""],
    ],
    "basic free free free free",
    2,
  ],
  [
    "the first payment waited until after its cancellation",
    [
      ["pause basic", ""],
      ["basic", "1"],
      ["end-basic", "2"],
      ["resume basic", ""],
      ["basic", "3"],
    ],
    "free free free free basic",
    2,
  ],
  [
    "a cancellation that arrived before its payment ends nothing, and ends the plan when it repeats",
    [
      ["end-basic", "1"],
      ["basic", "2"],
      ["end-basic", "1"],
    ],
    "free basic free",
    1,
  ],
  [
    "the plan was ended manually meanwhile",
    [
      ["basic", "1"],
      ["basic fails", "2"],
      ["end by hand", ""],
      ["basic fixed", ""],
    ],
    "basic basic free basic",
    2,
  ],
  [
    "a cancellation with the ref of the delayed payment ends no later subscription",
    [
      ["basic", "1"],
      ["basic fails", "2"],
      ["pro", "3"],
      ["basic fixed", ""],
      ["basic", "4"],
      ["end-basic", "2"],
    ],
    "basic basic pro pro basic basic",
    4,
  ],
  [
    "the same for a person who never had that plan",
    [
      ["pause basic", ""],
      ["basic", "1"],
      ["pro", "2"],
      ["resume basic", ""],
      ["basic", "3"],
      ["end-basic", "1"],
    ],
    "free free pro pro basic basic",
    3,
  ],
  [
    "a cancellation that waited while the plan was paid for again",
    [
      ["basic", "1"],
      ["pause end-basic", ""],
      ["end-basic", "2"],
      ["basic", "3"],
      ["resume end-basic", ""],
      ["end-basic", "4"],
    ],
    "basic basic basic basic basic free",
    2,
  ],
  [
    "a cancellation that waited and arrived last",
    [
      ["basic", "1"],
      ["pause end-basic", ""],
      ["basic", "2"],
      ["end-basic", "3"],
      ["resume end-basic", ""],
    ],
    "basic basic basic basic free",
    2,
  ],
  [
    "a replayed old payment does not change the newest payment, so an earlier cancellation ends nothing",
    [
      ["basic", "1"],
      ["basic fails", "2"],
      ["basic sold again", ""],
      ["pause end-basic", ""],
      ["end-basic", "3"],
      ["basic", "4"],
      ["basic fixed", ""],
      ["resume end-basic", ""],
    ],
    "basic basic basic basic basic basic basic basic",
    3,
  ],
  [
    "a delayed old cancellation does not change the newest one, so an earlier payment starts nothing",
    [
      ["basic", "1"],
      ["pause end-basic", ""],
      ["end-basic", "2"],
      ["basic fails", "3"],
      ["stop-basic", "4"],
      ["resume end-basic", ""],
      ["basic fixed", ""],
    ],
    "basic basic basic basic free free free",
    2,
  ],
];

let running: RunningService;
let people = 0;
afterAll(() => running[Symbol.asyncDispose]());

const soldThrough = (plan: string, relay: string) => running.api("PUT", `/plans/${plan}`, { soldThrough: { kind: "relay", relay } });

async function openPlans(): Promise<void> {
  running = await startRunningService();
  const map = { event_id: "id", person_email: "email", ref: "ref" };
  const ref = "{{mapped.ref}}";
  for (const plan of ["basic", "pro"]) {
    await saveRelay(running, receiverDefinition({ name: plan, map, actions: [{ type: "grant_plan", plan, ref }] }));
    await saveRelay(running, receiverDefinition({ name: `end-${plan}`, map, actions: [{ type: "revoke_plan", plan, ref }] }));
  }
  await saveRelay(running, receiverDefinition({ name: "stop-basic", map, actions: [{ type: "revoke_plan", plan: "basic", ref }] }));
  await running.api("PUT", "/plans/free", { default: true });
  for (const plan of ["basic", "pro"]) await soldThrough(plan, plan);
}

/** Runs one step for the person and returns the id of the dead event. */
async function take([does, ref]: Step, email: string, id: string, dead: string): Promise<string> {
  const [verb, relay] = does.split(" ");
  if (verb === "pause" || verb === "resume") {
    await running.api("POST", `/relays/${relay}/${verb}`);
  } else if (does === "end by hand") {
    const { items } = (await running.api("GET", "/subscriptions?status=active")).body;
    const own = items.find(({ personEmail }: { personEmail: string }) => personEmail === email);
    expect((await running.api("POST", `/subscriptions/${own.id}/end`)).status).toBe(200);
  } else if (does === "basic sold again") {
    await soldThrough("basic", "basic");
  } else if (does === "basic fixed") {
    await soldThrough("basic", "basic");
    expect((await replay(running, dead)).status).toBe(202);
  } else {
    if (does === "basic fails") await soldThrough("basic", "pro");
    const event = await sendEvent(running, id, { email, ref: `${email}-${ref}` }, does === "basic fails" ? "basic" : does);
    await running.drain();
    if (does !== "basic fails") return dead;
    expect((await showEvent(running, event)).state).toBe("dead");
    return event;
  }
  await running.drain();
  return dead;
}

async function planOf(email: string): Promise<string> {
  const [person] = (await running.api("GET", `/persons?email=${email}`)).body.items;
  return person === undefined ? "free" : (await running.api("GET", `/persons/${person.id}`)).body.plan;
}

describe("plans follow the order of arrival", () => {
  test.each(TABLE)("%s", async (_, steps, plans, payments) => {
    if (people === 0) await openPlans();
    const email = `p${++people}@example.com`;
    const seen: string[] = [];
    let dead = "";
    for (const [at, step] of steps.entries()) {
      dead = await take(step, email, `${email} ${at}`, dead);
      seen.push(await planOf(email));
      await running.clock.advance(1_000);
    }
    expect(seen.join(" ")).toBe(plans);
    const [person] = (await running.api("GET", `/persons?email=${email}`)).body.items;
    const { items } = (await running.api("GET", `/purchases?person=${person.id}`)).body;
    expect(items).toHaveLength(payments);
    const { grants } = (await running.api("GET", `/persons/${person.id}/access`)).body;
    const held = grants.map(({ entitlement }: { entitlement: string }) => entitlement);
    expect(held).toEqual(seen.at(-1) === "free" ? [] : [seen.at(-1)]);
  });

  test("a cancellation of a plan that no person had lists no subscription", async () => {
    if (people === 0) await openPlans();
    const email = `p${++people}@example.com`;
    await take(["end-basic", "1"], email, `${email} 0`, "");
    const [person] = (await running.api("GET", `/persons?email=${email}`)).body.items;
    expect((await running.api("GET", `/subscriptions?person=${person.id}`)).body.items).toEqual([]);
    expect(await running.rows("SELECT plan FROM plan_cancellation WHERE person_id = ?1", person.id)).toEqual([{ plan: "basic" }]);
  });

  test("a delayed payment's result explains it, and its receipt names an ended subscription", async () => {
    const email = "told@example.com";
    await take(["pause basic", ""], email, "", "");
    const id = await sendEvent(running, "told 1", { email, ref: "told-1" }, "basic");
    const upgrade = await sendEvent(running, "told 2", { email, ref: "told-2" }, "pro");
    await running.drain();
    await take(["resume basic", ""], email, "", "");
    const { state, runs } = await showEvent(running, id);
    expect([state, runs.at(-1)?.results[0].outcome]).toEqual(["done", "done"]);
    expect(runs.at(-1)?.results[0].message).toContain(`changed nothing else, because this event arrived before ${upgrade}, which paid for pro`);
    expect(runs.at(-1)?.results[0].after.plan).toBe("pro");
    const [receipt] = (await running.api("GET", "/purchases?ref=told-1")).body.items;
    const { items } = (await running.api("GET", `/subscriptions?person=${receipt.person}`)).body;
    expect(items.map((one: { plan: string; status: string }) => `${one.plan} ${one.status}`).sort()).toEqual(["basic ended", "pro active"]);
    expect(items.find((one: { plan: string }) => one.plan === "basic").id).toBe(receipt.granted.subscription);
    const story = (await running.api("GET", `/persons/${receipt.person}/story`)).body.items;
    const plans = story.filter(({ kind }: { kind: string }) => kind.startsWith("plan"));
    expect(plans.map(({ sentence }: { sentence: string }) => sentence)).toEqual(["The plan pro began"]);
    expect((await running.api("POST", `/events/${id}/replay`)).status).toBe(202);
    await running.drain();
    expect((await showEvent(running, id)).runs.at(-1)?.results[0].outcome).toBe("skipped");
    expect(await planOf(email)).toBe("pro");
  });
});
