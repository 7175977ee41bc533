/** Tests the compiled executable in an empty folder: its commands, its files, an event that it sends to itself, and its dashboard. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import packageJson from "../../package.json";
import { findFreePort } from "../kit/cli-process.ts";
import { type Executable, placeExecutable, type StartedExecutable } from "../kit/executable.ts";
import { openEnvironment } from "../kit/executable-api.ts";

let executable: Executable;

beforeAll(() => {
  executable = placeExecutable();
});

afterAll(() => executable[Symbol.dispose]());

function listFiles(folder: string): string[] {
  return [...new Bun.Glob("**/*").scanSync({ cwd: folder, dot: true })].sort();
}

describe("in an empty folder", () => {
  test("it is one file without companions", () => {
    expect(readdirSync(dirname(executable.file))).toHaveLength(1);
  });

  test("--version prints the package's version, and writes nothing", async () => {
    const cwd = executable.makeFolder();
    expect(await executable.run(["--version"], { cwd })).toEqual({
      code: 0,
      said: `${packageJson.version}\n`,
      told: "",
    });
    expect(listFiles(cwd)).toEqual([]);
  });

  test.each([
    ["BUN_BE_BUN", "1"],
    ["BUN_OPTIONS", "--print=1"],
    ["BUN_INSPECT_PRELOAD", "/nowhere.js"],
  ])("%s in the environment changes nothing, because the executable never acts as plain Bun or takes its options", async (name, value) => {
    const cwd = executable.makeFolder();
    const ran = await executable.run(["--version"], { cwd, env: { [name]: value } });
    expect(ran).toEqual({ code: 0, said: `${packageJson.version}\n`, told: "" });
  });

  test("BUN_INSPECT opens no debugger", async () => {
    const port = await findFreePort();
    const env = { BUN_INSPECT: `ws://127.0.0.1:${port}/debug` };
    await using started = await executable.start(["serve"], { cwd: executable.makeFolder(), env });
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
    expect((await fetch(`${started.url}/healthz`)).status).toBe(200);
  });

  test("--help lists the commands on standard output", async () => {
    const { code, said, told } = await executable.run(["--help"], { cwd: executable.makeFolder() });
    expect({ code, told }).toEqual({ code: 0, told: "" });
    for (const word of ["init", "dev", "serve", "validate", "send"]) expect(said).toMatch(new RegExp(`^  .*\\b${word}\\b.*  [A-Z]`, "m"));
  });

  test("it contains its senders, its releases and its licenses", async () => {
    const cwd = executable.makeFolder();
    for (const [word, line] of [
      ["presets", /^stripe +Stripe /m],
      ["changes", /^Version 0\.1\.0$/m],
      ["licenses", /^### elysia \d/m],
    ] as const) {
      const { code, said } = await executable.run([word], { cwd });
      expect([word, code, line.test(said)]).toEqual([word, 0, true]);
    }
  });

  test("without a command and a terminal it prints its help to standard error with the usage exit code", async () => {
    const { code, said, told } = await executable.run([], { cwd: executable.makeFolder() });
    expect({ code, said }).toEqual({ code: 2, said: "" });
    expect(told).toContain("relay help <command>");
  });

  test("schema prints the JSON Schema that init also writes", async () => {
    const cwd = executable.makeFolder();
    const { code, said } = await executable.run(["schema"], { cwd });
    expect(code).toBe(0);
    expect(JSON.parse(said).$schema).toBe("https://json-schema.org/draft/2020-12/schema");
    await executable.run(["init"], { cwd });
    expect(JSON.parse(readFileSync(join(cwd, "service/relay.schema.json"), "utf8"))).toEqual(JSON.parse(said));
  });

  test("init prints the names of the files it writes, and leaves them unchanged the second time", async () => {
    const cwd = executable.makeFolder();
    const { code, said } = await executable.run(["init"], { cwd });
    expect(code).toBe(0);
    expect(said.trim().split("\n").sort()).toEqual(listFiles(cwd));
    const relay = join(cwd, "service/relays/checkout-completed.json");
    writeFileSync(relay, "mine");
    expect((await executable.run(["init"], { cwd })).code).toBe(0);
    expect(readFileSync(relay, "utf8")).toBe("mine");
  });

  test("validate accepts the files of init, and names file, place and problem of an invalid file", async () => {
    const cwd = executable.makeFolder();
    await executable.run(["init"], { cwd });
    expect((await executable.run(["validate"], { cwd })).code).toBe(0);
    const file = "service/relays/checkout-completed.json";
    const definition = JSON.parse(readFileSync(join(cwd, file), "utf8"));
    writeFileSync(join(cwd, file), JSON.stringify({ ...definition, colour: "red", actions: [] }, null, 2));
    const { code, said } = await executable.run(["validate"], { cwd });
    expect(code).toBe(1);
    expect(said).toMatch(/checkout-completed\.json:\d+.*colour/);
    expect(said).toMatch(/checkout-completed\.json:\d+.*actions/);
  });

  test("it ignores the folder's .env and bunfig.toml", async () => {
    const cwd = executable.makeFolder();
    writeFileSync(join(cwd, ".env"), "RELAY_LIMIT_RELAYS=nonsense\n");
    writeFileSync(join(cwd, "bunfig.toml"), 'preload = ["./evil.ts"]\n');
    writeFileSync(join(cwd, "evil.ts"), 'console.log("evil"); process.exit(7);');
    await using service = await executable.start(["dev"], { cwd });
    expect(service.said.text).not.toContain("evil");
    expect(await service.end("SIGTERM")).toBe(0);
  });
});

describe("relay dev after relay init", () => {
  let service: StartedExecutable;
  let cwd: string;

  beforeAll(async () => {
    cwd = executable.makeFolder();
    await executable.run(["init"], { cwd });
    service = await executable.start(["dev"], { cwd });
  });

  afterAll(() => service[Symbol.asyncDispose]());

  test("prints the receiver URL, the send command, and a dashboard link that works once", async () => {
    const receiver = `${service.url}/hooks/local/checkout-completed`;
    expect(service.said.lines.find((line) => line.startsWith("Receiver"))?.split(/\s+/)[1]).toBe(receiver);
    expect(service.said.lines.find((line) => line.startsWith("Try it"))).toMatch(/send checkout-completed$/);
    const link = new URL(service.said.lines.find((line) => line.startsWith("Dashboard"))?.split(/\s+/)[1] ?? "");
    const open = () =>
      fetch(`${service.url}/api/session/link`, {
        method: "POST",
        headers: { "content-type": "application/json", origin: service.url },
        body: JSON.stringify({ token: link.hash.slice(1) }),
      });
    const first = await open();
    expect(first.status).toBe(200);
    expect(first.headers.get("set-cookie")).toMatch(/HttpOnly/i);
    expect(first.headers.get("set-cookie")).toMatch(/SameSite=Strict/i);
    expect((await open()).ok).toBe(false);
  });

  test("serves a file of service/public/ at /public/ under localhost, on another origin than the dashboard", async () => {
    mkdirSync(join(cwd, "service/public"));
    writeFileSync(join(cwd, "service/public/index.html"), "<p>mine</p>");
    const led = await fetch(`${service.url}/public/`, { redirect: "manual" });
    const there = `${service.url.replace("127.0.0.1", "localhost")}/public/`;
    expect([led.status, led.headers.get("location")]).toEqual([307, there]);
    const page = await fetch(`${service.url}/public/`, { headers: { host: new URL(there).host } });
    expect([page.status, page.headers.get("content-type"), await page.text()]).toEqual([200, "text/html;charset=utf-8", "<p>mine</p>"]);
  });

  test("stores its secrets in a file that only the owner can read and git ignores", () => {
    expect(statSync(join(cwd, "service/.secrets.json")).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(cwd, "service/.gitignore"), "utf8")).toMatch(/^\.secrets\.json$/m);
    expect(statSync(join(cwd, ".relay/master.key")).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(cwd, ".relay/.gitignore"), "utf8")).toBe("*\n");
  });

  test("records an event from the printed send command, which ends done with its record", async () => {
    const sent = await executable.run(["send", "checkout-completed"], { cwd });
    expect(sent.code).toBe(0);
    expect(JSON.parse(sent.said)).toEqual({ received: true, eventId: expect.stringMatching(/^evt_/) });
    expect(sent.told).toContain("write_record done");
    await service.said.waitFor("RELAY · checkout-completed · receiver · 1 action · ok");
    const local = await openEnvironment(executable, service, cwd);
    expect(await local.list("/collections/orders/records")).toHaveLength(1);
    const shown = await executable.run(["events", "list", "--json"], { cwd });
    expect(shown.said).toContain(JSON.parse(sent.said).eventId);
  });

  test("applies an edit of the file while it runs, and creates a relay from a new file", async () => {
    const folder = join(cwd, "service/relays");
    const definition = JSON.parse(readFileSync(join(folder, "checkout-completed.json"), "utf8"));
    writeFileSync(join(folder, "second.json"), JSON.stringify({ ...definition, name: "second" }));
    await service.told.waitFor("relay second: created");
    expect((await executable.run(["send", "second"], { cwd })).code).toBe(0);
  });

  test("serves the dashboard and every file it loads from the executable, with strict headers", async () => {
    const index = await fetch(service.url);
    expect(index.status).toBe(200);
    expect(index.headers.get("content-type")).toContain("text/html");
    const assets = [...(await index.text()).matchAll(/(?:href|src)="(\/[^"]+)"/g)].map(([, path = ""]) => path);
    expect(assets.length).toBeGreaterThanOrEqual(3);
    const answers = await Promise.all(assets.map((path) => fetch(`${service.url}${path}`)));
    for (const answer of [index, ...answers]) {
      expect(answer.status).toBe(200);
      expect((await (answer.bodyUsed ? "x" : answer.text())).length).toBeGreaterThan(0);
      const policy = answer.headers.get("content-security-policy") ?? "";
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self'");
      expect(policy).not.toMatch(/unsafe-|\*/);
      expect(answer.headers.get("x-frame-options")).toBe("DENY");
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    }
    for (const answer of answers) expect(answer.headers.get("cache-control")).toContain("immutable");
    for (const path of assets) expect(path).toMatch(/-[a-z0-9]{8}\.\w+$/);
    expect((await fetch(`${service.url}/relays/second`, { headers: { accept: "text/html" } })).status).toBe(200);
    expect((await fetch(`${service.url}/chunk-00000000.js`)).status).toBe(404);
  });

  test("serves the public pages and health, and rejects another Host", async () => {
    for (const path of ["/healthz", "/readyz", "/openapi.json", "/changes.json", "/docs/errors/bad_signature"]) {
      expect({ path, status: (await fetch(`${service.url}${path}`)).status }).toEqual({ path, status: 200 });
    }
    const rebound = await fetch(service.url, { headers: { host: "evil.example" } });
    expect(rebound.ok).toBe(false);
  });

  test("writes only to the service folder, the data directory and the editor settings", () => {
    expect(readdirSync(cwd).sort()).toEqual([".relay", ".vscode", "service"]);
  });
});
