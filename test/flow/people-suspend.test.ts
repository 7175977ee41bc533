/** `relay people suspend` and `activate`: here and at a server alike, told again they change nothing, and audited as the API does. */
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

  test("a person is suspended and made active again, audited", async () => {
    const suspended = await people("suspend", ADA);
    expect([suspended.code, suspended.told.trim(), await status()]).toEqual([
      0,
      `${ADA} is suspended: they may use nothing of what they have, and no relay acts for them, until relay people activate.`,
      "suspended",
    ]);
    const active = await people("activate", ada);
    expect([active.code, active.told.trim(), await status()]).toEqual([0, `${ada} is active again.`, "active"]);
    expect(await audited()).toMatchObject([
      { target: `person:${ada}`, before: { status: "suspended" }, after: { status: "active" } },
      { actor: expect.stringMatching(/^(command line|key:)/), before: { status: "invited" }, after: { status: "suspended" } },
    ]);
  });

  test("who is so already stays so, and somebody invited is not made active", async () => {
    const invited = await people("activate", ADA);
    expect([invited.code, invited.told.trim(), await status()]).toEqual([0, `${ADA} is not suspended: nothing changed.`, "invited"]);
    await people("suspend", ADA);
    expect((await people("suspend", ADA)).told.trim()).toBe(`${ADA} is suspended already: nothing changed.`);
    expect(await audited()).toHaveLength(1);
  });

  test("somebody unknown is refused, and a change is told whole with --json", async () => {
    const nobody = await people("suspend", "bob@example.com");
    expect([nobody.code, nobody.told]).toEqual([1, expect.stringContaining("exists in this environment")]);
    const { said } = await people("suspend", ADA, "--json");
    const { person } = (await running.api("GET", `/persons/${ada}`)).body;
    expect(JSON.parse(said)).toEqual({ person, changed: true });
    expect(person.status).toBe("suspended");
  });
});
