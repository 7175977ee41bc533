/** Checks the layers of src: each layer imports only lower layers, and in a layer each module imports only modules of earlier rows. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PROJECT_ROOT, readSources, type SourceFile } from "./source-tree.ts";

/** Lists the layers from the lowest up. A module is a folder of its layer. Modules in one row never import each other. */
const LAYERS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  base: [["release", "shared"], ["base"]],
  store: [["store"]],
  platform: [["template", "outbound", "secret"], ["account"], ["audit"], ["mail", "channel", "oidc"]],
  shop: [
    ["people", "records"],
    ["selling", "portal"],
  ],
  rules: [["verify"], ["trigger", "action"], ["senders"], ["relay"], ["settings"]],
  operator: [["sync", "backup"], ["doctor"]],
  engine: [
    ["event", "health", "metrics"],
    ["receiver", "schedule", "change-capture", "runner", "maintenance", "telemetry"],
  ],
  insight: [["simulate", "overview", "timeline"]],
  interfaces: [["docs"], ["http"], ["api"], ["cli"]],
  boot: [["boot"]],
  "service.ts": [["service.ts"]],
  "main.ts": [["main.ts"]],
};

/** Lists `[layer, module]` of every row, from the lowest up. */
const ROWS = Object.entries(LAYERS).flatMap(([layer, rows]) => rows.map((modules) => ({ layer, modules })));

const sources = readSources("src");

interface Location {
  layer: string;
  module: string;
}

/**
 * Finds the layer and the module of a file: `platform` and `mail` for `src/platform/mail/email.ts`. Files directly in a layer belong to its module of
 * the same name.
 */
function locate(path: string): Location {
  const [, layer = "", name = "", ...rest] = path.split("/");
  return { layer, module: rest.length > 0 && isModule(layer, name) ? name : layer };
}

function isModule(layer: string, name: string): boolean {
  return (LAYERS[layer] ?? []).some((modules) => modules.includes(name));
}

/** Finds the row of a location, or -1 for an unknown folder. */
function rowOf({ layer, module }: Location): number {
  return ROWS.findIndex((row) => row.layer === layer && row.modules.includes(module));
}

/** Returns `a imports b` for every forbidden import. */
function wrongImports(source: SourceFile): string[] {
  const from = locate(source.path);
  return source.imports
    .flatMap((one) => (one.file?.startsWith("src/") ? [one.file] : []))
    .filter((file) => {
      const to = locate(file);
      const isSameModule = to.layer === from.layer && to.module === from.module;
      return !isSameModule && rowOf(to) >= rowOf(from);
    })
    .map((file) => `${source.path} imports ${file}`);
}

/** Finds every cycle of imports once, as its path. */
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

describe("the layers", () => {
  test("every file of src is in a module of a layer", () => {
    expect(sources.map((source) => source.path).filter((path) => rowOf(locate(path)) < 0)).toEqual([]);
    expect(sources.length).toBeGreaterThan(0);
  });

  test("src has at most 12 entries", () => {
    expect(new Set(sources.map((source) => source.path.split("/")[1])).size).toBeLessThanOrEqual(12);
  });

  test("a module imports only earlier rows and lower layers", () => {
    expect(sources.flatMap(wrongImports)).toEqual([]);
  });

  test("ARCHITECTURE.md shows every layer with its modules, from the highest down", () => {
    const text = readFileSync(join(PROJECT_ROOT, "ARCHITECTURE.md"), "utf8");
    const shown = text.split("\n").flatMap((line) => /^\| `([a-z]+)\/` \|([^|]*)\|[^|]+\|$/.exec(line) ?? []);
    const rows = shown.flatMap((_, index) => (index % 3 === 0 ? [[shown[index + 1], shown[index + 2]] as const] : []));
    const modulesOf = (layer: string): string[] => (LAYERS[layer] ?? []).flat().filter((name) => name !== layer);
    expect<unknown[]>(rows.map(([layer, modules = ""]) => [layer, modules.match(/(?<=`)[a-z-]+(?=`)/g)?.sort() ?? []])).toEqual(
      Object.keys(LAYERS)
        .filter((layer) => !layer.endsWith(".ts"))
        .toReversed()
        .map((layer) => [layer, modulesOf(layer).sort()]),
    );
  });

  test("imports have no cycles", () => {
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

  test("only outbound/ imports undici, and never the module of that name in Bun", () => {
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

  test("only http/ imports Elysia", () => {
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

  test("web/ imports types from src, and code only from base/shared", () => {
    const taken = readSources("web").flatMap((source) =>
      source.imports
        .filter((one) => one.file?.startsWith("src/") && !one.typeOnly && !one.file.startsWith("src/base/shared/"))
        .map((one) => `${source.path} imports ${one.file}`),
    );
    expect(taken).toEqual([]);
  });

  test("base/shared imports nothing, because the dashboard contains it", () => {
    const shared = sources.filter(({ path }) => path.startsWith("src/base/shared/"));
    expect(shared.length).toBeGreaterThan(0);
    expect(shared.flatMap((source) => source.imports.map(({ from }) => `${source.path} imports ${from}`))).toEqual([]);
  });

  test("src imports no code of web/", () => {
    const taken = sources.flatMap((source) =>
      source.imports.filter(({ file }) => /^web\/.*\.ts$/.test(file ?? "")).map(({ file }) => `${source.path} imports ${file}`),
    );
    expect(taken).toEqual([]);
  });
});
