/** Tests the ways to reach a relay that follows a receiver, other than its source's URL: dry runs, test events, imports and replays. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { RELAY_NAME } from "../kit/event-sql.ts";
import {
  type ActionLike,
  HOOK_SECRET,
  makeOrders,
  receiverDefinition,
  saveRelay,
  signedCall,
  TOKEN_RECIPE,
  tokenCall,
} from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";

const follower = (
  change: { when?: Record<string, string>; map?: Record<string, string>; actions?: readonly ActionLike[]; trustUnsignedEvents?: boolean } = {},
) => receiverDefinition({ ...change, name: "paid", verify: { scheme: "receiver", receiver: "stripe" } });

describe("over the API", () => {
  let running: RunningService;

  beforeEach(async () => {
    running = await startRunningService({ environments: ["development", "production"] });
    await makeOrders(running);
  });
  afterEach(() => running[Symbol.asyncDispose]());

  const save = async (definition: Record<string, unknown>): Promise<void> => {
    const saved = await running.api("POST", "/relays", { definition });
    expect([saved.status, saved.body.message]).toEqual([201, undefined]);
  };
  const begin = async (change: Parameters<typeof follower>[0] = {}, verify?: Record<string, unknown>): Promise<void> => {
    await saveRelay(running, receiverDefinition({ name: "stripe", ...(verify === undefined ? {} : { verify }) }));
    await save(follower(change));
  };
  const listEvents = async (): Promise<string[]> =>
    (await running.rows<{ relay: string; source: string | null }>(`SELECT ${RELAY_NAME} AS relay, source FROM event ORDER BY seq`)).map(
      ({ relay, source }) => `${relay} ${source ?? "request"}`,
    );
  const importLines = async (...lines: string[]) => {
    const url = `${running.service.url}/api/apps/${APP}/development/relays/paid/import-missed`;
    const response = await fetch(url, { method: "POST", headers: { authorization: `Bearer ${running.keys.development}` }, body: lines.join("\n") });
    // biome-ignore lint/suspicious/noExplicitAny: tests read answers by their fields
    return (await response.json()) as any;
  };

  test("a dry run signs with the source's secret, and verifies the source's requests", async () => {
    await begin();
    const own = (await running.api("POST", "/relays/paid/explain", {})).body.explanation;
    expect(own.steps.find(({ step }: { step: string }) => step === "signature")).toMatchObject({ outcome: "ok" });
    const { headers, body } = signedCall({ id: "a", type: "paid", amount: 1 });
    const given = (await running.api("POST", "/relays/paid/explain", { headers, body })).body.explanation;
    expect(given.steps.find(({ step }: { step: string }) => step === "signature")).toMatchObject({ outcome: "ok" });
    expect(await listEvents()).toEqual([]);
  });

  test("a test event reaches only the follower", async () => {
    await begin();
    const sent = await running.api("POST", "/relays/paid/test-event", {});
    expect([sent.status, sent.body.outcome]).toEqual([200, "new"]);
    expect(await listEvents()).toEqual(["paid test"]);
  });

  test("an import verifies with the source's secret, and knows the events that requests of the source brought", async () => {
    await begin();
    const arrived = signedCall({ id: "a", type: "paid", amount: 1 });
    await running.hook("stripe", arrived);
    const { lines } = await importLines(JSON.stringify(arrived), JSON.stringify(signedCall({ id: "b", type: "paid", amount: 1 })));
    expect(lines.map(({ outcome, verified }: { outcome: string; verified: boolean }) => [outcome, verified])).toEqual([
      ["known", true],
      ["new", true],
    ]);
    expect(await listEvents()).toEqual(["stripe request", "paid request", "paid import"]);
  });

  test("an import of a request that the source received before the follower existed creates the follower's event", async () => {
    await saveRelay(running, receiverDefinition({ name: "stripe", verify: TOKEN_RECIPE }));
    const body = { timestamp: "1768478400", token: "t1", id: "a" };
    const signature = createHmac("sha256", HOOK_SECRET).update("1768478400t1").digest("hex");
    const delivery = { headers: { "content-type": "application/json" }, body: JSON.stringify({ ...body, signature }) };
    expect((await running.hook("stripe", delivery)).status).toBe(200);
    await save(follower());
    expect((await importLines(JSON.stringify(delivery))).lines[0].outcome).toBe("new");
    expect((await importLines(JSON.stringify(delivery))).lines[0].outcome).toBe("known");
    expect((await running.hook("stripe", delivery)).body.duplicate).toBe(true);
    const forged = { ...delivery, body: JSON.stringify({ ...body, id: "b", signature }) };
    expect((await importLines(JSON.stringify(forged))).lines[0].code).toBe("bad_signature");
  });

  test("an import spends a signature that counts once, and the source still takes the delivery", async () => {
    await saveRelay(running, receiverDefinition({ name: "stripe", verify: TOKEN_RECIPE }));
    await save(follower());
    const { headers, body } = tokenCall("t1", { id: "a" });
    expect((await importLines(JSON.stringify({ headers, body }))).lines[0].outcome).toBe("new");
    expect((await running.hook("stripe", tokenCall("t1", { id: "b" }))).status).toBe(401);
    expect((await running.hook("stripe", { headers, body })).body.events).toHaveLength(2);
    expect(await listEvents()).toEqual(["paid import", "stripe request"]);
  });

  test("an import of unsigned lines follows the unsigned-event rule", async () => {
    await begin({ map: { event_id: "id", person_email: "email" }, actions: [{ type: "grant_access", entitlement: "access:course" }] });
    const { lines } = await importLines(JSON.stringify({ id: "a", email: "ada@example.com" }));
    expect(lines[0]).toMatchObject({ outcome: "refused", code: "unsigned_event" });
  });

  test("events of a follower replay one by one and in bulk", async () => {
    await begin();
    const { body } = await running.hook("stripe", signedCall({ id: "a", type: "paid", amount: 1 }));
    await running.drain();
    const own = body.events.find(({ relay }: { relay: string }) => relay === "paid").eventId;
    expect((await running.api("POST", `/events/${own}/replay`, {})).status).toBe(202);
    await running.drain();
    const { event } = (await running.api("GET", `/events/${own}`)).body;
    expect([event.state, event.replays]).toEqual(["done", 1]);
  });

  test("a sender that stops to sign its events stops a stored follower that acts on people", async () => {
    await begin({ map: { event_id: "id", person_email: "email" }, actions: [{ type: "grant_access", entitlement: "access:course" }] });
    await running.service.store.write("app", async (tx) => {
      const row = await tx.get<{ definition: string }>("SELECT definition FROM relay WHERE name = ?1", "stripe");
      const definition = JSON.parse(row?.definition ?? "");
      definition.trigger.verify = TOKEN_RECIPE;
      await tx.run("UPDATE relay SET definition = ?1 WHERE name = ?2", JSON.stringify(definition), "stripe");
    });
    await running.restart();
    const { relay } = (await running.api("GET", "/relays/paid")).body;
    expect(relay.problems.map(({ code }: { code: string }) => code)).toContain("relay_unsigned_event");
  });

  test("the checklist of a follower names its source", async () => {
    await begin({ when: { event_type: "paid" } });
    const steps = async () =>
      (await running.api("GET", "/relays/paid/checklist")).body.checklist.steps.map(
        ({ step, title, done }: { step: string; title: string; done: boolean }) => [step, title, done],
      );
    expect(await steps()).toContainEqual(["verified", "The receiver stripe verifies a request", false]);
    expect((await steps()).map(([step]: [string]) => step)).not.toContain("secret");
    await running.hook("stripe", signedCall({ id: "a", type: "paid", amount: 1 }));
    await running.drain();
    expect((await steps()).every(([, , done]: [string, string, boolean]) => done)).toBe(true);
  });
});
