/** Reads every row of every table, to show that a request changed nothing. */
import { TABLES } from "./chosen-store.ts";
import type { BareService } from "./running-service.ts";

/** The tables in which a node of PostgreSQL shows every few seconds that it runs. */
const HEARTBEATS = new Set(["node", "node_lease", "writer_commit", "writer_scope", "writer_turn"]);

export async function readWholeDatabase(running: Pick<BareService, "rows">): Promise<string> {
  const tables = await running.rows<{ name: string }>(TABLES);
  const all: Record<string, unknown> = {};
  for (const { name } of tables) if (!HEARTBEATS.has(name)) all[name] = await running.rows(`SELECT * FROM "${name}"`);
  return JSON.stringify(all, (_key, value) => (typeof value === "bigint" ? `${value}n` : value));
}
