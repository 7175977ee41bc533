/** Lists what Home shows as open in an environment: the attention items and, in production, what is wrong with the backups of the server. */
import { toIso } from "../../base/clock.ts";
import type { CopyFailure } from "../../operator/backup/copy-state.ts";
import { checkBackups } from "../../operator/doctor/setup-check.ts";
import type { Environment } from "../../platform/account/environment.ts";
import type { Store } from "../../store/port.ts";
import { type Attention, type AttentionContext, listAttention } from "./attention.ts";
import { type AttentionItem, makeItem } from "./attention-item.ts";

export interface OpenItemContext extends AttentionContext {
  environment: Environment;
  /** The backups that the server must have; null: none. */
  backups: { dataDir: string; backupEveryMs: number | null; copyFailure: CopyFailure | null } | null;
}

export async function listOpenItems(store: Store, context: OpenItemContext): Promise<Attention> {
  const { items, more } = await listAttention(store, context, true);
  const { id } = context.environment;
  const hasRelay = await store.read((tx) =>
    tx.get<object>("SELECT 1 FROM relay WHERE environment_id = ?1 LIMIT 1", id),
  );
  // A server without relays needs no backup yet.
  return { items: hasRelay === null ? items : [...items, ...itemsOfBackup(context)], more };
}

/** A backup is the whole server's, and only production reports it. */
function itemsOfBackup({ environment, backups, clock }: OpenItemContext): AttentionItem[] {
  if (backups === null || environment.name !== "production") return [];
  const { state, message } = checkBackups({ ...backups, clock }, false);
  const items: AttentionItem[] = [];
  if (state !== "ok")
    items.push(makeItem({ code: "backup_missing", target: "server", since: toIso(clock.now()), message }));
  const { copyFailure } = backups;
  if (copyFailure !== null) {
    const since = toIso(copyFailure.atMs);
    items.push(
      makeItem({ code: "backup_copy_failed", target: "server", since, message: copyFailure.message }),
    );
  }
  return items;
}
