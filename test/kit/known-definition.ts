/** Every definition that the project ships or tests: the senders' starts, the kits, the templates and the valid ones of the gallery. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Json } from "../../src/base/json.ts";
import { checkDefinition } from "../../src/rules/relay/definition.ts";
import { RELAY_TEMPLATES } from "../../src/rules/relay/relay-template.ts";
import { KIT_NAMES, kitDefinitions } from "../../src/rules/senders/kit-definitions.ts";
import { KITS } from "../../src/rules/senders/kit-registry.ts";
import { requireSender, SENDERS } from "../../src/rules/senders/registry.ts";
import { startDefinition } from "../../src/rules/senders/sender-start.ts";

const GALLERY = join(import.meta.dir, "..", "golden", "definition-gallery.json");

export function listKnownDefinitions(): [title: string, definition: Json][] {
  const gallery = JSON.parse(readFileSync(GALLERY, "utf8")) as { title: string; definition: Json }[];
  return [
    ...SENDERS.map((sender): [string, Json] => [`sender ${sender.name}`, startDefinition(sender)]),
    ...KITS.flatMap((kit) =>
      kitDefinitions(kit, requireSender(kit.sender), KIT_NAMES).relays.map((one): [string, Json] => [`kit ${kit.sender}`, one as unknown as Json]),
    ),
    ...RELAY_TEMPLATES.map(({ name, definition }): [string, Json] => [`template ${name}`, definition as unknown as Json]),
    ...gallery
      .filter(({ definition }) => !("problems" in checkDefinition(definition)))
      .map(({ title, definition }): [string, Json] => [`gallery ${title}`, definition]),
  ];
}
