/**
 * Writes the relays and the catalog of a selling kit (`relay init --from <sender> --sell`). Then it lists what to set up at the provider. It
 * changes no existing relay and nothing that the catalog already has.
 */
import { existsSync, readFileSync } from "node:fs";
import { relative } from "node:path";
import { isJsonObject, type JsonObject, writeJson } from "../../../base/json.ts";
import { catalogPath } from "../../../operator/sync/catalog-file.ts";
import { editCatalog } from "../../../operator/sync/catalog-file-edit.ts";
import { definitionPath } from "../../../operator/sync/definition-file.ts";
import { writeUnchangedFile } from "../../../operator/sync/file-write.ts";
import { editJson, writeFileText } from "../../../operator/sync/json-edit.ts";
import type { Kit } from "../../../rules/senders/kit.ts";
import {
  KIT_NAMES,
  type KitNames,
  kitDefinitions,
  sellsPlans,
  withoutDefaultPlan,
} from "../../../rules/senders/kit-definitions.ts";
import { findKit, KITS } from "../../../rules/senders/kit-registry.ts";
import { kitPage, kitSteps } from "../../../rules/senders/kit-view.ts";
import type { Sender } from "../../../rules/senders/sender.ts";
import { CommandFailure, type Input, UsageError } from "../command.ts";
import { type Io, programWord } from "../io.ts";
import { parseCatalog } from "./init-from.ts";

export interface KitFiles {
  kit: Kit;
  sender: Sender;
  names: KitNames;
}

/** Reads the kit of the sender and the names. Throws if the sender has no kit, or if a name is invalid. */
export function readKit(sender: Sender, input: Input): KitFiles {
  const kit = findKit(sender.name);
  if (kit === null) {
    const known = KITS.map((one) => one.sender).join(", ");
    throw new CommandFailure(
      "not_found",
      `--from is ${sender.name}, which has no selling kit yet: omit --sell for one relay to start from. These have a kit: ${known}.`,
    );
  }
  if (input.given("name"))
    throw new UsageError(
      `--name names one relay, and --sell writes several, which ${sender.name} names: omit --name.`,
    );
  return { kit, sender, names: readNames(kit, sender, input) };
}

function readNames(kit: Kit, { title }: Sender, input: Input): KitNames {
  const product = input.text("product") ?? KIT_NAMES.product;
  if (!input.given("plans")) return { ...KIT_NAMES, product };
  if (!sellsPlans(kit))
    throw new UsageError(`--plans names plans, and the kit of ${title} sells no plans: omit --plans.`);
  const [plan, plan2, ...more] = input.list("plans");
  if (plan === undefined || plan2 === undefined || more.length > 0)
    throw new UsageError("--plans must name two plans, the cheaper one first, such as --plans basic,pro.");
  return { product, plan, plan2 };
}

/** Writes the files and returns their paths. It refuses if a relay or a catalog entry of the same name exists, before it writes anything. */
export function writeKit(serviceDir: string, { kit, sender, names }: KitFiles, io: Io): string[] {
  const { relays, catalog } = kitDefinitions(kit, sender, names);
  const files = relays.map((relay) => ({ relay, path: definitionPath(serviceDir, String(relay.name)) }));
  const existing = files.filter(({ path }) => existsSync(path)).map(({ path }) => relative(io.cwd, path));
  if (existing.length > 0)
    throw new CommandFailure(
      "name_taken",
      `The service folder already has ${existing.join(", ")}, so no file was written: move or delete what is there, or write the kit into another folder with --service-dir.`,
    );
  const path = catalogPath(serviceDir);
  const read = existsSync(path) ? readFileSync(path, "utf8") : null;
  const wanted = read === null ? catalog : mergeCatalog(path, parseCatalog(path, read), catalog);
  for (const { relay, path: file } of files) writeUnchangedFile(file, null, writeFileText(relay));
  writeUnchangedFile(path, read, read === null ? writeFileText(wanted) : editJson(read, wanted));
  return [...files.map(({ path: file }) => file), path];
}

const KINDS = { collections: "collection", products: "product", plans: "plan" } as const;

/** Adds the kit's entries to a catalog. A second default plan is not added. Throws if another entry has a name of the kit. */
function mergeCatalog(path: string, written: JsonObject, catalog: JsonObject): JsonObject {
  const sections = Object.keys(KINDS) as (keyof typeof KINDS)[];
  const entriesOf = (value: JsonObject, section: string) => {
    const items = value[section];
    return isJsonObject(items) ? (items as Record<string, JsonObject>) : {};
  };
  const hasDefault = Object.values(entriesOf(written, "plans")).some((plan) => plan.default === true);
  const wanted = hasDefault ? withoutDefaultPlan(catalog) : catalog;
  const added = sections.flatMap((section) =>
    Object.entries(entriesOf(wanted, section)).map(([name, content]) => ({ section, name, content })),
  );
  const missing = added.filter(({ section, name, content }) => {
    const current = entriesOf(written, section)[name];
    if (current === undefined) return true;
    if (writeJson(current) === writeJson(content)) return false;
    const option = section === "products" ? "--product" : "--plans";
    const todo = section === "collections" ? "rename or delete it" : `choose another name with ${option}`;
    throw new CommandFailure(
      "name_taken",
      `\`${section}.${name}\` exists in ${path} with other content, so no file was written: ${todo}.`,
    );
  });
  return editCatalog(
    written,
    missing.map(({ section, name, content }) => ({ kind: KINDS[section], name, content })),
  );
}

/** Prints what to set up at the provider, in order, and what the provider cannot tell. */
export function printKitSteps({ kit, sender, names }: KitFiles, io: Io): void {
  const relay = programWord(io);
  io.inform("");
  for (const [index, step] of kitSteps(kit, sender, names).entries()) io.inform(`${index + 1}. ${step}`);
  io.inform("");
  for (const sentence of kit.cannot) io.inform(`Note: ${sentence}`);
  io.inform("");
  io.inform(`Next, run ${relay} dev. It shows the receiver URL and watches these files.`);
  io.inform(
    `Then play a purchase in another terminal, and see what it changes: ${relay} simulate ${sender.name} purchase`,
  );
  io.inform(`Read what each step of a sale does: ${relay} docs ${kitPage(sender.name)}`);
}
