/** Why a save is refused, beyond the definition itself: the name, the cap, the fixed name, the fixed trigger kind. They write nothing. */
import { Refusal, refuseDefinition } from "../ground/refusal.ts";
import type { Reader } from "../store/port.ts";
import type { Definition } from "./definition.ts";
import type { RelayContext } from "./relay-context.ts";
import { findRelay, type RelayRow } from "./relay-row.ts";

export async function refuseNameTaken(tx: Reader, context: RelayContext, name: string): Promise<void> {
  if ((await findRelay(tx, context.environment.id, name)) === null) return;
  throw new Refusal(
    "name_taken",
    `A relay named ${name} exists in this environment: choose another name, or save that relay.`,
  );
}

export async function refuseCapped(tx: Reader, context: RelayContext): Promise<void> {
  const limit = context.limits.relaysPerEnvironment;
  const sql = "SELECT count(*) AS count FROM relay WHERE environment_id = ?1";
  const count = (await tx.get<{ count: number }>(sql, context.environment.id))?.count ?? 0;
  if (count < limit) return;
  throw new Refusal(
    "relay_capped",
    `This environment holds ${count} relays, and its limit is ${limit}: delete one that is no longer used, or raise the limit in the server's configuration.`,
  );
}

export function refuseOtherName(name: string, definition: Definition): void {
  if (definition.name === name) return;
  const message = `\`name\` is fixed once the relay is created: keep ${name}, or create a relay with the new name and delete this one.`;
  throw refuseDefinition([{ field: "name", message }]);
}

export function refuseOtherKind(
  context: RelayContext,
  row: RelayRow,
  before: Definition,
  after: Definition,
): void {
  if (row.syncedAt === null || context.environment.name === "local") return;
  if (before.trigger.kind === after.trigger.kind) return;
  throw new Refusal(
    "trigger_kind_fixed",
    `The relay ${row.name} was synced as a ${before.trigger.kind} and its trigger kind cannot change: rename the relay, or delete its file, prune it in development and sync again.`,
  );
}
