/**
 * What a relay reads of its events that their sender leaves unsigned, where it signs some values of the body alone: whoever captures one call
 * could write these anew and send the rest as it was. What a relay does with nobody (writing a record, calling a URL) may read them.
 */
import type { Json } from "../ground/json.ts";
import type { Problem } from "../ground/refusal.ts";
import { joinField, showName, showText } from "../ground/shape.ts";
import { listTemplateUses } from "../template/template.ts";
import { bindScheme } from "../verify/registry.ts";

interface ReadingParts {
  trigger: { kind: string; verify?: { scheme: string; [field: string]: Json }; map?: Record<string, string> };
  actions: readonly ({ type: string } | null)[];
}

interface UnsignedRead {
  /** Where the definition says it. */
  field: string;
  /** What it reads of the body. */
  path: string;
}

/** null: no receiver, or its sender signs the whole body or nothing of it. */
export function signedPathsOf({ kind, verify }: ReadingParts["trigger"]): readonly string[] | null {
  if (kind !== "receiver" || verify === undefined) return null;
  return bindScheme(verify)?.signedPaths ?? null;
}

/** What its map reads. */
export function listMappedUnsigned(trigger: ReadingParts["trigger"]): UnsignedRead[] {
  const signed = signedPathsOf(trigger);
  if (signed === null) return [];
  return Object.entries(trigger.map ?? {}).flatMap(([name, path]) =>
    signed.includes(path) ? [] : [{ field: joinField("trigger.map", name), path }],
  );
}

/** What its map reads, and the templates of those of its actions that act on people. */
export function listUnsignedReads(
  { trigger, actions }: ReadingParts,
  acts: (type: string) => boolean,
): UnsignedRead[] {
  const signed = signedPathsOf(trigger);
  if (signed === null) return [];
  const templates = actions.flatMap((action, index) =>
    action === null || !acts(action.type) ? [] : listTemplateUses(action as Json, `actions.${index}`),
  );
  const inTemplates = templates.flatMap(({ field, path }): UnsignedRead[] => {
    const [root, ...rest] = path.split(".");
    const read = rest.join(".");
    return root !== "event" || signed.includes(read) ? [] : [{ field, path: read }];
  });
  return [...listMappedUnsigned(trigger), ...inTemplates];
}

/** The problem of reading such a value in a relay that acts on people. */
export function refuseUnsignedRead({ field, path }: UnsignedRead, signed: readonly string[]): Problem {
  const last = signed.map((one) => one.split(".").at(-1) ?? one);
  const message = `${showName(field)} reads ${showText(path)}, which this sender does not sign, so that anyone who captures one call could write it anew, and this relay acts on people: read one of what is signed (${last.join(", ")}), read it with {{event.…}} in write_record or call_url alone, or accept the risk with trigger.trustUnsignedEvents: true.`;
  return { field, message };
}
