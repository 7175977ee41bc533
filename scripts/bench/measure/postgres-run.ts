/** Measures how many events a second one node and three nodes receive and complete on PostgreSQL. */
import type { Measure } from "../measure.ts";
import { drainOnPostgres, measureOnPostgres } from "../postgres.ts";

export const postgresRun: Measure = {
  name: "postgres-run",
  what: "webhooks received and done in a second on PostgreSQL, by one node and by three",
  // Nodes, database and load are more processes than there are processors.
  pinned: false,
  measure: (run) =>
    measureOnPostgres(run, { what: "received and done on PostgreSQL", goal: 0.2, work: drainOnPostgres }),
};
