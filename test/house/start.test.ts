/** Checks that a command loads only its own code, by counting modules. A time would depend on the machine. */
import { describe, expect, test } from "bun:test";
import { loadRoutes } from "../../src/interfaces/api/load-routes.ts";
import { ROUTES } from "../../src/interfaces/api/route-list.ts";
import { loadCommands } from "../../src/interfaces/cli/load-command.ts";
import { COMMANDS } from "../../src/interfaces/cli/registry.ts";
import { readSources } from "./source-tree.ts";

const SOURCES = new Map(readSources("src").map((source) => [source.path, source]));

/** Lists the modules that loading a file loads, without those that it imports when it uses them. */
function listLoaded(file: string): string[] {
  const loaded = new Set([file]);
  for (const path of loaded) {
    for (const one of SOURCES.get(path)?.imports ?? []) if (!one.typeOnly && !one.isDynamic) loaded.add(one.file ?? one.from);
  }
  return [...loaded].sort();
}

test("relay --version loads nothing of the command line", () => {
  expect(listLoaded("src/main.ts")).toEqual([
    "node:fs",
    "node:path",
    "package.json",
    "src/base/clock.ts",
    "src/base/database-url.ts",
    "src/base/own-executable.ts",
    "src/base/process-list.ts",
    "src/base/release/version.ts",
    "src/base/system.ts",
    "src/main.ts",
  ]);
});

test("the command line loads no command", () => {
  const loaded = [...listLoaded("src/interfaces/cli/io.ts"), ...listLoaded("src/interfaces/cli/run.ts")];
  const own =
    /^node:|^package\.json$|^src\/base\/|^src\/interfaces\/cli\/(?:\w|-)+\.ts$|^src\/interfaces\/cli\/(?:terminal\/|line\/parse\.ts$|sync\/git-commit\.ts$)/;
  expect(loaded.filter((path) => !own.test(path) || path.endsWith("registry.ts"))).toEqual([]);
});

test("a command of a data directory loads no other command, no route, no PostgreSQL and no server", () => {
  const loaded = listLoaded("src/interfaces/cli/events/events.ts");
  const foreign = /^src\/(service|boot|insight|interfaces\/(api|docs)|store\/postgres\/(?:postgres|connection)\.ts)|^elysia$|^bun:sql$|registry\.ts$/;
  expect(loaded.filter((path) => foreign.test(path))).toEqual([]);
});

test("a list of events loads nothing that runs, verifies, sends or keeps secrets, and no network", () => {
  const loaded = ["cli/events/events", "cli/api/local-api", "api/in-process", "api/event-list"].flatMap((name) =>
    listLoaded(`src/interfaces/${name}.ts`),
  );
  const foreign = /^node:(?:crypto|dns|fs\/promises|net|tls)|^src\/(?:engine\/runner|platform\/(?:mail|secret)|rules\/(?:action|trigger|verify))\//;
  expect(loaded.filter((path) => foreign.test(path))).toEqual([]);
});

test("a server is ready before it loads the routes, the documentation and what simulates", () => {
  const late = /^src\/(?:boot\/documentation|insight\/|interfaces\/(?:api\/(?!about\.ts$)|docs\/))/;
  expect(listLoaded("src/service.ts").filter((path) => late.test(path))).toEqual([]);
});

test("a server loads the library of schedules only when it has one", () => {
  expect(listLoaded("src/service.ts")).not.toContain("cron-parser");
});

describe("each command is found without the list of all commands", () => {
  test.each([...new Set(COMMANDS.map(({ words }) => words[0] ?? ""))])("relay %s", async (first) => {
    const listed = COMMANDS.filter(({ words }) => words[0] === first);
    const loaded = await loadCommands(first);
    expect(loaded.length).toBe(listed.length);
    expect(listed.filter((command) => !loaded.includes(command))).toEqual([]);
  });

  test("an earlier name of a noun is found in the list", async () => {
    const first = COMMANDS.flatMap(({ words, aliases = [] }) => aliases.flatMap(([word]) => (word === words[0] ? [] : (word ?? ""))));
    for (const word of first) expect(await loadCommands(word)).toEqual([]);
  });
});

test("a path finds the same routes among those of its resource as among all", async () => {
  for (const { path } of ROUTES) {
    const found = (await loadRoutes(path)).filter((route) => route.path === path);
    expect(found).toEqual(ROUTES.filter((route) => route.path === path));
  }
});
