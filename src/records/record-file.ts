/** The file law: a file field holds the id of a file already uploaded to the same environment, within the field's own size. */
import type { JsonObject } from "../ground/json.ts";
import type { Problem } from "../ground/refusal.ts";
import type { Reader } from "../store/port.ts";
import type { FieldRules } from "./collection-field.ts";
import { findFile } from "./file.ts";

/** Problems of the files that checked data names. */
export async function checkFiles(
  tx: Reader,
  environmentId: number,
  fields: FieldRules,
  data: JsonObject,
): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const [name, rule] of fields) {
    const id = rule.type === "file" && Object.hasOwn(data, name) ? data[name] : undefined;
    if (typeof id !== "string") continue;
    const field = `data.${name}`;
    const file = await findFile(tx, environmentId, id);
    if (file === null) {
      const message = `\`${field}\` names no file of this environment: upload the file first and use its id.`;
      problems.push({ field, message });
    } else if (rule.max !== null && file.bytes > rule.max) {
      const message = `\`${field}\` names a file of ${file.bytes} bytes: the field takes at most ${rule.max}.`;
      problems.push({ field, message });
    }
  }
  return problems;
}
