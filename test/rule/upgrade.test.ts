/** The command that compares this program with the newest release: the feed, its address, redirects and limits, and the channel's own command. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeLatestFile } from "../../scripts/release/latest.ts";
import { systemClock } from "../../src/base/clock.ts";
import { readLatest, writeLatest } from "../../src/base/latest-release.ts";
import { VERSION } from "../../src/base/release/version.ts";
import { SYSTEMS } from "../../src/base/system.ts";
import { findChannel } from "../../src/interfaces/cli/server/channel.ts";
import { OperatorClient } from "../../src/platform/outbound/operator-client.ts";
import { PROJECT_ROOT } from "../house/source-tree.ts";
import { runCommand } from "../kit/cli-io.ts";
import { PATIENCE_MS } from "../kit/patience.ts";

const AT = "2030-01-02T03:04:05.000Z";
const feedOf = (version: string) => JSON.stringify({ version, releasedAt: AT, later: { field: 1 } });
const cwd = mkdtempSync(join(tmpdir(), "relay-upgrade-"));

type Handler = (path: string) => Response;
let handle: Handler = () => new Response("none", { status: 404 });
let asked: string[] = [];
let base = "";
let stop: () => void;

beforeAll(() => {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { pathname } = new URL(request.url);
      asked.push(pathname);
      return handle(pathname);
    },
  });
  base = `http://localhost:${server.port}`;
  stop = () => void server.stop(true);
});
afterEach(() => {
  asked = [];
});
afterAll(() => {
  stop();
  rmSync(cwd, { recursive: true });
});

const check = (...more: string[]) =>
  runCommand(["upgrade", "--check", "--from", `${base}/releases`, "--allow-private", "localhost", ...more], { cwd, clock: systemClock });

describe("relay upgrade --check", () => {
  const rows: { rule: string; answer: Handler; code: number; text: string }[] = [
    {
      rule: "names a newer release, and how to upgrade",
      answer: () => new Response(feedOf("99.1.0")),
      code: 3,
      text: "Newest   99.1.0, released 2030-01-02\nUpgrade  git pull",
    },
    { rule: "says that this is the newest release", answer: () => new Response(feedOf(VERSION)), code: 0, text: "This is the newest release." },
    {
      rule: "says that this program is newer",
      answer: () => new Response(feedOf("0.0.1")),
      code: 0,
      text: "This program is newer than the newest release.",
    },
    {
      rule: "follows a redirect",
      answer: (path) => (path === "/other" ? new Response(feedOf("99.1.0")) : new Response(null, { status: 302, headers: { location: "/other" } })),
      code: 3,
      text: "Newest   99.1.0",
    },
    {
      rule: "follows five redirects at most",
      answer: () => new Response(null, { status: 302, headers: { location: "/again" } }),
      code: 1,
      text: "redirects more than 5 times",
    },
    {
      rule: "does not follow a redirect to a private address",
      answer: () => new Response(null, { status: 302, headers: { location: "https://127.0.0.1/latest.json" } }),
      code: 1,
      text: "127.0.0.1 is a loopback address",
    },
    {
      rule: "does not follow a redirect to plain http elsewhere",
      answer: () => new Response(null, { status: 302, headers: { location: "http://example.com/latest.json" } }),
      code: 1,
      text: "http://example.com is not https",
    },
    { rule: "refuses a file that is no feed", answer: () => new Response("<html>"), code: 1, text: "is not a release feed" },
    { rule: "refuses a version of another form", answer: () => new Response(feedOf("latest")), code: 1, text: "is not a release feed" },
    { rule: "refuses a large file", answer: () => new Response("x".repeat(70_000)), code: 1, text: "answered with more than 65,536 bytes" },
    {
      rule: "says that the feed does not exist",
      answer: () => new Response("no", { status: 404 }),
      code: 1,
      text: "/releases/latest/download/latest.json answered 404: check the address (--from).",
    },
  ];
  test.each(rows)("$rule", async ({ answer, code, text }) => {
    handle = answer;
    const result = await check();
    expect([result.code, `${result.said}\n${result.told}`]).toEqual([code, expect.stringContaining(text)]);
    expect(asked[0]).toBe("/releases/latest/download/latest.json");
  });

  test("writes JSON", async () => {
    handle = () => new Response(feedOf("99.1.0"));
    const { code, said } = await check("--json");
    expect([code, JSON.parse(said)]).toEqual([
      3,
      {
        running: { version: VERSION, builtAt: null },
        latest: { version: "99.1.0", releasedAt: AT },
        isNewest: false,
        upgrade: { name: "the sources", upgrade: ["git pull", "npm run build"] },
      },
    ]);
  });

  const refused: { rule: string; line: string[]; env?: Record<string, string>; code: number; text: string }[] = [
    { rule: "nothing without --check", line: ["upgrade"], code: 2, text: "Relay does not replace itself: relay upgrade --check asks" },
    { rule: "nothing without an address", line: ["upgrade", "--check"], code: 2, text: "This build names no address of releases" },
    {
      rule: "no address that is not of a web server",
      line: ["upgrade", "--check", "--from", "ftp://example.com"],
      code: 2,
      text: "write an https address",
    },
    {
      rule: "no address that a shell would read as a command",
      line: ["upgrade", "--check"],
      env: { RELAY_DOWNLOAD_URL: "https://example.com/$(id)" },
      code: 2,
      text: "write an https address",
    },
    { rule: "no plain http", line: ["upgrade", "--check", "--from", "http://example.com"], code: 1, text: "http://example.com is not https" },
  ];
  test.each(refused)("asks $rule", async ({ line, env = {}, code, text }) => {
    const result = await runCommand(line, { cwd, env });
    expect([result.code, result.told]).toEqual([code, expect.stringContaining(text)]);
    expect(asked).toEqual([]);
  });

  test("names the proxy that it does not use", async () => {
    handle = () => new Response("no", { status: 404 });
    const line = ["upgrade", "--check", "--from", `${base}/releases`, "--allow-private", "localhost"];
    const { told } = await runCommand(line, { cwd, clock: systemClock, env: { HTTPS_PROXY: "http://proxy.example.com:3128" } });
    expect(told).toContain(`This command does not use the proxy of HTTPS_PROXY: open ${base}/releases/latest in a browser`);
  });

  test("asks no private address that is not allowed", async () => {
    const result = await runCommand(["upgrade", "--check", "--from", base.replace("http:", "https:")], { cwd, clock: systemClock });
    expect([result.code, result.told]).toEqual([1, expect.stringContaining("localhost (127.0.0.1) is a loopback address")]);
    expect(asked).toEqual([]);
  });
});

test("the client opens a new connection if the server closed the idle one", async () => {
  handle = () => new Response("ok", { headers: { connection: "close" } });
  const client = new OperatorClient({ clock: systemClock, allowPrivate: ["localhost"] });
  const ask = () => client.request({ method: "GET", url: new URL(base), headers: {}, maxBytes: 10, timeoutMs: PATIENCE_MS });
  expect([(await ask()).status, (await ask()).status]).toEqual([200, 200]);
  client.close();
});

describe("the feed of a release", () => {
  test("is written by the release, and read by the command", async () => {
    const [file = ""] = writeLatestFile({ built: "", out: cwd, systems: [], version: "1.2.3", time: new Date(AT), repository: null });
    expect([file, readLatest(await Bun.file(file).text())]).toEqual([join(cwd, "latest.json"), { version: "1.2.3", releasedAt: AT }]);
  });

  const wrong = [
    "",
    "null",
    "[]",
    '"0.1.0"',
    '{"version":"0.1.0"}',
    `{"version":"0.1","releasedAt":"${AT}"}`,
    `{"version":"0.1.0","releasedAt":"soon"}`,
    `{"version":1,"releasedAt":"${AT}"}`,
  ];
  test.each(wrong)("cannot be %p", (text) => expect(readLatest(text)).toBe(null));

  test("is not written for a version that no program can compare", () => {
    expect(() => writeLatest({ version: "1.2.3-beta", releasedAt: AT })).toThrow("1.2.3-beta");
  });
});

describe("the channel", () => {
  const releases = "https://github.com/o/n/releases";
  const rows: { rule: string; given: Partial<Parameters<typeof findChannel>[0]>; name: string; command: string }[] = [
    {
      rule: "of sources",
      given: { isCompiled: false, executable: "/home/a/node_modules/.bin/bun" },
      name: "the sources",
      command: "git pull\nnpm run build",
    },
    {
      rule: "of npx",
      given: { program: "npx relay-service", executable: "/home/a/.npm/_npx/1a2b/node_modules/@relay-service/linux-x64/relay" },
      name: "npx",
      command: "npx relay-service@latest <command>",
    },
    {
      rule: "of bunx",
      given: { program: "bunx relay-service", executable: "/tmp/bunx-0-relay-service@latest/node_modules/@relay-service/linux-x64/relay" },
      name: "bunx",
      command: "bunx relay-service@latest <command>",
    },
    {
      rule: "of npm",
      given: { executable: "/usr/lib/node_modules/relay-service/node_modules/@relay-service/linux-x64/relay" },
      name: "npm",
      command: "npm install --global relay-service@latest",
    },
    {
      rule: "of npm in the home folder, started by a script of npm",
      given: { program: "npx relay-service", executable: "/home/a/.nvm/versions/node/v24/lib/node_modules/@relay-service/linux-x64/relay" },
      name: "npm",
      command: "npm install --global relay-service@latest",
    },
    {
      rule: "of a project",
      given: { program: "npx relay-service", executable: "/home/a/shop/node_modules/@relay-service/linux-x64/relay" },
      name: "npm in a project",
      command: "npm install relay-service@latest",
    },
    {
      rule: "of a project with Bun",
      given: { program: "bunx relay-service", executable: "/home/a/shop/node_modules/@relay-service/linux-x64/relay" },
      name: "Bun in a project",
      command: "bun add relay-service@latest",
    },
    {
      rule: "of npm on Windows",
      given: { executable: "C:\\Users\\a\\AppData\\Roaming\\npm\\node_modules\\@relay-service\\win32-x64\\relay.exe" },
      name: "npm",
      command: "npm install --global relay-service@latest",
    },
    {
      rule: "of Bun",
      given: { executable: "/home/a/.bun/install/global/node_modules/@relay-service/linux-x64/relay" },
      name: "Bun",
      command: "bun add --global relay-service@latest",
    },
    {
      rule: "of Homebrew",
      given: { executable: "/opt/homebrew/Cellar/relay-service/0.17.0/bin/relay" },
      name: "Homebrew",
      command:
        'curl -fsSL -o "$(brew --repository local/relay)/Formula/relay-service.rb" https://github.com/o/n/releases/latest/download/relay-service.rb\nbrew upgrade local/relay/relay-service',
    },
    {
      rule: "of Scoop",
      given: { executable: "C:\\Users\\a\\scoop\\apps\\relay-service\\0.17.0\\relay.exe" },
      name: "Scoop",
      command: "scoop update\nscoop update relay-service",
    },
    {
      rule: "of the Debian package",
      given: { executable: "/usr/bin/relay", exists: (path) => path.startsWith("/usr/share/doc/relay-service/"), cpu: "arm64" },
      name: "the Debian package",
      command: `curl -fsSLO ${releases}/latest/download/relay-linux-arm64.deb\nsudo apt install ./relay-linux-arm64.deb`,
    },
    {
      rule: "of the Debian package without an address",
      given: { executable: "/usr/bin/relay", exists: () => true, releases: null },
      name: "the Debian package",
      command: "sudo apt install ./<the newer package>.deb",
    },
    {
      rule: "of a container",
      given: { exists: (path) => path === "/.dockerenv" },
      name: "a container",
      command: "build or pull the new image, then start it",
    },
    { rule: "of a pod", given: { isPod: true }, name: "Kubernetes", command: "set the new image in the manifest, then apply it" },
    {
      rule: "of the install script",
      given: { executable: "/home/a/.local/bin/relay" },
      name: "the executable",
      command: `curl -fsSL ${releases}/latest/download/install.sh | sh`,
    },
    {
      rule: "of the install script inside a container",
      given: { executable: "/home/a/.local/bin/relay", exists: (path) => path === "/.dockerenv" },
      name: "the executable",
      command: `curl -fsSL ${releases}/latest/download/install.sh | sh`,
    },
    {
      rule: "of the install script in another folder",
      given: { executable: "/home/a/my tools/relay" },
      name: "the executable",
      command: `curl -fsSL ${releases}/latest/download/install.sh | RELAY_INSTALL_DIR='/home/a/my tools' sh`,
    },
    {
      rule: "of a folder of the system",
      given: {},
      name: "the executable",
      command: `curl -fsSL ${releases}/latest/download/install.sh | sudo RELAY_INSTALL_DIR=/usr/local/bin sh`,
    },
    {
      rule: "of the unit",
      given: { exists: (path) => path === "/etc/systemd/system/relay.service" },
      name: "the executable",
      command: `curl -fsSL ${releases}/latest/download/install.sh | sudo RELAY_INSTALL_DIR=/usr/local/bin sh\nsudo systemctl restart relay`,
    },
    {
      rule: "of a mirror",
      given: { executable: "/home/a/.local/bin/relay", isMirror: true },
      name: "the executable",
      command: `curl -fsSL ${releases}/latest/download/install.sh | RELAY_DOWNLOAD_URL=${releases} sh`,
    },
    {
      rule: "of an executable without an address",
      given: { releases: null },
      name: "the executable",
      command: "replace the executable with the newer one, then restart the server",
    },
  ];
  test("has its row with the command in docs/upgrade.md, if a package manager upgrades it", () => {
    const page = readFileSync(join(PROJECT_ROOT, "docs/upgrade.md"), "utf8");
    const managed = rows.filter(({ name }) => /npm|npx|bun|Homebrew|Scoop|sources/i.test(name));
    const commands = new Set(managed.map(({ command }) => command.split("\n").at(-1) ?? ""));
    expect(commands.size).toBe(9);
    expect([...commands].filter((command) => !page.includes(`\`${command}\``))).toEqual([]);
  });

  test.each(rows)("$rule", ({ given, name, command }) => {
    const found = findChannel({
      executable: "/usr/local/bin/relay",
      isCompiled: true,
      program: "relay",
      cpu: "x64",
      home: "/home/a",
      isPod: false,
      exists: () => false,
      quote: SYSTEMS.linux.quote,
      releases,
      isMirror: false,
      ...given,
    });
    expect([found.name, found.upgrade.join("\n")]).toEqual([name, command]);
  });
});
