/**
 * A newcomer's first minutes: a fresh clone and one command, on a machine that has Node and npm but no Bun, and on one that has only Bun. The
 * dependencies come from the registry, or from the installer's own cache.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import packageJson from "../../package.json";
import { ProcessOutput } from "../kit/executable-output.ts";

const PROJECT = resolve(import.meta.dir, "../..");
/** An installation over a slow connection must succeed too. */
const PATIENCE_MS = 240_000;
/** Programs that the installers' own scripts need on any machine. */
const SYSTEM_TOOLS = ["sh", "env"];

interface Machine {
  what: string;
  /** Adds the machine's programs to its PATH, in addition to the system's. */
  programs(folder: string): void;
  start: readonly string[];
  test: readonly string[];
  build: readonly string[];
  /** Programs that the machine must not have. */
  without: readonly string[];
}

const MACHINES: readonly Machine[] = [
  {
    what: "Node and npm, but no Bun",
    programs: (folder) => {
      for (const name of ["node", "npm"]) symlinkSync(Bun.which(name) ?? name, join(folder, name));
    },
    start: ["npm", "start"],
    test: ["npm", "test", "--"],
    build: ["npm", "run", "build"],
    without: ["bun"],
  },
  {
    what: "Bun, but neither Node nor npm",
    programs: (folder) => copyFileSync(process.execPath, join(folder, "bun")),
    start: ["bun", "start"],
    test: ["bun", "run", "test"],
    build: ["bun", "run", "build"],
    without: ["node", "npm"],
  },
];

let place: string;

beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), "relay-newcomer-"));
});

afterAll(() => rmSync(place, { recursive: true, force: true }), PATIENCE_MS);

function makePath(folder: string, machine: Machine): string {
  mkdirSync(folder);
  for (const tool of SYSTEM_TOOLS) symlinkSync(Bun.which(tool) ?? tool, join(folder, tool));
  machine.programs(folder);
  for (const name of machine.without) expect(Bun.which(name, { PATH: folder })).toBe(null);
  return folder;
}

/** Returns this machine's variables without those that a test run adds. */
function makeEnv(PATH: string): Record<string, string> {
  const own = Object.entries(process.env).filter(([name]) => !/^(RELAY_|npm_|BUN_|NODE$|INIT_CWD$)/.test(name));
  return { ...(Object.fromEntries(own) as Record<string, string>), PATH, npm_config_prefer_offline: "true" };
}

function git(...words: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["git", ...words], { stdout: "pipe", stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`git ${words.join(" ")} failed: ${stderr}`);
  return stdout.toString();
}

describe.each(MACHINES.map((machine, number) => [machine.what, machine, number] as const))(
  "a fresh clone on a machine with %s",
  (_what, machine, number) => {
    let cwd: string;
    let env: Record<string, string>;

    const spawn = ([program = "", ...words]: readonly string[]) =>
      Bun.spawn([join(env.PATH ?? "", program), ...words], {
        cwd,
        env,
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
        detached: true,
      });

    const run = async (command: readonly string[]) => {
      const child = spawn(command);
      const [said, told, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
      return { code, said, told };
    };

    beforeAll(() => {
      cwd = join(place, `clone-${number}`);
      env = makeEnv(makePath(join(place, `path-${number}`), machine));
      git("clone", "--quiet", PROJECT, cwd);
    });

    test(
      "start installs only what running needs, listens, and prints a command that sends an event",
      async () => {
        expect(existsSync(join(cwd, "node_modules"))).toBe(false);
        const started = spawn(machine.start);
        const said = new ProcessOutput(started.stdout);
        const told = new ProcessOutput(started.stderr);
        try {
          await said.waitFor("Dashboard").catch(() => {
            throw new Error(`It did not start: ${said.text}${told.text}`);
          });
          const tryIt = await said.waitFor("Try it");
          const sent = await run(tryIt.trim().split(/\s+/).slice(2));
          expect({ tryIt, code: sent.code, told: sent.code === 0 ? "" : sent.told }).toEqual({
            tryIt,
            code: 0,
            told: "",
          });
          expect(sent.said).toContain('"received":true');
          await said.waitFor("RELAY · checkout-completed · receiver · 1 action · ok");
        } finally {
          // Ctrl+C in a terminal reaches every process of the command.
          process.kill(-started.pid, "SIGINT");
          await Promise.all([started.exited, said.closed, told.closed]);
        }
        expect(told.text).toContain("Installing what running needs, once");
        for (const tool of ["playwright-core", "typescript", "@sparticuz", "@biomejs"]) {
          expect({ tool, there: existsSync(join(cwd, "node_modules", tool)) }).toEqual({
            tool,
            there: false,
          });
        }
        expect(told.text).toContain("Stopping");
        expect(existsSync(join(cwd, ".relay/running.json"))).toBe(false);
      },
      PATIENCE_MS,
    );

    test(
      "the test command installs what tests need, runs, and ends with one plain line",
      async () => {
        const { code, said, told } = await run([...machine.test, "test/rule/template-path.test.ts"]);
        expect(told).toContain("only what running needs was installed so far");
        expect(said.trim().split("\n").at(-1)).toMatch(/^\d+ passed, 0 failed$/);
        expect(code).toBe(0);
      },
      PATIENCE_MS,
    );

    test(
      "the build makes dist/relay, which prints its version",
      async () => {
        const built = await run(machine.build);
        expect({ code: built.code, told: built.code === 0 ? "" : built.told }).toEqual({ code: 0, told: "" });
        expect(built.told).not.toContain("Installing");
        const version = Bun.spawnSync([join(cwd, "dist/relay"), "--version"], { env: {}, cwd: place });
        expect(version.stdout.toString()).toBe(`${packageJson.version}\n`);
      },
      PATIENCE_MS,
    );

    test("no file that git tracks has changed", () => {
      expect(git("-C", cwd, "status", "--porcelain")).toBe("");
    });
  },
);
