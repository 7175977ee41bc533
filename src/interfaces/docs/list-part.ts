/** Documents lists that need only a table: the actions of the audit, and the metrics by name. */
import { AUDIT_ACTIONS } from "../../platform/audit/audit-action.ts";
import { writeTable } from "./markdown.ts";

export function writeAuditActions(): string {
  const rows = Object.entries(AUDIT_ACTIONS).map(([action, sentence]) => [`\`${action}\``, sentence]);
  return writeTable(["action", "meaning"], rows);
}

/** The parts of a metric that the page uses. The elements of the metrics' list have this shape. */
interface DocumentedMetric {
  name: string;
  help: string;
  kind: string;
}

export function writeMetrics(metrics: readonly DocumentedMetric[]): string {
  const rows = metrics
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .map(({ name, kind, help }) => [`\`${name}\``, kind, help]);
  return writeTable(["metric", "kind", "what it says"], rows);
}
