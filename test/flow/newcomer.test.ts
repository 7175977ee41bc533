/**
 * A newcomer's first minutes: a fresh clone and one command, on a machine that has Node and npm but no Bun, and on one that has Bun
 * alone. The dependencies come from the registry, or from the installer's own cache where it holds them.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { ProcessOutput } from "../kit/executable-output.ts";

const PROJECT = resolve(import.meta.dir, "../..");
/** An installation over a slow line is still one. */
const PATIENCE_MS = 240_000;
/** What the installers' own scripts are started with on any machine. */
const SYSTEM_TOOLS = ["sh", "env"];

interface Machine {
  what: string;
  /** The programs on its PATH beside the system's. */
  programs(folder: string): void;
  start: readonly string[];
  /** Programs it must not have. */
  without: readonly string[];
}

const MACHINES: readonly Machine[] = [
  {
    what: "Node and npm, but no Bun: npm start",
    programs: (folder) => {
      for (const name of ["node", "npm"]) symlinkSync(Bun.which(name) ?? name, join(folder, name));
    },
    start: ["npm", "start"],
    without: ["bun"],
  },
  {
    what: "Bun, but neither Node nor npm: bun start",
    programs: (folder) => copyFileSync(process.execPath, join(folder, "bun")),
    start: ["bun", "start"],
    without: ["node", "npm"],
  },
];

let place: string;

beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), "relay-newcomer-"));
});

afterAll(() => rmSync(place, { recursive: true, force: true }));

function makePath(folder: string, machine: Machine): string {
  mkdirSync(folder);
  for (const tool of SYSTEM_TOOLS) symlinkSync(Bun.which(tool) ?? tool, join(folder, tool));
  machine.programs(folder);
  for (const name of machine.without) expect(Bun.which(name, { PATH: folder })).toBe(null);
  return folder;
}

/** This machine's variables, but for what a run of these tests adds to them. */
function makeEnv(PATH: string): Record<string, string> {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^(RELAY_|npm_|BUN_|NODE$|INIT_CWD$)/.test(name),
  );
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
    test(
      "it installs, listens, and the printed command sends an event that is done",
      async () => {
        const cwd = join(place, `clone-${number}`);
        git("clone", "--quiet", PROJECT, cwd);
        expect(existsSync(join(cwd, "node_modules"))).toBe(false);
        const env = makeEnv(makePath(join(place, `path-${number}`), machine));
        const spawn = (command: readonly string[]) =>
          Bun.spawn([join(env.PATH ?? "", command[0] ?? ""), ...command.slice(1)], {
            cwd,
            env,
            stdin: "ignore",
            stdout: "pipe",
            stderr: "pipe",
            detached: true,
          });

        const started = spawn(machine.start);
        const said = new ProcessOutput(started.stdout);
        const told = new ProcessOutput(started.stderr);
        try {
          await said.waitFor("Dashboard").catch(() => {
            throw new Error(`It did not start: ${said.text}${told.text}`);
          });
          const tryIt = await said.waitFor("Try it");
          const sent = spawn(tryIt.trim().split(/\s+/).slice(2));
          const [answer, talk, code] = await Promise.all([
            new Response(sent.stdout).text(),
            new Response(sent.stderr).text(),
            sent.exited,
          ]);
          expect({ tryIt, code, talk: code === 0 ? "" : talk }).toEqual({ tryIt, code: 0, talk: "" });
          expect(answer).toContain('"received":true');
          await said.waitFor("RELAY · checkout-completed · receiver · 1 action · ok");
          expect(git("-C", cwd, "status", "--porcelain")).toBe("");
        } finally {
          // Ctrl+C in a terminal reaches every process of the command.
          process.kill(-started.pid, "SIGINT");
          await Promise.all([started.exited, said.closed, told.closed]);
        }
        expect(told.text).toContain("Stopping");
        expect(existsSync(join(cwd, ".relay/running.json"))).toBe(false);
      },
      PATIENCE_MS,
    );
  },
);
