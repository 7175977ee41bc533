/** Tests `relay people credits` on a data directory and on a server. A manual change applies once per key, with the API's errors and audit. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { runCommand } from "../kit/cli-io.ts";
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

const ledger = async () => {
  const { balance, items } = (await running.api("GET", `/persons/${ada}/credits`)).body;
  return [balance, ...items.map(({ amount, reason }: { amount: number; reason: string }) => `${amount} ${reason}`)];
};

describe.each(COMMAND_PLACES)("%s", (place) => {
  const credits = (...words: string[]) => runAt(place, running, ["people", "credits", ...words]);

  test("adds and spends credits as ledger rows, and audits them without the reason", async () => {
    const added = await credits(ADA, "50", "--reason", "welcome");
    expect([added.code, added.told.trim()]).toEqual([0, `${ADA} has 50 credits now.`]);
    const spent = await credits(ada, "20", "--spend", "--reason", "a picture");
    expect([spent.code, spent.told.trim()]).toEqual([0, `${ada} has 30 credits now.`]);
    expect(await ledger()).toEqual([30, "-20 a picture", "50 welcome"]);
    const { items } = (await running.api("GET", "/audit?action=credits.changed")).body;
    expect(items).toMatchObject([
      { target: `person:${ada}`, before: { balance: 50 }, after: { balance: 30, amount: -20 } },
      { actor: expect.stringMatching(/^(command line|key:)/), before: { balance: 0 }, after: { balance: 50, amount: 50 } },
    ]);
    expect(JSON.stringify(items)).not.toContain("picture");
  });

  test("applies once per key, and rejects the key with another amount", async () => {
    const once = (count: string) => credits(ADA, count, "--reason", "welcome", "--key", "w1");
    await once("50");
    const again = await once("50");
    expect([again.code, again.told.trim()]).toEqual([
      0,
      "Nothing changed: the key w1 was used before. The balance after that change was 50 credits.",
    ]);
    expect((await once("60")).told).toContain("The key was used before for the amount 50");
    expect(await ledger()).toEqual([50, "50 welcome"]);
    expect((await running.api("GET", "/audit?action=credits.changed")).body.items).toHaveLength(1);
  });

  test("rejects impossible changes like the API, and changes nothing", async () => {
    const short = await credits(ADA, "5", "--spend", "--reason", "a picture");
    expect([short.code, short.told]).toEqual([1, expect.stringContaining("The person has 0 credits, fewer than the 5 to spend")]);
    expect((await credits("bob@example.com", "5", "--reason", "x")).told).toContain("exists in this environment");
    await running.api("PATCH", `/persons/${ada}`, { status: "suspended" });
    expect((await credits(ADA, "5", "--reason", "x")).told).toContain("person_suspended");
    expect(await ledger()).toEqual([0]);
  });

  test.each([
    [["5"], "--reason is missing"],
    [["0", "--reason", "x"], "write a whole number from 1 to"],
    [["1.5", "--reason", "x"], "write a whole number from 1 to"],
    [["-20", "--reason", "x"], "to spend, write a positive number and add --spend"],
  ])("%j is rejected as a usage error", async (words, why) => {
    const { code, told } = await credits(ADA, ...words);
    expect([code, told]).toEqual([2, expect.stringContaining(why)]);
    expect(await ledger()).toEqual([0]);
  });

  test("prints the result with --json", async () => {
    const { said } = await credits(ADA, "7", "--reason", "x", "--key", "w1", "--json");
    const credit = (await running.api("GET", `/persons/${ada}/credits`)).body.items[0];
    expect(JSON.parse(said)).toEqual({ person: ada, credit, balance: 7, applied: true });
    expect(credit).toMatchObject({ key: "w1", source: "hand" });
  });
});

test("a lost response names the key with which a repeated command applies once", async () => {
  let isLost = true;
  const between = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const body = request.method === "GET" ? null : await request.text();
      const { method, headers } = request;
      headers.delete("host");
      const answer = await fetch(`${running.service.url}${pathname}${search}`, { method, headers, body });
      if (!isLost || !pathname.endsWith("/credits")) return new Response(await answer.text(), { status: answer.status });
      return new Response("Bad gateway", { status: 502 });
    },
  });
  const line = ["people", "credits", ADA, "5", "--reason", "x", "--url", `http://127.0.0.1:${between.port}`];
  const io = { cwd: running.dataDir, clock: running.clock, env: { RELAY_KEY: running.keys.development ?? "" } };
  const lost = await runCommand(line, io);
  const [, key = ""] =
    /The answer was lost, so the change may or may not have happened\. Run the command again with --key (command-\S+): the change then applies once/.exec(
      lost.told,
    ) ?? [];
  expect([lost.code, key]).toEqual([1, expect.stringMatching(/^command-/)]);
  isLost = false;
  expect((await runCommand([...line, "--key", key], io)).told).toContain(`Nothing changed: the key ${key} was used before`);
  expect(await ledger()).toEqual([5, "5 x"]);
  await between.stop(true);
});

test("a server that stops before the change was sent reports no unknown result", async () => {
  const between = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      headers.delete("host");
      const answer = await fetch(`${running.service.url}${pathname}${search}`, { method, headers });
      if (pathname.endsWith("/persons")) void between.stop();
      return new Response(await answer.text(), { status: answer.status, headers: { connection: "close" } });
    },
  });
  const line = ["people", "credits", ADA, "5", "--reason", "x", "--url", `http://127.0.0.1:${between.port}`];
  const io = { cwd: running.dataDir, clock: running.clock, env: { RELAY_KEY: running.keys.development ?? "" } };
  const { code, told } = await runCommand(line, io);
  expect([code, told]).toEqual([1, expect.stringContaining("(ECONNREFUSED)")]);
  expect(told).not.toContain("not known");
  expect(await ledger()).toEqual([0]);
});
