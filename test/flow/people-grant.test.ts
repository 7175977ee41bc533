/** Tests `relay people grant` on a data directory and on a server: manual access with the API's errors and audit. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { DAY_MS } from "../../src/base/limit.ts";
import { COMMAND_PLACES, runAt } from "../kit/cli-place.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const ADA = "ada@example.com";
let running: RunningService;
let ada: string;

beforeEach(async () => {
  running = await startRunningService();
  await running.api("PUT", "/access/beta", {});
  ada = (await running.api("POST", "/persons", { email: ADA })).body.person.id;
});
afterEach(() => running[Symbol.asyncDispose]());

const held = async () => (await running.api("GET", `/persons/${ada}/access`)).body.grants;

describe.each(COMMAND_PLACES)("%s", (place) => {
  const grant = (...words: string[]) => runAt(place, running, ["people", "grant", ...words]);

  test("grants access without an end, with its reason, and audits it without the reason", async () => {
    const { code, told } = await grant(ADA, "access:beta", "--reason", "ticket 81");
    expect([code, told.trim()]).toEqual([0, `${ADA} has access:beta now. The grant never expires. To end it: relay people end ${ADA} access:beta.`]);
    expect(await held()).toMatchObject([{ entitlement: "access:beta", source: "hand", reason: "ticket 81", expiresAt: null }]);
    const { items } = (await running.api("GET", "/audit?action=grant.created")).body;
    expect(items).toMatchObject([{ actor: expect.stringMatching(/^(command line|key:)/), after: { entitlement: "access:beta" } }]);
    expect(JSON.stringify(items)).not.toContain("ticket 81");
  });

  test("counts a span from now, and a date from its first moment", async () => {
    const end = new Date(running.clock.now() + 30 * DAY_MS).toISOString();
    const { told } = await grant(ada, "access:beta", "--until", "30d");
    expect(told.trim()).toBe(`${ada} has access:beta now. The grant expires at ${end}.`);
    await grant(ADA, "access:beta", "--until", "2040-01-31");
    expect((await held()).map(({ expiresAt }: { expiresAt: string }) => expiresAt)).toEqual(["2040-01-31T00:00:00.000Z", end]);
  });

  test("rejects an impossible grant like the API, and grants nothing", async () => {
    const unknown = await grant(ADA, "access:gamma");
    expect([unknown.code, unknown.told]).toEqual([1, expect.stringContaining("which is not an access slug, product or plan in this environment")]);
    expect((await grant("bob@example.com", "access:beta")).told).toContain("exists in this environment");
    expect((await grant(ADA, "access:beta", "--reason", "x".repeat(2_000))).told).toContain("`reason` is not valid");
    await running.api("PATCH", `/persons/${ada}`, { status: "suspended" });
    expect((await grant(ADA, "access:beta")).told).toContain("person_suspended");
    await running.api("PATCH", `/persons/${ada}`, { status: "active" });
    expect(await held()).toEqual([]);
  });

  test.each([
    ["soon", "write a duration such as 24h or 30d"],
    ["2020-01-01", "which is in the past"],
    ["999999w", "write a duration such as 24h or 30d"],
  ])("--until %s is rejected as a usage error", async (until, words) => {
    const { code, told } = await grant(ADA, "access:beta", "--until", until);
    expect([code, told]).toEqual([2, expect.stringContaining(words)]);
    expect(await held()).toEqual([]);
  });

  test("accepts an id's suffix as the terminal's lists show it", async () => {
    const ending = ada.slice(-8);
    for (const line of [
      ["grant", ending, "access:beta"],
      ["end", `…${ending}`, "access:beta"],
      ["credits", ending, "5", "--reason", "x"],
      ["suspend", ending],
      ["activate", ending],
      ["file-token", ending, "tok-1"],
      ["remove-token", ending, "tok-1"],
      ["stop-mail", ending],
      ["allow-mail", ending],
    ])
      expect([line[0], (await runAt(place, running, ["people", ...line])).code]).toEqual([line[0], 0]);
    const none = await runAt(place, running, ["people", "suspend", "0000beef"]);
    expect([none.code, none.told]).toEqual([1, expect.stringContaining("exists")]);
  });

  test("prints the grant with --json", async () => {
    const { said } = await grant(ADA, "access:beta", "--json");
    const [grantNow] = await held();
    expect(JSON.parse(said)).toEqual({ person: ada, grant: grantNow });
  });
});
