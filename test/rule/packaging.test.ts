/**
 * The files of packaging/ name the program's real commands, variables, port, paths and exit codes. The container's health check runs against a
 * server.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MAX_FILE_BYTES } from "../../src/base/limit.ts";
import { LIMIT_WORDS } from "../../src/base/limit-text.ts";
import { readManual } from "../../src/boot/documentation.ts";
import { LEAVE_MS } from "../../src/boot/readiness.ts";
import type { Io } from "../../src/interfaces/cli/io.ts";
import { findCommand, parseCommand } from "../../src/interfaces/cli/line/parse.ts";
import { COMMANDS } from "../../src/interfaces/cli/registry.ts";
import { END_WITHIN_MS, START_ENDS_WITHIN_MS } from "../../src/interfaces/cli/server/serve.ts";
import { readServiceConfig } from "../../src/interfaces/cli/service-option.ts";
import { readSources } from "../house/source-tree.ts";
import { runCommand } from "../kit/cli-io.ts";
import { tellNotRun } from "../kit/not-run.ts";
import { PATIENCE_MS } from "../kit/patience.ts";
import { startBareService } from "../kit/running-service.ts";

const ROOT = join(import.meta.dir, "..", "..");
const read = (name: string): string => readFileSync(join(ROOT, "packaging", name), "utf8");

const folder = mkdtempSync(join(tmpdir(), "relay-packaging-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Splits the Dockerfile into instructions, each with its first word separate. */
const dockerfile = read("Dockerfile")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
  .map((line): [word: string, rest: string] => [line.slice(0, line.indexOf(" ")), line.slice(line.indexOf(" ") + 1)]);
const lastOf = (word: string): string => dockerfile.findLast(([first]) => first === word)?.[1] ?? "";
const baseAt = dockerfile.findLastIndex(([word]) => word === "FROM");

/** Collects `KEY=value` lines by key. A key that appears twice has both values. */
function readUnit(text: string): Map<string, string[]> {
  const lines = text.split("\n").filter((line) => /^[A-Z]\w*=/.test(line));
  return Map.groupBy(lines, (line) => line.slice(0, line.indexOf("="))) as Map<string, string[]>;
}
const unit = readUnit(read("relay.service"));
const inUnit = (key: string): string[] => (unit.get(key) ?? []).map((line) => line.slice(key.length + 1));

const readVariables = (lines: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    lines.filter((line) => /^RELAY_\w+=/.test(line)).map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );

// biome-ignore lint/suspicious/noExplicitAny: YAML of any shape
const compose = Bun.YAML.parse(read("compose.yaml")) as any;
const inImage = readVariables(lastOf("ENV").split(" "));
const inCompose: Record<string, string> = { ...compose.services.relay.environment, RELAY_BASE_URL: "https://relay.example.com" };

/** Reads the configuration of `relay serve` with these variables. */
function configOf(env: Record<string, string>) {
  const { command } = findCommand(["serve"], COMMANDS) ?? {};
  if (command === undefined) throw new Error("There is no command serve.");
  return readServiceConfig("server", parseCommand(command, [], env), { env, cwd: folder } as unknown as Io);
}

/** The most time that a server takes to end. A node of a cluster first notifies the other nodes. */
const ENDS_WITHIN_S = END_WITHIN_MS / 1_000;
const STOPS_WITHIN_S = LEAVE_MS / 1_000 + ENDS_WITHIN_S;
/** Docker's default without a setting. */
const DOCKER_KILLS_AFTER_S = 10;
const SPARE_S = 5;

describe("relay serve reads every variable that is set, and accepts its value", () => {
  const known = new Set([
    ...(findCommand(["serve"], COMMANDS)?.command.options ?? []).flatMap(({ env }) => env ?? []),
    ...Object.values(LIMIT_WORDS).map(({ variable }) => variable),
  ]);
  const places: [string, Record<string, string>][] = [
    ["relay.env", readVariables(read("relay.env").split("\n"))],
    ["relay.service", readVariables(inUnit("Environment"))],
    ["Dockerfile", inImage],
    ["compose.yaml", inCompose],
  ];
  test.each(places)("%s", (_name, variables) => {
    expect(Object.keys(variables).filter((name) => !known.has(name))).toEqual([]);
    expect(Object.keys(variables).length).toBeGreaterThan(0);
    expect(configOf(variables).mode).toBe("server");
  });
});

describe("the systemd unit", () => {
  test("runs an existing command, with its data in a writable directory, and not as root", () => {
    const [path = "", ...words] = (inUnit("ExecStart")[0] ?? "").split(" ");
    expect([path, findCommand(words, COMMANDS)?.command.words]).toEqual(["/usr/local/bin/relay", ["serve"]]);
    const { RELAY_DATA_DIR } = readVariables(inUnit("Environment"));
    expect([RELAY_DATA_DIR, inUnit("WorkingDirectory")[0]]).toEqual([
      `/var/lib/${inUnit("StateDirectory")[0]}`,
      `/var/lib/${inUnit("StateDirectory")[0]}`,
    ]);
    expect(read("relay.sysusers")).toContain(`u ${inUnit("User")[0]} - `);
    expect(read("litestream.yml")).toContain(`path: ${RELAY_DATA_DIR}/relay.db`);
  });

  const HARDENED: Record<string, string> = {
    NoNewPrivileges: "yes",
    ProtectSystem: "strict",
    ProtectHome: "yes",
    PrivateTmp: "yes",
    PrivateDevices: "yes",
    StateDirectoryMode: "0700",
    UMask: "0077",
    CapabilityBoundingSet: "",
    RestrictNamespaces: "yes",
    RestrictSUIDSGID: "yes",
    SystemCallArchitectures: "native",
    // The JIT needs this.
    MemoryDenyWriteExecute: "no",
    Restart: "on-failure",
    // Exit code 2 means an invalid command line or variable.
    RestartPreventExitStatus: "2",
    KillMode: "mixed",
  };
  test.each(Object.entries(HARDENED))("sets %s=%s", (key, value) => expect(inUnit(key)).toEqual([value]));

  test("gives a stop more than its seconds, and does not restart after the exit code of a wrong command line", async () => {
    expect(Number(inUnit("TimeoutStopSec")[0])).toBeGreaterThan(STOPS_WITHIN_S + SPARE_S);
    expect((await runCommand(["serve", "--port", "none"], { cwd: folder })).code).toBe(2);
  });

  /** The exposure that `systemd-analyze security` gives the unit, from 0 (none) to 10. A service without any setting has 9.6. */
  const EXPOSURE = 1.5;

  const analyze = Bun.which("systemd-analyze");
  if (analyze === null) tellNotRun("the check of the systemd unit", "this machine has no systemd-analyze");
  else {
    test(`is exposed at most ${EXPOSURE} of 10 for systemd-analyze security`, () => {
      const { stdout, stderr } = Bun.spawnSync([analyze, "security", "--offline=true", "--no-pager", join(ROOT, "packaging/relay.service")]);
      const [, figure] = /Overall exposure level for relay\.service: (\d+\.\d)/.exec(stdout.toString()) ?? [];
      // Versions before 250 read no file.
      if (figure === undefined && stderr.includes("--offline")) tellNotRun("systemd-analyze security", "this machine's systemd is older than 250");
      else expect(Number(figure)).toBeLessThanOrEqual(EXPOSURE);
    });
    test("passes systemd-analyze verify without a message", () => {
      const file = join(folder, "relay.service");
      // The tests' machine may lack the installed program.
      writeFileSync(file, read("relay.service").replace("ExecStart=/usr/local/bin/relay", `ExecStart="${process.execPath}"`));
      const { exitCode, stderr } = Bun.spawnSync([analyze, "verify", file], { timeout: PATIENCE_MS });
      const own = stderr
        .toString()
        .split("\n")
        .filter((line) => line.includes("relay.service"));
      expect([exitCode, own]).toEqual([0, []]);
    });
  }
});

describe("the Dockerfile", () => {
  const words = (text: string): string[] => JSON.parse(text.slice(text.indexOf("["))) as string[];

  test("starts an existing command on the port it names, with data on the volume, as its own user", () => {
    const [program, ...none] = words(lastOf("ENTRYPOINT"));
    expect([program, none]).toEqual(["/usr/local/bin/relay", []]);
    expect(findCommand(words(lastOf("CMD")), COMMANDS)?.command.words).toEqual(["serve"]);
    expect(configOf(inImage)).toMatchObject({ host: "0.0.0.0", port: Number(lastOf("EXPOSE")), dataDir: lastOf("VOLUME") });
    const user = lastOf("USER");
    expect(user).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    expect(
      dockerfile.slice(baseAt).some(([, rest]) => rest.startsWith(`--from=build --chown=${user} `) && rest.endsWith(` ${lastOf("VOLUME")}`)),
    ).toBe(true);
    // The executable needs glibc, and the image has no shell for an instruction that needs one.
    expect(dockerfile[baseAt]?.[1]).toMatch(/debian/);
    expect(dockerfile.slice(baseAt).filter(([word]) => word === "RUN")).toEqual([]);
  });

  test("copies files that exist and are not ignored", () => {
    const kept = new Set(
      read("Dockerfile.dockerignore")
        .split("\n")
        .filter((line) => line.startsWith("!"))
        .map((line) => line.slice(1)),
    );
    const copied = dockerfile.filter(([word, rest]) => word === "COPY" && !rest.startsWith("--")).flatMap(([, rest]) => rest.split(" ").slice(0, -1));
    expect(copied.filter((path) => !existsSync(join(ROOT, path)) || !kept.has(path))).toEqual([]);
    expect([...kept].filter((path) => !copied.includes(path))).toEqual([]);
    const imported = readSources("src", "web").flatMap(({ imports }) => imports.flatMap(({ file }) => file?.split("/")[0] ?? []));
    expect([...new Set(imported)].filter((folder) => !copied.includes(folder))).toEqual([]);
    const scripts = (JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { scripts: Record<string, string> }).scripts;
    expect(scripts["build"]).toBeDefined();
  });

  test("takes the time of the sources for the build, and compose passes it on", () => {
    const lines = dockerfile.map(([word, rest]) => `${word} ${rest}`);
    const build = lines.findIndex((line) => line.startsWith("RUN npm run build"));
    expect(lines[build - 1]).toBe("ARG SOURCE_DATE_EPOCH");
    for (const name of ["compose.yaml", "compose.postgres.yaml"]) {
      const { services } = Bun.YAML.parse(read(name)) as { services: Record<string, { build?: { args: string[] } }> };
      const built = Object.values(services).flatMap(({ build }) => build ?? []);
      expect([name, built.length > 0, built.every(({ args }) => args.join() === "SOURCE_DATE_EPOCH")]).toEqual([name, true, true]);
    }
  });

  test("has a health check whose exit code says whether the server is ready", async () => {
    const [program, ...line] = words(lastOf("HEALTHCHECK").split(" CMD ")[1] ?? "[]");
    expect(program).toBe("/usr/local/bin/relay");
    const check = (port: number) => runCommand(line, { cwd: folder, env: { RELAY_HOST: "0.0.0.0", RELAY_PORT: String(port) } });
    const service = await startBareService();
    const { port } = service.service;
    expect(await check(port)).toMatchObject({ code: 0, said: "ready" });
    await service[Symbol.asyncDispose]();
    expect(await check(port)).toMatchObject({ code: 1, told: expect.stringContaining("service_not_running") });
    using migrating = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => Response.json({ ready: false, problem: "It migrates." }, { status: 503 }),
    });
    expect(await check(migrating.port ?? 0)).toMatchObject({ code: 1, told: expect.stringContaining("is not ready. It migrates.") });
  });
});

describe("compose and Caddy", () => {
  const { relay, caddy } = compose.services;
  test("expose the server only through Caddy, whose network is the only trusted one", () => {
    expect([relay.ports, relay.networks, caddy.networks]).toEqual([undefined, ["front"], ["front"]]);
    expect(inCompose["RELAY_TRUSTED_PROXY"]).toBe(compose.networks.front.ipam.config[0].subnet);
    expect(caddy.ports).toContain("443:443");
    expect(read("Caddyfile")).toContain(`reverse_proxy {$RELAY_UPSTREAM:relay:${inImage["RELAY_PORT"]}}`);
    expect(configOf({ ...inImage, ...inCompose })).toMatchObject({ baseUrl: "https://relay.example.com", trustedProxies: ["172.30.47.0/24"] });
  });

  test("build from existing files, store the data, write nothing else, and give a stop enough time", () => {
    expect(existsSync(join(ROOT, "packaging", relay.build.context, relay.build.dockerfile))).toBe(true);
    expect(relay.volumes).toEqual([`data:${lastOf("VOLUME")}`]);
    expect(Object.keys(compose.volumes)).toEqual(["data", "caddy"]);
    expect([relay.read_only, relay.cap_drop, relay.security_opt]).toEqual([true, ["ALL"], ["no-new-privileges:true"]]);
    const graces = ["compose.yaml", "compose.postgres.yaml"].flatMap((name) =>
      [...read(name).matchAll(/stop_grace_period: (\d+)s/g)].map(([, seconds]) => Number(seconds)),
    );
    expect([graces.length, graces.every((seconds) => seconds > STOPS_WITHIN_S + SPARE_S)]).toEqual([3, true]);
    expect(existsSync(join(ROOT, "packaging", "Caddyfile"))).toBe(true);
  });

  test("Caddy accepts the largest body that the service accepts", () => {
    const megabytes = Number(/max_size (\d+)MB/.exec(read("Caddyfile"))?.[1]);
    expect(megabytes * 1_000_000).toBeGreaterThan(MAX_FILE_BYTES);
  });
});

describe("the pages on installing", () => {
  const PAGES = ["install-server", "docker", "kubernetes", "trusted-proxy", "upgrade", "off-site-backups"];
  const KUBERNETES = ["sqlite", "postgres", "restore"].map((name) => `kubernetes/${name}.yaml`);
  const pages = readManual().pages.filter(({ id }) => PAGES.includes(id));

  test("are in the documentation, and show the files unchanged", () => {
    expect(pages.map(({ id }) => id).toSorted()).toEqual(PAGES.toSorted());
    const text = pages.map((page) => page.text).join("\n");
    for (const name of ["relay.service", "relay.env", "relay.sysusers", "Dockerfile", "compose.yaml", "Caddyfile", "litestream.yml", ...KUBERNETES])
      expect([name, text.includes(read(name).trimEnd())]).toEqual([name, true]);
  });

  test("say how long a stop takes at most", () => {
    for (const id of ["install-server", "docker"])
      expect(pages.find((page) => page.id === id)?.text).toContain(
        `at most ${ENDS_WITHIN_S} seconds, or ${STOPS_WITHIN_S} seconds for one of several nodes`,
      );
    expect(START_ENDS_WITHIN_MS / 1_000).toBeLessThan(DOCKER_KILLS_AFTER_S);
  });

  test("name only commands and flags of this program", () => {
    const lines = pages.flatMap(({ text }) =>
      [...text.matchAll(/^```(?:text shell|sh command)\n([\s\S]*?)^```$/gm)].flatMap(([, block = ""]) => block.split("\n")),
    );
    const run = lines.flatMap((line) => {
      const [, said] = /^(?:sudo -u relay |docker compose \S+ \S+ (?:exec|run --rm) relay )?relay (.+)$/.exec(line) ?? [];
      return said === undefined ? [] : [said.match(/"[^"]*"|\S+/g) ?? []];
    });
    for (const words of run) {
      const bare = words[0] === "relay" ? words.slice(1) : words;
      const found = findCommand(bare, COMMANDS);
      expect([bare.join(" "), found === null]).toEqual([bare.join(" "), false]);
      if (found !== null) parseCommand(found.command, found.rest, {});
    }
    expect(run.length).toBeGreaterThan(8);
  });
});

test("the license that package.json names is in the repository", () => {
  const { license } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { license: string };
  expect(readFileSync(join(ROOT, "LICENSE"), "utf8")).toStartWith(`${license} License`);
});

test("two nodes on one PostgreSQL start with what relay serve accepts, trust only Caddy's network, and have readiness checks", () => {
  // biome-ignore lint/suspicious/noExplicitAny: YAML of any shape
  const nodes = Bun.YAML.parse(read("compose.postgres.yaml")) as any;
  for (const name of ["relay-one", "relay-two"]) {
    const { environment, networks, ports } = nodes.services[name];
    const env = {
      ...environment,
      RELAY_BASE_URL: "https://relay.example.com",
      RELAY_DATABASE: environment.RELAY_DATABASE.replace(/\$\{[^}]*\}/, "pass"),
    };
    const config = configOf({ ...env, RELAY_MASTER_KEY: "k" });
    expect(config.database).toMatchObject({ host: "postgres", user: "relay", database: "relay", sslMode: "disable", password: "pass" });
    expect(config.trustedProxies).toEqual([nodes.networks.front.ipam.config[0].subnet]);
    expect({ networks, ports }).toEqual({ networks: ["front", "back"], ports: undefined });
    expect(read("Caddyfile.nodes")).toContain(`${name}:4747`);
  }
  expect(nodes.services.postgres.networks).toEqual(["back"]);
  expect(nodes.services.caddy.networks).toEqual(["front"]);
  expect(read("Caddyfile.nodes")).toMatch(/max_size 6MB[\s\S]*health_uri \/readyz/);
  const interval = /health_interval (\d+)s/.exec(read("Caddyfile.nodes"))?.[1];
  // A node that is stopping gets one more check before it ends.
  expect(LEAVE_MS / 1_000).toBeGreaterThan(Number(interval));
});
