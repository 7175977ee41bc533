/**
 * Checks a set of files without a database, as an environment would check them after all are applied. Each file is checked by itself, and
 * the definitions against the catalog and one another. With a broken catalog, no warning about its items is given.
 */
import { basename, dirname } from "node:path";
import type { Problem, Warning } from "../../base/refusal.ts";
import { explainSpace, namedSpaceOf, SPACE_FIELD } from "../../rules/relay/customer-space.ts";
import { warnOwnHost } from "../../rules/relay/definition.ts";
import type { Definition } from "../../rules/relay/definition-shape.ts";
import { listReferenceWarnings, startsOnCreated, writesTo } from "../../rules/relay/relay-problem.ts";
import { type CatalogLookup, checkWrites, MAX_NAMED } from "../../rules/relay/relay-reference.ts";
import { sellsOnCall } from "../../rules/relay/selling-overlap.ts";
import { isSource, listBreaks, sourceNameOf, withScheme } from "../../rules/relay/source.ts";
import { unsignedWarning } from "../../rules/relay/unsigned-rule.ts";
import { parseSoldThrough } from "../../shop/selling/catalog-item.ts";
import { type Catalog, catalogPath, EMPTY_CATALOG, isCatalogFile, readCatalogFile } from "./catalog-file.ts";
import { listDefinitionFiles, readDefinitionFile, relayNameOf, relaysFolder } from "./definition-file.ts";
import { type FileProblem, type FileWarning, locateInFile } from "./json-file.ts";
import type { JsonPositions } from "./json-position.ts";

export interface CheckedFile {
  path: string;
  problems: FileProblem[];
  warnings: FileWarning[];
}

/** Checks the files in their order, each together with the other files of its service directory. */
export async function checkFiles(
  paths: readonly string[],
  { nowMs, baseUrl }: { nowMs: number; baseUrl: string },
): Promise<CheckedFile[]> {
  const sets = new Map<string, FileSet>();
  const found: CheckedFile[] = [];
  for (const path of paths) {
    const folder = serviceDirOf(path);
    const set = sets.get(folder) ?? (await readSet(folder, paths, nowMs));
    sets.set(folder, set);
    found.push(await checkFile(path, set, baseUrl));
  }
  return found;
}

function serviceDirOf(path: string): string {
  const folder = dirname(path);
  return !isCatalogFile(basename(path)) && relaysFolder(dirname(folder)) === folder
    ? dirname(folder)
    : folder;
}

type ReadDefinition = Awaited<ReturnType<typeof readDefinitionFile>>;
type ReadCatalog = Awaited<ReturnType<typeof readCatalogFile>>;

interface FileSet {
  definitions: ReadonlyMap<string, ReadDefinition>;
  catalog: ReadCatalog | null;
  /** Null if the catalog is broken. */
  lookup: CatalogLookup | null;
}

async function readSet(serviceDir: string, named: readonly string[], nowMs: number): Promise<FileSet> {
  const own = named.filter((path) => serviceDirOf(path) === serviceDir);
  const definitions = new Map<string, ReadDefinition>();
  for (const path of new Set([...(await listDefinitionFiles(serviceDir)), ...own])) {
    if (!isCatalogFile(basename(path))) definitions.set(path, await readDefinitionFile(path, nowMs));
  }
  const path = catalogPath(serviceDir);
  const isThere = own.includes(path) || (await Bun.file(path).exists());
  const catalog = isThere ? await readCatalogFile(path) : null;
  const good = [...definitions.values()].flatMap((file) => (file.ok ? [file.definition] : []));
  const declared = catalog === null ? EMPTY_CATALOG : catalog.ok ? catalog.catalog : null;
  return { definitions, catalog, lookup: declared === null ? null : makeFileLookup(declared, good) };
}

async function checkFile(path: string, set: FileSet, baseUrl: string): Promise<CheckedFile> {
  const { definitions, catalog, lookup } = set;
  if (isCatalogFile(basename(path))) {
    if (catalog?.ok !== true) return { path, problems: catalog?.problems ?? [], warnings: [] };
    const names = new Set([...definitions.keys()].map(relayNameOf));
    const warnings = [...catalog.warnings, ...listSellerWarnings(catalog.catalog, names)];
    return { path, problems: [], warnings: sortByPosition(warnings, catalog.places) };
  }
  const file = definitions.get(path);
  if (file?.ok !== true) return { path, problems: file?.problems ?? [], warnings: [] };
  const { definition, places } = file;
  const misfits = lookup === null ? [] : await listReferenceWarnings(lookup, definition);
  const problems = lookup === null ? [] : await checkWrites(lookup, definition);
  const source = checkSource(definition, definitions);
  const space = checkSpace(definition, definitions);
  return {
    path,
    problems: locateInFile([...problems, ...source.problems, ...space.problems], places),
    warnings: sortByPosition(
      [
        ...file.warnings,
        ...warnOwnHost(definition, baseUrl),
        ...misfits,
        ...source.warnings,
        ...space.warnings,
      ],
      places,
    ),
  };
}

/** Checks a named space with the file of its receiver. A receiver without a file may exist in the environment. */
function checkSpace(
  definition: Definition,
  files: FileSet["definitions"],
): { problems: Problem[]; warnings: Warning[] } {
  const space = namedSpaceOf(definition);
  if (space === null) return { problems: [], warnings: [] };
  const entry = [...files].find(([path]) => relayNameOf(path) === space);
  if (entry === undefined) {
    const message = `\`${SPACE_FIELD}\`: there is no relay named ${space} in these files; add relays/${space}.json (unless the environment has it), or this relay is not saved.`;
    return { problems: [], warnings: [{ code: "reference_missing", field: SPACE_FIELD, message }] };
  }
  const [, file] = entry;
  const fault = file.ok ? explainSpace(file.definition) : null;
  const message = `\`${SPACE_FIELD}\`: ${fault}`;
  return { problems: fault === null ? [] : [{ field: SPACE_FIELD, message }], warnings: [] };
}

/** Checks a follower with the file of its source. A source without a file may exist in the environment. */
function checkSource(
  follower: Definition,
  files: FileSet["definitions"],
): { problems: Problem[]; warnings: Warning[] } {
  const name = sourceNameOf(follower);
  if (name === null) return { problems: [], warnings: [] };
  const entry = [...files].find(([path]) => relayNameOf(path) === name);
  const field = "trigger.verify.receiver";
  if (entry === undefined) {
    const message = `\`${field}\`: there is no relay named ${name} in these files; add relays/${name}.json (unless the environment has it), or this relay is not saved.`;
    return { problems: [], warnings: [{ code: "reference_missing", field, message }] };
  }
  const [, file] = entry;
  if (!file.ok) return { problems: [], warnings: [] };
  if (!isSource(file.definition)) {
    const message = `\`${field}\`: ${name} is no receiver with its own scheme, so no relay can follow it: name another one.`;
    return { problems: [{ field, message }], warnings: [] };
  }
  const following = withScheme(follower, file.definition);
  const optIn = unsignedWarning(following);
  return { problems: listBreaks(following), warnings: optIn === null ? [] : [optIn] };
}

/** Sorts by the lines of the file. */
function sortByPosition(warnings: readonly Warning[], places: JsonPositions): FileWarning[] {
  const at = ({ place }: FileWarning): number => (place === null ? 0 : place.line * 1_000_000 + place.column);
  return locateInFile(warnings, places).toSorted((left, right) => at(left) - at(right));
}

/** Warns of products and plans that are sold through a relay without a file. */
function listSellerWarnings({ products, plans }: Catalog, relays: ReadonlySet<string>): Warning[] {
  const items = [
    ...products.map((item) => ({ section: "products", ...item })),
    ...plans.map((item) => ({ section: "plans", ...item })),
  ];
  return items.flatMap(({ section, name, soldThrough }): Warning[] => {
    const sold = parseSoldThrough(soldThrough);
    if (sold?.kind !== "relay" || relays.has(sold.relay)) return [];
    const field = `${section}.${name}.soldThrough.relay`;
    const message = `\`${field}\`: there is no relay named ${sold.relay} in these files; add relays/${sold.relay}.json (unless the environment has it), or this is not applied.`;
    return [{ code: "reference_missing", field, message }];
  });
}

function makeFileLookup(catalog: Catalog, definitions: readonly Definition[]): CatalogLookup {
  const collections = new Map(catalog.collections.map((collection) => [collection.name, collection]));
  const items = {
    product: new Map(catalog.products.map((product) => [product.name, product])),
    plan: new Map(catalog.plans.map((plan) => [plan.name, plan])),
  };
  const access = new Set(catalog.access.map(({ slug }) => `access:${slug}`));
  const names = {
    collection: [...collections.keys()],
    product: [...items.product.keys()],
    plan: [...items.plan.keys()],
    access: catalog.access.map(({ slug }) => slug),
  };
  return {
    place: "in these files",
    formatRemedy: () => "add it to catalog.json (unless the environment has it)",
    findCollection: async (name) => collections.get(name) ?? null,
    listNames: async (kind) => names[kind],
    hasEntitlement: async (name) => access.has(name) || items.product.has(name) || items.plan.has(name),
    async findItem(kind, name) {
      const item = items[kind].get(name);
      if (item === undefined) return null;
      const sold = parseSoldThrough(item.soldThrough);
      return { relay: sold?.kind === "relay" ? sold.relay : null };
    },
    listWriters: async (name) => namesOf(definitions.filter((one) => writesTo(one, name))),
    listSellers: async () => definitions.filter(sellsOnCall),
    listWatchers: async (name) => namesOf(definitions.filter((one) => startsOnCreated(one, name))),
  };
}

function namesOf(definitions: readonly Definition[]): string[] {
  return definitions.map(({ name }) => name).slice(0, MAX_NAMED);
}
