/** Tests `relay people suspend` and `activate` on a data directory and on a server. Repeats change nothing, and each is audited like in the API. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { COMMAND_PLACES, runAt } from "../kit/cli-place.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const ADA = "ada@example.com";
let running: RunningService;
let ada: string;

beforeEach(async () => {
  running = await startRunningService();
  ada = (await running.api("POST", "/persons", { email: ADA })).body.person.id;
});
afterEach(() => running[Symbol.asyncDispose]());

const status = async () => (await running.api("GET", `/persons/${ada}`)).body.person.status;
const audited = async () => (await running.api("GET", "/audit?action=person.changed")).body.items;

describe.each(COMMAND_PLACES)("%s", (place) => {
  const people = (...words: string[]) => runAt(place, running, ["people", ...words]);

  test("suspends a person and reactivates them, with audit rows", async () => {
    const suspended = await people("suspend", ADA);
    expect([suspended.code, suspended.told.trim(), await status()]).toEqual([
      0,
      `${ADA} is suspended. They cannot use what they have, and no relay acts for them. To undo this: relay people activate.`,
      "suspended",
    ]);
    const active = await people("activate", ada);
    expect([active.code, active.told.trim(), await status()]).toEqual([0, `${ada} is active again.`, "active"]);
    expect(await audited()).toMatchObject([
      { target: `person:${ada}`, before: { status: "suspended" }, after: { status: "active" } },
      { actor: expect.stringMatching(/^(command line|key:)/), before: { status: "invited" }, after: { status: "suspended" } },
    ]);
  });

  test("changes nothing for a person who already has the status, and does not activate an invited person", async () => {
    const invited = await people("activate", ADA);
    expect([invited.code, invited.told.trim(), await status()]).toEqual([0, `${ADA} is not suspended: nothing changed.`, "invited"]);
    await people("suspend", ADA);
    expect((await people("suspend", ADA)).told.trim()).toBe(`${ADA} is already suspended: nothing changed.`);
    expect(await audited()).toHaveLength(1);
  });

  test("rejects an unknown person, and prints a change with --json", async () => {
    const nobody = await people("suspend", "bob@example.com");
    expect([nobody.code, nobody.told]).toEqual([1, expect.stringContaining("exists in this environment")]);
    const { said } = await people("suspend", ADA, "--json");
    const { person } = (await running.api("GET", `/persons/${ada}`)).body;
    expect(JSON.parse(said)).toEqual({ person, changed: true });
    expect(person.status).toBe("suspended");
  });
});
