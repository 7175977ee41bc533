/** The tables of a database, compared with those of its schema. */
import { type Finding, failure, fine } from "./finding.ts";

/** The finding for how the tables differ from this version's, as `listTableFaults` says it. */
export function checkTables(differences: readonly string[]): Finding {
  if (differences.length === 0)
    return fine("tables", "Its tables, columns, indexes and triggers are those of its schema.");
  return failure(
    "tables",
    `They are not those of its schema: ${differences.join("; ")}.`,
    "start the version that wrote the database, or restore a backup that a released version made",
  );
}
