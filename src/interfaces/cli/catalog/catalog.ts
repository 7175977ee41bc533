/** Lists, sets and deletes the access slugs, products, plans and collections of an environment (`relay catalog …`). */
import type { Static } from "typebox";
import { type Json, type JsonObject, writeJson } from "../../../base/json.ts";
import { MAX_PAGE_SIZE, type Page } from "../../../base/page.ts";
import { Refusal } from "../../../base/refusal.ts";
import type { warningView } from "../../../base/schema.ts";
import type { Api } from "../api/api.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import { type Command, formatUnknownChoice, type Input, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { readJsonObject } from "../terminal/read-json.ts";
import { printList } from "../terminal/terminal.ts";
import { formatItem, KINDS, type Kind } from "./text.ts";

type Warnings = Static<typeof warningView>[];

const KIND_ARGUMENT = { name: "kind", help: KINDS.join(", "), of: KINDS };
/** The path of each kind. */
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
  details: "Lists what relays can grant, sell and write to.",
  arguments: [{ ...KIND_ARGUMENT, optional: true }],
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay catalog list", "relay catalog list product --json"],
  async run(input, io) {
    const wanted = input.positionals[0] === undefined ? KINDS : [readKind(input)];
    const page = { limit: MAX_PAGE_SIZE, after: null };
    const items = await withApi("read", input, io, (api) =>
      gather(wanted, (kind) => api.list<object>(PATHS[kind], {}, page.limit)),
    );
    await printList(input, io, items, {
      columns: [
        { heading: "KIND", value: ({ kind }) => kind },
        { heading: "NAME", value: ({ name }) => name },
        {
          heading: "WHAT",
          value: ({ kind, name, value }) => formatItem(kind, { name, ...value }),
          wrap: true,
          raw: true,
        },
      ],
      none: "The catalog is empty. Create the first item with relay catalog set, or in service/catalog.json in local development.",
    });
  },
};

export const catalogSet: Command = {
  words: ["catalog", "set"],
  summary: "create or replace an item of the catalog",
  details:
    "An item is an access slug, a product, a plan or a collection. The JSON has the form of service/catalog.json: the value under the item's name. Without the JSON argument, the command reads standard input. The JSON replaces the whole item: a field that it leaves out gets its default.",
  arguments: [
    KIND_ARGUMENT,
    { name: "name", help: "the slug or name" },
    { name: "json", help: "an object; {} sets every field to its default", optional: true },
  ],
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: [
    "relay catalog set access beta '{}'",
    `relay catalog set product lamp '{"credits":10,"soldThrough":{"kind":"relay","relay":"checkout"}}'`,
    "relay catalog set collection orders < orders.json",
  ],
  async run(input, io) {
    const [kind, name] = [readKind(input), input.positionals[1] ?? ""];
    const value = readJsonObject(input.positionals[2] ?? (await io.readInput()));
    const warnings = await withApi("write", input, io, (api) => setItem(api, kind, name, value));
    printDone(input, io, `The ${kind} ${name} is saved.`, warnings);
  },
};

export const catalogDelete: Command = {
  words: ["catalog", "delete"],
  summary: "delete an item of the catalog",
  details: "An item is an access slug, a product, a plan or a collection.",
  arguments: [KIND_ARGUMENT, { name: "name", help: "as relay catalog list shows it" }],
  options: [
    { name: "force", help: "delete also an access slug that people have, or a collection with records" },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay catalog delete product lamp"],
  async run(input, io) {
    const [kind, name] = [readKind(input), input.positionals[1] ?? ""];
    const force = input.on("force");
    const warnings = await withApi("write", input, io, async (api) => {
      const forced = force && (kind === "access" || kind === "collection") ? "?force=true" : "";
      return (await api.request<{ warnings: Warnings }>("DELETE", `${pathOf(kind, name)}${forced}`)).warnings;
    });
    printDone(input, io, `The ${kind} ${name} is deleted.`, warnings);
  },
};

function pathOf(kind: Kind, name: string): string {
  return `${PATHS[kind]}/${encodeURIComponent(name)}`;
}

/** Stores an item. A PUT changes an existing collection only, so a new one is posted. */
async function setItem(api: Api, kind: Kind, name: string, value: JsonObject): Promise<Warnings> {
  try {
    return (await api.request<{ warnings: Warnings }>("PUT", pathOf(kind, name), value)).warnings;
  } catch (error) {
    const isNew = kind === "collection" && error instanceof Refusal && error.code === "not_found";
    if (!isNew) throw error;
    return (await api.request<{ warnings: Warnings }>("POST", PATHS.collection, { ...value, name })).warnings;
  }
}

function printDone(input: Input, io: Io, sentence: string, warnings: Warnings): void {
  if (input.on("json")) io.print(writeJson({ warnings } as Json, 2));
  for (const { message } of warnings) io.inform(`warning: ${message}`);
  io.inform(sentence);
}

function readKind(input: Input): Kind {
  const found = KINDS.find((kind) => kind === input.first());
  if (found !== undefined) return found;
  throw new UsageError(formatUnknownChoice("The kind", input.first(), KINDS));
}
