/**
 * Lists and ends what stays valid when an owner's password is reset: keys made in the dashboard or on the command line, and the other owners. A
 * person who knew the password may have made them. Keys of `relay login` belong to their owner and end with the password.
 */
import { Refusal } from "../../base/refusal.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { type ApiKeyKind, revokeApiKey } from "./api-key.ts";
import { listOwners, type Owner, removeOwner } from "./owner.ts";

interface ValidKey {
  id: string;
  environmentId: number;
  app: string;
  environment: string;
  kind: ApiKeyKind;
  name: string;
  hint: string;
}

/** Every live key that is no login's, by app and environment. */
export function listValidKeys(tx: Reader): Promise<ValidKey[]> {
  return tx.all<ValidKey>(
    `SELECT api_key.id, environment_id AS environmentId, app_id AS app, environment.name AS environment, kind, api_key.name, hint
     FROM environment JOIN api_key INDEXED BY api_key_by_environment ON environment_id = environment.id
     WHERE deleted_at IS NULL AND revoked_at IS NULL AND owner_id IS NULL ORDER BY app_id, environment.name, api_key.id`,
  );
}

export async function listOtherOwners(tx: Reader, ownerId: string): Promise<Owner[]> {
  return (await listOwners(tx)).filter(({ id }) => id !== ownerId);
}

/** Revokes the keys; skips keys that were revoked in the meantime. */
export async function revokeKeys(tx: Writer, keys: readonly ValidKey[], nowMs: number): Promise<void> {
  for (const { id, environmentId } of keys)
    await revokeApiKey(tx, environmentId, id, nowMs).catch((error: unknown) => {
      if (!(error instanceof Refusal)) throw error;
    });
}

export async function removeOwners(tx: Writer, owners: readonly Owner[]): Promise<void> {
  for (const { id } of owners) await removeOwner(tx, id);
}
