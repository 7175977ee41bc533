/** In local development what is saved stands in a file too: which one a call is about, and what its answer says of it. */
import { isJsonObject } from "../../base/json.ts";
import type { Warning } from "../../base/refusal.ts";
import { CATALOG_TARGET } from "../../operator/sync/local-problem.ts";
import type { ProjectFolder } from "../../operator/sync/local-sync.ts";
import { relayTarget } from "../../rules/relay/relay.ts";

/** What a route saves: the relay that its path or its definition names, or something of the catalog. Its answer has warnings. */
export type Saves = "relay" | "catalog";

/** Does the save between two looks at the files: it meets what changed in them, and is written to them. */
export async function saveToFile<Value>(
  folder: ProjectFolder,
  saves: Saves,
  { params, body }: { params: Readonly<Record<string, string>>; body: unknown },
  save: () => Promise<Value>,
): Promise<Value> {
  const target = saves === "catalog" ? CATALOG_TARGET : relayTarget(nameOf(params, body));
  await folder.prepare(target);
  const answer = await save();
  const { file, warnings } = await folder.settle(target);
  const said = answer as { warnings: Warning[] };
  const more = { ...(file === undefined ? {} : { file }), warnings: [...said.warnings, ...warnings] };
  return { ...answer, ...more };
}

/** Empty for a definition that will be refused for having no name. */
function nameOf(params: Readonly<Record<string, string>>, body: unknown): string {
  if (params.name !== undefined) return params.name;
  const { definition } = body as { definition?: unknown };
  return isJsonObject(definition) && typeof definition.name === "string" ? definition.name : "";
}
