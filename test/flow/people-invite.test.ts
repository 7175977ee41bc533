/**
 * Tests `relay people invite`, `file-token`, `remove-token`, `stop-mail` and `allow-mail` on a data directory and on a server. Repeats change
 * nothing, and each command is audited like in the API.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { recordRunning } from "../../src/interfaces/cli/data-directory.ts";
import { COMMAND_PLACES, runAt } from "../kit/cli-place.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const ADA = "ada@example.com";
const BOB = "bob@example.com";
const ACTOR = expect.stringMatching(/^(command line|key:)/);
let running: RunningService;
let ada: string;

beforeEach(async () => {
  running = await startRunningService();
  ada = (await running.api("POST", "/persons", { email: ADA })).body.person.id;
});
afterEach(() => running[Symbol.asyncDispose]());

const now = async () => (await running.api("GET", `/persons/${ada}`)).body;
const audited = async (action: string) => (await running.api("GET", `/audit?action=${action}`)).body.items;

describe.each(COMMAND_PLACES)("%s", (place) => {
  const run = (line: string, input = "") => runAt(place, running, line.split(" "), input);
  const told = async (line: string, input = "") => {
    const { code, told: words } = await run(line, input);
    return [code, words.trim().split("\n")[0]];
  };

  test("invites a person, and a repeat changes nothing", async () => {
    expect(await told(`people invite ${BOB}`)).toEqual([
      0,
      `${BOB} is added, and no mail was sent. They can have access and credits now, and sign in to your app.`,
    ]);
    await running.api("PATCH", `/persons/${ada}`, { status: "suspended" });
    expect(await told(`people invite ${ADA.toUpperCase()}`)).toEqual([0, `${ADA.toUpperCase()} exists already (suspended): nothing changed.`]);
    const { items } = (await running.api("GET", "/persons")).body;
    expect(items.map(({ email, status }: { email: string; status: string }) => [email, status])).toEqual([
      [BOB, "invited"],
      [ADA, "suspended"],
    ]);
    expect(await audited("person.invited")).toMatchObject([{ actor: ACTOR, target: `person:${items[0].id}` }, {}]);
    expect(JSON.parse((await run(`people invite ${BOB} --json`)).said)).toMatchObject({ person: { email: BOB }, created: false });
  });

  test("rejects an invalid address, and creates no person", async () => {
    expect(await told("people invite bob")).toEqual([1, "`email` is not an email address: use one such as name@example.com."]);
    expect((await running.api("GET", "/persons")).body.items).toHaveLength(1);
  });

  test("stores a token once, from the line or from standard input, shows it, and removes it", async () => {
    const filed = `The token is added to ${ADA}. An event with this token now finds them.`;
    expect(await told(`people add-token ${ADA} tok-1`)).toEqual([0, filed]);
    expect(await told(`people add-token ${ADA}`, " tok-2\n")).toEqual([0, filed]);
    expect(await told(`people add-token ${ada} tok-1`)).toEqual([0, `Nothing changed: ${ada} already has this token.`]);
    const { said } = await run(`people show ${ADA}`);
    expect(said).toMatch(/^ {2}token {5}tok-1 since \d/m);
    expect(said).toMatch(/^ {2}token {5}tok-2 since \d/m);
    expect(await told(`people remove-token ${ADA}`, "tok-2")).toEqual([
      0,
      `The token is removed from ${ADA}. An event with this token now finds no person. They keep what was bought with it.`,
    ]);
    expect((await now()).tokens).toMatchObject([{ token: "tok-1" }]);
    const [taken] = await audited("person.token_removed");
    expect(taken).toMatchObject({ actor: ACTOR, target: `person:${ada}`, before: { token: expect.stringMatching(/^hmac:/) } });
    const rows = await audited("person.token_filed");
    expect(rows).toMatchObject([{ after: taken.before }, { after: { token: expect.stringMatching(/^hmac:/) } }]);
    expect(JSON.stringify(rows)).not.toContain("tok-");
  });

  test("rejects an invalid token, and changes nothing", async () => {
    await running.api("POST", "/persons", { email: BOB });
    await run(`people add-token ${ADA} tok-1`);
    expect(await told(`people add-token ${BOB} tok-1`)).toEqual([
      1,
      "`token` belongs to another person, and a token names only one person: remove it from that person first, with relay people remove-token.",
    ]);
    expect(await told(`people remove-token ${BOB} tok-1`)).toEqual([
      1,
      "`token` does not belong to this person, so it cannot be removed: relay people show lists the person's tokens.",
    ]);
    expect(await told(`people remove-token ${ADA}`)).toEqual([
      2,
      `<token> is missing and standard input was empty: write the token after the person, or run relay people remove-token ${ADA} < file.`,
    ]);
    expect(await told(`people add-token ${ADA} ${"x".repeat(1_000)}`)).toEqual([1, expect.stringContaining("`token` is not valid")]);
    expect(await told("people add-token eve@example.com tok-3")).toEqual([1, expect.stringContaining("exists in this environment")]);
    expect((await now()).tokens).toMatchObject([{ token: "tok-1" }]);
  });

  test("prints the stored and removed token with --json", async () => {
    const filed = JSON.parse((await run(`people add-token ${ADA} tok-1 --json`)).said);
    expect(filed).toEqual({ person: ada, token: (await now()).tokens[0], filed: true });
    expect(JSON.parse((await run(`people add-token ${ADA} tok-1 --json`)).said)).toEqual({ ...filed, filed: false });
    expect(JSON.parse((await run(`people remove-token ${ADA} tok-1 --json`)).said)).toEqual({ person: ada, removed: true });
  });

  test("stops and allows event mail, lists it and shows it, and reports each change once", async () => {
    expect(await told(`people stop-mail ${ADA}`)).toEqual([
      0,
      `${ADA} no longer gets mail of kind event. Mail about their account continues. To allow it again: relay people allow-mail.`,
    ]);
    const { mailStoppedAt } = await now();
    expect(await told(`people stop-mail ${ADA}`)).toEqual([
      0,
      `Nothing changed: ${ADA} has had no mail of kind event since ${mailStoppedAt}. To allow it again: relay people allow-mail.`,
    ]);
    expect((await run(`people show ${ADA}`)).said).toContain(
      `\n  mail      none of kind event since ${mailStoppedAt}; if they ask for it again: relay people allow-mail ${ada}`,
    );
    expect(JSON.parse((await run("emails stopped --json")).said).items).toEqual([{ person: ada, email: ADA, stoppedAt: mailStoppedAt }]);
    expect(JSON.parse((await run(`people allow-mail ${ADA} --json`)).said)).toEqual({ person: ada, stoppedAt: null, changed: true });
    expect(await told(`people allow-mail ${ADA}`)).toEqual([0, `Nothing changed: ${ADA} already gets mail of kind event.`]);
    await run(`people stop-mail ${ADA}`);
    expect(await told(`people allow-mail ${ADA}`)).toEqual([0, `${ADA} gets mail of kind event again. Mail that was skipped before is not sent.`]);
    expect(await told("emails stopped")).toEqual([0, "No person stopped mail of kind event."]);
    const who = { actor: ACTOR, target: `person:${ada}` };
    expect(await audited("person.mail_stopped")).toMatchObject([who, who]);
    expect(await audited("person.mail_allowed")).toMatchObject([who, who]);
    expect(await told("people stop-mail eve@example.com")).toEqual([1, expect.stringContaining("exists in this environment")]);
  });

  test("an error for a suspended person names the command that reactivates them", async () => {
    await running.api("PUT", "/access/beta", {});
    await run(`people suspend ${ADA}`);
    expect(await told(`people grant ${ADA} access:beta`)).toEqual([
      1,
      `The person is suspended: make them active again first, with relay people activate ${ada}.`,
    ]);
    expect((await run(`people activate ${ada}`)).code).toBe(0);
    expect((await run(`people grant ${ADA} access:beta`)).code).toBe(0);
  });
});

test.each(COMMAND_PLACES)("%s the server's daily cap applies, and an invitation over it creates no person", async (place) => {
  const limits = { ...DEFAULT_LIMITS, invitesPerDay: 1 };
  await using capped = await startRunningService({ config: { limits } });
  const unnote = recordRunning(capped.dataDir, { url: capped.service.baseUrl, near: capped.service.url, limits, allowPrivate: [] });
  const invite = (email: string) => runAt(place, capped, ["people", "invite", email]);
  expect((await invite(ADA)).code).toBe(0);
  const { code, told } = await invite(BOB);
  expect([code, told]).toEqual([1, expect.stringContaining("This environment created 1 people by address today, which is its limit")]);
  expect((await invite(ADA)).told).toContain("exists already");
  unnote();
});
