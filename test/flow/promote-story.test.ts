/** Tests `relay sync --live` and `relay promote` with real processes: a laptop that requests and waits, a server, and an owner who decides. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../kit/cli-io.ts";
import { type CliProcess, startCli } from "../kit/cli-process.ts";

const EMAIL = "ann@example.com";
const PASSWORD = "correct horse battery";

let home: string;
let server: CliProcess;
let base: string;
let cookie: string;
let laptop: string;
let app: string;
let key: string;
let apps = 0;

async function serve(port = "0"): Promise<CliProcess> {
  const started = startCli(["serve", "--port", port], { cwd: home });
  base = `http://127.0.0.1:${/127\.0\.0\.1:(\d+)/.exec(await started.line("127.0.0.1:"))?.[1]}`;
  return started;
}

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "relay-server-"));
  server = await serve();
  await runCommand(["admin", "create", "--email", EMAIL, "--password-stdin"], { cwd: home, input: PASSWORD });
  const signedIn = await fetch(`${base}/api/session`, {
    method: "POST",
    headers: { "content-type": "application/json", origin: base },
    body: JSON.stringify({ email: EMAIL, password: PASSWORD }),
  });
  cookie = signedIn.headers
    .getSetCookie()
    .map((one) => one.split(";")[0])
    .join("; ");
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(home, { recursive: true });
});

/** Gives each test a separate app. */
beforeEach(async () => {
  apps += 1;
  app = `shop${apps}`;
  laptop = mkdtempSync(join(tmpdir(), "relay-laptop-"));
  mkdirSync(join(laptop, "service", "relays"), { recursive: true });
  expect((await runCommand(["apps", "create", "Shop", "--id", app], { cwd: home })).code).toBe(0);
  const made = await runCommand(["keys", "create", "--app", app, "--environment", "development"], { cwd: home });
  key = /relay_dev_\w+/.exec(`${made.said} ${made.told}`)?.[0] ?? "";
});

const receiver = (name: string, text = "x") => ({
  name,
  trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id" } },
  actions: [{ type: "write_record", collection: "notes", data: { text } }],
});
const NOTES = { collections: { notes: { kind: "shared", fields: { text: { type: "text" } } } } };
const write = (...definitions: { name: string }[]): void => {
  for (const one of definitions) writeFileSync(join(laptop, "service", "relays", `${one.name}.json`), JSON.stringify(one, null, 2));
  writeFileSync(join(laptop, "service", "catalog.json"), JSON.stringify(NOTES));
};
const given = () => ({ cwd: laptop, env: { RELAY_KEY: key, RELAY_URL: base } });
const relay = (...line: string[]): CliProcess => startCli(line, given());

/** Sends a request like the dashboard. */
async function owner(method: string, path: string, body?: unknown) {
  const headers = { cookie, origin: base, "content-type": "application/json" };
  const response = await fetch(base + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  // biome-ignore lint/suspicious/noExplicitAny: a test reads answers by their fields
  return (response.status === 204 ? null : await response.json()) as any;
}
async function decide(url: string, decision: "approve" | "refuse") {
  const path = `/api/approvals/${url.split("/").at(-1)}`;
  const { approval } = await owner("GET", path);
  return await owner("POST", path, { decision, plan: approval.plan });
}
const urlIn = (line: string): string => /http:\S+\/approvals\/apr_[0-9a-f]{32}/.exec(line)?.[0] ?? "";
const live = async (): Promise<string[]> =>
  (await owner("GET", `/api/apps/${app}/production/relays`)).items.map(({ name }: { name: string }) => name).sort();
const edit = async (environment: string, definition: { name: string }) => {
  const path = `/api/apps/${app}/${environment}/relays/${definition.name}`;
  const { relay: standing } = await owner("GET", path);
  await owner("PUT", path, { definition, version: standing.version });
};
const syncToDevelopment = async () => expect((await runCommand(["sync"], given())).code).toBe(0);

describe("relay sync --live", () => {
  test("shows the plan, waits for the owner, applies it, and stores the secrets in the local file", async () => {
    write(receiver("orders"));
    await using run = relay("sync", "--live");
    const url = urlIn(await run.line("/approvals/"));
    expect(run.lines()).toContain("+ relay orders  created");
    expect(await live()).toEqual([]);
    expect((await decide(url, "approve")).approval.state).toBe("approved");
    expect(await run.exited).toBe(0);
    expect(run.lines().slice(-6)).toEqual([
      `Approved by ${EMAIL}.`,
      `The new secrets of orders are in .secrets.json of the service directory, under ${base}/${app}/production.`,
      `2 changes made in ${base}/${app}/production.`,
      "Not live yet: orders. Sign in, choose production, and show the open steps:",
      `  relay login --url ${base}`,
      `  relay relays checklist orders --profile ${app}-production`,
    ]);
    const held = JSON.parse(readFileSync(join(laptop, "service", ".secrets.json"), "utf8"));
    const secret = held[`${base}/${app}/production`].orders.receiverSecret;
    expect(secret).toStartWith("whsec_");
    expect(run.lines().join("\n")).not.toContain(secret);
    expect(await live()).toEqual(["orders"]);
    const again = await runCommand(["sync", "--live"], given());
    expect([again.code, again.told.split("\n").at(-1)]).toEqual([0, "Nothing to do."]);
  });

  test("does not revert what a teammate brought to production, and --wait waits for another approval", async () => {
    write(receiver("orders"), receiver("other"));
    await using first = relay("sync", "--live");
    await decide(urlIn(await first.line("/approvals/")), "approve");
    expect(await first.exited).toBe(0);
    const mine = readFileSync(join(laptop, "service", ".synced.json"), "utf8");
    write(receiver("orders", "teammate"));
    await using second = relay("sync", "--live");
    await decide(urlIn(await second.line("/approvals/")), "approve");
    expect(await second.exited).toBe(0);
    // The folder as it was before the teammate's change.
    writeFileSync(join(laptop, "service", ".synced.json"), mine);
    write(receiver("orders"));
    const behind = await runCommand(["sync", "--live"], given());
    expect([behind.code, behind.told.includes("newer_on_server")]).toEqual([1, true]);
    expect(behind.told).toContain("The server has a newer version of production of relay orders");
    write(receiver("orders", "teammate"), receiver("other", "next"));
    await using waiting = relay("sync", "--live");
    const url = urlIn(await waiting.line("/approvals/"));
    await using last = relay("sync", "--live", "--wait");
    await last.line("Another change of production waits for approval: the command waits until it ends.");
    await decide(url, "refuse");
    expect(await waiting.exited).toBe(3);
    await decide(urlIn(await last.line("/approvals/")), "approve");
    expect(await last.exited).toBe(0);
  });

  test("and promote refuse in a dry run what the command refuses: a missing folder, secrets that cannot be read, production without --live", async () => {
    write(receiver("orders"));
    await syncToDevelopment();
    const nowhere = join(laptop, "nowhere");
    for (const more of [[], ["--dry-run"]]) {
      const lost = await runCommand(["promote", "--service-dir", nowhere, ...more], given());
      expect([lost.code, lost.told.includes("There is no folder"), lost.told.includes("not_found")]).toEqual([1, true, true]);
    }
    writeFileSync(join(laptop, "service", ".secrets.json"), "{ half");
    for (const line of [["promote"], ["sync", "--live"]])
      for (const more of [[], ["--dry-run"]]) {
        const broken = await runCommand([...line, ...more], given());
        expect([broken.code, broken.told.includes(".secrets.json")]).toEqual([1, true]);
      }
    write(receiver("orders", "changed"));
    const made = await runCommand(["keys", "create", "--app", app, "--environment", "production"], { cwd: home });
    const live = /relay_live_\w+/.exec(`${made.said} ${made.told}`)?.[0] ?? "";
    for (const more of [[], ["--dry-run"]]) {
      expect((await runCommand(["sync", ...more], given())).code).toBe(1);
      const production = await runCommand(["sync", ...more], { ...given(), env: { RELAY_KEY: live, RELAY_URL: base } });
      expect([production.code, production.told.includes("approval_needed")]).toEqual([1, true]);
    }
  });

  test("with --dry-run requests no approval, and with --prune is a usage error", async () => {
    write(receiver("orders"));
    const dry = await runCommand(["sync", "--live", "--dry-run", "--json"], given());
    expect([dry.code, JSON.parse(dry.said).changes]).toEqual([0, 2]);
    expect((await owner("GET", `/api/apps/${app}/production/approvals`)).approvals).toEqual([]);
    expect((await runCommand(["sync", "--live", "--prune"], given())).code).toBe(2);
  });

  test("is void if a file changes while it waits", async () => {
    write(receiver("orders"));
    await using run = relay("sync", "--live");
    const url = urlIn(await run.line("/approvals/"));
    write(receiver("orders", "changed"));
    expect(await run.exited).toBe(5);
    expect(run.lines().join("\n")).toContain("The files changed after the plan was shown");
    expect((await decide(url, "approve")).code).toBe("approval_void");
    expect(await live()).toEqual([]);
  });
});

describe("relay promote", () => {
  test("applies development's state, and with --json prints the address and the result as one line each", async () => {
    write(receiver("orders"));
    await syncToDevelopment();
    rmSync(join(laptop, "service", "relays", "orders.json"));
    await using run = relay("promote", "--json");
    const asked = JSON.parse(await run.line('"applied":false'));
    expect([asked.approval.state, asked.changes]).toEqual(["pending", 2]);
    await decide(asked.approval.url, "approve");
    expect(await run.exited).toBe(0);
    const done = JSON.parse(await run.line('"applied":true'));
    expect([done.approval.state, done.approval.decidedBy, done.secretsOf]).toEqual(["done", `owner:${EMAIL}`, ["orders"]]);
    expect(await live()).toEqual(["orders"]);
  });

  const ends: readonly (readonly [string, number, string, (url: string) => Promise<unknown>])[] = [
    ["an owner refuses", 3, "approval_denied", (url) => decide(url, "refuse")],
    ["development changes", 5, "approval_void", () => edit("development", receiver("orders", "moved"))],
  ];
  for (const [what, code, words, act] of ends) {
    test(`ends with ${code} if ${what}`, async () => {
      write(receiver("orders"));
      await syncToDevelopment();
      await using run = relay("promote");
      await act(urlIn(await run.line("/approvals/")));
      expect(await run.exited).toBe(code);
      expect(run.lines().join("\n")).toContain(words);
      expect(await live()).toEqual([]);
    });
  }

  test("leaves no request behind when it is stopped", async () => {
    write(receiver("orders"));
    await syncToDevelopment();
    await using run = relay("promote");
    const url = urlIn(await run.line("/approvals/"));
    run.kill("SIGINT");
    expect(await run.exited).toBe(1);
    expect(run.lines().at(-1)).toBe("Stopped: the request is withdrawn, and nothing was changed.");
    expect((await owner("GET", `/api/apps/${app}/production/approvals`)).approvals).toEqual([]);
    expect((await decide(url, "approve")).code).toBe("approval_void");
    expect(await live()).toEqual([]);
  });

  test("applies nothing after it was killed, whatever an owner decides", async () => {
    write(receiver("orders"));
    await syncToDevelopment();
    await using run = relay("promote");
    const url = urlIn(await run.line("/approvals/"));
    run.kill("SIGKILL");
    await run.exited;
    expect((await decide(url, "approve")).approval.state).toBe("approved");
    expect(await live()).toEqual([]);
    await using again = relay("promote");
    expect(urlIn(await again.line("/approvals/"))).not.toBe(url);
    expect((await decide(url, "approve")).code).toBe("approval_void");
  });

  test("waits through a restart of the server, also after a kill", async () => {
    write(receiver("orders"));
    await syncToDevelopment();
    await using run = relay("promote");
    const url = urlIn(await run.line("/approvals/"));
    server.kill("SIGKILL");
    await server.exited;
    await run.line("the command waits for it");
    server = await serve(new URL(base).port);
    expect((await decide(url, "approve")).approval.state).toBe("approved");
    expect(await run.exited).toBe(0);
    expect(await live()).toEqual(["orders"]);
  });
});

test("a command whose response with the secrets was lost asks again and stores them, and nothing is applied twice", async () => {
  write(receiver("orders"));
  await syncToDevelopment();
  let lost = 0;
  const between = createServer(async (request, response) => {
    const body = await new Response(request as never).text();
    const { authorization = "" } = request.headers;
    const init = { method: request.method ?? "GET", headers: { authorization, "content-type": "application/json" } };
    const answer = await fetch(base + request.url, body === "" ? init : { ...init, body });
    const text = await answer.text();
    if (request.url?.endsWith("/apply") && lost++ === 0) response.destroy();
    else response.writeHead(answer.status, { "content-type": "application/json" }).end(text);
  });
  await new Promise<void>((resolve) => between.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = between.address() as { port: number };
    await using run = startCli(["promote"], { cwd: laptop, env: { RELAY_KEY: key, RELAY_URL: `http://127.0.0.1:${port}` } });
    await decide(urlIn(await run.line("/approvals/")), "approve");
    expect(await run.exited).toBe(0);
    const said = run.lines().join("\n");
    expect(said).toContain("The server's response was lost. The command sends the same request again");
    expect(readFileSync(join(laptop, "service", ".secrets.json"), "utf8")).toContain(`${port}/${app}/production`);
    expect([lost, await live()]).toEqual([2, ["orders"]]);
  } finally {
    between.closeAllConnections();
    between.close();
  }
});

test("a server that is killed while it applies an approval has all or nothing of it, and the command completes it", async () => {
  const relays = Array.from({ length: 12 }, (_, at) => receiver(`relay${at}`));
  const found: number[] = [];
  for (let round = 0; round < 6; round++) {
    apps += 1;
    app = `kill${apps}`;
    await runCommand(["apps", "create", "Kill", "--id", app], { cwd: home });
    const made = await runCommand(["keys", "create", "--app", app, "--environment", "development"], { cwd: home });
    key = /relay_dev_\w+/.exec(`${made.said} ${made.told}`)?.[0] ?? "";
    const post = async (path: string, body: unknown) => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      const response = await fetch(`${base}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
      // biome-ignore lint/suspicious/noExplicitAny: a test reads answers by their fields
      return (await response.json()) as any;
    };
    const E = `/api/apps/${app}/development`;
    const wanted = { relays, catalog: NOTES, to: "production" };
    const { plan } = await post(`${E}/sync/plan`, wanted);
    const { approval } = await post(`${E}/approvals`, { ...wanted, plan });
    await decide(approval.url, "approve");
    const applying = post(`/api/approvals/${approval.id}/apply`, {}).catch(() => null);
    await Bun.sleep(round * 6);
    server.kill("SIGKILL");
    await server.exited;
    await applying;
    server = await serve(new URL(base).port);
    const standing = (await live()).length;
    const { approval: after } = await owner("GET", `/api/approvals/${approval.id}`);
    expect([standing, after.state]).toEqual(standing === 0 ? [0, "approved"] : [12, "done"]);
    found.push(standing);
    const again = await post(`/api/approvals/${approval.id}/apply`, {});
    expect(standing === 0 ? again.changes : again.code).toBe(standing === 0 ? 13 : "approval_used");
    expect((await live()).length).toBe(12);
  }
  expect(existsSync(join(home, ".relay"))).toBe(true);
});
