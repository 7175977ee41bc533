/**
 * Writes a service folder with one working example (`relay init`), and editor settings that check definitions and the catalog. The schemas
 * are those of `relay schema`. The example is a receiver for a payment provider's signed event, and the collection that it writes to.
 */
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { writeJson } from "../../../base/json.ts";
import { catalogPath, makeCatalogSchema } from "../../../operator/sync/catalog-file.ts";
import { definitionPath, listDefinitionFiles, relaysFolder } from "../../../operator/sync/definition-file.ts";
import { makeDefinitionSchema } from "../../../rules/relay/definition-shape.ts";
import { KIT_NAMES } from "../../../rules/senders/kit-definitions.ts";
import { SENDERS } from "../../../rules/senders/registry.ts";
import { type Command, UsageError } from "../command.ts";
import { type Io, programWord } from "../io.ts";
import { readServiceDir, SERVICE_DIR } from "../service-option.ts";
import { type FromSender, printSenderSteps, readFrom, writeFrom } from "./init-from.ts";
import { type KitFiles, printKitSteps, readKit, writeKit } from "./init-kit.ts";

const SCHEMA_FILE = "relay.schema.json";
const CATALOG_SCHEMA_FILE = "catalog.schema.json";

const EXAMPLE_NAME = "checkout-completed";

/** The example definition. It uses Stripe's recipe, so only a real endpoint's secret is missing. */
export const EXAMPLE_DEFINITION = {
  name: EXAMPLE_NAME,
  trigger: {
    kind: "receiver",
    verify: {
      scheme: "signature",
      header: "stripe-signature",
      signatureKey: "v1",
      timestampKey: "t",
      signedPayload: "{timestamp}.{body}",
      encoding: "hex",
    },
    map: {
      event_id: "id",
      event_type: "type",
      person_email: "data.object.customer_details.email",
      order: "data.object.id",
      amount: "data.object.amount_total",
    },
    when: { event_type: "checkout.session.completed" },
  },
  actions: [
    {
      type: "write_record",
      collection: "orders",
      to: "person",
      data: { order: "{{mapped.order}}", amount: "{{mapped.amount}}" },
    },
  ],
};

export const EXAMPLE_CATALOG = {
  collections: {
    orders: {
      kind: "addressed",
      fields: {
        order: { type: "text", required: true },
        amount: { type: "number", required: true },
      },
    },
  },
};

/** Writes the example if the service directory has no relay yet. Returns the written files. */
export async function writeExample(serviceDir: string): Promise<string[]> {
  if ((await listDefinitionFiles(serviceDir)).length > 0) return [];
  await mkdir(relaysFolder(serviceDir), { recursive: true });
  const files: [string, unknown][] = [
    [definitionPath(serviceDir, EXAMPLE_NAME), EXAMPLE_DEFINITION],
    [catalogPath(serviceDir), EXAMPLE_CATALOG],
  ];
  const written: string[] = [];
  for (const [file, value] of files) {
    if (existsSync(file)) continue;
    await writeFile(file, `${JSON.stringify(value, null, 2)}\n`, { flag: "wx" });
    written.push(file);
  }
  return written;
}

/** Writes a kit, the relay of a sender, or the example. */
async function writeChosen(
  serviceDir: string,
  { from, kit }: { from: FromSender | null; kit: KitFiles | null },
  io: Io,
): Promise<string[]> {
  if (kit !== null) return writeKit(serviceDir, kit, io);
  return from === null ? await writeExample(serviceDir) : writeFrom(serviceDir, from, io);
}

export const init: Command = {
  words: ["init"],
  summary: "write a first relay into service/",
  details:
    "The command writes one working example relay, schemas and editor settings. It changes no existing file except the schemas. With --from, the relay has the recipe and map of a known sender, and one action that stores the mapped values. The command then says where to find the sender's secret. relay presets lists the known senders. With --sell, it writes a selling kit: every relay and the catalog to sell a product and two plans. The command then says what to set up at the provider.",
  options: [
    {
      name: "from",
      value: "<sender>",
      help: "start from this sender's recipe, such as stripe or github",
      of: SENDERS.map(({ name }) => name),
    },
    { name: "name", value: "<name>", otherwise: "the sender's", help: "the relay's name, with --from" },
    { name: "sell", help: "write the sender's selling kit, with --from" },
    {
      name: "product",
      value: "<name>",
      otherwise: KIT_NAMES.product,
      help: "the product that the kit sells, with --sell",
    },
    {
      name: "plans",
      value: "<names>",
      list: true,
      otherwise: `${KIT_NAMES.plan},${KIT_NAMES.plan2}`,
      help: "the two plans that the kit sells, with --sell",
    },
    SERVICE_DIR,
  ],
  examples: [
    "relay init",
    "relay init --from github",
    "relay init --from stripe --name checkout",
    "relay init --from stripe --sell --product course --plans basic,pro",
  ],
  async run(input, io) {
    const serviceDir = readServiceDir(input, io);
    const sender = input.text("from");
    if (sender === null && input.given("name"))
      throw new UsageError("--name needs --from: name the sender of the relay, such as --from github.");
    for (const option of ["product", "plans"])
      if (input.given(option) && !input.on("sell"))
        throw new UsageError(`--${option} needs --sell: only a selling kit has a product and plans.`);
    if (sender === null && input.on("sell"))
      throw new UsageError("--sell needs --from: name the provider, such as --from stripe.");
    const from = sender === null ? null : readFrom(sender, input.text("name"), io);
    const kit = from === null || !input.on("sell") ? null : readKit(from.sender, input);
    const written = await writeChosen(serviceDir, { from, kit }, io);
    await mkdir(serviceDir, { recursive: true });
    const schemas = { [SCHEMA_FILE]: makeDefinitionSchema(), [CATALOG_SCHEMA_FILE]: makeCatalogSchema() };
    for (const [name, value] of Object.entries(schemas)) {
      const file = join(serviceDir, name);
      await writeFile(file, `${writeJson(value, 2)}\n`);
      written.push(file);
    }
    const settings = await writeEditorSettings(serviceDir, io);
    if (settings !== null) written.push(settings);
    for (const file of written) io.print(relative(io.cwd, file));
    if (kit !== null) return printKitSteps(kit, io);
    if (from !== null) return printSenderSteps(from, io);
    io.inform("");
    const relay = programWord(io);
    io.inform(`Next: run ${relay} dev, which receives webhooks and watches these files.`);
    io.inform(
      `Then run ${relay} send ${EXAMPLE_NAME} in another terminal, which sends a signed example event.`,
    );
    io.inform(
      `To try the client library, put a page into ${relative(io.cwd, serviceDir)}/public/. Relay serves it at /public/.`,
    );
  },
};

/** Binds the schemas to the files in the editor. If other settings exist already, it prints how to add the binding. */
async function writeEditorSettings(serviceDir: string, io: Io): Promise<string | null> {
  const folder = relative(io.cwd, serviceDir).replaceAll("\\", "/");
  if (folder.startsWith("..")) return null;
  const binding = {
    "json.schemas": [
      { fileMatch: [`/${folder}/relays/*.json`], url: `./${folder}/${SCHEMA_FILE}` },
      { fileMatch: [`/${folder}/catalog.json`], url: `./${folder}/${CATALOG_SCHEMA_FILE}` },
    ],
  };
  const file = join(io.cwd, ".vscode", "settings.json");
  if (existsSync(file)) {
    const settings = await readFile(file, "utf8");
    if (binding["json.schemas"].every(({ url }) => settings.includes(JSON.stringify(url)))) return null;
    io.inform(
      `.vscode/settings.json exists already. To check definitions in the editor, add ${JSON.stringify(binding)}`,
    );
    return null;
  }
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(binding, null, 2)}\n`, { flag: "wx" });
  return file;
}

export const schema: Command = {
  words: ["schema"],
  summary: "print the JSON Schema of definitions",
  details: "Editors and other programs can check definition files with the schema.",
  arguments: [
    {
      name: "what",
      help: "relay (the default) or catalog",
      optional: true,
      of: ["relay", "catalog"],
    },
  ],
  options: [],
  examples: ["relay schema", "relay schema catalog"],
  async run(input, io) {
    const what = input.positionals[0] ?? "relay";
    if (what !== "relay" && what !== "catalog")
      throw new UsageError(`There is no schema of ${JSON.stringify(what)}: write relay or catalog.`);
    io.print(writeJson(what === "relay" ? makeDefinitionSchema() : makeCatalogSchema(), 2));
  },
};
