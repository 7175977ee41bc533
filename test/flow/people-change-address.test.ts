/**
 * Tests `relay people change-address` on a data directory and on a server, and what follows: events for the former address, a person who gets it later,
 * sign-in, and an erasure.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { COMMAND_PLACES, runAt } from "../kit/cli-place.ts";
import { sendEvent } from "../kit/event-flow.ts";
import { receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const [OLD, NEW] = ["ada@example.com", "ada@example.org"];
let running: RunningService;
let ada: string;

beforeEach(async () => {
  running = await startRunningService();
  ada = (await running.api("POST", "/persons", { email: OLD })).body.person.id;
});
afterEach(() => running[Symbol.asyncDispose]());

const change = (email: string, more = {}) => running.api("POST", `/persons/${ada}/change-address`, { email, ...more });
const emailOf = async (id: string) => (await running.api("GET", `/persons/${id}`)).body.person?.email;
const creditsOf = async (id: string) => (await running.api("GET", `/persons/${id}`)).body.credits;
const PLAN = `Changes the address ${OLD} to ${NEW}. The id, the access and everything else stay. A payment that names ${OLD} still finds this person. Only ${NEW} can sign in.`;

async function saveCredits() {
  const actions = [{ type: "grant_credits", amount: 5 }];
  await saveRelay(running, receiverDefinition({ map: { event_id: "id", person_email: "email" }, actions }));
}
const send = async (id: string, email: string) => {
  const event = await sendEvent(running, id, { email });
  await running.drain();
  return event;
};

describe.each(COMMAND_PLACES)("%s", (place) => {
  const run = (line: string, more = {}) => runAt(place, running, ["people", ...line.split(" ")], "", more);

  test("shows the plan, changes the address once, and says on a repetition that nothing changes", async () => {
    const planned = await run(`change-address ${OLD} ${NEW} --plan`);
    expect([planned.code, planned.said.trim(), await emailOf(ada)]).toEqual([0, PLAN, OLD]);
    const silent = await run(`change-address ${OLD} ${NEW}`);
    expect([silent.code, silent.told, await emailOf(ada)]).toEqual([
      1,
      expect.stringContaining(`relay people change-address ${OLD} ${NEW} --yes`),
      OLD,
    ]);
    const { code, told } = await run(`change-address ${OLD} ${NEW} --yes`);
    expect([code, told.trim(), await emailOf(ada)]).toEqual([0, `${PLAN}\nThe address is ${NEW} now.`, NEW]);
    const again = await run(`change-address ${NEW} ${NEW} --yes`);
    expect([again.code, again.told]).toEqual([0, expect.stringContaining("nothing changes")]);
    const { items } = (await running.api("GET", "/audit?action=person.address_changed")).body;
    expect(items).toHaveLength(1);
    expect(JSON.stringify(items[0].before) + JSON.stringify(items[0].after)).not.toContain("@");
  });
});

const REFUSED: [what: string, email: string, words: string][] = [
  ["no address", "ada", "is not an email address"],
  ["the address of another person", "BOB@example.com", "is the address of another person"],
];
test.each(REFUSED)("%s is refused, and nothing changes", async (_what, email, words) => {
  await running.api("POST", "/persons", { email: "bob@example.com" });
  for (const plan of [true, false])
    expect((await change(email, { plan })).body).toMatchObject({ code: "invalid_input", message: expect.stringContaining(words) });
  expect(await emailOf(ada)).toBe(OLD);
});

test("an event for the former address finds the person, until another person has the address", async () => {
  await saveCredits();
  await send("e1", OLD);
  await Promise.all([change(NEW), change(NEW)]);
  await send("e2", OLD.toUpperCase());
  await send("e3", NEW);
  expect(await creditsOf(ada)).toBe(15);
  await running.clock.advance(1_000);
  const other = (await running.api("POST", "/persons", { email: OLD })).body.person.id;
  expect(other).not.toBe(ada);
  await running.clock.advance(1_000);
  await send("e4", OLD);
  expect([await creditsOf(ada), await creditsOf(other)]).toEqual([15, 5]);
});

test("an address changes in a circle, and an event finds each of the addresses", async () => {
  await saveCredits();
  for (const email of [NEW, OLD, NEW, "Ada@Example.ORG"]) expect((await change(email)).body.changed).toBe(true);
  expect(await emailOf(ada)).toBe("Ada@Example.ORG");
  await send("e1", OLD);
  await send("e2", NEW);
  expect(await creditsOf(ada)).toBe(10);
  expect((await running.api("GET", "/persons")).body.items).toHaveLength(1);
});

test("an erasure removes the former address, and an earlier event does not create the person again", async () => {
  await saveCredits();
  await running.api("POST", "/collections", { name: "notes", kind: "shared", fields: { text: { type: "text" } } });
  const written = await running.api("POST", "/collections/notes/records", { data: { text: `from ${OLD}` } });
  const event = await send("e1", OLD);
  await change(NEW);
  await running.api("DELETE", `/persons/${ada}`);
  await running.clock.advance(180_000);
  expect(await running.rows("SELECT * FROM former_address")).toEqual([]);
  expect(await running.rows("SELECT * FROM erasure WHERE target IS NOT NULL")).toEqual([]);
  const record = (await running.api("GET", `/collections/notes/records/${written.body.record.id}`)).body.record;
  expect(record.data.text).toBe("from erased");
  expect(JSON.stringify(await running.rows("SELECT payload FROM event"))).not.toContain(OLD);
  await running.api("POST", `/events/${event}/replay`, {});
  await running.drain();
  expect((await running.api("GET", "/persons")).body.items).toEqual([]);
  await send("e2", OLD);
  expect((await running.api("GET", "/persons")).body.items).toMatchObject([{ email: OLD }]);
});

describe("an erasure of Bob leaves what Ada has with an address", () => {
  const FREE = "free@example.net";
  let bob: string;
  const erase = async (id: string) => {
    expect((await running.api("DELETE", `/persons/${id}`)).status).toBe(204);
    await running.clock.advance(180_000);
    expect(await running.rows("SELECT * FROM erasure WHERE target IS NOT NULL")).toEqual([]);
  };
  const moveTo = async (person: string, email: string) => {
    await running.clock.advance(1_000);
    expect((await running.api("POST", `/persons/${person}/change-address`, { email })).body.changed).toBe(true);
    await running.clock.advance(1_000);
  };
  const reasons = async (person: string) =>
    (await running.rows<{ reason: string }>("SELECT reason FROM credit WHERE person_id = ?1", person)).map(({ reason }) => reason).sort();
  const payload = async (id: string) => (await running.api("GET", `/events/${id}`)).body.event.payload;

  beforeEach(async () => {
    const actions = [{ type: "grant_credits", amount: 5, reason: "for {{person.email}}" }];
    await saveRelay(running, receiverDefinition({ map: { event_id: "id", person_email: "email" }, actions }));
    await saveRelay(running, receiverDefinition({ name: "later", map: { event_id: "id", person_email: "email" }, actions }));
    await running.api("POST", "/relays/later/pause");
    events = { hers: [], his: [] };
    bob = (await running.api("POST", "/persons", { email: "bob@example.com" })).body.person.id;
  });
  const wait = (id: string) => sendEvent(running, id, { email: OLD }, "later");

  let events: { hers: string[]; his: string[] };
  const hers = async () => {
    events.hers = [await send("a1", OLD), await wait("a2")];
  };
  const his = async () => {
    events.his = [await send("b1", OLD), await wait("b2")];
  };

  /** Ada and Bob have the address one after the other. The event that waits and names it in Bob's time is erased with him. */
  const ORDERS: [order: string, run: () => Promise<void>][] = [
    [
      "that she had before him",
      async () => {
        await hers();
        await moveTo(ada, NEW);
        await moveTo(bob, OLD);
        await his();
      },
    ],
    [
      "that she had before him, and he gave it up too",
      async () => {
        await hers();
        await moveTo(ada, NEW);
        await moveTo(bob, OLD);
        await his();
        await moveTo(bob, FREE);
      },
    ],
    [
      "that she has now",
      async () => {
        await moveTo(ada, NEW);
        await moveTo(bob, OLD);
        await his();
        await moveTo(bob, FREE);
        await moveTo(ada, OLD);
        await hers();
      },
    ],
    [
      "that she had after him",
      async () => {
        await moveTo(ada, NEW);
        await moveTo(bob, OLD);
        await his();
        await moveTo(bob, FREE);
        await moveTo(ada, OLD);
        await hers();
        await moveTo(ada, NEW);
      },
    ],
  ];
  test.each(ORDERS)("%s", async (_order, run) => {
    await run();
    const read = () => Promise.all([...events.hers, ...events.his].map(payload));
    const [a1, a2] = await read();
    const former = await running.rows("SELECT email FROM former_address WHERE person_id = ?1", ada);
    await erase(bob);
    expect(await read()).toEqual([a1, a2, null, null]);
    expect([await reasons(ada), await reasons(bob)]).toEqual([[`relay: for ${OLD}`], ["erased"]]);
    expect(await running.rows("SELECT email FROM former_address WHERE person_id = ?1", ada)).toEqual(former);
    await running.api("POST", "/relays/later/resume");
    await running.drain();
    const people = await Promise.all(events.hers.map(async (id) => (await running.api("GET", `/events/${id}`)).body.event.person?.id));
    expect(people).toEqual([ada, ada]);
    expect(await reasons(ada)).toEqual([`relay: for ${OLD}`, expect.stringMatching(/^relay: for ada@/)]);
    const [, waited = ""] = events.his;
    expect((await running.api("GET", `/events/${waited}`)).body.event).toMatchObject({ state: "failed", reason: "person_erased", person: null });
    expect((await running.api("GET", "/persons")).body.items).toHaveLength(1);
  });
});
