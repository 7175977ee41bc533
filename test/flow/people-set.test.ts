/**
 * Tests `relay people set` on a data directory and on a server. It sets attributes by name, repeats change nothing, and the audit holds only names.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { COMMAND_PLACES, runAt } from "../kit/cli-place.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const ADA = "ada@example.com";
let running: RunningService;
let ada: string;

beforeEach(async () => {
  running = await startRunningService();
  ada = (await running.api("POST", "/persons", { email: ADA })).body.person.id;
  await running.api("PATCH", `/persons/${ada}`, { attributes: { team: "red", trial: true } });
});
afterEach(() => running[Symbol.asyncDispose]());

const attributes = async () => (await running.api("GET", `/persons/${ada}`)).body.person.attributes;

describe.each(COMMAND_PLACES)("%s", (place) => {
  const set = async (json: string | null, input = "", who = ADA) => {
    const { code, told, said } = await runAt(place, running, ["people", "set", who, ...(json === null ? [] : [json])], input);
    return { code, said, line: told.trim().split("\n")[0] };
  };

  const ROWS: [what: string, json: string, after: object, line: string][] = [
    [
      "a name is set and the others stay",
      '{"company":"Lamps Ltd"}',
      { team: "red", trial: true, company: "Lamps Ltd" },
      `${ADA} has the attributes team, trial, company now.`,
    ],
    ["null removes a name", '{"trial":null}', { team: "red" }, `${ADA} has the attributes team now.`],
    [
      "any JSON is a valid value",
      '{"team":{"name":"red","size":3}}',
      { team: { name: "red", size: 3 }, trial: true },
      `${ADA} has the attributes team, trial now.`,
    ],
    ["the last name can be removed", '{"team":null,"trial":null}', {}, `${ADA} has no attributes now.`],
    [
      "an unchanged value stays",
      '{"team":"red","gone":null}',
      { team: "red", trial: true },
      `${ADA} has the attributes team, trial already: nothing changed.`,
    ],
  ];
  test.each(ROWS)("%s", async (_what, json, after, line) => {
    expect(await set(json)).toEqual({ code: 0, said: "", line });
    expect(await attributes()).toEqual(after);
    expect(await set(null, json, ada)).toEqual({ code: 0, said: "", line: line.replace(ADA, ada).replace(/ now\.$/, " already: nothing changed.") });
  });

  const REFUSED: [json: string, code: number, words: string][] = [
    ["[1]", 2, "The value is not a JSON object: write one such as {}"],
    ["team=red", 2, "The value is not a JSON object"],
    ['{"team":"a\\u0007b"}', 1, "`attributes.team` holds the control character U+0007"],
    [`{"team":"${"x".repeat(17_000)}"}`, 1, "`attributes` would take more than 16384 bytes: store larger values in a record."],
  ];
  test.each(REFUSED)("%s is rejected, and nothing is set", async (json, code, words) => {
    const refused = await set(json);
    expect([refused.code, refused.line]).toEqual([code, expect.stringContaining(words)]);
    expect(await attributes()).toEqual({ team: "red", trial: true });
  });

  test("shows values as JSON, and audits only their names", async () => {
    const { said } = await runAt(place, running, ["people", "set", ADA, '{"team":"blue"}', "--json"]);
    expect(JSON.parse(said)).toMatchObject({ person: { id: ada, attributes: { team: "blue", trial: true } }, changed: true });
    expect((await runAt(place, running, ["people", "show", ADA])).said).toContain('attributes {"team":"blue","trial":true}');
    const [row] = (await running.api("GET", "/audit?action=person.changed")).body.items;
    expect(row).toMatchObject({ actor: expect.stringMatching(/^(command line|key:)/), after: { attributesChanged: ["team"] } });
    expect(JSON.stringify(row)).not.toContain("blue");
  });

  test("truncates a long value for a person, and says so", async () => {
    await set(`{"note":"${"x".repeat(500)}"}`);
    const { said } = await runAt(place, running, ["people", "show", ADA]);
    expect(said).toContain("x… (--json shows all of them)");
    expect(said).not.toContain("x".repeat(400));
  });
});
