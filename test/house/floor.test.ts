/** The floors of the house: who may import whom. */
import { describe, expect, test } from "bun:test";
import { readSources, type SourceFile } from "./source-tree.ts";

/** From the lowest floor up. Modules on one floor never import one another. A module is a folder of a layer, a folder of src, or a file of src. */
const FLOORS: readonly (readonly string[])[] = [
  ["base/release"],
  ["base"],
  ["store"],
  ["platform/template", "platform/outbound"],
  ["rules/verify", "platform/secret", "platform/account"],
  ["platform/audit"],
  ["shop/people", "shop/records", "platform/mail", "rules/trigger"],
  ["shop/selling"],
  ["rules/action", "shop/portal"],
  ["rules/relay", "rules/senders"],
  ["engine/event", "engine/health", "operator/sync", "rules/settings"],
  [
    "engine/receiver",
    "engine/schedule",
    "engine/change-capture",
    "engine/runner",
    "operator/backup",
    "operator/doctor",
    "engine/metrics",
    "engine/maintenance",
  ],
  ["insight/simulate", "insight/overview", "insight/timeline"],
  ["interfaces/docs"],
  ["interfaces/http"],
  ["interfaces/api", "interfaces/cli"],
  ["boot"],
  ["boot/documentation.ts"],
  ["service.ts"],
  ["main.ts"],
];

const sources = readSources("src");

/** The module of a file: `platform/mail` for `src/platform/mail/email.ts`, `base` for `src/base/clock.ts`. */
function roomOf(path: string): string {
  const [, layer = "", name = ""] = path.split("/");
  const module = `${layer}/${name}`;
  return FLOORS.flat().includes(module) ? module : layer;
}

function floorOf(path: string): number {
  return FLOORS.findIndex((rooms) => rooms.includes(roomOf(path)));
}

/** `a imports b` for every import that is not allowed. */
function wrongImports(source: SourceFile): string[] {
  return source.imports
    .flatMap((one) => (one.file?.startsWith("src/") ? [one.file] : []))
    .filter((file) => roomOf(file) !== roomOf(source.path) && floorOf(file) >= floorOf(source.path))
    .map((file) => `${source.path} imports ${file}`);
}

/** Every file that can reach itself, as the way it takes; each circle once. */
function circles(): string[] {
  const all = [...sources, ...readSources("web", "scripts", "test")];
  const next = new Map(all.map((source) => [source.path, source.imports.flatMap((one) => one.file ?? [])]));
  const done = new Set<string>();
  const found = new Set<string>();
  const walk = (path: string, way: readonly string[]): void => {
    const start = way.indexOf(path);
    if (start >= 0) found.add([...way.slice(start), path].join(" > "));
    if (start >= 0 || done.has(path)) return;
    for (const file of next.get(path) ?? []) walk(file, [...way, path]);
    done.add(path);
  };
  for (const source of all) walk(source.path, []);
  return [...found];
}

function importersOf(test: (from: string) => boolean, allowed: (path: string) => boolean): string[] {
  return sources.filter((source) => !allowed(source.path) && source.imports.some((one) => test(one.from))).map((source) => source.path);
}

describe("the floors", () => {
  test("every room stands on a floor", () => {
    expect(sources.map((source) => source.path).filter((path) => floorOf(path) < 0)).toEqual([]);
    expect(sources.length).toBeGreaterThan(0);
  });

  test("a room imports lower floors only, and never a sibling", () => {
    expect(sources.flatMap(wrongImports)).toEqual([]);
  });

  test("no imports go in a circle", () => {
    expect(circles()).toEqual([]);
  });

  test("only store/ imports the database", () => {
    expect(
      importersOf(
        (from) => from === "bun:sqlite",
        (path) => path.startsWith("src/store/"),
      ),
    ).toEqual([]);
  });

  test("only outbound/ imports undici, and never Bun's stand-in of that name", () => {
    expect(
      importersOf(
        (from) => from.startsWith("undici/"),
        (path) => path.startsWith("src/platform/outbound/"),
      ),
    ).toEqual([]);
    expect(
      importersOf(
        (from) => from === "undici",
        () => false,
      ),
    ).toEqual([]);
  });

  test("only http/ knows Elysia", () => {
    expect(
      importersOf(
        (from) => /^(elysia|@elysiajs)(\/|$)/.test(from),
        (path) => path.startsWith("src/interfaces/http/"),
      ),
    ).toEqual([]);
  });

  test("an action imports no other action", () => {
    const registry = sources.find((source) => source.path === "src/rules/action/registry.ts");
    const actions = new Set(
      (registry?.imports ?? [])
        .filter((one) => !one.typeOnly)
        .flatMap((one) => one.file ?? [])
        .filter((file) => file.startsWith("src/rules/action/") && file !== "src/rules/action/contract.ts"),
    );
    const crossing = sources
      .filter((source) => actions.has(source.path))
      .flatMap((source) =>
        source.imports.filter((one) => one.file !== null && actions.has(one.file)).map((one) => `${source.path} imports ${one.file}`),
      );
    expect(crossing).toEqual([]);
  });

  test("web/ takes types alone from src", () => {
    const taken = readSources("web").flatMap((source) =>
      source.imports.filter((one) => one.file?.startsWith("src/") && !one.typeOnly).map((one) => `${source.path} imports ${one.file}`),
    );
    expect(taken).toEqual([]);
  });
});
