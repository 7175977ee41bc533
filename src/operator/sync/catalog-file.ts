/**
 * The catalog file `catalog.json` in the service directory: collections, access, products and plans by name. Reads the file and checks
 * its shape. A save rejects the rest, such as a name that is taken or a missing relay.
 */
import { join } from "node:path";
import { type TSchema, Type } from "typebox";
import { checkShape } from "../../base/check-shape.ts";
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import { MAX_CREDIT_LINE, MAX_PROBLEMS, MAX_TITLE_CHARS } from "../../base/limit.ts";
import { capProblems, type Problem, Refusal, type Warning } from "../../base/refusal.ts";
import { CATALOG_NAME, ENTITLEMENT_NAME, placeProblems } from "../../base/shape.ts";
import { toJsonSchema } from "../../rules/relay/definition-shape.ts";
import {
  type CollectionDefinition,
  makeCollectionSchema,
  parseCollection,
} from "../../shop/records/collection-definition.ts";
import { parseSoldThrough, readTitle } from "../../shop/selling/catalog-item.ts";
import type { PlanInput } from "../../shop/selling/plan.ts";
import type { ProductInput } from "../../shop/selling/product.ts";
import {
  type FileProblem,
  type JsonFile,
  listDuplicateNames,
  locateInFile,
  readJsonFile,
} from "./json-file.ts";
import type { JsonPositions } from "./json-position.ts";

export interface Catalog {
  collections: readonly CollectionDefinition[];
  access: readonly { slug: string; title?: string | undefined }[];
  products: readonly (ProductInput & { name: string })[];
  plans: readonly (PlanInput & { name: string })[];
}

type CatalogFile =
  | { ok: true; catalog: Catalog; warnings: Warning[]; places: JsonPositions }
  | { ok: false; problems: FileProblem[] };

export const EMPTY_CATALOG: Catalog = { collections: [], access: [], products: [], plans: [] };

const FILE_NAME = "catalog.json";

const title = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: MAX_TITLE_CHARS,
    description: "What people read; the name when absent.",
    expects: `a text of 1 to ${MAX_TITLE_CHARS} characters`,
  }),
);
const soldThrough = Type.Optional(
  Type.Union(
    [
      Type.Object(
        {
          kind: Type.Literal("payment_link", { description: "Sold by a link.", expects: '"payment_link"' }),
          url: Type.String({
            pattern: "^https://",
            description: "The payment link.",
            expects: "an https address",
          }),
        },
        { additionalProperties: false },
      ),
      Type.Object(
        {
          kind: Type.Literal("relay", { description: "Sold by a relay.", expects: '"relay"' }),
          relay: Type.String({ description: "The relay's name.", expects: "the name of a relay" }),
          url: Type.Optional(
            Type.String({
              pattern: "^https://",
              description: "The address where a buyer pays.",
              expects: "an https address",
            }),
          ),
        },
        { additionalProperties: false },
      ),
    ],
    {
      description: "How it is sold.",
      expects: 'an object such as { "kind": "relay", "relay": "checkout" }',
      discriminator: "kind",
    },
  ),
);

function named(what: string, shape: TSchema): TSchema {
  return Type.Optional(
    Type.Record(Type.String({ pattern: CATALOG_NAME.source }), shape, {
      description: `${what} by name.`,
      expects: `an object of ${what} by name`,
      expectsName:
        "lowercase letters, digits, hyphens and underscores, starting with a letter, at most 63 characters",
    }),
  );
}

const catalogShape = Type.Object(
  {
    collections: named(
      "collections",
      Type.Unsafe<Json>({
        type: "object",
        description: "A collection.",
        expects: "an object with kind and fields",
      }),
    ),
    access: named(
      "access slugs",
      Type.Object({ title }, { additionalProperties: false, expects: "an object, {} or with a title" }),
    ),
    products: named(
      "products",
      Type.Object(
        {
          title,
          key: Type.Optional(
            Type.String({
              pattern: ENTITLEMENT_NAME.source,
              description: "The entitlement that a purchase grants; the product's own name when absent.",
              expects: "a product or plan name, or access:<slug>",
            }),
          ),
          credits: Type.Optional(
            Type.Integer({
              minimum: 0,
              maximum: MAX_CREDIT_LINE,
              description: "Credits that a purchase adds.",
              expects: `an integer from 0 to ${MAX_CREDIT_LINE}`,
            }),
          ),
          soldThrough,
        },
        { additionalProperties: false, expects: "an object with title, key, credits and soldThrough" },
      ),
    ),
    plans: named(
      "plans",
      Type.Object(
        {
          title,
          default: Type.Optional(
            Type.Boolean({
              description: "Whether people without a subscription are on it.",
              expects: "true or false",
            }),
          ),
          soldThrough,
        },
        { additionalProperties: false, expects: "an object with title, default and soldThrough" },
      ),
    ),
  },
  {
    additionalProperties: false,
    description: "What relays write to and grant.",
    expects: "a JSON object with collections, access, products and plans",
  },
);

/** Makes the file's JSON Schema for editors, a new copy each time. */
export function makeCatalogSchema(): JsonObject {
  const schema = toJsonSchema(catalogShape);
  const properties = section(schema, "properties");
  const collections = section(properties, "collections");
  const entry = { [CATALOG_NAME.source]: makeCollectionSchema() };
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Catalog",
    ...schema,
    properties: { ...properties, collections: { ...collections, patternProperties: entry } },
  };
}

/** Returns the path of a service directory's catalog. */
export function catalogPath(serviceDir: string): string {
  return join(serviceDir, FILE_NAME);
}

/** Reports whether a file of this name in the service directory is the catalog. */
export function isCatalogFile(file: string): boolean {
  return file === FILE_NAME;
}

/** Reads and checks the file. Never throws; a missing file is a problem. */
export async function readCatalogFile(path: string): Promise<CatalogFile> {
  return checkCatalogFile(await readJsonFile(path));
}

/** Checks a file that was read already. */
export function checkCatalogFile(file: JsonFile): CatalogFile {
  if (!file.ok) return file;
  const checked = checkCatalog(file.value);
  const problems = [...listDuplicateNames(file.places), ...("problems" in checked ? checked.problems : [])];
  if (problems.length > 0 || "problems" in checked)
    return { ok: false, problems: locateInFile(problems, file.places) };
  return { ok: true, ...checked, places: file.places };
}

/** Returns the catalog with its warnings, or every problem. Never throws. */
export function checkCatalog(
  written: Json,
): { catalog: Catalog; warnings: Warning[] } | { problems: Problem[] } {
  const problems = checkShape(catalogShape, written, { most: MAX_PROBLEMS + 1 });
  const value = isJsonObject(written) ? written : {};
  const collections = readCollections(section(value, "collections"), problems);
  problems.push(...checkDefaults(section(value, "plans")), ...checkSharedNames(value));
  if (problems.length === 0) problems.push(...checkItems(value));
  if (problems.length > 0) return { problems: capProblems(problems, "The catalog") };
  const entries = (name: string) => Object.entries(section(value, name)) as [string, JsonObject][];
  return {
    catalog: {
      collections,
      access: entries("access").map(([slug, entry]) => ({ slug, ...entry })),
      products: entries("products").map(([name, entry]) => ({ ...entry, name })),
      plans: entries("plans").map(([name, entry]) => ({ ...entry, name })),
    },
    warnings: listOrphanKeyWarnings(value),
  };
}

/** Looks for a key only in the file, although the environment may have it. */
function listOrphanKeyWarnings(value: JsonObject): Warning[] {
  const [access, products, plans] = ["access", "products", "plans"].map((name) => section(value, name));
  const known = new Set([
    ...Object.keys(access ?? {}).map((slug) => `access:${slug}`),
    ...Object.keys({ ...products, ...plans }),
  ]);
  return Object.entries(products ?? {}).flatMap(([name, product]) => {
    const key = isJsonObject(product) ? product.key : undefined;
    if (typeof key !== "string" || known.has(key)) return [];
    const field = `products.${name}.key`;
    const message = `\`${field}\` names ${key}, which is not in this file: add it, unless the environment has it already.`;
    return [{ code: "key_names_nothing", field, message }];
  });
}

/** Finds what a save would reject of a title or a way of selling that fits its shape. */
function checkItems(value: JsonObject): Problem[] {
  const problems: Problem[] = [];
  const attempt = (place: string, field: string, read: () => unknown): void => {
    try {
      read();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      problems.push(...placeProblems(place, [{ field, message: error.message }]));
    }
  };
  for (const name of ["access", "products", "plans"]) {
    for (const [key, item] of Object.entries(section(value, name))) {
      const { title, soldThrough } = item as JsonObject;
      const place = `${name}.${key}`;
      attempt(place, "title", () => readTitle(title as string | undefined, key));
      if (!isJsonObject(soldThrough)) continue;
      const { relay, url } = soldThrough;
      if (relay !== undefined)
        attempt(place, "soldThrough.relay", () => parseSoldThrough({ kind: "relay", relay }));
      if (url !== undefined)
        attempt(place, "soldThrough.url", () => parseSoldThrough({ kind: "payment_link", url }));
    }
  }
  return problems;
}

function readCollections(collections: JsonObject, problems: Problem[]): CollectionDefinition[] {
  return Object.entries(collections).flatMap(([name, entry]) => {
    if (!CATALOG_NAME.test(name) || !isJsonObject(entry)) return [];
    const parsed = parseCollection({ ...entry, name });
    problems.push(...placeProblems(`collections.${name}`, parsed.problems));
    return parsed.definition === null ? [] : [parsed.definition];
  });
}

/** An environment has exactly one default plan. */
function checkDefaults(plans: JsonObject): Problem[] {
  const defaults = Object.keys(plans).filter((name) => section(plans, name).default === true);
  return defaults.slice(1).map((name) => ({
    field: `plans.${name}.default`,
    message: `\`plans.${name}.default\` is true, but ${defaults[0]} is the default plan already: remove one of them.`,
  }));
}

/** Products and plans share one name space. */
function checkSharedNames(value: JsonObject): Problem[] {
  const products = section(value, "products");
  return Object.keys(section(value, "plans"))
    .filter((name) => Object.hasOwn(products, name))
    .map((name) => ({
      field: `plans.${name}`,
      message: `\`plans.${name}\` has the name of a product, and both share one name space: rename one of them.`,
    }));
}

function section(value: JsonObject, name: string): JsonObject {
  const part = Object.hasOwn(value, name) ? value[name] : undefined;
  return isJsonObject(part) ? part : {};
}
