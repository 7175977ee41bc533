/** Every command has examples in its help, and each example is a valid line. The test runs each one in a data directory, without a network. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findCommand } from "../../src/interfaces/cli/line/parse.ts";
import { COMMANDS } from "../../src/interfaces/cli/registry.ts";
import { type CommandResult, runCommand } from "../kit/cli-io.ts";

const cwd = mkdtempSync(join(tmpdir(), "relay-cli-example-"));
afterAll(() => rmSync(cwd, { recursive: true }));

/** The test only parses the lines of these commands. They start a service, ask a name server, call a service, or hold a database after replacing it. */
const NOT_RUN = new Set(["dev", "serve", "restore", "login", "domain verify", "alerts test-channel", "move"]);
/** They need a server, and without one they report that it is not named. */
const OF_A_SERVER = new Set(["status", "sync", "promote", "pull"]);
/** A version that is not from a release has no address to ask, and the command reports that. */
const OF_A_RELEASE = new Set(["upgrade"]);

/** The text of a file that an example reads and whose name says that it holds a URL. */
const WEBHOOK_URL = "https://hooks.slack.com/services/T000/B000/XXXX";

const EXAMPLES = COMMANDS.flatMap((command) => (command.examples ?? []).map((line): [string, typeof command] => [line, command]));

/** Parses a line as a shell does: leading variables, quotation and stdin. It replaces folders of a machine by folders of the test. */
function readExample(example: string) {
  const [told = "", file] = (example.split(";")[0]?.split(" | ").at(-1) ?? "").split(" < ");
  const words = [...told.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, one, two, three]) => one ?? two ?? three ?? "");
  const at = words.indexOf("relay");
  const env = Object.fromEntries(
    words
      .slice(0, at)
      .filter((word) => word.includes("="))
      .map((word) => word.split("=") as [string, string]),
  );
  const line = words.slice(at + 1).map((word) => word.replaceAll(/\/(var\/lib|mnt)\//g, `${cwd}/`));
  return { line, env, input: file === undefined ? "" : file.includes("url") ? WEBHOOK_URL : '{"kind":"shared","fields":{}}' };
}

async function run(example: string): Promise<CommandResult> {
  const { line, env, input } = readExample(example);
  // No server answers at this port, so the test does not wait.
  const near = line.map((word) => word.replace("https://relay.example.com/hooks", "http://127.0.0.1:9/hooks"));
  const url = near.indexOf("--url");
  if (url >= 0 && near[url + 1] === "https://relay.example.com") near[url + 1] = "http://127.0.0.1:9";
  if (env.RELAY_URL !== undefined) env.RELAY_URL = "http://127.0.0.1:9";
  return await runCommand(near, { cwd, env, input });
}

beforeAll(async () => {
  expect((await run("relay apps create Shop --id shop")).code).toBe(0);
});

test.each(COMMANDS.map((command) => [command.words.join(" "), command] as const))(
  "relay %s has an example in its help",
  async (words, { examples = [] }) => {
    expect(examples.length).toBeGreaterThan(0);
    const { said } = await runCommand(["help", ...words.split(" ")], { cwd });
    for (const example of examples) expect(said).toContain(example);
  },
);

test.each(EXAMPLES)("%s", async (example, command) => {
  const { line } = readExample(example);
  expect(findCommand(line, COMMANDS)?.command).toBe(command);
  const [first = ""] = command.words;
  if (NOT_RUN.has(command.words.join(" "))) return;
  const { code, told } = await run(example);
  const last = told.split("\n").at(-1) ?? "";
  if (code === 2)
    expect({ last, isKnown: OF_A_SERVER.has(first) || OF_A_RELEASE.has(first) }).toEqual({ last: expect.stringMatching(/^usage /), isKnown: true });
  else expect(last).not.toStartWith("internal ");
});
