/** Documents the definition from its schema: fields, triggers, schemes and actions, each with examples. */

import type { Json } from "../../base/json.ts";
import { NOTICE_VERIFIERS } from "../../rules/action/notice-verifier.ts";
import { ACTIONS } from "../../rules/action/registry.ts";
import { makeDefinitionSchema } from "../../rules/relay/definition-shape.ts";
import { TRIGGERS } from "../../rules/trigger/registry.ts";
import { SCHEMES } from "../../rules/verify/registry.ts";
import { writeTable } from "./markdown.ts";
import {
  asSchema,
  type FieldSchema,
  type ObjectSchema,
  writeFields,
  writeJsonBlock,
} from "./schema-table.ts";

function readSchema(): FieldSchema {
  return asSchema(makeDefinitionSchema());
}

/** Returns the variant of `schema` whose discriminator has this value. */
function variantOf(schema: FieldSchema | undefined, field: string, word: string): ObjectSchema {
  return schema?.oneOf?.find(({ properties }) => properties?.[field]?.const === word) ?? {};
}

export function writeDefinitionFields(): string {
  return writeFields(readSchema());
}

export function writeTriggers(): string {
  const schema = readSchema().properties?.trigger;
  return TRIGGERS.map(({ kind, title, examples }) => {
    const variant = variantOf(schema, "kind", kind);
    return [
      `### ${kind}`,
      `${title}.`,
      writeFields(variant),
      ...(examples as readonly unknown[]).map((example) => writeJsonBlock("trigger", example)),
    ].join("\n\n");
  }).join("\n\n");
}

/** Documents the names in a map that have a meaning. */
export function writeKnownNames(): string {
  const map = variantOf(readSchema().properties?.trigger, "kind", "receiver").properties?.map;
  const rows = Object.entries(map?.["x-known-names"] ?? {}).map(([name, meaning]) => [
    `\`${name}\``,
    meaning,
  ]);
  return writeTable(["name", "meaning"], rows);
}

export function writeSchemes(): string {
  const verify = variantOf(readSchema().properties?.trigger, "kind", "receiver").properties?.verify;
  return SCHEMES.map((scheme) => {
    const { name, title, examples } = scheme;
    const [first] = examples as readonly { scheme: string }[];
    const signs = first === undefined || scheme.signsEvent(first);
    return [
      `### ${name}`,
      `${title}. ${signs ? "The sender signs its events." : "The sender does not sign its events, so the [unsigned-event rule](definition.md#unsigned-events) holds."}`,
      writeFields(variantOf(verify, "scheme", name)),
      ...(examples as readonly unknown[]).map((example) => writeJsonBlock("verify", example)),
    ].join("\n\n");
  }).join("\n\n");
}

const EFFECTS: Readonly<Record<string, string>> = {
  writes: "It writes, and may run for a sender that signs nothing.",
  calls: "It calls out, and may run for a sender that signs nothing.",
  gives: "It gives something to the event's person.",
  takes: "It takes something from the event's person.",
  mails: "It mails the event's person.",
};

export function writeActions(): string {
  const schema = readSchema().properties?.actions?.items;
  return ACTIONS.map(({ type, effect, examples }) => {
    const variant = variantOf(schema, "type", type);
    return [
      `## ${type}`,
      `${variant.description ?? ""} ${EFFECTS[effect] ?? ""}`.trim(),
      writeFields(variant),
      ...(examples as readonly unknown[]).map((example) => writeJsonBlock("action", example)),
    ].join("\n\n");
  }).join("\n\n");
}

/** Writes the code that verifies a call, by language. */
export function writeVerifiers(): string {
  return NOTICE_VERIFIERS.map(({ title, file, language, code }) =>
    [`### ${title}: ${file}`, `\`\`\`${language}\n${code.trimEnd()}\n\`\`\``].join("\n\n"),
  ).join("\n\n");
}

/** Documents what a template may read, by trigger. */
export function writeTemplatePaths(): string {
  const schema = readSchema().properties?.trigger;
  const rows = TRIGGERS.map(({ kind }): Json[] => {
    const paths = (variantOf(schema, "kind", kind) as FieldSchema)["x-template-paths"] ?? [];
    return [`\`${kind}\``, paths.map(showPath).join(", ")];
  });
  return writeTable(["trigger", "what a template may read"], rows as string[][]);
}

const BELOW: Readonly<Record<string, string>> = {
  event: "event.<path>",
  mapped: "mapped.<name>",
  "record.data": "record.data.<field>",
  "previous.data": "previous.data.<field>",
};

function showPath(path: string): string {
  return `\`{{${BELOW[path] ?? path}}}\``;
}
