/** Tests `relay people end` on a data directory and on a server. It ends a person's access or plan, and is audited like the dashboard's End. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { runCommand } from "../kit/cli-io.ts";
import { COMMAND_PLACES, runAt } from "../kit/cli-place.ts";
import { sendEvent } from "../kit/event-flow.ts";
import { receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const ADA = "ada@example.com";
let running: RunningService;
let ada: string;

beforeEach(async () => {
  running = await startRunningService();
  await running.api("PUT", "/access/beta", {});
  const actions = [
    { type: "grant_plan", plan: "pro", ref: "{{mapped.event_id}}" },
    { type: "grant_access", entitlement: "access:beta" },
  ];
  await saveRelay(running, receiverDefinition({ map: { event_id: "id", person_email: "email" }, actions }));
  await running.api("PUT", "/plans/free", { default: true });
  await running.api("PUT", "/plans/pro", { soldThrough: { kind: "relay", relay: "orders" } });
  await sendEvent(running, "in_1", { email: ADA });
  await running.drain();
  ada = (await running.api("GET", `/persons?email=${ADA}`)).body.items[0].id;
  await running.api("POST", `/persons/${ada}/grants`, { entitlement: "access:beta", reason: "a friend" });
});
afterEach(() => running[Symbol.asyncDispose]());

const has = async () => {
  const { access, plan } = (await running.api("GET", `/persons/${ada}`)).body;
  return [plan, ...access.grants.map(({ entitlement }: { entitlement: string }) => entitlement).sort()];
};

describe.each(COMMAND_PLACES)("%s", (place) => {
  const end = (who: string, what: string, ...more: string[]) => runAt(place, running, ["people", "end", who, what, ...more]);

  test("ends a plan with only its own grants, and the person gets the default plan", async () => {
    expect(await has()).toEqual(["pro", "access:beta", "access:beta", "pro"]);
    const { code, told } = await end(ADA, "pro");
    expect([code, told.trim()]).toEqual([0, `The plan pro of ${ADA} has ended.`]);
    expect(await has()).toEqual(["free", "access:beta", "access:beta"]);
    const { items } = (await running.api("GET", "/audit?action=subscription.ended")).body;
    expect(items).toMatchObject([{ actor: expect.stringMatching(/^(command line|key:)/) }]);
  });

  test("ends every active grant of an access, whatever its source, and audits it", async () => {
    const { code, told } = await end(ada, "access:beta");
    expect([code, told.trim()]).toEqual([0, `The access of ${ada} to access:beta has ended (2 grants).`]);
    expect(await has()).toEqual(["pro", "pro"]);
    expect((await running.api("GET", "/audit?action=grant.revoked")).body.items).toHaveLength(2);
  });

  test("accepts a product's name for the entitlement that it grants", async () => {
    const soldThrough = { kind: "relay", relay: "orders" };
    const put = await running.api("PUT", "/products/book", { key: "book-2030", soldThrough });
    expect(put.status).toBeLessThan(300);
    await running.api("POST", `/persons/${ada}/grants`, { entitlement: "book" });
    expect(await has()).toContain("book-2030");
    const { code, told } = await end(ADA, "book");
    expect([code, told.trim()]).toEqual([0, `The access of ${ADA} to book has ended.`]);
    await running.api("POST", `/persons/${ada}/grants`, { entitlement: "book" });
    expect((await end(ADA, "book-2030")).code).toBe(0);
    expect(await has()).toEqual(["pro", "access:beta", "access:beta", "pro"]);
  });

  test("ends a grant that is older than the 200 newest", async () => {
    await running.api("PUT", "/access/news", {});
    for (let count = 0; count < 200; count++) await running.api("POST", `/persons/${ada}/grants`, { entitlement: "access:news" });
    expect((await running.api("GET", `/persons/${ada}/access`)).body.grants).toHaveLength(200);
    const { code, told } = await end(ADA, "access:beta");
    expect([code, told.trim()]).toEqual([0, `The access of ${ADA} to access:beta has ended (2 grants).`]);
    expect((await running.api("GET", `/persons/${ada}/access/access:beta`)).body.granted).toBe(false);
  });

  test.each([".", "..", "../x", "a/b", "?", " "])("%j is no valid name and is rejected like an absent access", async (what) => {
    const { code, told } = await end(ADA, what);
    expect([code, told]).toEqual([1, expect.stringContaining("so there is nothing to end")]);
  });

  test("rejects an access that the person lacks, and ends nothing", async () => {
    const nothing = await end(ADA, "access:gamma");
    expect([nothing.code, nothing.told]).toEqual([
      1,
      expect.stringContaining(`"${ADA}" does not have "access:gamma" now, so there is nothing to end`),
    ]);
    expect((await end("bob@example.com", "pro")).told).toContain("exists in this environment");
    expect(await has()).toEqual(["pro", "access:beta", "access:beta", "pro"]);
  });

  test("prints the ended plan with --json", async () => {
    const { said } = await end(ADA, "pro", "--json");
    expect(JSON.parse(said)).toEqual({
      person: ada,
      subscription: { id: expect.stringMatching(/^sub_/), billedBy: "relay" },
      grants: [],
      what: "pro",
    });
  });
});

test("a plan that the card processor bills ends, and the output warns that the billing continues", async () => {
  await running.api("PUT", "/plans/team", { soldThrough: { kind: "payment_link", url: "https://pay.example/x" } });
  const { person } = (await running.api("POST", "/persons", { email: "bob@example.com" })).body;
  expect((await running.api("POST", "/receipts", { ref: "s1", person: person.id, plan: "team" })).status).toBe(201);
  const line = ["people", "end", "bob@example.com", "team", "--data-dir", running.dataDir];
  const { told } = await runCommand(line, { cwd: running.dataDir, clock: running.clock, env: running.commandEnv });
  expect(told).toContain("The card processor continues to bill it: end it there too.");
});
