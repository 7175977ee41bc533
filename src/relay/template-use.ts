/** Every path that the templates of a definition's part name, each with the field it stands in. */
import type { Json } from "../ground/json.ts";
import { joinField } from "../ground/shape.ts";
import { listTemplatePaths } from "../template/template.ts";

interface TemplateUse {
  /** `actions.0.data.title` */
  field: string;
  /** `record.data.title` */
  path: string;
}

export function listTemplateUses(value: Json, field: string): TemplateUse[] {
  if (typeof value === "string") return listTemplatePaths(value).map((path) => ({ field, path }));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, part]) => listTemplateUses(part, joinField(field, name)));
}
