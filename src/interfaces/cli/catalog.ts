/** `relay catalog …`: access slugs, products, plans and collections of an environment: listed, made or replaced, and deleted. */
import { type Static, Type } from "typebox";
import { checkInput } from "../../base/check-shape.ts";
import { type Json, type JsonObject, writeJson } from "../../base/json.ts";
import { MAX_PAGE_SIZE, type Page, type PageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, type warningView } from "../../base/schema.ts";
import { COMMAND_LINE, formatActor } from "../../platform/account/api-key.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import { trackCatalogEdit } from "../../rules/relay/catalog-edit.ts";
import {
  deleteAccessSlug,
  findAccessSlug,
  pageAccessSlugs,
  putAccessSlug,
} from "../../shop/people/entitlement.ts";
import {
  deleteCollection,
  deleteRecordsOf,
  listCollections,
  putCollection,
  viewCollection,
} from "../../shop/records/collection.ts";
import { requireCollectionDefinition } from "../../shop/records/collection-definition.ts";
import { deletePlan, plans, savePlan } from "../../shop/selling/plan.ts";
import { deleteProduct, products, saveProduct } from "../../shop/selling/product.ts";
import { readPage } from "../../store/index-scan.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import { KINDS, type Kind, sayItem } from "./catalog-text.ts";
import { type Command, type Input, refuseChoice, UsageError } from "./command.ts";
import { JSON_OUTPUT } from "./data-directory.ts";
import type { World } from "./io.ts";
import { readJsonObject } from "./read-json.ts";
import { askPlace, listRemote, type Remote } from "./remote.ts";
import { ANYWHERE, atPlace } from "./target.ts";
import { sayList } from "./terminal.ts";

type Warnings = Static<typeof warningView>[];

const KIND_ARGUMENT = { name: "kind", help: KINDS.join(", "), of: KINDS };
const title = Type.Optional(Type.String());
const soldThrough = Type.Optional(Type.Unknown());

/** One kind of thing: how it is listed, what is written of it, and how it goes. A change answers what it broke of the relays. */
interface KindOf {
  list(tx: Reader, environmentId: number, page: PageRequest): Promise<Page<object>>;
  /** As relays name it. */
  named(name: string): string;
  set(tx: Writer, change: Change, name: string, value: JsonObject): Promise<Warnings>;
  delete(tx: Writer, change: Change, name: string, force: boolean): Promise<void>;
}

const BY_KIND: Readonly<Record<Kind, KindOf>> = {
  access: {
    list: pageAccessSlugs,
    named: (name) => `access:${name}`,
    async set(tx, change, slug, value) {
      const { environmentId, nowMs } = change;
      const body = checkInput(fields({ title }), value);
      const before = await findAccessSlug(tx, environmentId, slug);
      await putAccessSlug(tx, environmentId, { slug, ...body }, nowMs);
      await writeAudit(tx, {
        ...change,
        action: "access.changed",
        target: `access:${slug}`,
        before: before === null ? null : { slug, title: before.title },
        after: { slug, title: body.title ?? slug },
      });
      return [];
    },
    async delete(tx, change, slug, force) {
      const { environmentId, nowMs } = change;
      const before = await findAccessSlug(tx, environmentId, slug);
      await deleteAccessSlug(tx, environmentId, slug, nowMs, { force });
      const shown = { slug, title: before?.title };
      await writeAudit(tx, { ...change, action: "access.deleted", target: `access:${slug}`, before: shown });
    },
  },
  product: {
    list: (tx, environmentId, page) => products.list(tx, environmentId, page),
    named: (name) => name,
    async set(tx, change, name, value) {
      const shape = fields({
        title,
        key: Type.Optional(Type.String()),
        credits: Type.Optional(Type.Integer()),
        soldThrough,
      });
      return (await saveProduct(tx, change, name, checkInput(shape, value))).warnings;
    },
    delete: (tx, change, name) => deleteProduct(tx, change, name),
  },
  plan: {
    list: (tx, environmentId, page) => plans.list(tx, environmentId, page),
    named: (name) => name,
    async set(tx, change, name, value) {
      const shape = fields({ title, default: Type.Optional(Type.Boolean()), soldThrough });
      await savePlan(tx, change, name, checkInput(shape, value));
      return [];
    },
    delete: (tx, change, name) => deletePlan(tx, change, name),
  },
  collection: {
    list: listCollections,
    named: (name) => name,
    async set(tx, change, name, value) {
      const definition = requireCollectionDefinition({ ...value, name });
      const { before, after } = await putCollection(tx, change.environmentId, definition, change.nowMs);
      if (before?.version === after.version) return [];
      await writeAudit(tx, {
        ...change,
        action: before === null ? "collection.created" : "collection.changed",
        target: `collection:${name}`,
        before: before === null ? undefined : viewCollection(before),
        after: viewCollection(after),
      });
      return [];
    },
    async delete(tx, change, name, force) {
      const { before, recordsDeleted } = await deleteCollection(tx, change.environmentId, name, { force });
      const [target, after] = [`collection:${name}`, { recordsDeleted }];
      const row = { target, before: viewCollection(before), after };
      await writeAudit(tx, { ...change, action: "collection.deleted", ...row });
    },
  },
};

/** Where a server has each kind. */
const PATHS: Readonly<Record<Kind, string>> = {
  access: "/access",
  product: "/products",
  plan: "/plans",
  collection: "/collections",
};

async function gather(kinds: readonly Kind[], list: (kind: Kind) => Promise<Page<object>>) {
  const found: { kind: Kind; name: string; value: JsonObject }[] = [];
  for (const kind of kinds) {
    for (const one of (await list(kind)).items) {
      const { name, slug, ...value } = one as JsonObject;
      found.push({ kind, name: String(name ?? slug), value });
    }
  }
  return found;
}

export const catalogList: Command = {
  words: ["catalog", "list"],
  summary: "list access, products, plans, collections",
  details: "What relays write to and grant.",
  arguments: [{ ...KIND_ARGUMENT, optional: true }],
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay catalog list", "relay catalog list product --json"],
  async run(input, world) {
    const wanted = input.positionals[0] === undefined ? KINDS : [readKind(input)];
    const page = { limit: MAX_PAGE_SIZE, after: null };
    const items = await atPlace(input, world, {
      here: (store, { id }) =>
        gather(wanted, (kind) => readPage(store, page, (tx, part) => BY_KIND[kind].list(tx, id, part))),
      there: (remote) => gather(wanted, (kind) => listRemote<object>(remote, PATHS[kind], {}, page.limit)),
    });
    await sayList(input, world, items, {
      columns: [
        { heading: "KIND", value: ({ kind }) => kind, keep: 2 },
        { heading: "NAME", value: ({ name }) => name, cut: 14, keep: 1 },
        {
          heading: "WHAT",
          value: ({ kind, name, value }) => sayItem(kind, { name, ...value }),
          wrap: true,
          raw: true,
        },
      ],
      none: "The catalog is empty: relay catalog set makes something, or service/catalog.json in local development.",
    });
  },
};

export const catalogSet: Command = {
  words: ["catalog", "set"],
  summary: "make or replace something of the catalog",
  details:
    "An access slug, a product, a plan or a collection. The JSON is what service/catalog.json holds under the name; without it, it is read from standard input. What is absent is as if it was never set.",
  arguments: [
    KIND_ARGUMENT,
    { name: "name", help: "the slug or name" },
    { name: "json", help: "an object, {} for the least", optional: true },
  ],
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: [
    "relay catalog set access beta '{}'",
    `relay catalog set product lamp '{"credits":10,"soldThrough":{"kind":"relay","relay":"checkout"}}'`,
    "relay catalog set collection orders < orders.json",
  ],
  async run(input, world) {
    const [kind, name] = [readKind(input), input.positionals[1] ?? ""];
    const value = readJsonObject(input.positionals[2] ?? (await world.readInput()));
    const warnings = await atPlace(input, world, {
      writes: true,
      here: (store, { id }) =>
        edit(store, id, world, kind, name, (tx, change) => BY_KIND[kind].set(tx, change, name, value)),
      there: (remote) => setThere(remote, kind, name, value),
    });
    sayDone(input, world, `The ${kind} ${name} is saved.`, warnings);
  },
};

export const catalogDelete: Command = {
  words: ["catalog", "delete"],
  summary: "delete something of the catalog",
  details: "An access slug, a product, a plan or a collection.",
  arguments: [KIND_ARGUMENT, { name: "name", help: "as relay catalog list shows it" }],
  options: [
    { name: "force", help: "also a slug that people hold, or a collection with its records" },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay catalog delete product lamp"],
  async run(input, world) {
    const [kind, name] = [readKind(input), input.positionals[1] ?? ""];
    const force = input.on("force");
    const warnings = await atPlace(input, world, {
      writes: true,
      here: (store, { id }) => deleteHere(store, id, world, kind, name, force),
      there: async (remote) => {
        const forced = force && (kind === "access" || kind === "collection") ? "?force=true" : "";
        return (await askPlace<{ warnings: Warnings }>(remote, "DELETE", `${pathOf(kind, name)}${forced}`))
          .warnings;
      },
    });
    sayDone(input, world, `The ${kind} ${name} is deleted.`, warnings);
  },
};

async function deleteHere(
  store: Store,
  environmentId: number,
  world: World,
  kind: Kind,
  name: string,
  force: boolean,
): Promise<Warnings> {
  // Its records go in steps, so that a server beside it is never held up.
  while (kind === "collection" && force) {
    const step = await store.write("dashboard", (tx) => deleteRecordsOf(tx, environmentId, name));
    if (step.ended) break;
  }
  return await edit(store, environmentId, world, kind, name, async (tx, change) => {
    await BY_KIND[kind].delete(tx, change, name, force);
    return [];
  });
}

/** Makes the change, and answers its warnings with those of relays that it breaks. */
async function edit(
  store: Store,
  environmentId: number,
  world: World,
  kind: Kind,
  name: string,
  work: (tx: Writer, change: Change) => Promise<Warnings>,
): Promise<Warnings> {
  const [by, nowMs] = [formatActor(COMMAND_LINE), world.clock.now()];
  return await store.write("dashboard", async (tx) => {
    const change = { environmentId, by, nowMs };
    const { result, warnings } = await trackCatalogEdit(tx, change, BY_KIND[kind].named(name), () =>
      work(tx, change),
    );
    return [...result, ...warnings];
  });
}

function pathOf(kind: Kind, name: string): string {
  return `${PATHS[kind]}/${encodeURIComponent(name)}`;
}

/** A server changes a collection that is there, and makes one that is not. */
async function setThere(remote: Remote, kind: Kind, name: string, value: JsonObject): Promise<Warnings> {
  try {
    return (await askPlace<{ warnings: Warnings }>(remote, "PUT", pathOf(kind, name), value)).warnings;
  } catch (error) {
    const isNew = kind === "collection" && error instanceof Refusal && error.code === "not_found";
    if (!isNew) throw error;
    return (await askPlace<{ warnings: Warnings }>(remote, "POST", PATHS.collection, { ...value, name }))
      .warnings;
  }
}

function sayDone(input: Input, world: World, sentence: string, warnings: Warnings): void {
  if (input.on("json")) world.say(writeJson({ warnings } as Json, 2));
  for (const { message } of warnings) world.tell(`warning: ${message}`);
  world.tell(sentence);
}

function readKind(input: Input): Kind {
  const found = KINDS.find((kind) => kind === input.first());
  if (found !== undefined) return found;
  throw new UsageError(refuseChoice("The kind", input.first(), KINDS));
}
