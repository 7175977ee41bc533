/** The tables of a database, compared with those of its schema. */
import { type Finding, fail, pass } from "./finding.ts";

/** The finding for how the tables differ from this version's, as `listTableFaults` says it. */
export function checkTables(differences: readonly string[]): Finding {
  if (differences.length === 0)
    return pass("tables", "Its tables, columns, indexes and triggers are those of its schema.");
  return fail(
    "tables",
    `They are not those of its schema: ${differences.join("; ")}.`,
    "start the version that wrote the database, or restore a backup that a released version made",
  );
}
