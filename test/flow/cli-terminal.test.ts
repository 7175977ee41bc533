/** Tests the executable in a pseudo-terminal: colors, widths, the pager and id suffixes, and completion in a real shell. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../kit/cli-io.ts";
import { runInTerminal } from "../kit/cli-terminal.ts";
import { requireExecutable } from "../kit/executable-build.ts";

const KEYS = 25;
const cwd = mkdtempSync(join(tmpdir(), "relay-cli-terminal-"));
afterAll(() => rmSync(cwd, { recursive: true }));

let revoked = "";

beforeAll(async () => {
  await runCommand(["apps", "create", "Shop", "--id", "shop"], { cwd });
  for (let at = 0; at < KEYS; at++) {
    const { said } = await runCommand(["keys", "create", "--name", `backend ${at}`, "--json"], { cwd });
    revoked = JSON.parse(said).id;
  }
  // Selects the key by its suffix, as a list shows it.
  expect((await runCommand(["keys", "revoke", revoked.slice(-8)], { cwd })).code).toBe(0);
  for (const name of ["relay", "pager"]) {
    const what = name === "relay" ? `exec '${requireExecutable("relay")}' "$@"` : `/bin/cat > '${join(cwd, "paged")}'`;
    writeFileSync(join(cwd, name), `#!/bin/sh\n${what}\n`, { mode: 0o755 });
  }
});

test.each([40, 80, 120])("keys list in %d columns shows colors and suffixes, and no line exceeds the terminal's width", async (columns) => {
  const { code, raw, lines } = await runInTerminal(["keys", "list"], { cwd, columns });
  expect(code).toBe(0);
  expect(raw).toContain("\u001b[32mlive\u001b[0m");
  expect(raw).not.toContain("\u001b[31m");
  expect(lines.filter((line) => Bun.stringWidth(line) > columns)).toEqual([]);
  expect(lines.join("\n")).toContain(revoked.slice(-8));
  expect(lines.join("\n")).not.toContain(revoked);
});

test("NO_COLOR removes the colors and changes nothing else", async () => {
  const { raw, lines } = await runInTerminal(["keys", "list"], { cwd, columns: 80, env: { NO_COLOR: "1" } });
  expect(raw).not.toContain("\u001b[");
  expect(lines.join("\n")).toContain("live");
});

test("long output goes through the pager, and not with --no-pager", async () => {
  const terminal = { cwd, columns: 80, rows: 10, env: { PAGER: join(cwd, "pager") } };
  const without = await runInTerminal(["keys", "list", "--no-pager"], terminal);
  expect(without.lines.length).toBeGreaterThan(KEYS);
  expect(existsSync(join(cwd, "paged"))).toBe(false);
  const paged = await runInTerminal(["keys", "list"], terminal);
  expect({ code: paged.code, lines: paged.lines }).toEqual({ code: 0, lines: [""] });
  expect(readFileSync(join(cwd, "paged"), "utf8")).toContain(revoked.slice(-8));
});

test("a missing pager does not stop the output", async () => {
  const { code, lines } = await runInTerminal(["keys", "list"], { cwd, columns: 80, rows: 10, env: { PAGER: join(cwd, "nowhere") } });
  expect(code).toBe(0);
  expect(lines.join("\n")).toContain(revoked.slice(-8));
});

const COMPLETED: readonly [typed: string, candidates: readonly string[]][] = [
  ["relay ev", ["events"]],
  ["relay events ", ["list", "show", "replay", "retry", "expunge", "tail"]],
  ["relay events list --sta", ["--state"]],
  ["relay events list --state d", ["done", "dead"]],
  ["relay keys list --app ", ["shop"]],
  ["relay keys list --app=s", ["shop"]],
  ["relay completion p", ["powershell"]],
  ["relay frobnicate ", []],
];

test("bash completes commands, options, states and names with the script of relay completion bash", async () => {
  const script = [
    "source <(relay completion bash)",
    ...COMPLETED.map(([typed]) => {
      // Splits the line into words as bash does.
      const words = typed.replace("=", " = ").split(" ");
      return `COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}; _relay relay; echo "\${COMPREPLY[*]}"`;
    }),
  ].join("\n");
  const env = { ...process.env, PATH: `${cwd}:${process.env.PATH}`, XDG_CONFIG_HOME: join(cwd, ".config") };
  const bash = Bun.spawn(["/bin/bash", "--norc", "-c", script], { cwd, env, stderr: "pipe" });
  const [said, told] = await Promise.all([new Response(bash.stdout).text(), new Response(bash.stderr).text()]);
  expect(told).toBe("");
  expect(said.replace(/\n$/, "").split("\n")).toEqual(COMPLETED.map(([, candidates]) => candidates.join(" ")));
});
