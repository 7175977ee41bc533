/**
 * Leads random lives of people through a running service, each by two people. The first person's events run as they arrive. The second person's
 * events meet holds, pauses, broken relays, hanging URLs and replays. Both must end with the same access, plan, credits and receipts.
 */
import { afterAll, expect, test } from "bun:test";
import fc from "fast-check";
import { ON_POSTGRES } from "../kit/chosen-store.ts";
import { editRelay } from "../kit/event-flow.ts";
import { EVENT_ID, seqOf } from "../kit/event-sql.ts";
import { BROKEN, FakeCaller, OK } from "../kit/fake-caller.ts";
import { type ActionLike, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { IS_SOAK, rounds } from "../kit/rounds.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { RAISED_LIMITS } from "../kit/service-config.ts";

const CALL: ActionLike = { type: "call_url", url: "https://example.com/notice" };
/** Fails permanently. */
const NOWHERE: ActionLike = { type: "grant_access", entitlement: "access:nowhere" };
const ref = "{{mapped.ref}}";

/** Maps each relay to its actions. The last two relays also call a URL. */
const RELAYS = {
  "pay-pro": [{ type: "grant_plan", plan: "pro", ref }],
  "pay-team": [
    { type: "grant_plan", plan: "team", ref },
    { type: "grant_credits", amount: 7, ref },
  ],
  "cancel-pro": [{ type: "revoke_plan", plan: "pro", ref }],
  "cancel-team": [{ type: "revoke_plan", plan: "team" }],
  give: [{ type: "grant_access", entitlement: "access:club" }],
  take: [
    { type: "revoke_access", entitlement: "access:club" },
    { type: "revoke_access", entitlement: "lamp" },
  ],
  buy: [{ type: "fulfil_product", product: "lamp", ref }],
  refund: [{ type: "refund_product", product: "lamp", ref }],
  welcome: [{ type: "grant_access", entitlement: "access:club" }, CALL, { type: "grant_credits", amount: 5, ref }],
  goodbye: [CALL, { type: "revoke_access", entitlement: "access:club" }],
} as const satisfies Record<string, readonly ActionLike[]>;
type Relay = keyof typeof RELAYS;
const NAMES = Object.keys(RELAYS) as Relay[];
const SENDS: ReadonlySet<string> = new Set<Relay>(["welcome", "goodbye"]);

/** Describes one arrival. `who` indexes the people of a round, and `hand` is a manual grant. */
interface Arrival {
  who: number;
  relay: Relay | "hand";
  ref: number;
}

type Disturbance =
  | { does: "hold" | "release" | "hang up" | "answer" | "retry" | "rest" }
  | { does: "pause" | "resume" | "break before" | "break after" | "fix"; relay: Relay }
  | { does: "replay"; nth: number };

const PEOPLE = 5;

const arrival: fc.Arbitrary<Arrival> = fc.record({
  who: fc.nat(PEOPLE - 1),
  relay: fc.constantFrom<Arrival["relay"]>(...NAMES, "pay-pro", "take", "hand"),
  ref: fc.nat(3),
});
const disturbance: fc.Arbitrary<Disturbance> = fc.oneof(
  fc.record({ does: fc.constantFrom("hold", "hold", "release", "hang up", "answer", "retry", "rest") }),
  fc.record({
    does: fc.constantFrom("pause", "pause", "resume", "break before", "break after", "fix"),
    relay: fc.constantFrom(...NAMES),
  }),
  fc.record({ does: fc.constant("replay" as const), nth: fc.nat(200) }),
);
/** Generates the steps of a life in order. */
const happening = fc.oneof({ weight: 3, arbitrary: arrival }, { weight: 1, arbitrary: disturbance });

const caller = new FakeCaller();
const running: RunningService = await startRunningService({ ports: { caller }, config: { limits: RAISED_LIMITS } });
afterAll(() => running[Symbol.asyncDispose]());

const define = (name: Relay, actions: readonly ActionLike[] = RELAYS[name]) =>
  receiverDefinition({ name, map: { event_id: "id", person_email: "email", ref: "ref" }, actions });

async function call(method: string, path: string, body?: unknown): Promise<void> {
  const answer = await running.api(method, path, body);
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
}

await call("PUT", "/access/club", {});
for (const name of NAMES) await saveRelay(running, define(name));
await call("PUT", "/plans/free", { default: true });
await call("PUT", "/plans/pro", { soldThrough: { kind: "relay", relay: "pay-pro" } });
await call("PUT", "/plans/team", { soldThrough: { kind: "relay", relay: "pay-team" } });
await call("PUT", "/products/lamp", { credits: 100, soldThrough: { kind: "relay", relay: "buy" } });

/** Holds the people of a round, with or without disturbances. */
interface Cast {
  prefix: string;
  people: string[];
  sent: number;
}

async function makeCast(prefix: string): Promise<Cast> {
  const people: string[] = [];
  for (let at = 0; at < PEOPLE; at++) {
    const { body } = await running.api("POST", "/persons", { email: `${prefix}-${at}@example.com` });
    people.push(body.person.id);
  }
  return { prefix, people, sent: 0 };
}

async function arrive(cast: Cast, { who, relay, ref: number }: Arrival): Promise<void> {
  const { prefix, people } = cast;
  if (relay === "hand") return await call("POST", `/persons/${people[who]}/grants`, { entitlement: "access:club" });
  const kind = relay.endsWith("pro") ? "pro" : relay.endsWith("team") ? "team" : relay === "buy" || relay === "refund" ? "lamp" : relay;
  const body = { id: `${prefix} ${++cast.sent}`, email: `${prefix}-${who}@example.com`, ref: `${prefix}-${who}-${kind}-${number}` };
  const { status } = await running.hook(relay, signedCall(body));
  if (status !== 200) throw new Error(`The receiver answered ${status}.`);
}

const held = { environment: false, paused: new Set<Relay>(), broken: new Set<Relay>() };

async function setHold(isHeld: boolean): Promise<void> {
  if (held.environment === isHeld) return;
  const { version } = (await running.api("GET", "/settings")).body.settings;
  await call("PUT", "/settings", { version, held: isHeld });
  held.environment = isHeld;
}

async function setPause(relay: Relay, isPaused: boolean): Promise<void> {
  if (held.paused.has(relay) === isPaused) return;
  await call("POST", `/relays/${relay}/${isPaused ? "pause" : "resume"}`);
  if (isPaused) held.paused.add(relay);
  else held.paused.delete(relay);
}

async function setActions(relay: Relay, actions: readonly ActionLike[]): Promise<void> {
  await editRelay(running, define(relay, actions));
  if (actions === RELAYS[relay]) held.broken.delete(relay);
  else held.broken.add(relay);
}

/** Moves the clock until every retry is due. */
async function passTime(): Promise<void> {
  running.clock.jump(17 * 3_600_000);
  await running.clock.advance(5_000);
  await running.drain();
}

const listEvents = (cast: Cast, states: string) =>
  running.rows<{ id: string; relay: Relay }>(
    `SELECT ${EVENT_ID} AS id, name AS relay FROM event JOIN relay_name ON key = name_key
     WHERE state IN (${states}) AND json_extract(payload, '$.mapped.person_email') LIKE ?1 ORDER BY seq`,
    `${cast.prefix}-%`,
  );

async function disturb(cast: Cast, one: Disturbance): Promise<void> {
  switch (one.does) {
    case "hold":
    case "release":
      return await setHold(one.does === "hold");
    case "pause":
    case "resume":
      return await setPause(one.relay, one.does === "pause");
    case "break before":
      return await setActions(one.relay, [NOWHERE, ...RELAYS[one.relay]]);
    case "break after":
      return await setActions(one.relay, [...RELAYS[one.relay], NOWHERE]);
    case "fix": {
      if (!held.broken.has(one.relay)) return;
      await setActions(one.relay, RELAYS[one.relay]);
      const dead = await listEvents(cast, "'dead'");
      for (const { id, relay } of dead) if (relay === one.relay) await call("POST", `/events/${id}/replay`);
      return;
    }
    case "hang up":
    case "answer":
      caller.reply = () => (one.does === "answer" ? OK : BROKEN);
      return;
    case "retry":
      return await passTime();
    case "replay": {
      const ended = await listEvents(cast, "'done', 'dead'");
      const event = ended[one.nth % ended.length];
      if (event !== undefined) await call("POST", `/events/${event.id}/replay`);
      return;
    }
    case "rest":
      return await running.drain();
  }
}

/** Removes all holds, and runs the remaining events until no more of them succeed. */
async function comeToRest(cast: Cast): Promise<void> {
  caller.reply = () => OK;
  for (const relay of [...held.broken]) await setActions(relay, RELAYS[relay]);
  for (const relay of [...held.paused]) await setPause(relay, false);
  await setHold(false);
  await running.drain();
  for (let turn = 0; turn < 3; turn++) {
    while ((await listEvents(cast, "'queued'")).length > 0) await passTime();
    for (const { id } of await listEvents(cast, "'dead'")) await call("POST", `/events/${id}/replay`);
    await running.drain();
  }
}

/** Reads each person's state without the prefix that separates the casts. */
async function lookAt({ people, prefix }: Cast): Promise<unknown[]> {
  const own = (text: string | null) => text?.replaceAll(prefix, "") ?? null;
  return await Promise.all(
    people.map(async (id) => {
      const grants = await running.rows<{ name: string }>(
        "SELECT entitlement || ' from ' || source AS name FROM access_grant WHERE person_id = ?1 AND revoked_at IS NULL",
        id,
      );
      const [plan] = await running.rows<{ plan: string }>("SELECT plan FROM subscription WHERE person_id = ?1 AND status = 'active'", id);
      const [credit] = await running.rows<{ balance: number }>("SELECT balance FROM credit WHERE person_id = ?1 ORDER BY seq DESC LIMIT 1", id);
      const receipts = await running.rows<{ kind: string; ref: string; confirmation: number }>(
        "SELECT kind, ref, confirmation FROM purchase WHERE person_id = ?1",
        id,
      );
      return {
        grants: grants.map(({ name }) => name).sort(),
        plan: plan?.plan ?? "free",
        credits: credit?.balance ?? 0,
        receipts: receipts.map(({ kind, ref: of, confirmation }) => `${kind} ${own(of)}${confirmation === 1 ? " confirms" : ""}`).sort(),
      };
    }),
  );
}

/** Counts the events that first ran after an event that arrived later. */
async function countLate(): Promise<number> {
  const ran = await running.rows<{ id: string }>("SELECT event_id AS id FROM audit WHERE action = 'run' ORDER BY seq");
  let [late, newest] = [0, 0];
  for (const number of new Set(ran.map(({ id }) => seqOf(id)))) {
    if (number < newest) late += 1;
    newest = Math.max(newest, number);
  }
  return late;
}

const LIVES = rounds({ slice: ON_POSTGRES ? 20 : 60, soak: ON_POSTGRES ? 40 : 300, long: ON_POSTGRES ? 300 : 2_000 });
let casts = 0;

test(
  `${LIVES} lives that holds, pauses, failures and replays disturb end as the undisturbed ones`,
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(happening, { minLength: 20, maxLength: 80 }), async (happenings) => {
        const [calm, rushed] = [await makeCast(`a${++casts}`), await makeCast(`b${casts}`)];
        for (const one of happenings) {
          if ("does" in one) continue;
          await arrive(calm, one);
          if (SENDS.has(one.relay)) await running.drain();
        }
        await comeToRest(calm);
        for (const one of happenings) {
          if ("does" in one) await disturb(rushed, one);
          else await arrive(rushed, one);
        }
        await comeToRest(rushed);
        expect(await lookAt(rushed)).toEqual(await lookAt(calm));
      }),
      { numRuns: Math.ceil(LIVES / PEOPLE) },
    );
    // Proves that disturbances happened. A long run's audit has deleted the first lives by then.
    expect(await countLate()).toBeGreaterThan(5);
  },
  IS_SOAK ? 3_600_000 : 600_000,
);
