/** Updates files in local development when a route saves: selects the file of a request, and adds the outcome to its answer. */
import { isJsonObject } from "../../base/json.ts";
import type { Warning } from "../../base/refusal.ts";
import { CATALOG_TARGET } from "../../operator/sync/local-problem.ts";
import type { ProjectFolder } from "../../operator/sync/local-sync.ts";
import { relayTarget } from "../../rules/relay/relay.ts";

/** The subject of a save: the relay that the path or the definition names, or a part of the catalog. Its answer has warnings. */
export type Saves = "relay" | "catalog";

/** Returns the target of the request. */
export function targetOf(
  saves: Saves,
  { params, body }: { params: Readonly<Record<string, string>>; body: unknown },
): string {
  return saves === "catalog" ? CATALOG_TARGET : relayTarget(nameOf(params, body));
}

/**
 * Saves between two reads of the files. The first applies what changed in them, the second writes the save to them. `file` of the answer is that of the
 * first target. A server has no folder.
 */
export async function saveToFiles<Value>(
  folder: ProjectFolder | null,
  targets: readonly string[],
  save: () => Promise<Value>,
): Promise<Value> {
  if (folder === null) return await save();
  await folder.prepare(targets);
  const answer = await save();
  const { file, warnings } = await folder.settle(targets);
  const saved = answer as { warnings: Warning[] };
  const more = { ...(file === undefined ? {} : { file }), warnings: [...saved.warnings, ...warnings] };
  return { ...answer, ...more };
}

/** Returns an empty name for a definition without one, which will be refused. */
function nameOf(params: Readonly<Record<string, string>>, body: unknown): string {
  if (params.name !== undefined) return params.name;
  const { definition } = body as { definition?: unknown };
  return isJsonObject(definition) && typeof definition.name === "string" ? definition.name : "";
}
