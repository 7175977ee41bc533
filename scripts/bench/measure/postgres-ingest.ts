/** Measures how many webhooks a second one node and three nodes store on PostgreSQL. */
import type { Measure } from "../measure.ts";
import { ingestOnPostgres, measureOnPostgres } from "../postgres.ts";

export const postgresIngest: Measure = {
  name: "postgres-ingest",
  what: "signed webhooks stored in a second on PostgreSQL, by one node and by three",
  // Nodes, database and load are more processes than there are processors.
  pinned: false,
  measure: (run) =>
    measureOnPostgres(run, { what: "webhooks stored on PostgreSQL", goal: 0.4, work: ingestOnPostgres }),
};
