/**
 * Tests that a trouble which began shortly after a change names that change, who made it and how to undo it. Home, the relay's page, alerts, alert
 * mail, relay doctor and the commands show the same. A name that is one typo away from an existing one is offered.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { runCommand } from "../kit/cli-io.ts";
import { CALL, editRelay, putEvents, sendEvent, WRITE } from "../kit/event-flow.ts";
import { BROKEN, FakeCaller } from "../kit/fake-caller.ts";
import { type ActionLike, makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const MINUTE = 60_000;
const MAP = { event_id: "id", person_email: "email", payment: "payment" };
const SOLD = { soldThrough: { kind: "relay", relay: "orders" } };
const ADA = { email: "ada@example.com", payment: "pi_1" };

const sell = (product: string): ActionLike => ({ type: "fulfil_product", product, ref: "{{mapped.payment}}" });
const define = (...actions: ActionLike[]) => receiverDefinition({ map: MAP, actions });

let running: RunningService;
let caller: FakeCaller;
beforeEach(async () => {
  caller = new FakeCaller();
  running = await startRunningService({ ports: { caller } });
  await makeOrders(running);
});
afterEach(() => running[Symbol.asyncDispose]());

const must = async (method: string, path: string, body?: unknown): Promise<void> => {
  const { status, body: answer } = await running.api(method, path, body);
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(answer)}`);
};

/** Sends an event that can die, some minutes after the last change. */
async function fail(id: string, afterMs = 2 * MINUTE): Promise<void> {
  await running.clock.advance(afterMs);
  await sendEvent(running, id, ADA);
  await running.drain();
}

async function readNeeds() {
  return (await running.api("GET", "/overview")).body.needs as { code: string; change: object | null; newest: { event: string } | null }[];
}

const AT = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;
const made = (what: string) => expect.stringMatching(new RegExp(`^.+ ${what} at ${AT}, shortly before this problem began\\.$`));

interface Row {
  name: string;
  stage(): Promise<void>;
  change: object | null;
  missing?: object | null;
}

const ROWS: readonly Row[] = [
  {
    name: "a new version of the definition names a product that does not exist",
    async stage() {
      await must("PUT", "/products/atlas", {});
      await saveRelay(running, define(sell("atlas")));
      await must("PUT", "/products/atlas", SOLD);
      await running.clock.advance(60 * MINUTE);
      await editRelay(running, define(sell("atlass")));
      await fail("a");
    },
    change: {
      kind: "definition",
      name: "orders",
      restores: 1,
      message: made("saved version 2 of orders"),
      todo: "Restore version 1: `relay relays restore orders --to 1`.",
    },
    missing: { kind: "product", name: "atlass", near: "atlas" },
  },
  {
    name: "a new version, and the failures go on for hours",
    async stage() {
      await saveRelay(running, define(WRITE));
      await running.clock.advance(60 * MINUTE);
      await editRelay(running, define({ ...WRITE, collection: "order" }));
      for (let hour = 0; hour < 5; hour++) await fail(`a${hour}`, hour === 0 ? 2 * MINUTE : 61 * MINUTE);
    },
    change: { kind: "definition", restores: 1 },
    missing: { kind: "collection", name: "order", near: "orders" },
  },
  {
    name: "a new version, and then a new receiver secret, which fails no event",
    async stage() {
      await saveRelay(running, define(WRITE));
      await running.clock.advance(60 * MINUTE);
      await editRelay(running, define({ ...WRITE, collection: "order" }));
      await must("PUT", "/relays/orders/secret", { value: "TheNewOneOfTheSender0123456789ab", overlapSeconds: 86_400 });
      await fail("a");
    },
    change: { kind: "definition", restores: 1 },
  },
  {
    name: "a new version an hour before",
    async stage() {
      await saveRelay(running, define(WRITE));
      await editRelay(running, define({ ...WRITE, collection: "order" }));
      await fail("a", 61 * MINUTE);
    },
    change: null,
    missing: { near: "orders" },
  },
  {
    name: "a new relay, which has nothing to restore",
    async stage() {
      await saveRelay(running, define({ ...WRITE, collection: "nowhere" }));
      await fail("a");
    },
    change: null,
    missing: { kind: "collection", name: "nowhere", near: null },
  },
  {
    name: "a fix that did not help, which is no cause",
    async stage() {
      await saveRelay(running, define({ ...WRITE, collection: "nowhere" }));
      await fail("a", 60 * MINUTE);
      await running.clock.advance(5 * MINUTE);
      await editRelay(running, define({ ...WRITE, collection: "nowhere", data: { order: "x" } }));
      await fail("b");
    },
    change: null,
  },
  {
    name: "a deleted product",
    async stage() {
      await saveRelay(running, define(WRITE));
      await must("PUT", "/products/atlas", SOLD);
      await editRelay(running, define(sell("atlas")));
      await running.clock.advance(60 * MINUTE);
      await must("DELETE", "/products/atlas");
      await fail("a");
    },
    change: {
      kind: "product",
      name: "atlas",
      deleted: true,
      message: made("deleted the product atlas"),
      todo: "Create it again: `relay catalog set product`.",
    },
  },
  {
    name: "a deleted access slug",
    async stage() {
      await must("PUT", "/access/forum", {});
      await must("PUT", "/access/forums", {});
      await saveRelay(running, define({ type: "grant_access", entitlement: "access:forum" } as never));
      await running.clock.advance(60 * MINUTE);
      await must("DELETE", "/access/forum?force=true");
      await fail("a");
    },
    change: { kind: "access", name: "forum", deleted: true, message: made("deleted the access slug forum") },
    missing: { kind: "access", name: "forum", near: "forums" },
  },
  {
    name: "a change of something that the relay does not name",
    async stage() {
      await saveRelay(running, define({ ...WRITE, collection: "nowhere" }));
      await running.clock.advance(60 * MINUTE);
      await must("PUT", "/products/atlas", {});
      await must("PUT", "/products/atlas", { title: "Atlas" });
      await fail("a");
    },
    change: null,
  },
];

describe("an item names the change shortly before it and the name that was probably meant", () => {
  test.each(ROWS.map((row) => [row.name, row] as const))("%s", async (_, { stage, change, missing }) => {
    await stage();
    const [need] = await readNeeds();
    expect(need).toMatchObject({ code: "relay_failed", change, ...(missing === undefined ? {} : { dead: { cause: { stands: "yes", missing } } }) });
    const { health } = (await running.api("GET", "/relays/orders")).body;
    expect(health.change).toEqual(need?.change as never);
    const newest = need?.newest?.event;
    expect((await running.api("GET", `/events/${newest}/cause`)).body.cause.change).toEqual(need?.change as never);
  });
});

test("a relay that rejects every request names the change of its secret", async () => {
  await saveRelay(running, define(WRITE));
  await sendEvent(running, "verified");
  await running.clock.advance(60 * MINUTE);
  await must("PUT", "/relays/orders/secret", { value: "TheNewOneOfTheSender0123456789ab", overlapSeconds: 0 });
  for (let call = 0; call < 5; call++) {
    await running.clock.advance(5 * MINUTE);
    await running.hook("orders", signedCall({ id: `x${call}` }));
  }
  await running.clock.advance(2_000);
  expect(await readNeeds()).toMatchObject([
    { code: "relay_refusing", change: { kind: "secret", name: "orders", message: made("changed the secret of orders") } },
  ]);
});

test("a relay that never verified a request offers no earlier version", async () => {
  await saveRelay(running, define(WRITE));
  await editRelay(running, define({ ...WRITE, data: { order: "x" } }));
  for (let call = 0; call < 5; call++) {
    await running.clock.advance(5 * MINUTE);
    await running.hook("orders", signedCall({ id: `x${call}` }, "another secret that is not the relay's"));
  }
  await running.clock.advance(2_000);
  expect(await readNeeds()).toMatchObject([{ code: "never_verified", change: null }]);
});

test("failures that are retried name the new version too", async () => {
  await saveRelay(running, receiverDefinition({ map: { event_id: "id" }, actions: [CALL] }));
  await running.clock.advance(60 * MINUTE);
  await editRelay(running, receiverDefinition({ map: { event_id: "id" }, actions: [{ ...CALL, url: "https://example.com/moved" } as never] }));
  caller.reply = () => BROKEN;
  await running.clock.advance(2 * MINUTE);
  await putEvents(running, ["a", "b", "c"]);
  await running.drain();
  for (let round = 0; round < 9; round++) {
    await running.clock.advance(5 * MINUTE);
    await running.drain();
  }
  expect(await readNeeds()).toMatchObject([{ code: "relay_failing", change: { kind: "definition", restores: 1 } }]);
});

test("alerts, alert mail, problems, doctor and the commands show the change and the name; after the undo they do not", async () => {
  await running[Symbol.asyncDispose]();
  running = await startRunningService({ config: { mode: "local" } });
  await must("PUT", "/products/atlas", {});
  await saveRelay(running, define(sell("atlas")));
  await must("PUT", "/products/atlas", SOLD);
  await running.clock.advance(60 * MINUTE);
  await editRelay(running, define(sell("atlass")));
  await fail("a");
  const hints = [
    expect.stringMatching(/saved version 2 of orders at .* Restore version 1: `relay relays restore orders --to 1`\.$/),
    "There is no product atlass. Did you mean atlas?",
  ];
  const alerts = async () => (await running.api("GET", "/alerts?open=true")).body.items as { hints: string[] }[];
  expect((await alerts())[0]?.hints).toEqual(hints);
  for (const words of ["alerts list", "relays show orders", "doctor"]) {
    const data = ["--data-dir", running.dataDir, ...(words === "doctor" ? [] : ["--app", "app_test"])];
    const { said, told } = await runCommand([...words.split(" "), ...data], { cwd: running.dataDir, clock: running.clock, env: running.commandEnv });
    expect(`${said}${told}`.replaceAll(/\s+/g, " ")).toMatch(
      /saved version 2 of orders at .*relay relays restore orders --to 1.*Did you mean atlas\?/i,
    );
  }
  await running.clock.advance(3 * MINUTE);
  const [mail] = await running.rows<{ text: string }>("SELECT text FROM email WHERE kind = 'alert'");
  expect(mail?.text).toMatch(
    /\nLook here first: .* saved version 2 of orders at .*\nLook here first: There is no product atlass\. Did you mean atlas\?\n/,
  );
  await must("POST", "/relays/orders/restore", { restores: 1, version: 2 });
  expect((await alerts())[0]?.hints).toEqual([expect.stringMatching(/^The cause may no longer exist\. The definition of orders was changed at /)]);
  expect(await readNeeds()).toMatchObject([
    {
      change: null,
      dead: {
        cause: {
          stands: "no",
          message: expect.stringMatching(/^The relay was changed at .*, and each product that it names exists: replaying will probably work\.$/),
        },
      },
    },
  ]);
});
