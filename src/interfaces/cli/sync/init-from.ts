/**
 * Writes a relay's file with a sender's recipe and adds its collection to catalog.json (`relay init --from <sender>`). Then it lists the
 * remaining steps.
 */
import { existsSync, readFileSync } from "node:fs";
import { relative } from "node:path";
import { isJsonObject, type JsonObject, parseJson } from "../../../base/json.ts";
import { RELAY_NAME } from "../../../base/shape.ts";
import { catalogPath } from "../../../operator/sync/catalog-file.ts";
import { editCatalog } from "../../../operator/sync/catalog-file-edit.ts";
import { definitionPath } from "../../../operator/sync/definition-file.ts";
import { writeUnchangedFile } from "../../../operator/sync/file-write.ts";
import { editJson, writeFileText } from "../../../operator/sync/json-edit.ts";
import { findSender } from "../../../rules/senders/registry.ts";
import type { Sender } from "../../../rules/senders/sender.ts";
import { startCatalog, startDefinition, startSteps } from "../../../rules/senders/sender-start.ts";
import { CommandFailure, UsageError } from "../command.ts";
import { type Io, programWord } from "../io.ts";
import { formatUnknownSender } from "./presets.ts";

export interface FromSender {
  sender: Sender;
  /** The relay's name. */
  name: string;
}

/** Reads the sender and the name. Throws if there is no such sender, or the name is invalid. */
export function readFrom(from: string, name: string | null, io: Io): FromSender {
  const sender = findSender(from.toLowerCase());
  if (sender === null) throw new CommandFailure("not_found", formatUnknownSender(from, programWord(io)));
  if (name !== null && !RELAY_NAME.test(name))
    throw new UsageError(
      `--name is ${JSON.stringify(name)}: write 2 to 63 lowercase letters, digits and hyphens, starting with a letter.`,
    );
  return { sender, name: name ?? sender.name };
}

/** Writes the relay and the collection that it names, and returns the written files. It refuses if a relay of that name exists. */
export function writeFrom(serviceDir: string, { sender, name }: FromSender, io: Io): string[] {
  const path = definitionPath(serviceDir, name);
  if (existsSync(path))
    throw new CommandFailure(
      "name_taken",
      `${relative(io.cwd, path)} exists and was not changed: give the new relay another name with --name.`,
    );
  const catalog = catalogPath(serviceDir);
  const [read, wanted] = readCatalog(catalog, sender);
  writeUnchangedFile(path, null, writeFileText(startDefinition(sender, name)));
  if (wanted === null) return [path];
  writeUnchangedFile(catalog, read, read === null ? writeFileText(wanted) : editJson(read, wanted));
  return [path, catalog];
}

/** Returns the catalog's text, and its value with the sender's collection. The value is null if the catalog has a collection of that name. */
function readCatalog(path: string, sender: Sender): [read: string | null, wanted: JsonObject | null] {
  const { collections } = startCatalog(sender);
  const read = existsSync(path) ? readFileSync(path, "utf8") : null;
  const written = read === null ? {} : parseCatalog(path, read);
  const standing = isJsonObject(written.collections) ? written.collections : {};
  const missing = Object.entries(isJsonObject(collections) ? collections : {}).filter(
    ([name]) => !Object.hasOwn(standing, name),
  );
  if (missing.length === 0) return [read, null];
  return [
    read,
    editCatalog(
      written,
      missing.map(([name, content]) => ({ kind: "collection", name, content: content as JsonObject })),
    ),
  ];
}

/** Reads a catalog as JSON. Throws if it is none. */
export function parseCatalog(path: string, text: string): JsonObject {
  try {
    const value = parseJson(text.replace(/^\uFEFF/, ""));
    if (isJsonObject(value)) return value;
  } catch {
    // The code below reports it.
  }
  throw new CommandFailure(
    "invalid_definition",
    `${path} is no JSON object, and nothing was written: relay validate shows the position.`,
  );
}

/** Prints the remaining steps, in order. */
export function printSenderSteps({ sender, name }: FromSender, io: Io): void {
  const relay = programWord(io);
  const secret =
    sender.secret.from === "relay"
      ? `${relay} dev generates the secret and writes it to .secrets.json`
      : `${relay} relays set-secret ${name} stores the secret while ${relay} dev runs. Until then, ${relay} send signs with a secret that ${relay} dev generated`;
  io.inform("");
  for (const step of startSteps(sender)) io.inform(`- ${step}`);
  io.inform(`- ${secret}.`);
  for (const pitfall of sender.pitfalls) io.inform(`  Note: ${pitfall}`);
  io.inform("");
  io.inform(`Next, run ${relay} dev. It shows the receiver URL and watches these files.`);
  io.inform(
    `Then, in another terminal, run ${relay} send ${name}. It sends an example event as ${sender.title} does.`,
  );
}
